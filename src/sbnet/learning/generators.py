"""Random generators between two runs: their state as text, and back. Only NumPy's own are known, by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from sbnet.checks import is_whole
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
_MOST = {
    "state": 2**128 - 1,
    "inc": 2**128 - 1,
    "has_uint32": 1,
    "uinteger": 2**32 - 1,
    "pos": 624,
    "buffer_pos": 4,
}
"""The largest value of each number in a state; NumPy takes the places in buffers as they are, and reads there."""


def check_known(generator: np.random.Generator) -> None:
    """Refuse a generator from elsewhere, whose state nobody could bring back."""
    kind = type(generator.bit_generator).__name__
    if KNOWN.get(kind) is not type(generator.bit_generator):
        raise ParameterError(f"checkpoint= cannot keep the state of a {kind}; give rng= a seed, or one of {_names()}")


def as_text(state: Mapping[str, Any]) -> str:
    """The state of a bit generator in JSON; some of it is in NumPy's numbers and arrays."""
    return json.dumps(state, default=lambda value: value.tolist())


def from_text(text: str) -> np.random.Generator:
    """A generator in the state that :func:`as_text` wrote; a ValueError if it is none."""
    state = parse(text, _PARTS)
    kind = state.get("bit_generator") if isinstance(state, dict) else None
    if not isinstance(kind, str) or kind not in KNOWN:
        raise ValueError(f"its random generator is {str(kind)[:40]!r}; known are {_names()}")
    bits = KNOWN[kind](0)
    bits.state = _fitted(state, bits.state, "bit_generator")
    return np.random.Generator(bits)


def _fitted(value: Any, like: Any, name: str) -> Any:
    """The value, if it is made like the one that a generator has itself: the same keys, lengths, kinds and ranges."""
    if isinstance(like, dict):
        if not isinstance(value, dict) or value.keys() != like.keys():
            raise ValueError(f"the state of its random generator has other parts in {name!r}")
        return {key: _fitted(value[key], part, key) for key, part in like.items()}
    if isinstance(like, np.ndarray):
        most = int(np.iinfo(like.dtype).max)
        if not isinstance(value, list) or len(value) != len(like) or not all(_within(v, most) for v in value):
            raise ValueError(f"the state of its random generator is out of range in {name!r}")
        return np.array(value, dtype=like.dtype)
    if not (value == like if isinstance(like, str) else _within(value, _MOST[name])):
        raise ValueError(f"the state of its random generator is out of range in {name!r}")
    return value


def _within(value: Any, most: int) -> bool:
    return is_whole(value) and 0 <= value <= most


def _names() -> str:
    return ", ".join(KNOWN)
