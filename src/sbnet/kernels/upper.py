"""The upper bound on ln P(evidence) at given parameters, and its gradient; `sbnet.bounds.upper` has the proof."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels.compiling import inner
from sbnet.kernels.structs import struct
from sbnet.kernels.thresholds import log_part
from sbnet.kernels.upper_gates import bracket, curvature, highest_hidden, peak, peak_hidden

LARGEST = 25.0  # of the logarithm of a claim: weights of Hölder's inequality stay above e^-25

family_t = struct(
    ("variable", "i8"),  # its number in the network
    ("gate", "i8"),
    ("states", "i8"),  # how many it has
    ("state", "i8"),  # the observed one, or -1
    ("hidden", "i8"),  # its number among the hidden variables, or -1
    ("column", "i8"),  # and its first column
    ("line", "i8"),  # the first of its lines, one for each threshold
    ("entry", "i8"),  # the first of its entries; those of each threshold follow one another
    ("width", "i8"),  # how many a threshold has
    ("table", "i8"),  # joint states of the parents in its table
    ("claim", "f8"),  # its part of the weights of the parents in its table, before these add up to one
    ("tau", "f8"),  # the weight itself
    ("entropy", "f8"),  # the derivative in it
    ("busiest", "i8"),  # the parent in its table that has the largest claims on it, or -1
)
line_t = struct(
    ("threshold", "i8"),  # its number in the network
    ("family", "i8"),
    ("a", "f8"),  # ln P of an observed variable is the sum of a x - c t(x); NaN for a hidden one
    ("c", "f8"),
    ("bias", "f8"),  # with the evidence absorbed
    ("low", "f8"),  # where the parents outside of the table move the input to
    ("high", "f8"),
    ("lam", "f8"),  # the slope
    ("curvature", "f8"),  # the mean curvature of t
)
entry_t = struct(
    ("weight", "f8"),
    ("parent", "u4"),  # the hidden variable
    ("column", "u4"),
    ("block", "u4"),  # joint states of the parents before it in the table; 0 if it is not in the table
    ("begin", "u4"),  # where the joint states begin in which the parent has this state
)
node_t = struct(
    ("states", "i8"),  # how many it has
    ("claims", "f8"),  # the sum of the claims on it
    ("omega", "f8"),  # the weight of its own bracket
    ("entropy", "f8"),  # the derivative in it
    ("pull", "f8"),  # how the bound changes with its claims
)


class Regions(NamedTuple):
    """How the bound is made up, and what an evaluation finds.

    A *family* is a variable with its parents: hidden, or observed with hidden parents, and not summed exactly with its
    group. The joint states of the parents in its table are enumerated; the others together move the input of each
    threshold between two numbers, and a *line* stands for them. An *entry* is a column of a parent in the input of a
    threshold. Joint states count up with the first parent's state first.

    Parameters are a slope b for each entry (of a first threshold, in a table; none of the others matters), then one for
    each line, then the logarithm of the claim of each family.
    """

    families: np.ndarray  # of family_t, parents first
    lines: np.ndarray  # of line_t
    entries: np.ndarray  # of entry_t
    nodes: np.ndarray  # of node_t, by hidden variable
    eta: FloatArray  # by column: what the children send up
    mu: FloatArray  # by column: the mean
    line: IndexArray  # by entry
    place: IndexArray  # by entry: where its weight stands in the network
    by_state: FloatArray  # scratch: rows of numbers for each joint state in a table, see `log_table`


@inner
def weigh(
    families: np.ndarray, lines: np.ndarray, entries: np.ndarray, nodes: np.ndarray, eta: FloatArray, x: FloatArray
) -> None:
    """What the children of each variable send up, and Hölder's weights: those of a variable add up to one."""
    n, claims = len(entries), len(entries) + len(lines)
    for k in range(len(nodes)):
        node = nodes[k]
        node.claims = node.entropy = node.pull = 0.0
        node.omega = 1.0
    for j in range(len(eta)):
        eta[j] = 0.0
    for f in range(len(families)):
        family = families[f]
        first, last, width = family.entry, family.entry + family.width, family.width
        for i in range(family.states - 1):
            lines[family.line + i].lam = lam = x[n + family.line + i]
            for s in range(first, last):
                if entries[s].block == 0:
                    eta[entries[s].column] += entries[s + i * width].weight * lam
        claim = math.exp(min(max(x[claims + f], -LARGEST), LARGEST))
        family.claim = claim
        if family.table > 1:
            for s in range(first, last):
                entry = entries[s]
                if entry.block > 0:
                    eta[entry.column] += x[s]
                    if entry.begin == entry.block:  # once for each parent
                        nodes[entry.parent].claims += claim
    for f in range(len(families)):
        family = families[f]
        most, busiest, tau = 0.0, -1, 1.0
        if family.table > 1:
            first, last = family.entry, family.entry + family.width
            for s in range(first, last):
                if entries[s].block > 0 and nodes[entries[s].parent].claims > most:
                    busiest = entries[s].parent
                    most = nodes[busiest].claims
            tau = family.claim / (1.0 + most)
            for s in range(first, last):
                if entries[s].block > 0 and entries[s].begin == entries[s].block:
                    node = nodes[entries[s].parent]
                    node.omega = max(node.omega - tau, 1e-12)  # more weight than one is valid too
        family.busiest, family.tau = busiest, tau


@inner
def log_table(
    family: Any, lines: np.ndarray, entries: np.ndarray, omega: float, eta: FloatArray, by_state: FloatArray,
    x: FloatArray,
) -> None:  # fmt: skip
    """The exponents max [G - lam t] - b S for the joint states of the parents in a table: the first row of `by_state`.

    The second row is the entropy of the variable itself. Then there are three for each threshold: its input, with the t
    of the maximum; that t; and the probability of the state that the threshold leads to.
    """
    gate, n, width = family.gate, family.states - 1, family.width
    by_state[0, 0] = 0.0
    for i in range(n):
        by_state[2 + 3 * i, 0] = lines[family.line + i].bias
    if family.table > 1:
        for s in range(family.entry, family.entry + width):
            block, begin = entries[s].block, entries[s].begin
            for c in range(block):
                by_state[0, begin + c] = by_state[0, c] - x[s]
            for i in range(n):
                weight = entries[s + i * width].weight
                for c in range(block):
                    by_state[2 + 3 * i, begin + c] = by_state[2 + 3 * i, c] + weight
    if family.hidden >= 0 and n > 1:
        for c in range(family.table):
            by_state[0, c] += _several(family, lines, omega, eta, by_state, c)
        return
    if family.hidden >= 0:
        line, own_eta = lines[family.line], eta[family.column]
        lam, low, high, x_top = line.lam, line.low, line.high, 0.0
        if low < high:
            x_top = peak_hidden(gate, own_eta, lam)
        for c in range(family.table):
            z, t = by_state[2, c], 0.0
            if low < high:
                t = highest_hidden(gate, z, own_eta, lam, x_top, low, high)
            own, by_state[4, c], by_state[1, c] = bracket(gate, z + t, own_eta, omega)
            by_state[0, c] += own - lam * t
            by_state[2, c], by_state[3, c] = z + t, t
        return
    state = family.state
    for i in range(n):
        line = lines[family.line + i]
        lam, low, high = line.lam, line.low, line.high
        x_top = peak(gate, i + 1, state, lam) if low < high else 0.0
        for c in range(family.table):
            z = by_state[2 + 3 * i, c]
            t = min(max(x_top - z, low), high)
            by_state[0, c] += log_part(gate, i + 1, state, z + t) - lam * t
            by_state[2 + 3 * i, c], by_state[3 + 3 * i, c] = z + t, t


@inner
def _several(family: Any, lines: np.ndarray, omega: float, eta: FloatArray, by_state: FloatArray, c: int) -> float:
    """The bracket of a hidden variable with more than two states: each has maxima of its own, threshold by threshold.

    They need not be at one t, so that this is above G - lam t at its maximum, and valid for every omega.
    """
    n, top, total = family.states - 1, -math.inf, 0.0
    for state in range(n + 1):
        value = eta[family.column + state - 1] if state > 0 else 0.0
        for i in range(n):
            line, z = lines[family.line + i], by_state[2 + 3 * i, c]
            t = min(max(peak(family.gate, i + 1, state, line.lam) - z, line.low), line.high)
            value += log_part(family.gate, i + 1, state, z + t) - line.lam * t
        by_state[1 + 3 * state, c] = value / omega
        top = max(top, value / omega)
    for state in range(n + 1):
        total += math.exp(by_state[1 + 3 * state, c] - top)
    entropy = log_total = top + math.log(total)
    for i in range(n):
        by_state[3 + 3 * i, c] = 0.0
    for state in range(n + 1):
        p = math.exp(by_state[1 + 3 * state, c] - log_total)
        entropy -= p * by_state[1 + 3 * state, c]
        by_state[1 + 3 * state, c] = p
        for i in range(n):  # the mean of t
            line, z = lines[family.line + i], by_state[2 + 3 * i, c]
            t = min(max(peak(family.gate, i + 1, state, line.lam) - z, line.low), line.high)
            by_state[3 + 3 * i, c] += p * t
    for i in range(n):
        by_state[2 + 3 * i, c] += by_state[3 + 3 * i, c]
    by_state[1, c] = entropy
    return omega * log_total


@inner
def sum_tables(
    families: np.ndarray, lines: np.ndarray, entries: np.ndarray, nodes: np.ndarray, eta: FloatArray, mu: FloatArray,
    by_state: FloatArray, x: FloatArray, gradient: FloatArray,
) -> float:  # fmt: skip
    """The bound: tau ln sum exp((max [G - lam t] - b S) / tau) over the joint states of the parents in each table.

    Its derivatives in lam, and the probabilities of the parents' states, go to `gradient`; those in tau, the entropies
    of the joint states, to the families; the variables' own probabilities and entropies to `mu` and `nodes`.
    """
    value = 0.0
    for f in range(len(families)):
        family = families[f]
        hidden, size, gate = family.hidden, family.table, family.gate
        omega = nodes[hidden].omega if hidden >= 0 else 1.0
        if family.width == 0 and family.states == 2:  # a root, of which there may be many
            part, mu[family.column], nodes[hidden].entropy = bracket(
                gate, lines[family.line].bias, eta[family.column], omega
            )
            gradient[len(entries) + family.line] = 0.0
            value += part
            continue
        log_table(family, lines, entries, omega, eta, by_state, x)
        top, total, family.entropy = by_state[0, 0], 1.0, 0.0
        by_state[0, 0] = 1.0
        if size > 1:
            by_state[0, 0] = top
            top, total, family.entropy = _normalise(by_state, size, family.tau)
        for i in range(family.states - 1):
            shift = bend = own = 0.0
            for c in range(size):
                w = by_state[0, c]
                if w > 0.0:
                    shift += w * by_state[3 + 3 * i, c]
                    own += w * by_state[4 + 3 * i, c]
                    bend += w * curvature(gate, by_state[2 + 3 * i, c])
            gradient[len(entries) + family.line + i] = -shift / total
            lines[family.line + i].curvature = bend / total
            if hidden >= 0:
                mu[family.column + i] = own / total
        if hidden >= 0:
            entropy = 0.0
            for c in range(size):
                entropy += by_state[0, c] * by_state[1, c]
            nodes[hidden].entropy = entropy / total
        if size > 1:
            _average_parents(family, entries, by_state, total, gradient)
        value += top
    return value


@inner
def _normalise(by_state: FloatArray, size: int, tau: float) -> tuple[float, float, float]:
    """Turn exponents into weights; tau ln of the sum of exp(exponent / tau), the sum of the weights, their entropy."""
    top, total, mean_log = by_state[0, 0], 0.0, 0.0
    for c in range(size):
        top = max(top, by_state[0, c])
    for c in range(size):
        a = (by_state[0, c] - top) / tau
        w = math.exp(a)
        by_state[0, c] = w
        total += w
        if w > 0.0:
            mean_log += w * a
    return top + tau * math.log(total), total, math.log(total) - mean_log / total


@inner
def _average_parents(
    family: Any, entries: np.ndarray, by_state: FloatArray, total: float, gradient: FloatArray
) -> None:
    """The probabilities of the states of the parents in a table: sum over the last parent, then the one before it."""
    for s in range(family.entry + family.width - 1, family.entry - 1, -1):
        block, begin, on = entries[s].block, entries[s].begin, 0.0
        for c in range(block):
            on += by_state[0, begin + c]
            by_state[0, c] += by_state[0, begin + c]
        gradient[s] = on / total


@inner
def differentiate(
    families: np.ndarray, lines: np.ndarray, entries: np.ndarray, nodes: np.ndarray, mu: FloatArray, x: FloatArray,
    gradient: FloatArray,
) -> None:  # fmt: skip
    """The gradient, where all means are known: in b the mean of a parent less that in the table, for example."""
    n, claims = len(entries), len(entries) + len(lines)
    for f in range(len(families)):
        family = families[f]
        first, last, width = family.entry, family.entry + family.width, family.width
        for i in range(family.states - 1):
            slope = 0.0
            for s in range(first, last):
                if entries[s].block == 0:
                    slope += entries[s + i * width].weight * mu[entries[s].column]
            gradient[n + family.line + i] += slope
        if family.table > 1:
            entropy = family.entropy
            for s in range(first, last):
                entry = entries[s]
                if entry.block > 0:
                    gradient[s] = mu[entry.column] - gradient[s]
                    if entry.begin == entry.block:
                        entropy -= nodes[entry.parent].entropy
            family.entropy = entropy
            nodes[family.busiest].pull += entropy * family.tau * family.tau / family.claim
    for f in range(len(families)):
        family = families[f]
        slope = 0.0
        if family.table > 1 and abs(x[claims + f]) < LARGEST:
            slope = family.tau * family.entropy
            for s in range(family.entry, family.entry + family.width):
                if entries[s].block > 0 and entries[s].begin == entries[s].block:
                    slope -= family.claim * nodes[entries[s].parent].pull
        gradient[claims + f] = slope
