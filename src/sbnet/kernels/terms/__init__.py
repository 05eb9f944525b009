"""How the mean of t(x) is bounded, a file for each way; the only place that knows how many there are.

Each file has the same verbs, as far as they apply: `prepare` (what depends on the weights), `begin` (what depends on
the row), `open_sweep`, `pull` (what children tell a parent), `push` (a parent has moved; the mean inputs of hidden
units follow, for a sweep asks for those), `renew` (the terms at the present means: after a sweep, or from scratch if
`fresh`), `gradient`; and a slow, obvious `reference` for one factor. A term serves all children of a
parent in one call. Verbs are compiled for sets of rooms, when a problem needs them.

A *kind* is what a user asks for (`log_term`); a *room* is the file that serves it. A factor whose kind has no room
keeps the term NaN, which shows at once; it never borrows another's.
"""

from __future__ import annotations

import math
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from sbnet._types import Bound, FloatArray, IndexArray, Problem, States
from sbnet.kernels import gates
from sbnet.kernels._compile import bare, caller, inner, plain
from sbnet.kernels.arrays import load, real_numbers, whole_numbers
from sbnet.kernels.terms import enumerated, exact, linear, quadratic, series, waves, xi
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
_FEW = HAS + enumerated.ROOM
_NOBODY = 15  # the room of kinds that have none: a place for their numbers, but no file to serve them
_ROOM_OF = np.full(16, _NOBODY)  # by kind
_TILED = np.zeros(16, np.int64)  # by room
_TILED[_NOBODY] = 1  # or there would be a table for each factor, however many parents it has
for _room in ROOMS:
    _TILED[_room.ROOM] = _room.TILED
    for _kind in (_room.ROOM, *_room.KINDS.values()):
        _ROOM_OF[_kind] = _room.ROOM


@cache
def each(verb: str, arguments: str, rooms: tuple[Any, ...] = ROOMS, *, adds: bool = False) -> Any:
    """A function that calls the verb of every room that has it and has work, and adds up what they return if `adds`.

    Kernels cannot loop over functions, so the calls are spelt out, one after the other.
    """
    names = {name_of(room): room.ROOM for room in rooms if hasattr(room, verb)}
    calls = (
        f"if work.ints[{HAS + room}] > 0: {'total += ' * adds}{name}.{verb}({arguments})"
        for name, room in names.items()
    )
    return _spelt_out("_".join((verb, *names)), arguments, ["total = 0.0", *calls, "return total" * adds])


def _ladder(verb: str, arguments: str, otherwise: str) -> Any:
    """A function that calls the verb of one room, by the kind that comes as the first argument."""
    rungs = (
        f"if {' or '.join(f'kind == {kind}' for kind in {room.ROOM, *room.KINDS.values()})}: "
        f"return {name_of(room)}.{verb}({arguments})"
        for room in ROOMS
    )
    return _spelt_out(verb, arguments, [*rungs, f"return {otherwise}"])


def name_of(room: Any) -> str:
    """That of its file."""
    return str(room.__name__.rpartition(".")[2])


def _spelt_out(name: str, arguments: str, lines: list[str]) -> Any:
    names: dict[str, Any] = {}
    body = "\n    ".join(lines)
    exec(compile(f"def {name}({arguments}):\n    {body}\n", __file__, "exec"), globals(), names)
    return names[name]


reference = inner(_ladder("reference", "kind, gate, weight, mu, bias, parameter", "math.nan, math.nan"))


call_prepare, call_begin, call_attend = caller(xi.prepare), caller(xi.begin), caller(exact.attend)
call_renew, call_gradient = caller(enumerated.renew), caller(enumerated.gradient)


@cache
def rooms_for(bound: Bound, gates_of: frozenset[int], fewest: int, most: int) -> tuple[Any, ...]:
    """The rooms that serve factors of these gates with so many hidden parents."""
    kinds = {plain(kind_of)(bound, gate, parents) for gate in gates_of for parents in (fewest, most)}
    return tuple(room for room in ROOMS if kinds & {room.ROOM, *room.KINDS.values()})


@cache
def any_rooms(gates_of: frozenset[int]) -> tuple[Any, ...]:
    """All rooms that may serve factors of these gates."""
    return tuple(room for room in ROOMS if gates.NOISY_OR in gates_of or room not in (series, linear))


def roughly(rooms: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same with the paper's term in place of the exact one."""
    return tuple(dict.fromkeys(xi if room is exact else room for room in rooms))


@inner
def kinds_of(problem: Problem, bound: Bound) -> IndexArray:
    """The kind of each factor: what was asked for, or a sum over the states of its parents if they are few."""
    kind = whole_numbers(len(problem.factor))
    for f in range(len(kind)):
        gate = load(problem.gate, load(problem.factor, f))
        kind[f] = kind_of(bound, gate, load(problem.ptr, f, 1) - load(problem.ptr, f))
    return kind


@bare
def kind_of(bound: Bound, gate: int, parents: int) -> int:
    """The kind of a factor with so many hidden parents. What is cheap for one gate is another thing for the other."""
    if parents <= bound.enumerate_up_to:
        return enumerated.ROOM
    if gate == gates.NOISY_OR:
        cheap = bound.log_term == quadratic.ROOM or bound.log_term == _JENSEN
        return linear.ROOM if cheap else series.ROOM
    return bound.log_term


def prepare(problem: Problem, asked: IndexArray, rough: bool, verb: int) -> Work:
    """Everything about a problem that does not depend on the values of the evidence.

    If `rough`, with the paper's term in place of the exact one. Only a sum over states serves every gate.
    """
    n, n_exact = len(asked), 0
    kind, room, tiled, table = whole_numbers(n), whole_numbers(n), whole_numbers(n), whole_numbers(n)
    for f in range(n):
        k = load(asked, f)
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
    call_prepare(verb, work)
    return work


call_layout = caller(prepare)


@bare
def _table_size(problem: Problem, f: int, room: int) -> int:
    """Numbers that a factor without tiles keeps in a table of its own."""
    weight = problem.weight[problem.ptr[f] : problem.ptr[f + 1]]
    if room == enumerated.ROOM:
        return 1 << len(weight)
    if room == series.ROOM:
        return series.rows_of(len(weight)) * series.width_of(weight)
    return 3 * len(weight) if room == linear.ROOM else 0


@bare
def begin(work: Work, states: States, bias: FloatArray, mu: FloatArray, verb: int) -> None:
    """Bring the row into the state: what is observed, biases, the range of x."""
    index, numbers = work.ints, work.numbers
    factor, own_of, place, below, above = (
        load(index, FACTOR),
        load(index, OWN),
        load(index, PLACE),
        load(index, BELOW),
        load(index, ABOVE),
    )
    for f in range(load(index, N_FACTORS)):
        i, own, at = load(index, factor, f), load(index, own_of, f), np.uint64(load(index, place, f))
        h = load(bias, i)
        numbers[at + VALUE] = load(mu, own) if own >= 0 else float(load(states, i))
        numbers[at + BIAS] = h
        numbers[at + LOW], numbers[at + HIGH] = h + load(numbers, below, f), h + load(numbers, above, f)
        numbers[at + TERM] = math.nan
    call_begin(verb, work)


@bare
def total(work: Work) -> float:
    """The sum over all factors of a(S) <x> - c(S) <t(x)>."""
    index, numbers, value = work.ints, work.numbers, 0.0
    place, gate = load(index, PLACE), load(index, GATE)
    for f in range(load(index, N_FACTORS)):
        at = np.uint64(load(index, place, f))
        a, c = gates.loads(load(index, gate, f), load(numbers, at, VALUE))
        value += a * load(numbers, at, MEAN) - c * load(numbers, at, TERM)
    return value


@bare
def parameter(work: Work, f: int) -> float:
    """The xi of a factor, or NaN if its term has none."""
    has = load(work.ints, load(work.ints, ROOM), f) == xi.ROOM
    return work.numbers[np.uint64(load(work.ints, load(work.ints, PLACE), f)) + xi.XI] if has else math.nan


@bare
def lacks(enumerates: bool, work: Work) -> bool:
    """Are there factors with few parents, though no sum over their states has been compiled?"""
    return not enumerates and load(work.ints, _FEW) > 0


@bare
def same_kinds(work: Work, kind: IndexArray) -> bool:
    """Is the problem laid out for these kinds?"""
    at = load(work.ints, KIND)
    for f in range(len(kind)):  # noqa: SIM110 (kernels have no generators)
        if load(work.ints, at, f) != load(kind, f):
            return False
    return True


def other_kinds(problem: Problem, kind: IndexArray, bias: FloatArray, mu: FloatArray) -> IndexArray:
    """The kinds with which the exact term is climbed.

    Where a factor needs too many frequencies, the tighter of the paper's term and the quadratic one takes its place.
    """
    found, fits = whole_numbers(len(kind)), whole_numbers(len(kind))
    waves.fits(problem, kind, waves.nodes_of(problem, bias, mu), fits)
    for f in range(len(kind)):
        found[f] = load(kind, f)
        if load(fits, f) == 0:
            start, end, h = load(problem.ptr, f), load(problem.ptr, f, 1), load(bias, load(problem.factor, f))
            weight, near = problem.weight[start:end], real_numbers(end - start)
            for s in range(end - start):
                near[s] = load(mu, load(problem.parent, start, s))
            _, _, mean, variance, _ = spread(weight, near, h)
            paper = xi.best(weight, near, h, math.nan)[1]
            found[f] = xi.ROOM if paper <= quadratic.best(mean, mean * mean + variance) else quadratic.ROOM
    return found


call_other_kinds = caller(other_kinds)
