"""How the mean of t(x) is bounded, a file for each way; the only place that knows how many there are.

Each file has the same verbs, as far as they apply: `prepare` (what depends on the weights), `begin` (what depends on
the row), `open_sweep`, `pull` (what children tell a parent), `push` (a parent has moved), `renew` (the terms at the
present means: after a sweep, or from scratch if `fresh`), `gradient`; and a slow, obvious `reference` for one factor.
A term serves all children of a parent in one call.

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
from sbnet.kernels.arrays import real_numbers, whole_numbers
from sbnet.kernels.terms import enumerated, exact, linear, quadratic, series, xi
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
    spread,
)

FILES = ("xi", "exact", "quadratic", "enumerated", "series", "linear")
"""A new term: its file, and its name in this line."""

ROOMS = tuple(import_module(f"{__name__}.{name}") for name in FILES)  # which also gives them their names here

LOG_TERMS = dict(sorted((item for room in ROOMS for item in room.KINDS.items()), key=lambda item: item[1]))
"""The kinds by the names that users give them."""

_JENSEN = xi.KINDS["jensen"]
_NOBODY = 15  # the room of kinds that have none: a place for their numbers, but no file to serve them
_ROOM_OF = np.full(16, _NOBODY)  # by kind
_TILED = np.zeros(16, np.int64)  # by room
_TILED[_NOBODY] = 1  # or there would be a table for each factor, however many parents it has
for _room in ROOMS:
    _TILED[_room.ROOM] = _room.TILED
    for _kind in (_room.ROOM, *_room.KINDS.values()):
        _ROOM_OF[_kind] = _room.ROOM


def _each(verb: str, arguments: str, *, adds: bool = False, compiled: Any = inlined) -> Any:
    """A kernel that calls the verb of every room that has it and has work, and adds up what they return if `adds`.

    Kernels cannot loop over functions, so the calls are spelt out, one after the other.
    """
    lines = ["total = 0.0"]
    for room in ROOMS:
        if hasattr(room, verb):
            call = f"{room.__name__.rpartition('.')[2]}.{verb}({arguments})"
            lines.append(f"if work.ints[{HAS + room.ROOM}] > 0: {'total += ' * adds}{call}")
    return _spelt_out(verb, arguments, "\n    ".join([*lines, "return total"]), compiled)


def _ladder(verb: str, arguments: str, otherwise: str) -> Any:
    """A kernel that calls the verb of one room, by the kind that comes as the first argument."""
    rungs = (
        f"if {' or '.join(f'kind == {kind}' for kind in {room.ROOM, *room.KINDS.values()})}:\n"
        f"        return {room.__name__.rpartition('.')[2]}.{verb}({arguments})\n"
        for room in ROOMS
    )
    return _spelt_out(verb, arguments, "    ".join((*rungs, f"return {otherwise}")), inlined)


def _spelt_out(verb: str, arguments: str, body: str, compiled: Any) -> Any:
    names: dict[str, Any] = {}
    exec(compile(f"def {verb}({arguments}):\n    {body}\n", __file__, "exec"), globals(), names)
    return compiled(names[verb])


_prepare = _each("prepare", "work")
_begin = _each("begin", "work")
open_sweep = _each("open_sweep", "work, mu")
pull = _each("pull", "work, j, mu", adds=True)
push = _each("push", "work, mu, j, old, new")
renew = _each("renew", "work, mu, enough, fresh", adds=True, compiled=bare)
gradient = _each("gradient", "work, mu, by_slot, by_factor")
reference = _ladder("reference", "kind, gate, weight, mu, bias, parameter", "math.nan, math.nan")


@inlined
def kinds_of(problem: Problem, bound: Bound) -> IndexArray:
    """The kind of each factor: what was asked for, or a sum over the states of its parents if they are few."""
    kind = whole_numbers(len(problem.factor))
    for f in range(len(kind)):
        kind[f] = kind_of(bound, problem.gate[problem.factor[f]], problem.ptr[f + 1] - problem.ptr[f])
    return kind


@inlined
def kind_of(bound: Bound, gate: int, parents: int) -> int:
    """The kind of a factor with so many hidden parents. What is cheap for one gate is another thing for the other."""
    if parents <= bound.enumerate_up_to:
        return enumerated.ROOM
    if gate == gates.NOISY_OR:
        cheap = bound.log_term == quadratic.ROOM or bound.log_term == _JENSEN
        return linear.ROOM if cheap else series.ROOM
    return bound.log_term


@inner
def prepare(problem: Problem, asked: IndexArray, rough: bool) -> Work:
    """Everything about a problem that does not depend on the values of the evidence.

    If `rough`, with the paper's term in place of the exact one. Only a sum over states serves every gate.
    """
    n, n_exact = len(asked), 0
    kind, room, tiled, table = whole_numbers(n), whole_numbers(n), whole_numbers(n), whole_numbers(n)
    for f in range(n):
        k = asked[f]
        if rough and k == exact.ROOM:
            k = xi.ROOM
        kind[f], room[f] = k, _NOBODY
        gate, noisy = problem.gate[problem.factor[f]], k == series.ROOM or k == linear.ROOM
        served = k == enumerated.ROOM or gate == (gates.NOISY_OR if noisy else gates.SIGMOID)
        if 0 <= k < len(_ROOM_OF) and served:
            room[f] = _ROOM_OF[k]
        tiled[f] = _TILED[room[f]]
        table[f] = _table_size(problem, f, room[f])
        if k == exact.ROOM:
            n_exact += 1
    work = lay_out(problem, kind, room, tiled, table, np.int64(n_exact))
    _prepare(work)
    return work


@inlined
def _table_size(problem: Problem, f: int, room: int) -> int:
    """Numbers that a factor without tiles keeps in a table of its own."""
    weight = problem.weight[problem.ptr[f] : problem.ptr[f + 1]]
    if room == enumerated.ROOM:
        return 1 << len(weight)
    if room == series.ROOM:
        return series.rows_of(len(weight)) * series.width_of(weight)
    return 3 * len(weight) if room == linear.ROOM else 0


@inlined
def begin(work: Work, states: States, bias: FloatArray, mu: FloatArray) -> None:
    """Bring the row into the state: what is observed, biases, the range of x."""
    index, numbers = work.ints, work.numbers
    factor, own_of, place, below, above = index[FACTOR], index[OWN], index[PLACE], index[BELOW], index[ABOVE]
    for f in range(index[N_FACTORS]):
        i, own, at = index[factor + f], index[own_of + f], np.uint64(index[place + f])
        h = bias[i]
        numbers[at + VALUE] = mu[own] if own >= 0 else float(states[i])
        numbers[at + BIAS] = h
        numbers[at + LOW], numbers[at + HIGH] = h + numbers[below + f], h + numbers[above + f]
        numbers[at + TERM] = math.nan
    _begin(work)


@inlined
def total(work: Work) -> float:
    """The sum over all factors of a(S) <x> - c(S) <t(x)>."""
    index, numbers, value = work.ints, work.numbers, 0.0
    place, gate = index[PLACE], index[GATE]
    for f in range(index[N_FACTORS]):
        at = np.uint64(index[place + f])
        a, c = gates.loads(index[gate + f], numbers[at + VALUE])
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
    at = work.ints[KIND]
    for f in range(len(kind)):  # noqa: SIM110 (kernels have no generators)
        if work.ints[at + f] != kind[f]:
            return False
    return True


@inlined
def exact_kinds(problem: Problem, kind: IndexArray, nodes: IndexArray, bias: FloatArray, mu: FloatArray) -> IndexArray:
    """The kinds with which the exact term is climbed, given how many frequencies each factor needs.

    Where that is too many, the tighter of the paper's term and the quadratic one takes its place.
    """
    found, numbers = whole_numbers(len(kind)), 0
    for f in range(len(kind)):
        found[f] = kind[f]
        if kind[f] != exact.ROOM:
            continue
        start, k, h = problem.ptr[f], problem.ptr[f + 1] - problem.ptr[f], bias[problem.factor[f]]
        more = 4 * k * max(nodes[f], 32)
        if nodes[f] <= exact.MAX_NODES and numbers + more <= exact.MAX_WAVES:
            numbers += more
            continue
        weight, near = problem.weight[start : start + k], real_numbers(k)
        for s in range(k):
            near[s] = mu[problem.parent[start + s]]
        _, _, mean, variance, _ = spread(weight, near, h)
        paper = xi.best(weight, near, h, math.nan)[1]
        found[f] = xi.ROOM if paper <= quadratic.best(mean, mean * mean + variance) else quadratic.ROOM
    return found
