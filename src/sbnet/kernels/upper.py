"""The upper bound on ln P(evidence) at given parameters, and its gradient; `sbnet.bounds.upper` has the proof."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels.codes import NOISY_OR, SIGMOID
from sbnet.kernels.compiling import inner
from sbnet.kernels.structs import struct
from sbnet.kernels.thresholds import loads, log_part, rarity, sigmoid, softplus

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
    ("curvature", "f8"),  # the mean curvature of t
)
entry_t = struct(
    ("weight", "f8"),
    ("parent", "u4"),  # the hidden variable
    ("column", "u4"),
    ("line", "u4"),
    ("block", "u2"),  # joint states of the parents before it in the table; 0 if it is not in the table
    ("begin", "u2"),  # where the joint states begin in which the parent has this state; 0 but for a first threshold
)
member_t = struct(("family", "i8"), ("parent", "i8"), ("entry", "i8"))  # a parent in a table, and its first entry
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
    members: np.ndarray  # of member_t
    nodes: np.ndarray  # of node_t, by hidden variable
    eta: FloatArray  # by column: what the children send up
    mu: FloatArray  # by column: the mean
    line: IndexArray  # by entry
    place: IndexArray  # by entry: where its weight stands in the network
    by_state: FloatArray  # scratch: rows of numbers for each joint state in a table, see `log_table`


@inner
def peak(gate: int, level: int, state: int, lam: float) -> float:
    """The input x at which a threshold's part of ln P(v = state | x), less lam x, is largest: it is concave."""
    a, c = loads(gate, level, state)
    if c == 0.0:  # a straight line
        return math.inf if a > lam else -math.inf
    if gate == NOISY_OR:  # the slope of ln(1 - e^-x), 1 / (e^x - 1), falls
        return math.log1p(1.0 / lam) if lam > 0.0 else math.inf
    slope = a - lam  # of slope x - ln(1 + e^x)
    if slope <= 0.0:
        return -math.inf
    return math.log(slope) - math.log1p(-slope) if slope < 1.0 else math.inf


@inner
def peak_hidden(gate: int, eta: float, lam: float) -> float:
    """The input x at which G(x) - lam x of a hidden variable with two states may have a local maximum, for omega = 1.

    That is sp(x + eta) - sp(x) - lam x, with sp(x) = ln(1 + e^x). Its slope is sinh(eta / 2) / (cosh y + cosh(eta / 2))
    - lam, y = x + eta / 2: there is at most one, at cosh y = sinh(eta / 2) / lam - cosh(eta / 2). For a noisy-OR
    variable it is ln(e^eta + (1 - e^eta) e^-x) - lam x, convex for eta < 0 and concave for eta > 0.
    """
    if gate == NOISY_OR:
        return math.log(-math.expm1(-eta)) + math.log1p(1.0 / lam) if eta > 0.0 and lam > 0.0 else 0.0
    y, a, tail = 0.0, 0.5 * abs(eta), math.exp(-abs(eta))
    if eta * lam > 0.0 and abs(lam) >= 1e-300:  # not so flat a line that low and high decide
        q = 0.5 * ((1.0 - tail) / abs(lam) - 1.0 - tail)  # cosh y = e^a q: eta may be in the thousands
        log_cosh = a + math.log(q) if q > 0.0 else 0.0
        if log_cosh > 0.0:
            y = log_cosh + math.log1p(math.sqrt(max(1.0 - math.exp(-2.0 * log_cosh), 0.0)))  # arcosh of e^log_cosh
    return math.copysign(y, eta) - 0.5 * eta


@inner
def bracket(gate: int, z: float, eta: float, omega: float) -> tuple[float, float, float]:
    """ln of (sum over both states s of [P(s | z) e^(eta s)]^(1 / omega))^omega: G of a hidden variable with two states.

    Also its derivative in eta, which is the mean, and in omega, an entropy.
    """
    log_odds, off = z, math.nan
    if gate == SIGMOID:
        off = -softplus(z)
    elif gate == NOISY_OR:
        off = -max(z, 0.0)
        log_odds = -rarity(z) - off
    y = (log_odds + eta) / omega
    mean, total = sigmoid(y), softplus(y)
    return omega * total + off, mean, total - mean * y


@inner
def weigh(
    families: np.ndarray, n_lines: int, entries: np.ndarray, members: np.ndarray, nodes: np.ndarray, eta: FloatArray,
    x: FloatArray,
) -> None:  # fmt: skip
    """What the children of each variable send up, and Hölder's weights: those of a variable add up to one."""
    n = len(entries)
    for k in range(len(nodes)):
        nodes[k].claims = nodes[k].pull = 0.0
        nodes[k].omega = 1.0
    for f in range(len(families)):
        families[f].claim = math.exp(min(max(x[n + n_lines + f], -LARGEST), LARGEST))
        families[f].tau, families[f].busiest = 1.0, -1
    for j in range(len(eta)):
        eta[j] = 0.0
    for s in range(n):
        entry = entries[s]
        if entry.block == 0:
            eta[entry.column] += entry.weight * x[n + entry.line]
        elif entry.begin > 0:
            eta[entry.column] += x[s]
    for m in range(len(members)):
        nodes[members[m].parent].claims += families[members[m].family].claim
    for m in range(len(members)):
        family, k = families[members[m].family], members[m].parent
        if family.busiest < 0 or nodes[k].claims > nodes[family.busiest].claims:
            family.tau, family.busiest = family.claim / (1.0 + nodes[k].claims), k
    for m in range(len(members)):
        node = nodes[members[m].parent]
        node.omega = max(node.omega - families[members[m].family].tau, 1e-12)  # more weight than one is valid too


@inner(lanewise=True)
def log_table(
    family: Any, lines: np.ndarray, entries: np.ndarray, omega: float, eta: FloatArray, by_state: FloatArray,
    x: FloatArray,
) -> None:  # fmt: skip
    """The exponents max [G - lam t] - b S for the joint states of the parents in a table: the first row of `by_state`.

    The second row is the entropy of the variable itself. Then there are three for each threshold: its input, with the t
    of the maximum; that t; and the probability of the state that the threshold leads to. For a hidden variable with
    more than two states the second and these last rows have the exponents of its states, the t of each state and
    threshold stand in rows of their own, and `mix_states` has to follow.
    """
    n, width, hidden, of_lines = family.states - 1, family.width, family.hidden >= 0, len(entries) + family.line
    by_state[0, 0] = 0.0
    for i in range(n):
        by_state[2 + 3 * i, 0] = lines[family.line + i].bias
    for s in range(family.entry, family.entry + width if family.table > 1 else 0):
        block, begin = entries[s].block, entries[s].begin
        for c in range(block):
            by_state[0, begin + c] = by_state[0, c] - x[s]
        for i in range(n):
            weight = entries[s + i * width].weight
            for c in range(block):
                by_state[2 + 3 * i, begin + c] = by_state[2 + 3 * i, c] + weight
    if hidden and n == 1:
        own, lam, low, high = eta[family.column], x[of_lines], lines[family.line].low, lines[family.line].high
        top = peak_hidden(family.gate, own, lam) if low < high else 0.0
        for c in range(family.table):
            z, best = by_state[2, c], 0.0
            for k in range(3 if low < high else 1):  # low, high, the peak inside: the first of them if they are equal
                t = low if k == 0 else high if k == 1 else min(max(top - z, low), high)
                value, mean, entropy = bracket(family.gate, z + t, own, omega)
                if k == 0 or value - lam * t > best:
                    best, by_state[1, c], by_state[4, c] = value - lam * t, entropy, mean
                    by_state[2, c], by_state[3, c] = z + t, t
            by_state[0, c] += best
        return
    for state in range(0 if hidden else family.state, n + 1 if hidden else family.state + 1):
        row = 1 + 3 * state if hidden else 0
        for c in range(family.table if hidden else 0):
            by_state[row, c] = eta[family.column + state - 1] if state > 0 else 0.0
        for i in range(n):
            lam, low, high = x[of_lines + i], lines[family.line + i].low, lines[family.line + i].high
            top = peak(family.gate, i + 1, state, lam) if low < high else 0.0
            t_row = 2 + (3 + state) * n + i if hidden else 3 + 3 * i
            for c in range(family.table):
                z = by_state[2 + 3 * i, c]
                by_state[t_row, c] = t = min(max(top - z, low), high)
                by_state[row, c] += log_part(family.gate, i + 1, state, z + t) - lam * t
                by_state[2 + 3 * i, c] = z if hidden else z + t


@inner
def mix_states(n: int, size: int, omega: float, by_state: FloatArray) -> None:
    """The bracket of a hidden variable with n > 1 thresholds: each state has maxima of its own, at a t for each.

    They need not be at one t, so that this is above G - lam t at its maximum, and valid for every omega.
    """
    for c in range(size):
        top, total, entropy = by_state[1, c], 0.0, 0.0
        for state in range(1, n + 1):
            top = max(top, by_state[1 + 3 * state, c])
        for state in range(n + 1):
            a = (by_state[1 + 3 * state, c] - top) / omega
            by_state[1 + 3 * state, c] = p = math.exp(a)
            total += p
            if p > 0.0:
                entropy -= p * a
        for i in range(n):
            t = 0.0  # its mean
            for state in range(n + 1):
                t += by_state[1 + 3 * state, c] * by_state[2 + (3 + state) * n + i, c] / total
            by_state[2 + 3 * i, c], by_state[3 + 3 * i, c] = by_state[2 + 3 * i, c] + t, t
        for state in range(1, n + 1):
            by_state[1 + 3 * state, c] /= total
        by_state[0, c] += top + omega * math.log(total)
        by_state[1, c] = math.log(total) + entropy / total


@inner(lanewise=True)
def sum_table(
    family: Any, lines: np.ndarray, entries: np.ndarray, nodes: np.ndarray, mu: FloatArray, by_state: FloatArray,
    gradient: FloatArray,
) -> float:  # fmt: skip
    """A part of the bound: tau ln sum exp((max [G - lam t] - b S) / tau) over the joint states of a table.

    Its derivatives: in lam and b to `gradient`, those in tau, an entropy, and in the claims on the busiest parent, and
    the variable's own probabilities and entropy. What is needed of the parents is known: they come first.
    """
    size, tau, first, width = family.table, family.tau, family.entry, family.width
    value, total, entropy, own_entropy = by_state[0, 0], 1.0, 0.0, by_state[1, 0]
    by_state[0, 0] = 1.0
    if size > 1:
        by_state[0, 0], top, total, own_entropy = value, value, 0.0, 0.0
        for c in range(1, size):
            top = max(top, by_state[0, c])
        for c in range(size):
            a = (by_state[0, c] - top) / tau
            by_state[0, c] = w = math.exp(a)
            total += w
            if w > 0.0:
                entropy -= w * a
                own_entropy += w * by_state[1, c]
        value, entropy = top + tau * math.log(total), math.log(total) + entropy / total
    for i in range(family.states - 1):
        shift = bend = own = outside = 0.0
        for c in range(size):
            w, z = by_state[0, c], by_state[2 + 3 * i, c]
            if w > 0.0:
                shift += w * by_state[3 + 3 * i, c]
                own += w * by_state[4 + 3 * i, c]
                e = math.exp(-abs(z) if family.gate == SIGMOID else -max(z, 1.0))
                d = 1.0 + e if family.gate == SIGMOID else 1.0 - e
                bend += w * e / (d * d)  # the curvature of t, for a noisy-OR variable no more than 1
        for s in range(first + i * width, first + (i + 1) * width):
            if entries[s].block == 0:
                outside += entries[s].weight * mu[entries[s].column]
        gradient[len(entries) + family.line + i] = outside - shift / total
        lines[family.line + i].curvature = bend / total
        if family.hidden >= 0:
            mu[family.column + i] = own / total
    if family.hidden >= 0:
        nodes[family.hidden].entropy = own_entropy / total
    if size > 1:
        for s in range(first + width - 1, first - 1, -1):  # sum over the last parent, then the one before it
            entry, on = entries[s], 0.0
            for c in range(entry.block):
                on += by_state[0, entry.begin + c]
                by_state[0, c] += by_state[0, entry.begin + c]
            if entry.block > 0:
                gradient[s] = mu[entry.column] - on / total
                if entry.begin == entry.block:
                    entropy -= nodes[entry.parent].entropy
        family.entropy = entropy
        nodes[family.busiest].pull += entropy * tau * tau / family.claim
    return value
