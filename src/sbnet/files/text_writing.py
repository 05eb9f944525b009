"""A network as people would write it: probabilities where they give the same numbers bit for bit, else the numbers.

Written here and not by tomli-w, which gives every mapping a table of its own, and so parts a unit from its causes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from scipy.special import expit

from sbnet.errors import FileFormatError
from sbnet.files.atomic import write_atomically
from sbnet.kernels.gates import NOISY_OR
from sbnet.model.network import Network
from sbnet.model.notes import as_words
from sbnet.model.probabilities import CERTAIN, log_odds, never

_LINE = 100
"""Characters up to which causes stand in one line; more get a line each."""


def write_toml(network: Network, name: str) -> None:
    """Write a network as TOML; :func:`read_toml` gives it back, bit for bit."""
    try:
        data = as_toml(network).encode()
    except UnicodeEncodeError as error:
        raise FileFormatError(
            f"the text {error.object[error.start - 10 : error.end + 10]!r} cannot be written in UTF-8"
        ) from None
    write_atomically(name, data)


def as_toml(network: Network) -> str:
    """The text of the file."""
    parts = [] if network.layers is None else [f"layers = {list(network.layers)}\n"]
    return "\n".join([*parts, *("\n".join(_unit(network, i)) + "\n" for i in range(network.n_units))])


def _unit(network: Network, i: int) -> Iterator[str]:
    name, graph, noisy = network.names[i], network.graph, network.gate[i] == NOISY_OR
    yield f"[units.{_key(name)}]"
    for key, value in as_words(network.notes[name]).items():
        yield f"{key} = {_text(value) if isinstance(value, str) else '[' + ', '.join(map(_text, value)) + ']'}"
    edges = slice(graph.indptr[i], graph.indptr[i + 1])
    weights = dict(zip(network.parents(i), network.weight[edges].tolist(), strict=True))
    if noisy:
        yield from _noisy_or(f"units.{_key(name)}", float(network.bias[i]), weights)
    else:
        yield from _sigmoid(f"units.{_key(name)}", float(network.bias[i]), weights)


def _sigmoid(table: str, bias: float, weights: Mapping[str, float]) -> Iterator[str]:
    prior = None if weights else as_chance(bias, log_odds, lambda h: float(expit(h)))
    longer = prior is None or len(repr(prior)) > len(repr(bias))
    yield f"bias = {bias!r}" if longer else f"prior = {prior!r}"
    yield from _mapping(table, {"weights": weights})


def _noisy_or(table: str, bias: float, weights: Mapping[str, float]) -> Iterator[str]:
    yield 'gate = "noisy-or"'
    leak = _as_cause(bias)
    yield f"leak_theta = {bias!r}" if leak is None else f"leak = {leak!r}"
    causes = {parent: _as_cause(weight) for parent, weight in weights.items()}
    exact = {parent: p for parent, p in causes.items() if p is not None}
    yield from _mapping(
        table, {"causes": exact, "theta": {parent: weights[parent] for parent in weights if parent not in exact}}
    )


def _mapping(table: str, parts: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Numbers by name, in one line each or, where one is long, in tables of their own at the end."""
    lines = {
        key: f"{key} = {{ {', '.join(f'{_key(k)} = {v!r}' for k, v in values.items())} }}"
        for key, values in parts.items()
        if values
    }
    for line in lines.values():
        if len(line) <= _LINE:
            yield line
    for key, line in lines.items():
        if len(line) > _LINE:
            yield f"\n[{table}.{key}]"
            yield from (f"{_key(k)} = {v!r}" for k, v in parts[key].items())


def _as_cause(theta: float) -> float | None:
    return as_chance(theta, never, lambda x: -math.expm1(-x))


def as_chance(value: float, turn: Callable[[float], float], back: Callable[[float], float]) -> float | None:
    """The chance with the fewest digits that `turn` makes this very number of, or None if there is none."""
    if abs(value) == CERTAIN:
        return 1.0 if value > 0.0 else 0.0
    p = back(value)
    for digits in range(1, 18):
        short = float(f"{p:.{digits}g}")
        if 0.0 <= short < 1.0 and turn(short) == value:
            return short
    beside = (float(np.nextafter(p, end)) for end in (0.0, 1.0))
    return next((q for q in beside if 0.0 <= q < 1.0 and turn(q) == value), None)


def _key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else _text(name)


def _text(text: str) -> str:
    """A text in quotes: JSON escapes all that TOML wants escaped, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
