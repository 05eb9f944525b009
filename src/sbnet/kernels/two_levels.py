"""Independent causes of noisy-OR findings, as `firing` reads them; this module does without the compiler."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels.structs import struct

edge_t = struct(
    ("bit", "i8"),  # 2^finding
    ("fires", "f8"),  # 1 - e^-theta
    ("fails", "f8"),  # e^-theta
)


class Firing(NamedTuple):
    """Causes and what they fire: the edges of cause j are from ``ptr[j]`` to ``ptr[j + 1]``."""

    ptr: IndexArray
    edges: np.ndarray  # of edge_t
    leak: FloatArray  # by set: the probability that the leaks fire all that is not in it


class Growing(NamedTuple):
    """Causes in the order of the last of their findings, ``top[j]``.

    While those up to cause j are gone through, sets have bits for the findings up to ``top[j]`` only; that a leak fires
    any other one is a factor, ``alone[i]``. With findings of few causes last, most causes meet short arrays.
    """

    off: FloatArray
    on: FloatArray
    top: IndexArray
    alone: FloatArray
