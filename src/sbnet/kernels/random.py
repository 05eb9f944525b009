"""Random numbers that follow from a seed and a count alone: threads and the order of rows do not change them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sbnet._types import FloatArray, States
from sbnet.kernels.compiling import inner

Seeds: TypeAlias = NDArray[np.uint64]
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""The step of a stream: draw k of seed s is ``mix(s + k * GOLDEN)``."""


def splitmix(x: Any) -> Any:
    """The finaliser of the splitmix64 generator (Steele, Lea & Flood 2014), of one number or of an array of them."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


mix = inner(splitmix)
"""And as a part of kernels."""


@inner
def uniform(seed: np.uint64) -> float:
    """A number in [0, 1) with 53 random bits."""
    return (mix(seed) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


def uniforms(seeds: Seeds) -> FloatArray:
    """A number in [0, 1) from each seed."""
    numbers: FloatArray = (splitmix(seeds) >> np.uint64(11)) * 2.0**-53
    return numbers


def row_seeds(seed: Any, states: States) -> Seeds:
    """A seed for each row that follows from what is in it, not from its place: equal rows have equal answers."""
    found = np.full(len(states), seed, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in np.ascontiguousarray((states + 2).T):
            found = splitmix(found * np.uint64(3) + column.astype(np.uint64))
    return found


def streams_of(seeds: Seeds, number: int, first: int = 0) -> Seeds:
    """The seeds of so many streams for each seed, after the `first` ones: seeds by streams."""
    with np.errstate(over="ignore"):
        streams: Seeds = splitmix(seeds[:, None] + np.arange(first + 1, first + number + 1, dtype=np.uint64) * GOLDEN)
    return streams
