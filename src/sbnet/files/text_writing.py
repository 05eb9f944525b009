"""A network as people would write it: probabilities where they give the same numbers bit for bit, else the numbers.

Written here and not by tomli-w, which gives every mapping a table of its own, and so parts a unit from its causes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

import numpy as np
from scipy.special import expit

from sbnet._types import FloatArray
from sbnet.errors import FileFormatError
from sbnet.files.atomic import write_atomically
from sbnet.kernels.codes import NOISY_OR
from sbnet.model.network import Network
from sbnet.model.notes import Note, as_words
from sbnet.model.probabilities import CERTAIN, log_odds, never

_BARE = re.compile("[A-Za-z0-9_-]+")
_LINE = 100
"""Characters up to which causes stand in one line; more get a line each."""
_SURE_DIGITS = 12
"""Digits of a probability that its log-odds, up to a thousand nats, keep in any case."""


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
    return "\n".join([*parts, *("\n".join(lines) + "\n" for lines in _units(network))])


def _units(network: Network) -> Iterator[Iterator[str]]:
    """The lines of each unit. Probabilities and keys are made for all at once, as there may be a million edges."""
    noisy, degree = network.gate == NOISY_OR, np.diff(network.graph.indptr)
    into_noisy, bias = np.repeat(noisy, degree), np.full(network.n_units, np.nan)
    edges = np.full(network.n_edges, np.nan)
    edges[into_noisy] = as_probabilities(network.weight[into_noisy], never, _cause, _theta)
    bias[noisy] = as_probabilities(network.bias[noisy], never, _cause, _theta)
    alone = ~noisy & (degree == 0)
    bias[alone] = as_probabilities(network.bias[alone], log_odds, expit, _log_odds)
    keys = [_key(name) for name in network.names]
    for i, name in enumerate(network.names):
        own = slice(network.graph.indptr[i], network.graph.indptr[i + 1])
        parents = [keys[parent] for parent in network.graph.parent[own].tolist()]
        given = (parents, network.weight[own].tolist(), edges[own].tolist())
        own_bias = float(network.bias[i]), float(bias[i])
        numbers = (
            _noisy_or(f"units.{keys[i]}", own_bias, *given)
            if noisy[i]
            else _sigmoid(f"units.{keys[i]}", own_bias, *given[:2])
        )
        yield chain([f"[units.{keys[i]}]"], _notes(network.notes[name]), numbers)


def _notes(note: Note) -> Iterator[str]:
    for key, value in as_words(note).items():
        yield f"{key} = {_text(value) if isinstance(value, str) else '[' + ', '.join(map(_text, value)) + ']'}"


def _sigmoid(table: str, bias: tuple[float, float], parents: list[str], weights: list[float]) -> Iterator[str]:
    log_odds, prior = bias
    longer = math.isnan(prior) or len(repr(prior)) > len(repr(log_odds))
    yield f"bias = {log_odds!r}" if longer else f"prior = {prior!r}"
    yield from _mapping(table, {"weights": [f"{k} = {v!r}" for k, v in zip(parents, weights, strict=True)]})


def _noisy_or(
    table: str, bias: tuple[float, float], parents: list[str], weights: list[float], causes: list[float]
) -> Iterator[str]:
    theta, leak = bias
    yield 'gate = "noisy-or"'
    yield f"leak_theta = {theta!r}" if math.isnan(leak) else f"leak = {leak!r}"
    known = [f"{k} = {p!r}" for k, p in zip(parents, causes, strict=True) if p == p]
    rest = [f"{k} = {v!r}" for k, v, p in zip(parents, weights, causes, strict=True) if p != p]
    yield from _mapping(table, {"causes": known, "theta": rest})


def _mapping(table: str, parts: Mapping[str, list[str]]) -> Iterator[str]:
    """Numbers by name, in one line each or, where one is long, in tables of their own at the end."""
    short = {key: sum(map(len, own)) + 2 * len(own) + len(key) + 5 <= _LINE for key, own in parts.items()}
    for key, own in parts.items():
        if own and short[key]:
            yield f"{key} = {{ {', '.join(own)} }}"
    for key, own in parts.items():
        if not short[key]:
            yield f"\n[{table}.{key}]"
            yield from own


@np.errstate(all="ignore")  # the logarithm of zero, and what is too small for a power of ten
def as_probabilities(
    values: FloatArray,
    turn: Callable[[float], float],
    back: Callable[[FloatArray], FloatArray],
    turn_all: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """For each value the probability with the fewest digits that `turn` makes this very number of, NaN if none does.

    `turn_all` is `turn` for arrays, and `back` the other way round. What `turn` gives alone decides in the end, as
    readers use that.
    """
    found = np.full(values.size, np.nan)
    certain = np.abs(values) == CERTAIN
    found[certain] = values[certain] > 0.0
    rest = np.flatnonzero(~certain)
    p = np.asarray(back(values[rest]))
    leading = p / 10.0 ** np.floor(np.log10(p))
    for digits in range(1, 20):
        if digits < _SURE_DIGITS:  # what is farther off cannot give the same number: spares most of the writing
            near = np.flatnonzero((np.abs(np.round(leading, digits - 1) - leading) < 1e-11) | (p == 0.0))
        else:
            near = np.arange(p.size)
        if digits < 18:
            short = np.array([float(f"{one:.{digits}g}") for one in p[near].tolist()])
        else:
            short = np.nextafter(p[near], digits - 18.0)  # the neighbours of p, first towards 0, then towards 1
        valid = (short >= 0.0) & (short < 1.0)
        same = valid & (turn_all(np.where(valid, short, 0.5)) == values[rest[near]])
        found[rest[near[same]]] = short[same]
        left = np.ones(p.size, dtype=bool)
        left[near[same]] = False
        rest, p, leading = rest[left], p[left], leading[left]
    agree = [math.isnan(q) or turn(q) == value for q, value in zip(found.tolist(), values.tolist(), strict=True)]
    return np.where(agree, found, np.nan)


def _cause(theta: FloatArray) -> FloatArray:
    return np.asarray(-np.expm1(-theta))


def _theta(p: FloatArray) -> FloatArray:
    return np.asarray(-np.log1p(-p))


def _log_odds(p: FloatArray) -> FloatArray:
    return np.asarray(np.log(p) - np.log1p(-p))


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    """A text in quotes: JSON escapes all that TOML wants escaped, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
