"""Eight numbers as one value: what the compiler makes of it, beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sbnet.kernels import lanes
from sbnet.kernels._compile import kernel
from sbnet.kernels.vector_math import exp_minus, log

pytestmark = pytest.mark.small
EIGHT = st.lists(st.floats(-1e3, 1e3), min_size=8, max_size=8).map(np.array)


@kernel
def _computed(x, y, scale, out):
    """All that lanes can do, each result in eight places of `out`; and a sum."""
    a, b, begin = lanes.take(x, np.uint64(3)), lanes.take(y, np.uint64(0)), np.uint64(0)
    lanes.put(out, begin, a + b * scale)
    lanes.put(out, begin + np.uint64(8), scale - a / (1.0 + lanes.size(b)))
    lanes.put(out, begin + np.uint64(16), lanes.where(a, b, 0.0))
    lanes.put(out, begin + np.uint64(24), lanes.nearest(a) * lanes.root(lanes.size(b)))
    lanes.put(out, begin + np.uint64(32), lanes.power_of_two(lanes.nearest(b)))
    lanes.put(out, begin + np.uint64(40), lanes.mantissa(1.0 + lanes.size(a)))
    lanes.put(out, begin + np.uint64(48), lanes.exponent(1.0 + lanes.size(a)) + lanes.zeros())
    lanes.put(out, begin + np.uint64(56), exp_minus(lanes.size(a)))
    lanes.put(out, begin + np.uint64(64), log(1.0 + lanes.size(b)))
    return lanes.total(a)


@given(EIGHT, EIGHT, st.floats(-10.0, 10.0))
def test_lanes_compute_what_arrays_do(a, b, scale):
    x, out = np.concatenate([[7.0, 7.0, 7.0], a, [7.0]]), np.full(74, np.nan)
    total = _computed(x, b, scale, out)
    mantissa, exponent = np.frexp(1.0 + np.abs(a))
    wanted = [
        a + b * scale,
        scale - a / (1.0 + np.abs(b)),
        np.where(a > 0.0, b, 0.0),
        np.rint(a) * np.sqrt(np.abs(b)),
        np.ldexp(1.0, np.rint(b).astype(int)),
        mantissa,
        exponent,
        np.exp(-np.abs(a)),
        np.log(1.0 + np.abs(b)),
    ]
    assert_allclose(out[:72].reshape(9, 8), wanted, rtol=1e-15, atol=1e-12)
    assert_allclose(total, a.sum(), rtol=0, atol=1e-11)
    assert_array_equal(out[72:], np.nan)  # nothing is written beyond
