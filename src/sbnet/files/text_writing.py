"""A network as people would write it: probabilities where they give the same numbers bit for bit, else the numbers.

Written here and not by tomli-w, which gives every mapping a table of its own, and so parts a unit from its causes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping

import numpy as np
from scipy.special import expit

from sbnet._types import FloatArray
from sbnet.errors import FileFormatError
from sbnet.files.atomic import write_atomically
from sbnet.kernels.codes import NOISY_OR
from sbnet.model.network import Network
from sbnet.model.notes import as_words
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
    parts = [] if network.layers is None else [f"layers = {list(network.layers)}\n"]
    # Probabilities and keys are made for all units at once, as there may be a million edges.
    noisy, degree = network.gate == NOISY_OR, np.diff(network.graph.indptr)
    into_noisy, alone = np.repeat(noisy, degree), ~noisy & (degree == 0)
    causes, own_p = np.full(network.n_edges, np.nan), np.full(network.n_units, np.nan)
    causes[into_noisy] = as_probabilities(network.weight[into_noisy], never, _cause, _theta)
    own_p[noisy] = as_probabilities(network.bias[noisy], never, _cause, _theta)
    own_p[alone] = as_probabilities(network.bias[alone], log_odds, expit, _log_odds)
    keys = [name if _BARE.fullmatch(name) else _text(name) for name in network.names]
    for i, name in enumerate(network.names):
        lines = [f"[units.{keys[i]}]"]
        for key, value in as_words(network.notes[name]).items():
            text = _text(value) if isinstance(value, str) else f"[{', '.join(map(_text, value))}]"
            lines.append(f"{key} = {text}")
        own = slice(network.graph.indptr[i], network.graph.indptr[i + 1])
        parents = [keys[parent] for parent in network.graph.parent[own].tolist()]
        edges = list(zip(parents, network.weight[own].tolist(), causes[own].tolist(), strict=True))
        bias, p = float(network.bias[i]), float(own_p[i])
        if noisy[i]:
            lines += ['gate = "noisy-or"', f"leak_theta = {bias!r}" if math.isnan(p) else f"leak = {p!r}"]
            known = [f"{k} = {q!r}" for k, _, q in edges if q == q]
            rest = [f"{k} = {w!r}" for k, w, q in edges if q != q]
            lines += _mappings(f"units.{keys[i]}", {"causes": known, "theta": rest})
        else:
            longer = math.isnan(p) or len(repr(p)) > len(repr(bias))
            lines.append(f"bias = {bias!r}" if longer else f"prior = {p!r}")
            lines += _mappings(f"units.{keys[i]}", {"weights": [f"{k} = {w!r}" for k, w, _ in edges]})
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _mappings(table: str, parts: Mapping[str, list[str]]) -> list[str]:
    """Numbers by name, in one line each or, where one is long, in tables of their own at the end."""
    short = {key: sum(map(len, own)) + 2 * len(own) + len(key) + 5 <= _LINE for key, own in parts.items()}
    lines = [f"{key} = {{ {', '.join(own)} }}" for key, own in parts.items() if own and short[key]]
    for key, own in parts.items():
        lines += [] if short[key] else [f"\n[{table}.{key}]", *own]
    return lines


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


def _text(text: str) -> str:
    """A text in quotes: JSON escapes all that TOML wants escaped, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
