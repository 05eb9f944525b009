"""The logarithm terms of all units for given means, one obvious unit at a time."""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import Bound, FloatArray, Model, States
from sbnet.kernels import gates, terms
from sbnet.kernels._compile import kernel
from sbnet.kernels.reduce import live_units


@kernel
def log_terms(
    model: Model, which: Bound, states: States, bias: FloatArray, means: FloatArray, xi: FloatArray, out: FloatArray
) -> None:
    """Fill `out` for every row and unit; barren units have none (NaN), and units with known inputs an exact one.

    Where `xi` is NaN it is replaced by its best value. A mean of exactly 0 or 1 is treated as an observation.
    """
    n_rows, n_units = states.shape
    for r in range(n_rows):
        live = live_units(model, states[r])
        for i in range(n_units):
            out[r, i] = math.nan
            if not live[i]:
                continue
            start, end = model.indptr[i], model.indptr[i + 1]
            weight, near = np.empty(end - start), np.empty(end - start)
            h, k = bias[r, i], 0
            for e in range(start, end):
                j = model.parent[e]
                if states[r, j] < 0:
                    if means[r, j] == 1.0:
                        h += model.weight[e]
                    elif means[r, j] != 0.0:
                        weight[k], near[k] = model.weight[e], means[r, j]
                        k += 1
            if k == 0:
                out[r, i] = gates.t(model.gate[i], h)
            else:
                kind = terms.kind_of(which, model.gate[i], k)
                xi[r, i], out[r, i] = terms.reference(kind, model.gate[i], weight[:k], near[:k], h, xi[r, i])
