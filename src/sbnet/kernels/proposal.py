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
from sbnet.kernels.upper import Regions, log_table

_LARGE_PRODUCT, _SMALL_PRODUCT = 1e250, 1e-8  # what is multiplied up before the logarithm is taken

drawn_t = struct(
    ("gate", "i8"),
    ("states", "i8"),  # how many it has
    ("line", "i8"),  # its first threshold
    ("column", "i8"),  # its first column
    ("first", "i8"),  # where the probabilities of its states begin in the factorial distribution
    ("omega", "f8"),
    ("share", "f8"),  # of its own bracket in the proposal
    ("member", "i8"),  # where the tables that it is in begin, and end
    ("member_end", "i8"),
)
member_t = struct(
    ("family", "i8"),
    ("share", "f8"),  # of the table in the proposal
    ("block", "i8"),  # joint states of the parents before the variable there
    ("begin", "i8"),  # where the probabilities of its states stand, given those
)
link_t = struct(("line", "u4"), ("weight", "f8"))  # a column in the input of a child's threshold
seen_t = struct(("line", "i8"), ("gate", "i8"), ("level", "i8"), ("state", "i8"))  # a threshold of an observed variable


class Joint(NamedTuple):
    """What a joint state is drawn from, and what its probability depends on."""

    drawn: np.ndarray  # of drawn_t, parents first
    members: np.ndarray  # of member_t
    tables: FloatArray  # probabilities of states in tables, given the states of the parents before
    eta: FloatArray  # by column
    p: FloatArray  # of the factorial distribution: a number for each state of each variable
    log_p: FloatArray
    links: np.ndarray  # of link_t
    link: IndexArray  # by column: where its links begin, and end
    seen: np.ndarray  # of seen_t
    bias: FloatArray  # by line


@kernel
def condition(regions: Regions, x: FloatArray, place: IndexArray, tables: FloatArray) -> None:
    """The probabilities of each parent's states in the distribution over a table, given the parents before it.

    Those of an entry's parent begin at its `place`: for state s, after joint state c of the parents before, at
    s * block + c.
    """
    families, lines, entries, nodes, eta, _, _, _, by_state = regions
    for f in range(len(families)):
        family = families[f]
        if family.table == 1:
            continue
        omega = nodes[family.hidden].omega if family.hidden >= 0 else 1.0
        log_table(family, lines, entries, omega, eta, by_state, x)
        for s in range(family.entry + family.width - 1, family.entry - 1, -1):
            block, states, tau = entries[s].block, nodes[entries[s].parent].states, family.tau
            if entries[s].begin > block:
                continue
            for c in range(block):
                top, total = -math.inf, 0.0
                for k in range(states):
                    top = max(top, by_state[0, k * block + c])
                for k in range(states):
                    share = math.exp((by_state[0, k * block + c] - top) / tau)
                    tables[place[s] + k * block + c] = share
                    total += share
                for k in range(states):
                    tables[place[s] + k * block + c] /= total
                by_state[0, c] = top + tau * math.log(total)


@kernel
def draw(joint: Joint, seeds: NDArray[np.uint64], from_factorial: BoolArray, out: FloatArray) -> None:
    """For each seed, ln P(H, V), ln q(H) and ln of the factorial distribution: three rows of `out`."""
    drawn, members, tables, eta, p, log_p, links, link, seen, bias = joint
    z, node, q = np.empty(len(bias)), np.zeros(len(bias), np.int64), np.empty(64)
    for t in range(len(seeds)):
        for i in range(len(bias)):
            z[i], node[i] = bias[i], 0
        seed, log_joint, log_q, log_factorial, product = seeds[t], 0.0, 0.0, 0.0, 1.0
        for v in range(len(drawn)):
            one = drawn[v]
            if one.states == 2:
                _propose_two(one, members, tables, eta, z, node, q)
            else:
                _propose(one, members, tables, eta, z, node, q)
            total = 0.0
            for k in range(one.states):
                total += q[k]
            seed += GOLDEN
            u, state, above = uniform(seed), one.states - 1, 0.0
            while state > 0:
                above += p[one.first + state] if from_factorial[t] else q[state]
                if (u if from_factorial[t] else u * total) < above:
                    break
                state -= 1
            product *= max(q[state] / total, LEAST)
            if product < _SMALL_PRODUCT:
                log_q, product = log_q + math.log(product), 1.0
            log_factorial += log_p[one.first + state]
            for i in range(one.states - 1):
                log_joint += log_part(one.gate, i + 1, state, z[one.line + i])
            if state > 0:
                mine = links[link[one.column + state - 1] : link[one.column + state]]
                for c in range(len(mine)):
                    z[mine[c].line] += mine[c].weight
                for m in range(one.member, one.member_end):
                    node[members[m].family] += state * members[m].block
        out[0, t], out[1, t], out[2, t] = log_joint + _observed(seen, z), log_q + math.log(product), log_factorial


@inner
def _propose_two(
    one: Any, members: np.ndarray, tables: FloatArray, eta: FloatArray, z: FloatArray, node: IndexArray, q: FloatArray
) -> None:
    """The probabilities of a variable's two states: a mean over its own bracket and the tables it is in."""
    log_odds = z[one.line]
    if one.gate != SIGMOID:
        log_odds = max(log_odds, 0.0) - rarity(log_odds)
    y = (log_odds + eta[one.column]) / one.omega
    off, on = one.share * sigmoid(-y), one.share * sigmoid(y)
    for m in range(one.member, one.member_end):
        member = members[m]
        c = member.begin + node[member.family]
        off += member.share * tables[c]
        on += member.share * tables[c + member.block]
    q[0], q[1] = off, on


@inner
def _propose(
    one: Any, members: np.ndarray, tables: FloatArray, eta: FloatArray, z: FloatArray, node: IndexArray, q: FloatArray
) -> None:
    """Those of any number of states."""
    top, total = -math.inf, 0.0
    for k in range(one.states):
        q[k] = eta[one.column + k - 1] if k > 0 else 0.0
        for i in range(one.states - 1):
            q[k] += log_part(one.gate, i + 1, k, z[one.line + i])
        top = max(top, q[k])
    for k in range(one.states):
        q[k] = math.exp((q[k] - top) / one.omega)
        total += q[k]
    for k in range(one.states):
        q[k] *= one.share / total
    for m in range(one.member, one.member_end):
        member = members[m]
        for k in range(one.states):
            q[k] += member.share * tables[member.begin + k * member.block + node[member.family]]


@inner
def _observed(seen: np.ndarray, z: FloatArray) -> float:
    """ln P of the observed variables. Those of sigmoid ones are multiplied up before the logarithm is taken."""
    total, product = 0.0, 1.0
    for c in range(len(seen)):
        one = seen[c]
        x = z[one.line]
        if one.gate == SIGMOID and one.state >= one.level - 1:
            x = -x if one.state >= one.level else x
            total -= max(x, 0.0)
            product *= 1.0 + math.exp(-abs(x))
            if product > _LARGE_PRODUCT:
                total, product = total - math.log(product), 1.0
        else:
            total += log_part(one.gate, one.level, one.state, x)
    return total - math.log(product)
