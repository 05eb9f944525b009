"""What evidence makes of a network: exact simplifications, before anything is approximated."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from sbnet._types import FloatArray, Model, States
from sbnet.network import Network


def absorb(network: Network, states: States) -> FloatArray:
    """Biases with the evidence absorbed: h_i plus the weights of the observed parents that are 1."""
    return absorb_rows(network.model, network.bias, states)


def absorb_rows(model: Model, bias: FloatArray, states: States) -> FloatArray:
    """The same for parameters that are not, or not yet, those of a network.

    Exact (an observed parent only shifts its child's bias), and one product for all rows whatever their masks.
    """
    on, n = (states == 1).astype(np.float64), len(bias)
    shifted: FloatArray
    if len(on) == 1:  # the same sums in the same order, without the cost of setting up a sparse matrix
        child = np.repeat(np.arange(n), np.diff(model.indptr))
        sums = np.bincount(child, weights=model.weight * on[0, model.parent], minlength=n)
        shifted = sums.astype(np.float64, copy=False)[None, :]
    else:
        weights = scipy.sparse.csr_array((model.weight, model.parent, model.indptr), shape=(n, n))
        shifted = np.ascontiguousarray((weights @ on.T).T)
    shifted += bias
    return shifted
