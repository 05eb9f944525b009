"""The states of variables: their names, how many there are, and where the numbers of a variable stand in the arrays.

A variable with K states has K - 1 thresholds, and as many columns of means, one for each state from 1 on. An edge has a
block of weights, thresholds of the child by states of the parent from 1 on; one into a table has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray, IndexArray, States
from sbnet.errors import NetworkError, hint
from sbnet.kernels.codes import TABLE
from sbnet.model import yes_no
from sbnet.model.graph import Graph, as_floats, read_only
from sbnet.model.names import normal
from sbnet.model.notes import NOTHING, Note

NO_YES = ("no", "yes")
"""The states of a variable of which nothing else is said."""
MOST_STATES = 127
"""States of a variable: evidence holds their numbers in one byte, beside -1."""
_SUM = 1e-9
"""How far the probabilities of a row of a table may be from one; they are divided by their sum."""
_SHOWN = 8
_NUMERIC = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class StatesByName(Mapping[str, tuple[str, ...]]):
    """The names of the states of each variable; only those that are not called no and yes are kept.

    `notes` is there for its keys, which are the names of all variables.
    """

    __slots__ = ("_names", "own")

    def __init__(self, notes: Mapping[str, Note], own: dict[str, tuple[str, ...]]) -> None:
        self._names, self.own = notes, own

    def __getitem__(self, name: str) -> tuple[str, ...]:
        states = self.own.get(name)
        if states is None and name not in self._names:
            raise KeyError(name)
        return states or NO_YES

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return repr(dict(self))


def states_of(names: Sequence[str], given: Any, notes: Mapping[str, Note]) -> StatesByName:
    """The names of the states of each variable; of two, a note may have them."""
    own = {name: note.states for name, note in notes.items() if note is not NOTHING and note.states}
    if given is None:
        return StatesByName(notes, own)
    if not isinstance(given, Mapping):
        raise NetworkError(f"states is {checks.shown(given)}; {_example(names)}")
    # Units can be renamed as long as nothing is said of their states.
    for name, listed in (given.own if isinstance(given, StatesByName) else given).items():
        if name not in notes:
            raise NetworkError(f"states are given for {name!r}, which is not a variable{hint(str(name), names)}")
        states, noted = checked_states(name, listed), notes[name].states
        if noted and states not in (noted, NO_YES):
            raise NetworkError(
                f"the states of {name!r} are {shown(states)}, and its note says {shown(noted)}; keep one"
            )
        if states != NO_YES:
            own[name] = states
    return StatesByName(notes, own)


def checked_states(name: str, given: Any) -> tuple[str, ...]:
    """Names of states: texts that differ, at least two of them."""
    listed = tuple(checks.listed(f"the states of {name!r}", given, "give a list of names", NetworkError))
    if not 2 <= len(listed) <= MOST_STATES:
        few = "one state is certain, and none is impossible. Give at least two names"
        why = few if len(listed) < 2 else f"{MOST_STATES} are the limit"
        raise NetworkError(f"{name!r} has {len(listed)} state{'s' * (len(listed) != 1)}; {why}")
    for state in listed:
        if not isinstance(state, str) or not state.strip():
            text = "is empty" if isinstance(state, str) else f"is of type {type(state).__name__}"
            raise NetworkError(f"the states of {name!r} are named by texts; {checks.shown(state)} {text}")
    if len(set(map(normal, listed))) < len(listed):
        double = next(state for k, state in enumerate(listed) if normal(state) in map(normal, listed[:k]))
        raise NetworkError(f"two states of {name!r} are called {double!r}; their names must differ")
    return tuple(map(str, listed))


def _example(names: Sequence[str]) -> str:
    return (
        f"give names of states by variable, such as states={{{(names or ['fever'])[-1]!r}: ['none', 'mild', 'high']}}"
    )


def shown(states: Sequence[str], last: str = "and") -> str:
    """The names of states in a sentence."""
    if len(states) > _SHOWN:
        return f"{', '.join(states[:_SHOWN])}, … {len(states) - _SHOWN} more"
    return f"{', '.join(states[:-1])} {last} {states[-1]}"


def find(states: Sequence[str], value: Any) -> int | None:
    """The number of the state that a value names: by its name, in any case if that is one; a number is the state that
    is called so. Of two states that are called by words 0, 1 and truth values are the numbers themselves, but where the
    first one means yes or the second one no: there it has to be said in words."""
    if isinstance(value, str):
        word = normal(value.strip())
        for alike in (normal, lambda name: normal(name).casefold()):
            found = [k for k, name in enumerate(states) if alike(name) == alike(word)]
            if len(found) == 1:
                return found[0]
        value = _number(word)
        if value is None:
            return None
    if not isinstance(value, Real | np.bool_):
        return None
    numbers = [_number(name) for name in states]
    if not isinstance(value, bool | np.bool_) or any(number is not None for number in numbers):
        found = [k for k, number in enumerate(numbers) if number is not None and number == value]
        if found:
            return found[0]
    return int(value) if takes_bits(states) and value in (0, 1) else None


def takes_bits(states: Sequence[str]) -> bool:
    """Are 0 and 1 the numbers of two states that are called by words, and do these not say the reverse?"""
    if len(states) != 2 or not are_words(states):
        return False
    both = yes_no.bits(states)
    meant = [yes_no.bits([name]) for name in states] if both is None else [(k,) for k in both]
    return meant[0] != (1,) and meant[1] != (0,)


def are_words(states: Iterable[str]) -> bool:
    """Is no state called by a number?"""
    return all(_number(name) is None for name in states)


def _number(text: str) -> float | None:
    """The number that a text spells."""
    return float(text) if _NUMERIC.fullmatch(text) else None


# --- where numbers stand ----------------------------------------------------------------------------------------------


def numbers_of_states(names: Sequence[str], own: Mapping[str, tuple[str, ...]]) -> IndexArray:
    """How many states each variable has; `own` are those that are not called no and yes."""
    numbers = np.full(len(names), 2, np.int64)
    if own:
        numbers[:] = [len(own.get(name, NO_YES)) for name in names]
    return read_only(numbers)


def offsets(sizes: IndexArray) -> IndexArray:
    """Where stretches of these sizes begin, and where the last one ends."""
    return read_only(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


def block_sizes(graph: Graph, n_states: IndexArray, gate: States) -> IndexArray:
    """How many weights each edge has."""
    child = graph.child_of_edge
    sizes: IndexArray = (n_states[child] - 1) * (n_states[graph.parent] - 1)
    return np.where(gate[child] == TABLE, 0, sizes)


# --- tables -----------------------------------------------------------------------------------------------------------


class Tables(Mapping[str, FloatArray]):
    """Tables by name. One of zeros and ones is a function of its parents: of that the states are kept, a byte each.

    Attributes
    ----------
    kept : mapping
        Tables, and functions as integers, with an axis for each parent.
    n_states : mapping
        Of the variables with functions.
    """

    def __init__(self, kept: Mapping[str, Any], n_states: Mapping[str, int]) -> None:
        self.kept, self.n_states = kept, n_states

    def __getitem__(self, name: str) -> FloatArray:
        table = self.kept[name]
        return read_only(np.eye(self.n_states[name])[table]) if name in self.n_states else table

    def __iter__(self) -> Iterator[str]:
        return iter(self.kept)

    def __len__(self) -> int:
        return len(self.kept)

    def function(self, name: str) -> States | None:
        """The state of a variable for all joint states of its parents; None if these do not determine it."""
        return self.kept[name] if name in self.n_states else None


def tables_of(names: Sequence[str], graph: Graph, states: Mapping[str, tuple[str, ...]], given: Any) -> Tables:
    """The table of each variable that has one: probabilities of its states, for all joint states of its parents."""
    if given is None:
        return Tables({}, {})
    wanted = "give arrays by name, with an axis for each parent and a last one for the states"
    number = {name: i for i, name in enumerate(names)}
    kept, functions = dict[str, Any](), dict[str, int]()
    given = given if isinstance(given, Tables) else checks.mapping("tables", given, wanted, NetworkError)
    for name in given:
        if name not in number:
            raise NetworkError(f"a table is given for {name!r}, which is not a variable{hint(str(name), names)}")
        i = number[name]
        parents = [names[j] for j in graph.parent[graph.indptr[i] : graph.indptr[i + 1]]]
        function = given.function(name) if isinstance(given, Tables) else None
        if function is None or function.shape != tuple(len(states[parent]) for parent in parents):
            table = checked_table(name, parents, states, given[name])
            function = table.argmax(axis=-1) if parents and ((table == 0.0) | (table == 1.0)).all() else None
        elif not ((function >= 0) & (function < len(states[name]))).all():
            raise NetworkError(f"the function of {name!r} has states that it has not: there are {len(states[name])}")
        kept[name] = table if function is None else read_only(function.astype(np.int8))
        if function is not None:
            functions[name] = len(states[name])
    return Tables({name: kept[name] for name in sorted(kept, key=number.__getitem__)}, functions)


def checked_table(name: str, parents: Sequence[str], states: Mapping[str, tuple[str, ...]], given: Any) -> FloatArray:
    """A private, read-only table whose rows sum to one."""
    table = np.array(as_floats(given, f"the table of {name!r} must hold probabilities: its entries"), order="C")
    shape = (*(len(states[parent]) for parent in parents), len(states[name]))
    if table.shape != shape:
        axes = ", ".join([*(f"{parent!r} ({len(states[parent])} states)" for parent in parents), f"{name!r} itself"])
        raise NetworkError(f"the table of {name!r} has shape {table.shape}; expected {shape}: {axes}")
    table += 0.0
    bad = ~((table >= 0.0) & (table <= 1.0 + _SUM))
    if bad.any():
        place = tuple(int(k) for k in np.argwhere(bad)[0])
        text = f"P({name} = {states[name][place[-1]]}{_given(parents, states, place)})"
        raise NetworkError(f"{text} is {table[place]} in the table of {name!r}; a probability lies between 0 and 1")
    total = table.sum(axis=-1)
    if not (np.abs(total - 1.0) <= _SUM).all():
        place = tuple(int(k) for k in np.argwhere(np.abs(total - 1.0) > _SUM)[0]) if total.ndim else ()
        row = _given(parents, states, place).removeprefix(" | ") or "its states"
        text = f"the probabilities of {name!r} for {row}" if parents else f"the probabilities of {name!r}"
        raise NetworkError(f"{text} sum to {float(total[place]):.10g}; they must sum to 1")
    off = np.abs(total - 1.0) > 1e-15 * shape[-1]  # what was divided once stays as it is
    table[off] /= total[off][..., None]
    return read_only(table)


def as_table(name: str, parents: Sequence[str], states: Mapping[str, tuple[str, ...]], given: Any) -> Any:
    """A table from nested mappings, from states of the parents in their order to those of the variable; or as it is.

    Of a variable with two states the probability of the second one is enough.
    """
    if parents and isinstance(given, Mapping):
        rows = _by_state(name, parents[0], states[parents[0]], given)
        return np.array([as_table(name, parents[1:], states, row) for row in rows])
    if isinstance(given, Mapping):
        return np.array(_by_state(name, name, states[name], given))
    table = as_floats(given, f"the table of {name!r} must hold probabilities: its entries")
    if table.ndim == len(parents) and len(states[name]) == 2:
        return np.stack([1.0 - table, table], axis=-1)
    return table


def _by_state(name: str, whose: str, states: tuple[str, ...], given: Mapping[Any, Any]) -> list[Any]:
    """What a mapping has for each state of a variable, in order."""
    found: dict[int, Any] = {}
    for key, value in given.items():
        k = find(states, key)
        if k is None or k in found:
            what = "is not a state" if k is None else "comes twice as a state"
            way_out = hint(str(key), states, f"its states are {shown(states)}") if k is None else ""
            raise NetworkError(f"in the table of {name!r}, {checks.shown(key)} {what} of {whose!r}{way_out}")
        found[k] = value
    if len(found) < len(states):
        lacking = next(state for k, state in enumerate(states) if k not in found)
        raise NetworkError(f"the table of {name!r} has nothing for {whose} = {lacking}; give all of its states")
    return [found[k] for k in range(len(states))]


def _given(parents: Sequence[str], states: Mapping[str, tuple[str, ...]], place: Sequence[int]) -> str:
    known = ", ".join(f"{name} = {states[name][k]}" for name, k in zip(parents, place, strict=False))
    return f" | {known}" if known else ""
