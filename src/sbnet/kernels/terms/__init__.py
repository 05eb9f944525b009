"""How the mean of t(x) is bounded: a file for each way, all with the same five verbs.

- ``value(problem, blocks, tiles, numbers, q, enough, fresh, more)`` finds <x> and the bound on <t(x)> of its factors,
  in their blocks, at the present Q, with better parameters where a step promises more than `enough` nats; returns what
  more steps would promise. `fresh`: a new row has begun, with other biases; `more`: sweeps follow;
- ``pull(parent, problem, blocks, tiles, numbers, q, field)`` adds what children say about each state of a hidden
  variable, compared with state 0: eq. (24);
- ``push(parent, problem, blocks, tiles, numbers, old, q)`` tells them that its Q was `old`, and has moved; <x> follows;
- ``look(f, problem, blocks, tiles, numbers, q)`` is the term of one factor at the present Q, for a variable whose own
  states weigh it;
- ``gradient(problem, blocks, tiles, numbers, q, by_slot, by_factor)``: the derivatives in weights and biases, eqs.
  (34)-(35).

In Python, ``prepare(problem, blocks, tiles, numbers)`` makes what depends on the weights alone, and ``room(problem,
factors)`` says how many numbers each factor keeps in a table of its own; a term may do without either.

``refine(turn, at_all, problem, blocks, tiles, numbers, places, q)`` is asked before the ascent, and after it with the
next `turn`, until it says ENOUGH: how the terms are taken now, WHOLE or ROUGH; or that there must be more numbers
first (LACKS) or would have to be too many, unless `at_all` (CROWDED). All others are WHOLE at once.

A problem has a tuple of the terms that it needs, and only those are compiled: `verbs` of that tuple.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from sbnet.kernels.compiling import before_compiling, inner
from sbnet.kernels.kinds import ENUMERATED, KINDS

FILES = tuple(dict.fromkeys(file for kind in KINDS for file in (kind.file, kind.file_for_states)))


ENOUGH, WHOLE, ROUGH, LACKS, CROWDED = range(5)


class Verbs(NamedTuple):
    """What the terms of a problem do together."""

    value: Any
    pull: Any
    push: Any
    look: Any
    gradient: Any
    refine: Any


@inner
def _whole_at_once(turn, at_all, problem, blocks, tiles, numbers, places, q):
    return WHOLE if turn == 0 else ENOUGH


def file_of(kind: int, many: bool) -> ModuleType:
    """The file that serves a kind; if `many`, also variables with more than two states."""
    return import_module(f"{__name__}.{KINDS[kind].file_for_states if many else KINDS[kind].file}")


def terms_for(kinds: set[int], many: bool) -> tuple[Any, ...]:
    """What the compiler is told: the files that serve these kinds.

    The n-th file is a tuple of n + 1 zeros: numba tells tuples apart by their length, but not by their class.
    """
    names = dict.fromkeys(file_of(kind, many).__name__.rpartition(".")[2] for kind in sorted(kinds or {ENUMERATED}))
    return tuple((0,) * (FILES.index(name) + 1) for name in names)


def verbs(terms: tuple[Any, ...]) -> Verbs:
    """The verbs of these terms."""
    return _verbs_of(tuple(len(term) for term in terms))


@before_compiling
def _tell_the_compiler() -> None:
    from numba.extending import overload

    def typed(terms: Any) -> Any:
        value, pull, push, look, gradient, refine = _verbs_of(tuple(len(term) for term in terms.types))
        return lambda terms: Verbs(value, pull, push, look, gradient, refine)

    overload(verbs, strict=False)(typed)


@cache
def _verbs_of(lengths: tuple[int, ...]) -> Verbs:
    name = FILES[lengths[0] - 1]
    file = import_module(f"{__name__}.{name}")
    first = Verbs(*(getattr(file, verb, _whole_at_once) for verb in Verbs._fields))
    if len(lengths) == 1:
        return first
    rest, kinds = _verbs_of(lengths[1:]), tuple(k for k, kind in enumerate(KINDS) if name in kind[1:3])
    pull, push, gradient = (_both(getattr(first, verb), getattr(rest, verb)) for verb in ("pull", "push", "gradient"))
    refine = rest.refine if first.refine is _whole_at_once else first.refine
    return Verbs(_sum(first.value, rest.value), pull, push, _of_kind(kinds, first.look, rest.look), gradient, refine)


def _sum(one: Any, others: Any) -> Any:
    return inner(fast=True)(lambda a, b, c, d, e, f, g, h: one(a, b, c, d, e, f, g, h) + others(a, b, c, d, e, f, g, h))


def _both(one: Any, others: Any) -> Any:
    @inner(fast=True)
    def call(a, b, c, d, e, f, g):
        one(a, b, c, d, e, f, g)
        others(a, b, c, d, e, f, g)

    return call


def _of_kind(kinds: tuple[int, ...], one: Any, others: Any) -> Any:
    @inner
    def look(f, problem, b, c, d, e):
        if problem.factors[f].kind in kinds:
            return one(f, problem, b, c, d, e)
        return others(f, problem, b, c, d, e)

    return look
