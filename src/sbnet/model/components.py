"""Connected components: which things belong together, directly or through others."""

from __future__ import annotations

import numpy as np

from sbnet._types import IndexArray


def connected(n: int, one: IndexArray, other: IndexArray) -> IndexArray:
    """The number of the component of each of n things; ``one[k]`` and ``other[k]`` are in the same."""
    label = np.arange(n)
    while True:
        lower = np.minimum(label[one], label[other])  # the least of a component reaches all of it
        np.minimum.at(label, label[one], lower)
        np.minimum.at(label, label[other], lower)
        while not np.array_equal(label, label[label]):
            label = label[label]
        if np.array_equal(label[one], label[other]):
            return np.unique(label, return_inverse=True)[1].astype(np.int64)


def members(label: IndexArray, n: int = 0) -> list[IndexArray]:
    """The places of each label, in rising order; of at least n labels, if some have none."""
    return np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label, minlength=n))[:-1])
