"""Random generators between two runs: their state as text, and back. Only NumPy's own are known, by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from sbnet.errors import ParameterError
from sbnet.files.tensors import parse

KNOWN = {
    "MT19937": np.random.MT19937,
    "PCG64": np.random.PCG64,
    "PCG64DXSM": np.random.PCG64DXSM,
    "Philox": np.random.Philox,
    "SFC64": np.random.SFC64,
}
_PARTS = 2_000
"""Parts of a state: MT19937 has 624 numbers."""
_MOST = {"has_uint32": 1, "pos": 624, "buffer_pos": 4}
"""The largest places in buffers: NumPy takes them as they are, and reads there."""


def check_known(generator: np.random.Generator) -> None:
    """Refuse a generator from elsewhere, whose state nobody could bring back."""
    kind = type(generator.bit_generator).__name__
    if KNOWN.get(kind) is not type(generator.bit_generator):
        raise ParameterError(f"checkpoint= cannot keep the state of a {kind}; give rng= a seed, or one of {_names()}")


def as_text(state: Mapping[str, Any]) -> str:
    """The state of a bit generator in JSON; some of it is in NumPy's numbers and arrays."""
    return json.dumps(state, default=lambda value: value.tolist(), sort_keys=True)


def from_text(text: str) -> np.random.Generator:
    """A generator in the state that :func:`as_text` wrote; a ValueError if it is none."""
    state = parse(text, _PARTS)
    kind = state.get("bit_generator") if isinstance(state, dict) else None
    if not isinstance(kind, str) or kind not in KNOWN:
        raise ValueError(f"its random generator is {str(kind)[:40]!r}; known are {_names()}")
    bits = KNOWN[kind](0)
    try:
        bits.state = state
        found: Mapping[str, Any] = bits.state
    except Exception:  # whatever NumPy says of wrong kinds and lengths
        raise ValueError("the state of its random generator is that of no such generator") from None
    places = {**found, **found["state"]}
    in_range = all(0 <= places.get(name, 0) <= most for name, most in _MOST.items())
    if not in_range or as_text(found) != as_text(state):  # NumPy leaves out what it does not know
        raise ValueError("the state of its random generator is out of range, or has other parts")
    return np.random.Generator(bits)


def _names() -> str:
    return ", ".join(KNOWN)
