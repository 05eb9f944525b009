r"""Exact sums over independent causes of noisy-OR findings that are present, without a minus sign.

A cause that is on *fires* each of its findings with a chance of its own, and a finding is present if something has
fired it. Causes are taken one after the other; all that the later ones need to know of the earlier ones is which
findings have been fired. With ``rest[A]`` the chance that causes from j on and the leaks fire all findings outside A,

    rest_j[A] = off_j rest_{j+1}[A] + on_j sum over B of P(j fires the set B) rest_{j+1}[A + B] ,

and the sum over B is done finding by finding: two products and a sum for each half of the sets. There are 2^findings
sets, as in quickscore, but nothing cancels: every result is right to a few roundings for each edge, however unlikely
the findings are. A set is a number, with a bit for each finding in it.
"""

from __future__ import annotations

from typing import NamedTuple

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels._compile import bare, entry


class Firing(NamedTuple):
    """Causes and what they fire: the edges of cause j are from ``ptr[j]`` to ``ptr[j + 1]``."""

    ptr: IndexArray
    bit: IndexArray  # 2^finding
    fires: FloatArray  # 1 - e^-theta
    fails: FloatArray  # e^-theta
    leak: FloatArray  # by set: the chance that the leaks fire all that is not in it


@bare
def _if_on(ptr: IndexArray, bit: IndexArray, fires: FloatArray, fails: FloatArray, j: int, rest: FloatArray) -> None:
    """`rest` before cause j, if it is on, from `rest` after it."""
    for e in range(ptr[j], ptr[j + 1]):
        step, fire, fail = bit[e], fires[e], fails[e]
        for first in range(0, len(rest), 2 * step):
            for a in range(first, first + step):
                rest[a] = fail * rest[a] + fire * rest[a + step]


@bare
def _fire(ptr: IndexArray, bit: IndexArray, fires: FloatArray, fails: FloatArray, j: int, sets: FloatArray) -> None:
    """The chances of sets after cause j, which is on, from those before it."""
    for e in range(ptr[j], ptr[j + 1]):
        step, fire, fail = bit[e], fires[e], fails[e]
        for first in range(0, len(sets), 2 * step):
            for a in range(first, first + step):
                sets[a + step] += fire * sets[a]
                sets[a] *= fail


@bare
def _before(firing: Firing, off: float, on: float, j: int, rest: FloatArray, branch: FloatArray) -> None:
    """`rest` before cause j, which is off and on with these weights, from `rest` after it."""
    ptr, bit, fires, fails, _ = firing
    if ptr[j] == ptr[j + 1]:
        for a in range(len(rest)):
            rest[a] *= off + on
        return
    for a in range(len(rest)):
        branch[a] = rest[a]
    _if_on(ptr, bit, fires, fails, j, branch)
    for a in range(len(rest)):
        rest[a] = off * rest[a] + on * branch[a]


@bare
def _after(
    firing: Firing, off: float, on: float, j: int, rest: FloatArray, sets: FloatArray, branch: FloatArray
) -> float:
    """With the chances of sets before cause j and `rest` after it: the part of the sum with it on; `sets` moves on."""
    ptr, bit, fires, fails, _ = firing
    for a in range(len(sets)):
        branch[a] = on * sets[a]
    _fire(ptr, bit, fires, fails, j, branch)
    share = 0.0
    for a in range(len(sets)):
        share += branch[a] * rest[a]
        sets[a] = off * sets[a] + branch[a]
    return share


@entry
def all_fired(
    firing: Firing,
    off: FloatArray,
    on: FloatArray,
    others: IndexArray,
    touched: IndexArray,
    lost: FloatArray,
    scratch: FloatArray,
    result: FloatArray,
) -> None:
    """The chance that all findings are fired, once for each row of `lost`, which the weights of being on are times.

    There `touched` are the causes that have a column in it, `others` all the rest: those are gone through once.
    """
    common, rest, branch = scratch[0], scratch[1], scratch[2]
    for a in range(len(common)):
        common[a] = firing.leak[a]
    for k in range(len(others)):
        j = others[k]
        _before(firing, off[j], on[j], j, common, branch)
    for row in range(len(result)):
        for a in range(len(common)):
            rest[a] = common[a]
        for k in range(len(touched)):
            j = touched[k]
            _before(firing, off[j], on[j] * lost[row, k], j, rest, branch)
        result[row] = rest[0]


@entry
def walk_back(
    firing: Firing, off: FloatArray, on: FloatArray, first: int, last: int, rests: FloatArray, branch: FloatArray
) -> None:
    """`rest` before each of the causes from `first` to `last`, row by row, from that after the last, the last row."""
    for j in range(last - 1, first - 1, -1):
        after, before = rests[j - first + 1], rests[j - first]
        for a in range(len(before)):
            before[a] = after[a]
        _before(firing, off[j], on[j], j, before, branch)


@entry
def walk_on(
    firing: Firing,
    off: FloatArray,
    on: FloatArray,
    first: int,
    last: int,
    rests: FloatArray,
    sets: FloatArray,
    branch: FloatArray,
    shares: FloatArray,
) -> None:
    """With the chances of sets before cause `first`: the part of the sum with each cause on; `sets` moves to `last`."""
    for j in range(first, last):
        shares[j] = _after(firing, off[j], on[j], j, rests[j - first + 1], sets, branch)


class Growing(NamedTuple):
    """Causes in the order of the last of their findings, ``top[j]``.

    While those up to cause j are gone through, sets have bits for the findings up to ``top[j]`` only; that a leak fires
    any other one is a factor, ``alone[i]``. With findings of few causes last, most causes meet short arrays.
    """

    off: FloatArray
    on: FloatArray
    top: IndexArray
    alone: FloatArray


@entry
def grow(
    firing: Firing, causes: Growing, first: int, last: int, rest: FloatArray, branch: FloatArray, rows: FloatArray
) -> None:
    """Go through the causes from `first` to `last`; `rest` comes to be that after them. (Here rests grow forwards.)

    What it was before each of them goes to `rows`, if that has any.
    """
    off, on, top, alone = causes
    known = top[first - 1] + 1 if first > 0 else 0
    size = 1 << known
    for j in range(first, last):
        while known <= top[j]:
            for a in range(size):
                rest[size + a] = rest[a]
                rest[a] *= alone[known]
            size *= 2
            known += 1
        if len(rows):
            for a in range(size):
                rows[j - first, a] = rest[a]
        _before(firing, off[j], on[j], j, rest[:size], branch[:size])


@entry
def shrink(
    firing: Firing,
    causes: Growing,
    first: int,
    last: int,
    rows: FloatArray,
    sets: FloatArray,
    branch: FloatArray,
    shares: FloatArray,
) -> None:
    """Back again, with what `grow` left in `rows`: the part of the sum with each cause on goes to `shares`."""
    off, on, top, alone = causes
    known = top[last] + 1 if last < len(off) else len(alone)
    for j in range(last - 1, first - 1, -1):
        while known > top[j] + 1:
            known -= 1
            size = 1 << known
            for a in range(size):
                sets[a] = alone[known] * sets[a] + sets[size + a]
        size = 1 << known
        shares[j] = _after(firing, off[j], on[j], j, rows[j - first], sets[:size], branch[:size])
