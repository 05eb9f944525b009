r"""Exact sums over independent causes of noisy-OR findings that are present, without a minus sign.

A cause that is on *fires* each of its findings with a probability of its own, and a finding is present if something has
fired it. Causes are taken one after the other; all that the later ones need to know of the earlier ones is which
findings have been fired. With ``rest[A]`` the probability that causes from j on and the leaks fire all outside A,

    rest_j[A] = off_j rest_{j+1}[A] + on_j sum over B of P(j fires the set B) rest_{j+1}[A + B] ,

and the sum over B is done finding by finding: two products and a sum for each half of the sets. There are 2^findings
sets, as in quickscore, but nothing cancels: every result is right to a few roundings for each edge, however unlikely
the findings are. A set is a number, with a bit for each finding in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.structs import struct

edge_t = struct(
    ("bit", "i8"),  # 2^finding
    ("fires", "f8"),  # 1 - e^-theta
    ("fails", "f8"),  # e^-theta
)


class Firing(NamedTuple):
    """Causes and what they fire: the edges of cause j are from ``ptr[j]`` to ``ptr[j + 1]``."""

    ptr: IndexArray
    edges: np.ndarray  # of edge_t
    leak: FloatArray  # by set: the probability that the leaks fire all that is not in it


@inner
def _before(edges: np.ndarray, first: int, end: int, off: float, on: float, rest: FloatArray, on_: FloatArray) -> None:
    """`rest` before a cause that is off and on with these weights, from `rest` after it; `on_`: if it is on."""
    if first == end:
        for a in range(len(rest)):
            rest[a] *= off + on
        return
    for a in range(len(rest)):
        on_[a] = rest[a]
    for e in range(first, end):
        step, fire, fail = edges[e].bit, edges[e].fires, edges[e].fails
        for start in range(0, len(rest), 2 * step):
            for a in range(start, start + step):
                on_[a] = fail * on_[a] + fire * on_[a + step]
    for a in range(len(rest)):
        rest[a] = off * rest[a] + on * on_[a]


@inner
def _after(
    edges: np.ndarray, first: int, end: int, off: float, on: float, rest: FloatArray, sets: FloatArray, on_: FloatArray
) -> float:
    """With the probabilities of sets before a cause and `rest` after it: the part of the sum with it on.

    `sets` comes to be that after the cause.
    """
    for a in range(len(sets)):
        on_[a] = on * sets[a]
    for e in range(first, end):
        step, fire, fail = edges[e].bit, edges[e].fires, edges[e].fails
        for start in range(0, len(sets), 2 * step):
            for a in range(start, start + step):
                on_[a + step] += fire * on_[a]
                on_[a] *= fail
    share = 0.0
    for a in range(len(sets)):
        share += on_[a] * rest[a]
        sets[a] = off * sets[a] + on_[a]
    return share


@kernel
def all_fired(
    firing: Firing, off: FloatArray, on: FloatArray, others: IndexArray, touched: IndexArray, lost: FloatArray
) -> FloatArray:
    """The probability that all findings are fired, once for each row of `lost`, a factor of the weights of being on.

    There `touched` are the causes that have a column in it, `others` all the rest: those are gone through once.
    """
    ptr, edges, leak = firing
    common, rest, on_, result = leak.copy(), leak.copy(), np.empty(len(leak)), np.empty(len(lost))
    for j in others:
        _before(edges, ptr[j], ptr[j + 1], off[j], on[j], common, on_)
    for row in range(len(result)):
        rest[:] = common
        for k in range(len(touched)):
            j = touched[k]
            _before(edges, ptr[j], ptr[j + 1], off[j], on[j] * lost[row, k], rest, on_)
        result[row] = rest[0]
    return result


@kernel
def with_shares(firing: Firing, off: FloatArray, on: FloatArray) -> tuple[float, FloatArray]:
    """The probability that all findings are fired, and the part of it with each cause on."""
    ptr, edges, leak = firing
    n, size = len(off), len(leak)
    rests, sets, on_, shares = np.empty((n + 1, size)), np.zeros(size), np.empty(size), np.empty(n)
    rests[n], sets[0] = leak, 1.0
    for j in range(n - 1, -1, -1):
        rests[j] = rests[j + 1]
        _before(edges, ptr[j], ptr[j + 1], off[j], on[j], rests[j], on_)
    for j in range(n):
        shares[j] = _after(edges, ptr[j], ptr[j + 1], off[j], on[j], rests[j + 1], sets, on_)
    return rests[0, 0], shares
