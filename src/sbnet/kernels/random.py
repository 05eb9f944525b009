"""Random numbers that follow from a seed and a count alone: threads and the order of rows do not change them."""

from __future__ import annotations

from typing import Any

import numpy as np

from sbnet._types import States
from sbnet.kernels.compiling import inner

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


@inner
def row_seed(seed: np.uint64, states: States) -> np.uint64:
    """A seed of the evidence, not of the place of the row: a row has one answer wherever it stands."""
    for i in range(len(states)):
        seed = mix(seed * np.uint64(3) + np.uint64(states[i] + 2))
    return seed
