"""A network as people would write it: probabilities where they give the same numbers bit for bit, else the numbers.

Written here and not by tomli-w, which gives every mapping a table of its own, and so parts a unit from its causes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sbnet._types import FloatArray
from sbnet.errors import FileFormatError, in_line
from sbnet.files.atomic import write_atomically
from sbnet.files.text_words import key_of, quoted
from sbnet.kernels.codes import NAMES, NOISY_OR
from sbnet.model.gates import sigma
from sbnet.model.network import Network
from sbnet.model.notes import as_words
from sbnet.model.probabilities import CERTAIN, log_odds, never, thresholds_of
from sbnet.model.states import NO_YES

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
    if not network.is_binary:
        return "\n".join([*parts, *(_variable(network, i) for i in range(network.n_units))])
    # Probabilities and keys are made for all units at once, as there may be a million edges.
    noisy, degree = network.gate == NOISY_OR, np.diff(network.graph.indptr)
    into_noisy, alone = np.repeat(noisy, degree), ~noisy & (degree == 0)
    causes, own_p = np.full(network.n_edges, np.nan), np.full(network.n_units, np.nan)
    causes[into_noisy] = as_probabilities(network.weight[into_noisy], never, _cause, _theta)
    own_p[noisy] = as_probabilities(network.bias[noisy], never, _cause, _theta)
    own_p[alone] = as_probabilities(network.bias[alone], log_odds, sigma, _log_odds)
    keys = list(map(key_of, network.names))
    for i in range(network.n_units):
        lines = _head(network, i)
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


def _head(network: Network, i: int) -> list[str]:
    """The name of a variable, its notes, and its states where they are others than no and yes."""
    name = network.names[i]
    lines, words = [f"[units.{key_of(name)}]"], as_words(network.notes[name])
    if network.states[name] != NO_YES:
        words["states"] = list(network.states[name])
    for key, value in words.items():
        text = quoted(value) if isinstance(value, str) else f"[{', '.join(map(quoted, value))}]"
        lines.append(f"{key} = {text}")
    return lines


def _variable(network: Network, i: int) -> str:
    """A variable of a network where some have more than two states, or tables."""
    family, lines = network.family(i), _head(network, i)
    if family.table is not None:
        rows = family.table.reshape(-1, len(family.states)).tolist()
        given = [", ".join(map(str, row)) for row in itertools.product(*family.parent_states)]
        lines += ['gate = "table"', f"parents = [{', '.join(map(quoted, family.parents))}]", "table = ["]
        above = f"{', '.join(map(in_line, family.parents))}: " if family.parents else ""
        lines.append(f"  # {above}{', '.join(map(in_line, family.states))}")
        lines += [f"  {row!r},{'  # ' * bool(text)}{in_line(text)}" for row, text in zip(rows, given, strict=True)]
        return "\n".join([*lines, "]"]) + "\n"
    noisy = family.gate == NOISY_OR
    kind = NAMES[family.gate]
    own = _probabilities(family.bias, kind) if noisy or not family.parents else None
    by_number, by_state = ("leak_theta", "leak") if noisy else ("bias", "prior")
    numbers = float(family.bias[0]) if len(family.states) == 2 else family.bias.tolist()
    if own is not None and not noisy and len(_by_state(own, family.states)) > len(repr(numbers)):
        own = None
    lines += [f'gate = "{kind}"'] if noisy else []
    lines.append(f"{by_number} = {numbers!r}" if own is None else f"{by_state} = {_by_state(own, family.states)}")
    causes, rest = list[str](), list[str]()
    for parent, states, weight in zip(family.parents, family.parent_states, family.weights, strict=True):
        found = [_probabilities(column, kind) for column in weight.T] if noisy else [None]
        if None not in found:
            told = [_by_state(p, family.states) for p in found if p is not None]
            each = ", ".join(f"{key_of(state)} = {text}" for state, text in zip(states[1:], told, strict=True))
            causes.append(f"{key_of(parent)} = {told[0] if len(states) == 2 else f'{{ {each} }}'}")
        else:
            rest.append(f"{key_of(parent)} = {float(weight[0, 0]) if weight.size == 1 else weight.tolist()!r}")
    mappings = {"causes": causes, "theta": rest} if noisy else {"weights": rest}
    return "\n".join([*lines, *_mappings(f"units.{key_of(family.name)}", mappings)]) + "\n"


def _by_state(p: list[float], states: Sequence[str]) -> str:
    """Probabilities of states from the second one on: a number for two states."""
    if len(states) == 2:
        return repr(p[0])
    return f"{{ {', '.join(f'{key_of(state)} = {one!r}' for state, one in zip(states[1:], p, strict=True))} }}"


def _probabilities(x: FloatArray, gate: str) -> list[float] | None:
    """The probabilities of states from the second one on, with the fewest digits that give these very inputs of
    thresholds; None if none do."""
    if gate == "noisy-or":
        at_most = np.exp(-np.append(np.cumsum(x[::-1])[::-1], 0.0))
        p = np.diff(at_most)
    else:
        at_least = np.cumprod(sigma(x))
        p = at_least - np.append(at_least[1:], 0.0)
    for digits in range(1, 18):
        short = [float(f"{one:.{digits}g}") for one in p.tolist()]
        if min(short) < 0.0 or sum(short) > 1.0 + 1e-9:
            continue
        whole = np.array([max(0.0, 1.0 - sum(short)), *short])
        if np.array_equal(thresholds_of(whole, gate, np.zeros(len(x))), x):
            return short
    return None


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
