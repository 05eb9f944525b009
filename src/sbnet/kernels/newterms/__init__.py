"""How the mean of t(x) is bounded: a file for each way, all with the same verbs.

- ``prepare(problem, blocks, tiles, numbers)`` makes what depends on the weights alone;
- ``value(problem, blocks, tiles, numbers, q, enough, fresh)`` finds <x> and the bound on <t(x)> of its factors, in
  their blocks, at the present Q, with better parameters where a step promises more than `enough` nats; returns what
  more steps would promise. `fresh`: a new row has begun, with other biases;
- ``pull(parent, problem, blocks, tiles, numbers, q, field)`` adds what children say about each state of a hidden
  variable, compared with state 0: eq. (24);
- ``push(parent, problem, blocks, tiles, numbers, old, q)`` tells them that its Q was `old`, and has moved; <x> follows;
- ``gradient(problem, blocks, tiles, numbers, q, by_slot, by_factor)``: the derivatives in weights and biases, eqs.
  (34)-(35).

And ``look(f, problem, blocks, tiles, numbers, q)`` is the term of one factor at the present Q, for a variable whose own
states weigh it; ``room(problem, factor)``, if there is one, says how many numbers a factor keeps in a table of its own.
The exact term also has ``attune``, ``attend`` and ``final``: see `frequencies`.

`SERVES` are its kinds. A problem has a tuple of the terms that it needs, and only their files are compiled.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from numba.extending import overload

from sbnet.kernels.compiling import inner
from sbnet.kernels.kinds import ENUMERATED, KINDS
from sbnet.kernels.structs import Problem

FILES = tuple(dict.fromkeys(file for kind in KINDS for file in (kind.file, kind.file_for_states)))


def terms_for(kinds: set[int], many: bool = True) -> tuple[Any, ...]:
    """What the compiler is told: the files that serve these kinds; if `many`, also more than two states.

    The n-th file is a tuple of n + 1 zeros: numba tells tuples apart by their length, but not by their class.
    """
    names = dict.fromkeys(_name(kind, many) for kind in sorted(kinds or {ENUMERATED}))
    return tuple((0,) * (FILES.index(name) + 1) for name in names)


def _name(kind: int, many: bool) -> str:
    return KINDS[kind].file_for_states if many else KINDS[kind].file


def file_of(kind: int, many: bool = True) -> ModuleType:
    """The file that serves a kind."""
    return import_module(f"{__name__}.{_name(kind, many)}")


def _file(length: int) -> ModuleType:
    """The file of a term, a tuple of that length."""
    return import_module(f"{__name__}.{FILES[length - 1]}")


def served_by(terms: tuple[Any, ...]) -> set[int]:
    """The kinds that these terms serve."""
    return {kind for term in terms for kind in _file(len(term)).SERVES}


class Verbs(NamedTuple):
    """What the terms of a problem do together."""

    prepare: Any
    value: Any
    pull: Any
    push: Any
    gradient: Any
    look: Any
    room: Any
    attune: Any
    attend: Any
    final: Any


def verbs(terms: tuple[Any, ...]) -> Verbs:
    """The verbs of these terms."""
    return _verbs_of(tuple(len(term) for term in terms))


@overload(verbs, strict=False)
def _typed_verbs(terms: Any) -> Any:
    prepare, value, pull, push, gradient, look, room, attune, attend, final = _verbs_of(
        tuple(len(term) for term in terms.types)
    )
    return lambda terms: Verbs(prepare, value, pull, push, gradient, look, room, attune, attend, final)


@cache
def _verbs_of(lengths: tuple[int, ...]) -> Verbs:
    file = _file(lengths[0])
    first = Verbs(*(getattr(file, name, _DEFAULTS.get(name)) for name in Verbs._fields))
    if len(lengths) == 1:
        return first
    rest = _verbs_of(lengths[1:])
    tuned = first if first.attune is not _no_frequencies else rest  # one term at most has frequencies
    prepare, pull, push, gradient = (
        _both(getattr(first, name), getattr(rest, name)) for name in ("prepare", "pull", "push", "gradient")
    )
    value, look = _sum(first.value, rest.value), _look(first.look, rest.look, file.SERVES)
    room = _room(first.room, rest.room, file.SERVES)
    return Verbs(prepare, value, pull, push, gradient, look, room, tuned.attune, tuned.attend, tuned.final)


def _both(one: Any, others: Any) -> Any:
    @inner(fast=True)
    def call(*given: Any) -> None:
        one(*given)
        others(*given)

    return call


def _sum(one: Any, others: Any) -> Any:
    return inner(fast=True)(lambda *given: one(*given) + others(*given))


def _look(one: Any, others: Any, kinds: tuple[int, ...]) -> Any:
    """The verb of the term that serves factor f."""

    @inner
    def call(f: int, problem: Problem, blocks: Any, tiles: Any, numbers: Any, q: Any) -> Any:
        if problem.factors[f].kind in kinds:
            return one(f, problem, blocks, tiles, numbers, q)
        return others(f, problem, blocks, tiles, numbers, q)

    return call


def _room(one: Any, others: Any, kinds: tuple[int, ...]) -> Any:
    return inner(lambda problem, factor: one(problem, factor) if factor.kind in kinds else others(problem, factor))


@inner
def _no_room(problem: Problem, factor: Any) -> int:
    return 0


@inner
def _no_frequencies(
    problem: Problem, blocks: Any, tiles: Any, numbers: Any, q: Any, again: bool, at_all: bool
) -> tuple[Any, bool]:
    return numbers, again


@inner
def _nothing(problem: Problem, blocks: Any, numbers: Any, whole: bool) -> None:
    pass


@inner
def _no_more(problem: Problem, blocks: Any, tiles: Any, numbers: Any, q: Any) -> None:
    pass


_DEFAULTS = {"room": _no_room, "attune": _no_frequencies, "attend": _nothing, "final": _no_more}
