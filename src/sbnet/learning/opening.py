"""Which kind of rows someone wants to learn from."""

from __future__ import annotations

from typing import Any

import numpy as np

from sbnet.learning.partitions import distributed
from sbnet.learning.sources import How, Source, table
from sbnet.learning.streams import is_stream, stream
from sbnet.model.network import Network
from sbnet.parallel.lazy import is_lazy


def opened(
    network: Network,
    X: Any,
    how: How,
    *,
    sample_weight: Any,
    validation: Any,
    missing: Any,
    generator: np.random.Generator,
) -> Source:
    """The rows of a table, of a Dask collection or of a stream, some of them held out if `validation` says so."""
    if is_lazy(X):
        return distributed(network, X, how, sample_weight, validation, missing, generator)
    if is_stream(X):
        return stream(network, X, how, sample_weight, validation, missing)
    return table(network, X, how, sample_weight, validation, missing, generator)
