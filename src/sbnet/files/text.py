"""Networks that people write by hand, in TOML: a table for each unit. docs/howto/formats.md shows it all by example."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np

from sbnet._types import FloatArray
from sbnet.errors import CycleError, FileFormatError, NetworkError, ParameterError, hint
from sbnet.files.plain import at, read_text
from sbnet.files.positions import MOST_PARTS, deep_key, place_of
from sbnet.files.text_words import OWN, in_toml, misplaced, parsed
from sbnet.kernels import codes as gates
from sbnet.model import hierarchy
from sbnet.model.build import from_edges
from sbnet.model.graph import as_floats
from sbnet.model.network import MAX_PARAMETER, Network, numbers
from sbnet.model.notes import GONE, WORDS, Note
from sbnet.model.probabilities import distribution, effects_by_state, log_odds, never, thresholds_of
from sbnet.model.states import NO_YES, as_table, checked_states, checked_table

_RANGES = {"weights": (-MAX_PARAMETER, MAX_PARAMETER), "causes": (0.0, 1.0), "theta": (0.0, MAX_PARAMETER)}
"""The least and the largest number of an edge."""
_KEYS = (*WORDS, *GONE, "states", "gate", *OWN["sigmoid"], *OWN["noisy-or"], *OWN["table"])
_NAMED = re.compile(r"\['([^']*)'\]")
"""The states that a message names, as in "the leak of 'fever'['mild']"."""
_TOP = ("layers", "units")


def read_toml(name: str) -> Network:
    """The network that a TOML file describes, or one error that says where it goes wrong and what to write."""
    text = read_text(name)
    deep = deep_key(text)
    if deep is not None:
        raise at(deep, f"a key has more than {MOST_PARTS} parts; a name with dots stands in quotes", name)
    try:
        return _Document(name, text, parsed(name, text)).network()
    except FileFormatError:
        raise
    except RecursionError:
        raise FileFormatError(f"{name} is nested too deeply; a variable is a table of numbers and texts") from None
    except (ValueError, OverflowError) as error:  # numbers with thousands of digits, a day that no month has
        raise FileFormatError(f"{name} holds a value that cannot be read: {error}") from None


class _Document:
    """What a file says, and where it says it."""

    def __init__(self, name: str, text: str, data: dict[str, Any]) -> None:
        self.name, self.text, self.data = name, text, data

    def wrong(self, message: str, *path: str) -> FileFormatError:
        """An error at the place of a key."""
        return at(place_of(self.text, path), message, self.name)

    def network(self) -> Network:
        self.check_keys(self.data, _TOP, "the file; a variable is a table [units.NAME]")
        self.units: dict[str, Any] = self.data.get("units", {})
        if not isinstance(self.units, dict) or not self.units:
            raise self.wrong("there are no variables; write a table [units.NAME] for each", "units")
        for unit in self.units:
            self.check_unit(unit)
        self.states = {unit: self.states_of(unit) for unit in self.units}
        self.notes = {unit: self.note(unit) for unit in self.units}
        self.several = {unit: states for unit, states in self.states.items() if len(states) > 2}
        edges = [edge for unit in self.units for edge in self.edges(unit)]
        if is_a := self.kinds():
            edges = self.with_relatives(edges, is_a)
        kinds = {unit: self.gate(unit) for unit in self.units}
        tabled = [unit for unit, kind in kinds.items() if kind == "table"]
        tables = {unit: self.table(unit) for unit in tabled}
        parents = {unit: self.units[unit].get("parents", []) for unit in tabled}
        bias = {unit: self.bias(unit) for unit in self.units if unit not in tables}
        given = {"states": self.several, "tables": tables, "parents": parents} if self.several or tables else {}
        try:
            found = from_edges(edges, bias=bias, gate=kinds, names=tuple(self.units), **given)
        except CycleError as error:
            raise self.cycle(error) from None
        return replace(found, notes=self.notes, layers=self.layers(len(self.units)))

    def states_of(self, unit: str) -> tuple[str, ...]:
        """The names of its states; what two of them are called is a note."""
        if "states" not in self.units[unit]:
            return NO_YES
        with self.at("units", unit, "states"):
            return checked_states(unit, self.units[unit]["states"])

    @contextmanager
    def at(self, *path: str) -> Iterator[None]:
        """Errors of what is built here are those at the place of a key, or of the state in it that they name."""
        try:
            yield
        except FileFormatError:
            raise
        except (NetworkError, ParameterError) as error:
            text, what = in_toml(str(error)), str(error).split(" is ")[0]
            raise self.wrong(text, *path, *_NAMED.findall(what)) from None

    def check_keys(self, table: Mapping[str, Any], known: tuple[str, ...], whose: str, *path: str) -> None:
        for key, value in table.items():
            if key not in known:
                way_out = hint(key, known, f"known are {', '.join(known)}", 0.6)
                if isinstance(value, dict) and path:
                    way_out = f'; a name with a dot stands in quotes: [units."{path[-1]}.{key}"]'
                raise self.wrong(f"{key!r} is not a key of {whose}{way_out}", *path, key)

    def check_unit(self, unit: str) -> None:
        """Are all its keys known, and do they belong to its gate?"""
        table = self.units[unit]
        if not isinstance(table, dict):
            text = f"variable {unit!r} is {table!r}; write [units.{unit}] and below it prior = 0.05"
            raise self.wrong(text, "units", unit)
        if not unit:
            raise self.wrong("a variable has an empty name", "units", unit)
        self.check_keys(table, _KEYS, f"variable {unit!r}", "units", unit)
        gate = self.gate(unit)
        for other, keys in OWN.items():
            for key in keys:
                if other != gate and key in table:
                    raise self.wrong(misplaced(unit, key, gate), "units", unit, key)
        for one, two in (("prior", "bias"), ("prior", "weights"), ("leak", "leak_theta")):
            if one in table and two in table:
                text = f"{unit!r} has {one} and {two}, which say the same; keep one"
                if two == "weights":
                    instead = "a variable with parents has a bias, its log-odds without them"
                    text = f"{unit!r} has a prior and weights; {instead}"
                raise self.wrong(text, "units", unit, two)

    def gate(self, unit: str) -> str:
        gate = self.units[unit].get("gate", "table" if "table" in self.units[unit] else "sigmoid")
        if not isinstance(gate, str) or gate not in OWN:
            known = " or ".join(f'"{name}"' for name in gates.NAMES)
            raise self.wrong(f"the gate of {unit!r} is {gate!r}; it is {known}", "units", unit, "gate")
        return gate

    def edges(self, unit: str) -> Iterator[tuple[str, str, Any]]:
        """What leads to a unit, as (parent, child, weight)."""
        seen, more = set[str](), unit in self.several
        for key in ("weights", "causes", "theta"):
            table = self.units[unit].get(key, {})
            if not isinstance(table, dict):
                raise self.wrong(f"{key} is {table!r}; write {key} = {{ flu = 0.9, cold = 0.2 }}", "units", unit, key)
            low, high = _RANGES[key]
            if not seen and not more and self.plain(unit, table, low, high):
                seen |= table.keys()
                yield from zip(table, repeat(unit), map(never, table.values()) if key == "causes" else table.values())
                continue
            for parent, value in table.items():
                if more or parent in self.several:
                    self.check_parent(unit, key, parent, seen)
                    seen.add(parent)
                    yield parent, unit, self.block(unit, key, parent, value)
                    continue
                weight = self.edge(unit, key, parent, value, seen)
                seen.add(parent)
                yield parent, unit, never(weight) if key == "causes" else weight

    def plain(self, unit: str, table: dict[str, Any], low: float, high: float) -> bool:
        """Are they all numbers in their range, from other units with two states? Nearly all are, and there are many."""
        values = table.values()
        if set(map(type, values)) != {float} or math.isnan(sum(values)) or min(values) < low or max(values) > high:
            return False
        return unit not in table and table.keys() <= self.units.keys() and table.keys().isdisjoint(self.several)

    def edge(self, unit: str, key: str, parent: str, value: Any, seen: set[str]) -> float:
        """A number that is not as usual: a whole one, or what is wrong with it."""
        path = "units", unit, key, parent
        if isinstance(value, dict):
            full = f'"{parent}.{next(iter(value), "")}"'
            raise self.wrong(f"{parent!r} is a table; a name with a dot stands in quotes: {full} = 0.9", *path)
        self.check_parent(unit, key, parent, seen)
        what = f"the {'probability' if key == 'causes' else 'weight'} {parent!r} -> {unit!r}"
        number = self.probability if key == "causes" else self.positive if key == "theta" else self.number
        return number(what, value, path)

    def kinds(self) -> dict[str, tuple[str, ...]]:
        """What each unit is a kind of, where that is said: noisy-OR units with two states, all of them."""
        found: dict[str, tuple[str, ...]] = {}
        for unit, table in self.units.items():
            if "is_a" not in table:
                continue
            path = "units", unit, "is_a"
            with self.at(*path):
                found |= hierarchy.checked({unit: table["is_a"]})
            for one in (unit, *found[unit]):
                if one not in self.units:
                    way_out = hint(one, self.units, f"add [units.{one}]", 0.6)
                    raise self.wrong(f"{one!r} is not a variable{way_out}", *path)
                if self.gate(one) != "noisy-or" or len(self.states[one]) > 2:
                    raise self.wrong(f"is_a is for noisy-OR variables of two states, and {one!r} is none", *path)
        return found

    def with_relatives(
        self, edges: list[tuple[str, str, Any]], is_a: dict[str, tuple[str, ...]]
    ) -> list[tuple[str, str, Any]]:
        """Causes are linked to the relatives of what they bring about, too."""
        related = hierarchy.members(is_a)
        causes: dict[tuple[str, str], float] = {}
        for parent, child, weight in edges:
            if child in related and np.ndim(weight):
                text = f"{parent!r} has {len(self.states[parent])} states, and its effect is in a hierarchy, is_a"
                raise self.wrong(f"{text}; that is for causes of two", "units", child, "causes", parent)
            if child in related:
                causes[parent, child] = -math.expm1(-weight)
        leak = {unit: -math.expm1(-self.bias(unit)) for unit in related}
        try:
            every = hierarchy.links(causes, leak, is_a)
        except CycleError as error:
            raise self.wrong(str(error), "units", error.cycle[0], "is_a") from None
        more = [(*pair, never(p)) for pair, p in every.items() if p != causes.get(pair)]
        changed = {pair[:2] for pair in more}
        return [edge for edge in edges if edge[:2] not in changed] + more

    def check_parent(self, unit: str, key: str, parent: str, seen: set[str]) -> None:
        """Is it a unit, another one, and not named before?"""
        path = "units", unit, key, parent
        if parent == unit:
            raise self.wrong(f"{unit!r} is its own parent; a variable cannot cause itself", *path)
        if parent not in self.units:
            way_out = hint(parent, self.units, f"add a table [units.{parent}] for it", 0.6)
            raise self.wrong(f"{parent!r} is not a variable{way_out}", *path)
        if parent in seen:
            raise self.wrong(f"{parent!r} stands in causes and in theta of {unit!r}; keep one", *path)

    def block(self, unit: str, key: str, parent: str, value: Any) -> FloatArray:
        """The weights of an edge where there are more than two states: thresholds by states of the parent."""
        path, what = ("units", unit, key, parent), f"the weight {parent!r} -> {unit!r}"
        own, above = self.states[unit], self.states[parent]
        with self.at(*path):
            if key == "causes":
                p = effects_by_state(f"{parent!r} -> {unit!r}", value, above, own, self.number_at(path))
                return np.stack([thresholds_of(row, "noisy-or", np.zeros(len(own) - 1)) for row in p], axis=1)
            found = numbers(value, (len(own) - 1, len(above) - 1), what)
            return self.checked(found, what, path, positive=key == "theta")

    def number_at(self, path: tuple[str, ...]) -> Callable[[str, Any], float]:
        """A check of probabilities: errors are at the states that they name."""
        return lambda what, value: self.probability(what, value, (*path, *_NAMED.findall(what)))

    def checked(self, found: FloatArray, what: str, path: tuple[str, ...], positive: bool) -> FloatArray:
        """Numbers in their range."""
        for value in found.ravel().tolist():
            (self.positive if positive else self.number)(what, value, path)
        return found

    def table(self, unit: str) -> Any:
        """A table by rows, one for each joint state of the parents, the last one's changing fastest; or by states."""
        own, path = self.units[unit], ("units", unit)
        parents = own.get("parents", [])
        if not isinstance(parents, list):
            raise self.wrong(f'parents is {parents!r}; list them, as in ["flu", "cold"]', *path, "parents")
        for parent in parents:
            if not isinstance(parent, str) or parent not in self.units:
                way_out = hint(parent, self.units, f"add a table [units.{parent}] for it", 0.6)
                raise self.wrong(f"{parent!r} is not a variable{way_out}", *path, "parents")
            if parent == unit or parents.count(parent) > 1:
                way_out = "is its own parent" if parent == unit else f"names {parent!r} twice among its parents"
                raise self.wrong(f"{unit!r} {way_out}", *path, "parents")
        if "table" not in own:
            raise self.wrong(f"{unit!r} has no table; add table = [[0.9, 0.1], …], a row for each state", *path)
        given, sizes = own["table"], [len(self.states[parent]) for parent in parents]
        with self.at(*path, "table"):
            if isinstance(given, list):
                rows, shape = as_floats(given, f"the table of {unit!r}"), (math.prod(sizes), len(self.states[unit]))
                if rows.shape == shape:
                    given = rows.reshape(*sizes, shape[1])
                elif not parents and rows.ndim > 1:
                    text = 'no parents; name them, as in parents = ["flu"]'
                    raise NetworkError(f"the table of {unit!r} has {len(rows)} rows, and {unit!r} {text}")
                elif rows.shape != (*sizes, shape[1]):
                    text = f"a row of {shape[1]} probabilities for each of the {shape[0]} joint states of its parents"
                    raise NetworkError(f"the table of {unit!r} has shape {rows.shape}; it has {text}")
            return checked_table(unit, parents, self.states, as_table(unit, parents, self.states, given))

    def biases(self, unit: str) -> FloatArray:
        """The biases of a unit with more than two states."""
        table, states, gate = self.units[unit], self.states[unit], self.gate(unit)
        numbers_at, p_at = ("leak_theta", "leak") if gate == "noisy-or" else ("bias", "prior")
        path = ("units", unit, numbers_at if numbers_at in table else p_at)
        shape, what = (len(states) - 1,), f"the {path[-1]} of {unit!r}"
        with self.at(*path):
            if numbers_at in table:
                return self.checked(numbers(table[numbers_at], shape, what), what, path, positive=gate == "noisy-or")
            if p_at in table:
                p = distribution(what, table[p_at], states, self.number_at(path))
                return thresholds_of(p, gate, np.zeros(shape))
        if gate == "sigmoid" and not table.get("weights"):
            example = f"{{ {states[1]} = 0.2, {states[-1]} = 0.1 }}"
            raise self.wrong(f"{unit!r} has no prior; add prior = {example}, or what its probabilities are", *path[:2])
        return np.zeros(shape)

    def bias(self, unit: str) -> Any:
        if len(self.states[unit]) > 2:
            return self.biases(unit)
        table, path = self.units[unit], ("units", unit)
        if self.gate(unit) == "noisy-or":
            if "leak_theta" in table:
                return self.positive(f"the leak_theta of {unit!r}", table["leak_theta"], (*path, "leak_theta"))
            return never(self.probability(f"the leak of {unit!r}", table.get("leak", 0.0), (*path, "leak")))
        if "prior" in table:
            return log_odds(self.probability(f"the prior of {unit!r}", table["prior"], (*path, "prior")))
        if "bias" not in table and not table.get("weights"):
            raise self.wrong(f"{unit!r} has no prior; add prior = 0.05, or what its probability is", *path)
        return self.number(f"the bias of {unit!r}", table.get("bias", 0.0), (*path, "bias"))

    def number(self, what: str, value: Any, path: tuple[str, ...]) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(f"{what} is {value!r}; it is a number", *path)
        if not abs(value) <= MAX_PARAMETER:
            raise self.wrong(f"{what} is {value}; it must be finite, and at most {MAX_PARAMETER:.0e} in size", *path)
        return float(value)

    def positive(self, what: str, value: Any, path: tuple[str, ...]) -> float:
        number = self.number(what, value, path)
        if number < 0.0:
            raise self.wrong(f"{what} is {value}; -ln(1 - p) of a probability is not negative", *path)
        return number

    def probability(self, what: str, value: Any, path: tuple[str, ...]) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(f"{what} is {value!r}; it is a probability, such as 0.05", *path)
        if not 0.0 <= value <= 1.0:
            percent = f"; write {value} % as {value / 100}" if 1.0 < value <= 100.0 else ""
            raise self.wrong(f"{what} is {value}; a probability lies between 0 and 1{percent}", *path)
        return float(value)

    def note(self, unit: str) -> Note:
        table = self.units[unit]
        given = {key: table[key] for key in (*WORDS, "states") if key in table}
        if len(self.states[unit]) > 2:
            given.pop("states", None)
        for key, value in given.items():
            try:
                Note(**{key: value})
            except NetworkError as error:
                raise self.wrong(str(error), "units", unit, key) from None
        return Note(**given)

    def layers(self, n_units: int) -> tuple[int, ...] | None:
        if "layers" not in self.data:
            return None
        sizes = self.data["layers"]
        whole = isinstance(sizes, list) and all(type(size) is int and size > 0 for size in sizes)
        if not whole or sum(sizes) != n_units:
            raise self.wrong(f"layers is {sizes!r}; it lists the sizes of layers, which add up to {n_units}", "layers")
        return tuple(sizes)

    def cycle(self, error: CycleError) -> FileFormatError:
        """An error at the edge that closes a cycle."""
        parent, child = error.cycle[-2:]
        key = next(key for key in ("weights", "causes", "theta", "parents") if parent in self.units[child].get(key, {}))
        return self.wrong(f"{error}; no variable can be among its own causes", "units", child, key, parent)
