"""Arrays of kernels, in few operations: what the compiler must look up for each takes longer than all the rest.

`np.zeros` is four functions for every shape and element. A subscript is looked for among all
that Python, NumPy and numba ever call one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import _empty_nd_impl

from sbnet._types import BoolArray, FloatArray, IndexArray
from sbnet.kernels._compile import INTERPRETED, inner


def _typed_zeros(typing: Any, n: Any, dtype: Any) -> Any:
    array = types.Array(dtype.dtype, 1, "C")

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        made = _empty_nd_impl(context, builder, array, [context.cast(builder, values[0], n, types.intp)])
        cgutils.memset(builder, made.data, builder.mul(made.itemsize, made.nitems), 0)
        return made._getvalue()

    return array(n, dtype), build


_zeros: Any = np.zeros if INTERPRETED else intrinsic(_typed_zeros)


@inner
def whole_numbers(n: int) -> IndexArray:
    """So many zeros."""
    return _zeros(n, np.int64)


@inner
def real_numbers(n: int) -> FloatArray:
    """So many zeros."""
    return _zeros(n, np.float64)


@inner
def flags(n: int) -> BoolArray:
    """So many that are not set."""
    return _zeros(n, np.bool_)


def _load(array: Any, i: int, j: int = 0) -> Any:
    return array[i + j]


def _typed_load(typing: Any, array: Any, i: Any, j: Any = None) -> Any:
    """The same for the compiler: two places of 64 bits, an addition, a load; none counts from the end."""
    places = [place for place in (i, j) if isinstance(place, types.Integer)]

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = builder.extract_value(values[0], context.data_model_manager[array].get_field_position("data"))
        place, *more = (context.cast(builder, v, t, types.uint64) for v, t in zip(values[1:], places, strict=False))
        for other in more:
            place = builder.add(place, other)
        return context.unpack_value(builder, array.dtype, builder.gep(data, [place]))

    return array.dtype(array, i, types.Omitted(None) if j is None else j), build


load: Any = _load if INTERPRETED else intrinsic(_typed_load)
"""``load(array, i, j)`` is ``array[i + j]``, for an array of one dimension whose numbers stand side by side."""
