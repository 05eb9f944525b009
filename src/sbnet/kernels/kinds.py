"""The list of terms. A new one is a file with five verbs and a line here."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Kind(NamedTuple):
    """How <t(x)> of a factor is bounded."""

    name: str  # what users ask for; not in `LOG_TERMS` if it begins with an underscore
    file: str
    file_for_states: str  # likewise where parents or variables have more than two states; more to compile
    tiled: int  # 0: no tiles; 1: edges stand in tiles; 2: and all factors of a block have the same parents


KINDS = (
    Kind("xi", "xi", "xi_states", 1),
    Kind("exact", "exact", "exact", 2),
    Kind("quadratic", "quadratic", "quadratic", 1),
    Kind("_enumerated", "enumerated", "enumerated", 0),
    Kind("_series", "series", "series", 0),
    Kind("_linear", "linear", "linear", 0),
)
XI, EXACT, QUADRATIC, ENUMERATED, SERIES, LINEAR = range(6)
JENSEN = -1  # what users may ask for as well: the paper's term with xi held at 0
N_KINDS = len(KINDS)
TILED = np.array([kind.tiled for kind in KINDS])

LOG_TERMS = {kind.name: k for k, kind in enumerate(KINDS) if not kind.name.startswith("_")} | {"jensen": JENSEN}
"""The numbers of the terms by the names that users give them."""
