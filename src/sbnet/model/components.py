"""Connected components: which things belong together, directly or through others."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sbnet._types import IndexArray


def connected(n: int, one: IndexArray, other: IndexArray) -> IndexArray:
    """The number of the component of each of n things; ``one[k]`` and ``other[k]`` are in the same."""
    pairs = coo_array((np.ones(len(one), np.int8), (one, other)), shape=(n, n))
    label: IndexArray = connected_components(pairs, directed=False)[1].astype(np.int64)
    return label


def members(label: IndexArray, n: int = 0) -> list[IndexArray]:
    """The places of each label, in rising order; of at least n labels, if some have none."""
    return np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label, minlength=n))[:-1])
