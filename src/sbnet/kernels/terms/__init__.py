"""How the mean of t(x) is bounded, a file for each way; the only place that knows how many there are.

Each file has the same verbs, as far as they apply: `prepare` (what depends on the weights), `begin` (what depends on
the row), `open_sweep`, `pull` (what children tell a parent), `push` (a parent has moved), `close_sweep`, `renew` (the
terms at the present means, from scratch), `gradient`; and a slow, obvious `reference` for one factor. A term
serves all children of a parent in one call.

A *kind* is what a user asks for (`log_term`); a *room* is the file that serves it. A factor whose kind has no room
keeps the term NaN, which shows at once; it never borrows another's.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np

from sbnet._types import Bound, FloatArray, IndexArray, Problem, States
from sbnet.kernels import gates
from sbnet.kernels._compile import bare, inlined, inner
from sbnet.kernels.terms import enumerated, exact, quadratic, xi
from sbnet.kernels.terms.work import (
    ABOVE,
    BELOW,
    BIAS,
    FACTOR,
    GATE,
    HAS,
    HIGH,
    KIND,
    LOW,
    MEAN,
    N_FACTORS,
    OWN,
    PLACE,
    ROOM,
    TERM,
    VALUE,
    Work,
    lay_out,
)

FILES = ("xi", "exact", "quadratic", "enumerated")
"""A new term: its file, and its name in this line."""

ROOMS = tuple(import_module(f"{__name__}.{name}") for name in FILES)  # which also gives them their names here

LOG_TERMS = dict(sorted((item for room in ROOMS for item in room.KINDS.items()), key=lambda item: item[1]))
"""The kinds by the names that users give them."""

_NOBODY = 15  # the room of kinds that have none: a place for their numbers, but no file to serve them
_ROOM_OF = np.full(16, _NOBODY)  # by kind
_TILED = np.zeros(16, np.bool_)  # by room
_TILED[_NOBODY] = True  # or there would be a table for each factor, however many parents it has
for _room in ROOMS:
    _TILED[_room.ROOM] = _room.TILED
    for _kind in (_room.ROOM, *_room.KINDS.values()):
        _ROOM_OF[_kind] = _room.ROOM


def _each(verb: str, arguments: str, *, adds: bool = False) -> Any:
    """A kernel that calls the verb of every room that has it and has work, and adds up what they return if `adds`.

    Kernels cannot loop over functions, so the calls are spelt out, one after the other.
    """
    lines = ["total = 0.0"]
    for room in ROOMS:
        if hasattr(room, verb):
            call = f"{room.__name__.rpartition('.')[2]}.{verb}({arguments})"
            lines.append(f"if work.ints[{HAS + room.ROOM}] > 0: {'total += ' * adds}{call}")
    return _spelt_out(verb, arguments, "\n    ".join([*lines, "return total"]))


def _ladder(verb: str, arguments: str, otherwise: str) -> Any:
    """A kernel that calls the verb of one room, by the kind that comes as the first argument."""
    rungs = (
        f"if {' or '.join(f'kind == {kind}' for kind in {room.ROOM, *room.KINDS.values()})}:\n"
        f"        return {room.__name__.rpartition('.')[2]}.{verb}({arguments})\n"
        for room in ROOMS
    )
    return _spelt_out(verb, arguments, "    ".join((*rungs, f"return {otherwise}")))


def _spelt_out(verb: str, arguments: str, body: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(f"def {verb}({arguments}):\n    {body}\n", __file__, "exec"), globals(), names)
    return inlined(names[verb])


_prepare = _each("prepare", "work")
_begin = _each("begin", "work")
open_sweep = _each("open_sweep", "work, mu")
pull = _each("pull", "work, j, mu", adds=True)
push = _each("push", "work, j, old, new")
close_sweep = _each("close_sweep", "work, mu, enough", adds=True)
renew = _each("renew", "work, mu, enough", adds=True)
gradient = _each("gradient", "work, mu, by_slot, by_factor")
reference = _ladder("reference", "kind, gate, weight, mu, bias, parameter", "math.nan, math.nan")


@inner
def kinds_of(problem: Problem, bound: Bound) -> IndexArray:
    """The kind of each factor: what was asked for, or a sum over the states of its parents if they are few."""
    kind = np.empty(len(problem.factor), np.int64)
    for f in range(len(kind)):
        kind[f] = kind_of(bound, problem.ptr[f + 1] - problem.ptr[f])
    return kind


@inlined
def kind_of(bound: Bound, parents: int) -> int:
    """The kind of a factor with so many hidden parents."""
    return enumerated.ROOM if parents <= bound.enumerate_up_to else bound.log_term


@inner
def rough_kinds(kind: IndexArray) -> IndexArray:
    """The same with the paper's term in place of the exact one."""
    found = kind.copy()
    for f in range(len(kind)):
        if kind[f] == exact.ROOM:
            found[f] = xi.ROOM
    return found


@inner
def prepare(problem: Problem, kind: IndexArray) -> Work:
    """Everything about a problem that does not depend on the values of the evidence."""
    room, tiled = np.empty(len(kind), np.int64), np.zeros(len(kind), np.bool_)
    n_exact = 0
    for f in range(len(kind)):
        room[f] = _ROOM_OF[kind[f]] if 0 <= kind[f] < 16 else _NOBODY
        tiled[f] = _TILED[room[f]]
        n_exact += room[f] == exact.ROOM
    work = lay_out(problem, kind, room, tiled, n_exact > 0)
    _prepare(work)
    return work


@bare
def begin(work: Work, states: States, bias: FloatArray, mu: FloatArray) -> None:
    """Bring the row into the state: what is observed, biases, the range of x."""
    index, numbers = work.ints, work.numbers
    for f in range(index[N_FACTORS]):
        i, own, at = index[index[FACTOR] + f], index[index[OWN] + f], np.uint64(index[index[PLACE] + f])
        numbers[at + VALUE] = mu[own] if own >= 0 else states[i]
        numbers[at + BIAS] = bias[i]
        numbers[at + LOW], numbers[at + HIGH] = bias[i] + numbers[index[BELOW] + f], bias[i] + numbers[index[ABOVE] + f]
        numbers[at + TERM] = math.nan
    _begin(work)


@inlined
def input_of(work: Work, f: int) -> float:
    """The mean input of a factor."""
    return work.numbers[np.uint64(work.ints[work.ints[PLACE] + f]) + MEAN]


@inlined
def set_value(work: Work, f: int, value: float) -> None:
    """The mean of a hidden unit that is a factor has moved."""
    work.numbers[np.uint64(work.ints[work.ints[PLACE] + f]) + VALUE] = value


@bare
def total(work: Work) -> float:
    """The sum over all factors of a(S) <x> - c(S) <t(x)>."""
    index, numbers, value = work.ints, work.numbers, 0.0
    for f in range(index[N_FACTORS]):
        at = np.uint64(index[index[PLACE] + f])
        a, c = gates.loads(index[index[GATE] + f], numbers[at + VALUE])
        value += a * numbers[at + MEAN] - c * numbers[at + TERM]
    return value


@inlined
def parameter(work: Work, f: int) -> float:
    """The xi of a factor, or NaN if its term has none."""
    has = work.ints[work.ints[ROOM] + f] == xi.ROOM
    return work.numbers[np.uint64(work.ints[work.ints[PLACE] + f]) + xi.XI] if has else math.nan


@bare
def same_kinds(work: Work, kind: IndexArray) -> bool:
    """Is the problem laid out for these kinds?"""
    for f in range(len(kind)):  # noqa: SIM110 (kernels have no generators)
        if work.ints[work.ints[KIND] + f] != kind[f]:
            return False
    return True


@inner
def exact_kinds(problem: Problem, kind: IndexArray, nodes: IndexArray, bias: FloatArray, mu: FloatArray) -> IndexArray:
    """The kinds with which the exact term is climbed, given how many frequencies each factor needs.

    Where that is too many, the tighter of the paper's term and the quadratic one takes its place.
    """
    found = kind.copy()
    numbers = 0
    for f in range(len(kind)):
        if kind[f] != exact.ROOM:
            continue
        start, k, h = problem.ptr[f], problem.ptr[f + 1] - problem.ptr[f], bias[problem.factor[f]]
        more = 4 * k * max(nodes[f], 32)
        if nodes[f] <= exact.MAX_NODES and numbers + more <= exact.MAX_WAVES:
            numbers += more
            continue
        weight, near = problem.weight[start : start + k], np.empty(k)
        mean, variance = h, 0.0
        for s in range(k):
            near[s] = mu[problem.parent[start + s]]
            mean += weight[s] * near[s]
            variance += weight[s] * weight[s] * near[s] * (1.0 - near[s])
        paper = xi.best(weight, near, h, math.nan)[1]
        found[f] = xi.ROOM if paper <= quadratic.best(mean, mean * mean + variance) else quadratic.ROOM
    return found
