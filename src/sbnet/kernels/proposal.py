"""Joint states of hidden variables, drawn from what an upper bound defines.

`sbnet.bounds.upper.proposal` has the proof. Variables are drawn parents first. For each joint state there are three
logarithms: of P(H, V), of the proposal of the upper bound and of a factorial distribution, whichever of the two it was
drawn from.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sbnet._types import BoolArray, FloatArray, IndexArray
from sbnet.kernels.codes import LEAST, SIGMOID
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.random import GOLDEN, uniform
from sbnet.kernels.structs import struct
from sbnet.kernels.thresholds import log_part, rarity, sigmoid
from sbnet.kernels.upper import Regions, log_table, mix_states

_LARGE_PRODUCT, _SMALL_PRODUCT = 1e200, 1e-8  # what is multiplied up before the logarithm is taken

table_t = struct(
    ("family", "i8"),
    ("share", "f8"),  # of the table in the proposal
    ("block", "i8"),  # joint states of the parents before the variable there
    ("begin", "i8"),  # where the probabilities of its states stand, given those
)
link_t = struct(("line", "u4"), ("weight", "f8"))  # a column in the input of a child's threshold


class Joint(NamedTuple):
    """What a joint state is drawn from, and what its probability depends on.

    Hidden variable k is in the tables from ``table[k]`` on, column j in the links from ``link[j]`` on. Numbers for each
    state of a variable with its first column j begin at k + j.
    """

    regions: Regions
    tables: np.ndarray  # of table_t
    table: IndexArray
    in_tables: FloatArray  # probabilities of states in tables, given the states of the parents before
    share: FloatArray  # of each hidden variable's own bracket in the proposal
    p: FloatArray  # of the factorial distribution
    log_p: FloatArray
    links: np.ndarray  # of link_t
    link: IndexArray


@kernel
def condition(regions: Regions, x: FloatArray, place: IndexArray, in_tables: FloatArray) -> None:
    """The probabilities of each parent's states in the distribution over a table, given the parents before it.

    Those of an entry's parent begin at its `place`: for state s, after joint state c of the parents before, at
    s * block + c.
    """
    families, lines, entries, _, nodes, eta, _, _, _, by_state = regions
    for f in range(len(families)):
        family = families[f]
        if family.table == 1:
            continue
        omega = nodes[family.hidden].omega if family.hidden >= 0 else 1.0
        log_table(family, lines, entries, omega, eta, by_state, x)
        if family.hidden >= 0 and family.states > 2:
            mix_states(family.states - 1, family.table, omega, by_state)
        for s in range(family.entry + family.width - 1, family.entry - 1, -1):
            block, states, tau = entries[s].block, nodes[entries[s].parent].states, family.tau
            for c in range(block if entries[s].begin == block else 0):
                top, total = -math.inf, 0.0
                for k in range(states):
                    top = max(top, by_state[0, k * block + c])
                for k in range(states):
                    share = math.exp((by_state[0, k * block + c] - top) / tau)
                    in_tables[place[s] + k * block + c] = share
                    total += share
                for k in range(states):
                    in_tables[place[s] + k * block + c] /= total
                by_state[0, c] = top + tau * math.log(total)


@kernel
def draw(
    joint: Joint, seeds: NDArray[np.uint64], from_factorial: BoolArray, z: FloatArray, q: FloatArray, node: IndexArray,
    out: FloatArray,
) -> None:  # fmt: skip
    """For each seed, ln P(H, V), ln q(H) and ln of the factorial distribution: three rows of `out`.

    Scratch: the inputs z of thresholds, probabilities q of states, the joint state of the parents in each table.
    Probabilities are multiplied up before the logarithm is taken.
    """
    regions, tables, table, in_tables, share, p, log_p, links, link = joint
    families, lines, nodes, eta = regions.families, regions.lines, regions.nodes, regions.eta
    for t in range(len(seeds)):
        for i in range(len(z)):
            z[i] = lines[i].bias
        for f in range(len(node)):
            node[f] = 0
        seed, log_joint, below, log_q, log_factorial, product = seeds[t], 0.0, 1.0, 0.0, 0.0, 1.0
        for f in range(len(families)):
            family = families[f]
            state, v = family.state, family.hidden
            if v >= 0:
                near, first, total = tables[table[v] : table[v + 1]], family.column + v, 0.0
                if family.states == 2:
                    _propose_two(family, nodes[v].omega, share[v], near, in_tables, eta, z, node, q)
                else:
                    _propose(family, nodes[v].omega, share[v], near, in_tables, eta, z, node, q)
                for k in range(family.states):
                    total += q[k]
                seed += GOLDEN
                u, state, above = uniform(seed), family.states - 1, 0.0
                while state > 0:
                    above += p[first + state] if from_factorial[t] else q[state]
                    if (u if from_factorial[t] else u * total) < above:
                        break
                    state -= 1
                product *= max(q[state] / total, LEAST)
                if product < _SMALL_PRODUCT:
                    log_q, product = log_q + math.log(product), 1.0
                log_factorial += log_p[first + state]
                if state > 0:
                    mine = links[link[family.column + state - 1] : link[family.column + state]]
                    for c in range(len(mine)):
                        z[mine[c].line] += mine[c].weight
                    for m in range(len(near)):
                        node[near[m].family] += state * near[m].block
            for i in range(family.states - 1):
                x = z[family.line + i]
                if family.gate != SIGMOID:
                    log_joint += log_part(family.gate, i + 1, state, x)
                elif state >= i:
                    x = -x if state > i else x
                    log_joint -= max(x, 0.0)
                    below *= 1.0 + math.exp(-abs(x))
            if below > _LARGE_PRODUCT:
                log_joint, below = log_joint - math.log(below), 1.0
        out[0, t], out[1, t], out[2, t] = log_joint - math.log(below), log_q + math.log(product), log_factorial


@inner
def _propose_two(
    family: Any, omega: float, share: float, tables: np.ndarray, in_tables: FloatArray, eta: FloatArray, z: FloatArray,
    node: IndexArray, q: FloatArray,
) -> None:  # fmt: skip
    """The probabilities of a variable's two states, a mean over its own bracket and the tables it is in."""
    log_odds = z[family.line]
    if family.gate != SIGMOID:
        log_odds = max(log_odds, 0.0) - rarity(log_odds)
    y = (log_odds + eta[family.column]) / omega
    off, on = share * sigmoid(-y), share * sigmoid(y)
    for m in range(len(tables)):
        table = tables[m]
        c = table.begin + node[table.family]
        off += table.share * in_tables[c]
        on += table.share * in_tables[c + table.block]
    q[0], q[1] = off, on


@inner
def _propose(
    family: Any, omega: float, share: float, tables: np.ndarray, in_tables: FloatArray, eta: FloatArray, z: FloatArray,
    node: IndexArray, q: FloatArray,
) -> None:  # fmt: skip
    """The proposals of a family with any number of states."""
    top, total = -math.inf, 0.0
    for k in range(family.states):
        q[k] = eta[family.column + k - 1] if k > 0 else 0.0
        for i in range(family.states - 1):
            q[k] += log_part(family.gate, i + 1, k, z[family.line + i])
        top = max(top, q[k])
    for k in range(family.states):
        q[k] = math.exp((q[k] - top) / omega)
        total += q[k]
    for k in range(family.states):
        q[k] *= share / total
        for m in range(len(tables)):
            q[k] += tables[m].share * in_tables[tables[m].begin + k * tables[m].block + node[tables[m].family]]
