"""A warning for rows of evidence that a network gives no probability."""

from __future__ import annotations

import warnings

import numpy as np

from sbnet.errors import ImpossibleWarning
from sbnet.inference.results import PosteriorBatch


def warn_of_impossible(batch: PosteriorBatch) -> PosteriorBatch:
    """The batch as it is; of its impossible rows the first is said in words."""
    gone = np.flatnonzero(batch.bound == -np.inf)
    if len(gone):
        rows = "a row is" if len(gone) == 1 else f"{len(gone):,} rows are"
        warnings.warn(
            f"{rows} impossible, with ln P = -inf; {batch[gone[0]].impossible}", ImpossibleWarning, stacklevel=3
        )
    return batch
