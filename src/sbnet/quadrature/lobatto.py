r"""t(x) = -ln(1 - e^-x) = sum over k >= 1 of e^{-kx} / k, with few terms, from above for every x > 0.

The first terms stay as they are. Each stretch of the rest, k from a + 1 to 2a with the measure 1/k, becomes a
Gauss-Lobatto rule: the error of such a rule with both ends of the stretch among its nodes is an even derivative of
e^{-kx} in k, which is positive, times an integral of (k - a - 1)(k - 2a) times a square, which is not. So it lies
above, whatever x is. Beyond LAST the sum itself lies below an integral, since e^{-ux} / u is convex in u:

    sum over k > K of e^{-kx} / k  <=  integral from K + 1/2 of e^{-ux} / u du ,

and one rule for du / u between 1 and 2 serves every octave of it. What is left beyond the last octave, U, is at most
e^{-Ux} / (U x).
"""

from __future__ import annotations

import numpy as np

from sbnet._types import FloatArray

POINTS = 5  # of each rule: they lie at most 2e-7 above t in all
FIRST, LAST = 8, 1024  # terms that stay as they are; terms that are taken as a sum
OCTAVES = 64  # beyond: causes as weak as 1e-21 have enough of them
_UP = 1.0 + 1e-13  # weights are rounded up: they come out of an eigenvalue problem, with errors of half that


def _lobatto(nodes: FloatArray, weights: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """The n-point rule for a discrete measure with its two outer atoms among the nodes (Golub 1973)."""
    diagonal, beside = _lanczos(nodes, weights, n)
    low, high = nodes[0], nodes[-1]
    ends = []
    for end in (low, high):  # the last row of (T - end) d = e
        matrix = np.diag(diagonal[:-1] - end) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1)
        ends.append(np.linalg.solve(matrix, np.eye(n - 1)[:, -1])[-1])
    square = (high - low) / (ends[0] - ends[1])
    diagonal[-1], beside[-1] = low + ends[0] * square, np.sqrt(square)
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    values[0], values[-1] = low, high
    return values, vectors[0] ** 2 * weights.sum()


def _lanczos(nodes: FloatArray, weights: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """The recurrence of the polynomials that are orthogonal under a discrete measure: n of them."""
    diagonal, beside = np.zeros(n), np.zeros(n - 1)
    before, now = np.zeros(len(nodes)), np.sqrt(weights / weights.sum())
    for k in range(n):
        after = nodes * now
        diagonal[k] = now @ after
        after -= diagonal[k] * now + (beside[k - 1] * before if k else 0.0)
        if k < n - 1:
            beside[k] = np.sqrt(after @ after)
            before, now = now, after / beside[k]
    return diagonal, beside


def _make() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Nodes, weights, and where each node's stretch ends."""
    k, w = np.arange(1.0, FIRST + 1), 1.0 / np.arange(1.0, FIRST + 1)
    nodes, weights, until = [k], [w], [k + 0.5]
    a = FIRST
    while a < LAST:
        atoms = np.arange(a + 1.0, 2 * a + 1)
        v, w = _lobatto(atoms, 1.0 / atoms, POINTS)
        nodes.append(v)
        weights.append(w * _UP)
        until.append(np.full(POINTS, 2.0 * a + 0.5))
        a *= 2
    x, gauss = np.polynomial.legendre.leggauss(40)
    v, w = _lobatto(*_with_ends(1.5 + 0.5 * x, 0.5 * gauss / (1.5 + 0.5 * x)), POINTS)
    for octave in range(OCTAVES):
        start = (LAST + 0.5) * 2.0**octave
        nodes.append(start * v)
        weights.append(w * _UP)
        until.append(np.full(POINTS, 2.0 * start))
    return np.concatenate(nodes), np.concatenate(weights), np.concatenate(until)


def _with_ends(nodes: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A measure with two more atoms, of no weight, at 1 and 2: the ends of an octave."""
    return np.concatenate([[1.0], nodes, [2.0]]), np.concatenate([[0.0], weights, [0.0]])


NODES, WEIGHTS, UNTIL = _make()
"""Nodes k, their weights, and U: with all nodes up to one, what lies beyond U is left."""


FAR = 30.0  # where e^-x is nothing beside 1e-12
NOTHING = 1e-20  # a cause that works less often than that counts as none, which only raises t


def nodes_for(weakest: float) -> int:
    """How many nodes leave less than 1e-13 beyond the last, for inputs of at least `weakest`; whole octaves."""
    n = min(int(np.searchsorted(UNTIL, FAR / weakest)) + POINTS, len(UNTIL))
    return n if n == 0 else int(np.searchsorted(UNTIL, UNTIL[n - 1], side="right"))
