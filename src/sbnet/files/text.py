"""Networks that people write by hand, in TOML: a table for each unit. docs/formats.md shows all of it by example."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sbnet.errors import CycleError, FileFormatError, NetworkError, hint
from sbnet.files.plain import at, read_text
from sbnet.files.positions import MOST_PARTS, deep_key, place_of
from sbnet.kernels import codes as gates
from sbnet.model.build import from_edges
from sbnet.model.network import MAX_PARAMETER, Network
from sbnet.model.notes import WORDS, Note
from sbnet.model.probabilities import log_odds, never

OWN = {"sigmoid": ("prior", "bias", "weights"), "noisy-or": ("leak", "leak_theta", "causes", "theta")}
"""The keys of the numbers of a unit, by its gate."""
_RANGES = {"weights": (-MAX_PARAMETER, MAX_PARAMETER), "causes": (0.0, 1.0), "theta": (0.0, MAX_PARAMETER)}
"""The least and the largest number of an edge."""
_KEYS = (*WORDS, "states", "gate", *OWN["sigmoid"], *OWN["noisy-or"])
_TOP = ("layers", "units")
_PLACE = re.compile(r" \(at (?:(line \d+, column \d+)|(end of document))\)$")


def read_toml(name: str) -> Network:
    """The network that a TOML file describes, or one error that says where it goes wrong and what to write."""
    text = read_text(name)
    deep = deep_key(text)
    if deep is not None:
        raise at(deep, f"a key has more than {MOST_PARTS} parts; a name with dots stands in quotes", name)
    try:
        return _Document(name, text, _parsed(name, text)).network()
    except FileFormatError:
        raise
    except RecursionError:
        raise FileFormatError(f"{name} is nested too deeply; a unit is a table of numbers and texts") from None
    except (ValueError, OverflowError) as error:  # numbers with thousands of digits, a day that no month has
        raise FileFormatError(f"{name} holds a value that cannot be read: {error}") from None


def _parsed(name: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _PLACE.search(str(error))
        where = (found[1] or f"line {text.count(chr(10)) + 1}, at the end") if found else "somewhere"
        line = re.search(r"line (\d+)", where)
        hint = ""
        if line:
            typed = text.split("\n")[int(line[1]) - 1][:_LONGEST_LINE]
            hint = next((f"; {way_out}" for pattern, way_out in _HINTS if pattern.search(typed)), "")
        raise at(where, f"this is not TOML: {_PLACE.sub('', str(error))}{hint}", name) from None


_LONGEST_LINE = 1_000
"""Characters of a line in which a typing error is looked for."""
_HINTS = [  # the typing errors that people make most, by the line where reading ended
    (re.compile(pattern), way_out)
    for pattern, way_out in (
        ("[\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb]", 'texts stand in straight quotes, "influenza"'),
        ("=\\s*[\u2212\u2013]", "write a minus as -, the sign of the keyboard"),
        (r"\d\s*%", "write 85 % as 0.85"),
        (r"=\s*\d+,\d", "write 0,85 with a point, 0.85"),
        (r"[=,{\[]\s*[+-]?\.\d", "write .05 with a zero before the point, 0.05"),
        (r"[=,{\[]\s*[+-]?\d+\.(?!\d)", "write 5. with a digit behind the point, 5.0"),
        (r"""^\s*[\w"'.-]+\s*:""", "a value stands behind =, not behind a colon: prior = 0.05"),
        (r"[{,]\s*[\w.-]+\s*:", "a value stands behind =, not behind a colon: { flu = 0.9 }"),
        (r"\{[^}]*,\s*\}", "no comma stands before the closing brace"),
        (r"""\{[^}]*=[^,}=]*[\d"']\s+[\w"'.-]+\s*=""", "a comma stands between two of them: { flu = 0.9, cold = 0.2 }"),
        (r"""\[[^\]]*["']\s+["']""", 'a comma stands between two of them: ["no", "yes"]'),
        (r"""=\s*(?:[\d.]+|"[^"]*")\s+[\w-]+\s*=""", "each key stands in a line of its own"),
        (r"^\s*[\w-]+\s*=\s*(?:True|False|TRUE|FALSE)\b", "write true and false in small letters"),
        (r"^\s*[\w-]+\s*=\s*[^\W\d][\w -]*$", 'texts stand in quotes, gate = "noisy-or"'),
        (r"""^\s*\[units\.[^"'\]]*\s""", 'names with spaces or dots stand in quotes, [units."chest pain"]'),
        (r"""^\s*\[units\.[^"'\]]*[^\x00-\x7f]""", 'names with other letters stand in quotes, [units."fièvre"]'),
        (r"^\s*\[", "a unit is declared once, and its name stands in quotes if it has spaces or dots"),
        (r"\{[^}]*$", "what stands in braces stays on one line, or becomes a table of its own, [units.fever.causes]"),
        (r"^\s*[^=]*[^\x00-\x7f][^=]*=", 'names with other letters stand in quotes, "fièvre" = 0.9'),
    )
]


class _Document:
    """What a file says, and where it says it."""

    def __init__(self, name: str, text: str, data: dict[str, Any]) -> None:
        self.name, self.text, self.data = name, text, data

    def wrong(self, message: str, *path: str) -> FileFormatError:
        """An error at the place of a key."""
        return at(place_of(self.text, path), message, self.name)

    def network(self) -> Network:
        self.check_keys(self.data, _TOP, "the file; a unit is a table [units.NAME]")
        self.units: dict[str, Any] = self.data.get("units", {})
        if not isinstance(self.units, dict) or not self.units:
            raise self.wrong("there are no units; write a table [units.NAME] for each", "units")
        for unit in self.units:
            self.check_unit(unit)
        edges = [edge for unit in self.units for edge in self.edges(unit)]
        kinds = {unit: self.gate(unit) for unit in self.units}
        bias = {unit: self.bias(unit) for unit in self.units}
        try:
            found = from_edges(edges, bias=bias, gate=kinds, names=tuple(self.units))
        except CycleError as error:
            raise self.cycle(error) from None
        return replace(found, notes={unit: self.note(unit) for unit in self.units}, layers=self.layers(len(self.units)))

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
            text = f"unit {unit!r} is {table!r}; write [units.{unit}] and below it prior = 0.05"
            raise self.wrong(text, "units", unit)
        if not unit:
            raise self.wrong("a unit has an empty name", "units", unit)
        self.check_keys(table, _KEYS, f"unit {unit!r}", "units", unit)
        gate = self.gate(unit)
        for other, keys in OWN.items():
            for key in keys:
                if other != gate and key in table:
                    raise self.wrong(_misplaced(unit, key, gate), "units", unit, key)
        for one, two in (("prior", "bias"), ("prior", "weights"), ("leak", "leak_theta")):
            if one in table and two in table:
                text = f"{unit!r} has {one} and {two}, which say the same; keep one"
                if two == "weights":
                    instead = "a unit with parents has a bias, its log-odds without them"
                    text = f"{unit!r} has a prior and weights; {instead}"
                raise self.wrong(text, "units", unit, two)

    def gate(self, unit: str) -> str:
        gate = self.units[unit].get("gate", "sigmoid")
        if not isinstance(gate, str) or gate not in OWN:
            known = " or ".join(f'"{name}"' for name in gates.NAMES)
            raise self.wrong(f"the gate of {unit!r} is {gate!r}; it is {known}", "units", unit, "gate")
        return gate

    def edges(self, unit: str) -> Iterator[tuple[str, str, float]]:
        """What leads to a unit, as (parent, child, weight)."""
        seen: set[str] = set()
        for key in ("weights", "causes", "theta"):
            table = self.units[unit].get(key, {})
            if not isinstance(table, dict):
                raise self.wrong(f"{key} is {table!r}; write {key} = {{ flu = 0.9, cold = 0.2 }}", "units", unit, key)
            low, high = _RANGES[key]
            for parent, value in table.items():
                usual = type(value) is float and low <= value <= high and parent in self.units and parent != unit
                weight = value if usual and parent not in seen else self.edge(unit, key, parent, value, seen)
                seen.add(parent)
                yield parent, unit, never(weight) if key == "causes" else weight

    def edge(self, unit: str, key: str, parent: str, value: Any, seen: set[str]) -> float:
        """A number that is not as usual: a whole one, or what is wrong with it."""
        path = "units", unit, key, parent
        if isinstance(value, dict):
            full = f'"{parent}.{next(iter(value), "")}"'
            raise self.wrong(f"{parent!r} is a table; a name with a dot stands in quotes: {full} = 0.9", *path)
        if parent == unit:
            raise self.wrong(f"{unit!r} is its own parent; a unit cannot cause itself", *path)
        if parent not in self.units:
            way_out = hint(parent, self.units, f"add a table [units.{parent}] for it", 0.6)
            raise self.wrong(f"{parent!r} is not a unit{way_out}", *path)
        if parent in seen:
            raise self.wrong(f"{parent!r} stands in causes and in theta of {unit!r}; keep one", *path)
        what = f"the {'probability' if key == 'causes' else 'weight'} {parent!r} -> {unit!r}"
        number = self.probability if key == "causes" else self.positive if key == "theta" else self.number
        return number(what, value, path)

    def bias(self, unit: str) -> float:
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
        key = next(key for key in ("weights", "causes", "theta") if parent in self.units[child].get(key, {}))
        return self.wrong(f"{error}; no unit can be among its own causes", "units", child, key, parent)


def _misplaced(unit: str, key: str, gate: str) -> str:
    """A key of one gate at a unit of the other, and what was meant."""
    if gate == "sigmoid":
        meant = 'add gate = "noisy-or", or write bias and weights'
        return f"{key!r} is for noisy-OR units, and {unit!r} is a sigmoid unit; {meant}"
    leak = "leak = 0.01"
    instead = {"prior": f"{leak}, its probability without causes", "bias": leak, "weights": "causes = { flu = 0.9 }"}
    return f"{key!r} is for sigmoid units, and {unit!r} is a noisy-OR unit; write {instead[key]}"
