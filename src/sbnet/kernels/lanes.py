"""Eight numbers that stand side by side, as one value.

In a loop along the lanes of a block it is for the compiler to find the vectors: it compiles the loop twice, asks each
time whether places overlap, and keeps sums in memory between one parent and the next. A value of eight numbers stays in
a register meanwhile (in several, where registers are short). Without a compiler it is an array of NumPy, and the same
lines compute with that. Functions other than `take`, `put` and `total` serve single numbers as well.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typeconv.castgraph import Conversion
from numba.extending import intrinsic, lower_builtin, lower_cast, models, register_model, type_callable

from sbnet._types import FloatArray
from sbnet.kernels._compile import INTERPRETED

EIGHT = np.uint64(8)
Lanes = Any
"""For annotations: eight numbers, or one."""

_REAL, _AT = ir.VectorType(ir.DoubleType(), 8), ir.VectorType(ir.IntType(32), 8)
_MANTISSA_BITS, _HALF_BITS, _EXPONENT = 0x000FFFFFFFFFFFFF, 0x3FE0000000000000, 52
# Whole numbers beside 1.5 * 2^52 stand in the lowest bits as they are: many processors have no other way from numbers
# with a point to whole ones, and back, that serves all lanes of a vector at once.
_WHOLE, _WHOLE_BITS = 1.5 * 2.0**52, 0x4338000000000000


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Lanes")

    def can_convert_from(self, typingctx: Any, other: Any) -> Any:
        return Conversion.safe if isinstance(other, types.Float) else None


_LANES = _Lanes()
register_model(_Lanes)(lambda manager, kind: models.PrimitiveModel(manager, kind, _REAL))


@lower_cast(types.Float, _Lanes)
def _everywhere(context: Any, builder: Any, given: Any, wanted: Any, value: Any) -> Any:
    """A number beside lanes is in all of them."""
    unset = ir.Constant(_REAL, ir.Undefined)
    one = builder.insert_element(unset, value, ir.IntType(32)(0))
    return builder.shuffle_vector(one, unset, ir.Constant(_AT, [0] * 8))


def _type_operator(context: Any) -> Any:
    def typer(a: Any, b: Any) -> Any:
        known = all(isinstance(x, _Lanes | types.Float) for x in (a, b))
        return _LANES(_LANES, _LANES) if known and _LANES in (a, b) else None

    return typer


def _operator(method: str, function: Any) -> None:
    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return getattr(builder, method)(*values)

    type_callable(function)(_type_operator)
    lower_builtin(function, _Lanes, _Lanes)(build)


for _name in ("add", "sub", "mul", "truediv"):
    for _prefix in ("", "i"):
        _operator("f" + _name.removeprefix("true"), getattr(operator, _prefix + _name))


def _typed(build: Callable[..., Any], *given: Any) -> Any:
    kind = _LANES if _LANES in given else types.float64
    return kind(*[kind] * len(given)), lambda context, builder, signature, values: build(builder, *values)


def _lanewise(build: Callable[..., Any]) -> Any:
    """For a function of numbers: how it is built of instructions. Without a compiler it stays what it is."""
    by_arguments: dict[int, Any] = {
        1: lambda typing, x: _typed(build, x),
        2: lambda typing, x, y: _typed(build, x, y),
        3: lambda typing, x, y, z: _typed(build, x, y, z),
    }
    n = len(inspect.signature(build).parameters) - 1
    return lambda function: function if INTERPRETED else intrinsic(by_arguments[n])


def _same(kind: Any, value: Any) -> Any:
    """A constant in every lane."""
    return ir.Constant(kind, [value] * 8 if isinstance(kind, ir.VectorType) else value)


def _bits_of(value: Any) -> Any:
    return ir.VectorType(ir.IntType(64), 8) if isinstance(value.type, ir.VectorType) else ir.IntType(64)


def _build_call(builder: Any, name: str, x: Any) -> Any:
    suffix = "v8f64" if isinstance(x.type, ir.VectorType) else "f64"
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(x.type, [x.type]), f"llvm.{name}.{suffix}"
    )
    return builder.call(function, [x])


def _build_choice(builder: Any, w: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", w, _same(w.type, 0.0)), x, y)


def _build_power(builder: Any, n: Any) -> Any:
    least, bits = _same(n.type, -1023.0), _bits_of(n)
    n = builder.select(builder.fcmp_ordered(">", n, least), n, least)
    whole = builder.bitcast(builder.fadd(n, _same(n.type, _WHOLE + 1023.0)), bits)
    return builder.bitcast(builder.shl(whole, _same(bits, _EXPONENT)), n.type)


def _build_mantissa(builder: Any, x: Any) -> Any:
    bits = _bits_of(x)
    rest = builder.and_(builder.bitcast(x, bits), _same(bits, _MANTISSA_BITS))
    return builder.bitcast(builder.or_(rest, _same(bits, _HALF_BITS)), x.type)


def _build_exponent(builder: Any, x: Any) -> Any:
    bits = _bits_of(x)
    n = builder.lshr(builder.bitcast(x, bits), _same(bits, _EXPONENT))
    whole = builder.bitcast(builder.or_(n, _same(bits, _WHOLE_BITS)), x.type)
    return builder.fsub(whole, _same(x.type, _WHOLE + 1022.0))


@_lanewise(lambda builder, x: _build_call(builder, "fabs", x))
def size(x: Lanes) -> Lanes:
    """|x|."""
    return np.abs(x)


@_lanewise(lambda builder, x: _build_call(builder, "rint", x))
def nearest(x: Lanes) -> Lanes:
    """The nearest whole number."""
    return np.rint(x)


@_lanewise(lambda builder, x: _build_call(builder, "sqrt", x))
def root(x: Lanes) -> Lanes:
    """The square root."""
    return np.sqrt(x)


@_lanewise(_build_choice)
def where(w: Lanes, x: Lanes, y: Lanes) -> Lanes:
    """x where w is positive, and y elsewhere."""
    chosen: Any = np.where(w > 0.0, x, y)
    return chosen[()]


@_lanewise(_build_power)
def power_of_two(n: Lanes) -> Lanes:
    """2^n for a whole n up to 1023, by its exponent bits; zero below 2^-1022."""
    bits = np.float64(np.maximum(n, -1023.0) + (_WHOLE + 1023.0)).view(np.uint64)
    return np.uint64(bits << np.uint64(_EXPONENT)).view(np.float64)


@_lanewise(_build_mantissa)
def mantissa(x: Lanes) -> Lanes:
    """m in [1/2, 1) with x = m 2^n, for an ordinary positive x."""
    return np.frexp(x)[0]


@_lanewise(_build_exponent)
def exponent(x: Lanes) -> Lanes:
    """That n."""
    return np.frexp(x)[1]


def _take(array: FloatArray, place: int) -> Lanes:
    return array[int(place) : int(place) + 8].copy()


def _put(array: FloatArray, place: int, value: Lanes) -> None:
    array[int(place) : int(place) + 8] = value


def _pointer(context: Any, builder: Any, array: Any, value: Any, at: Any, place: Any) -> Any:
    data = builder.extract_value(value, context.data_model_manager[array].get_field_position("data"))
    first = builder.gep(data, [context.cast(builder, place, at, types.uint64)])
    return builder.bitcast(first, _REAL.as_pointer())


def _typed_take(typing: Any, array: Any, place: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(_pointer(context, builder, array, values[0], place, values[1]), align=8)

    return _LANES(array, place), build


def _typed_put(typing: Any, array: Any, place: Any, value: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[2], _pointer(context, builder, array, values[0], place, values[1]), align=8)
        return context.get_dummy_value()

    return types.none(array, place, _LANES), build


def _typed_total(typing: Any, x: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        value = values[0]
        for width in (4, 2, 1):
            kind = ir.VectorType(ir.IntType(32), width)
            halves = (ir.Constant(kind, list(range(k, k + width))) for k in (0, width))
            value = builder.fadd(*(builder.shuffle_vector(value, value, half) for half in halves))
        return builder.extract_element(value, ir.IntType(32)(0))

    return types.float64(_LANES), build


def _typed_zeros(typing: Any) -> Any:
    return _LANES(), lambda context, builder, signature, values: _same(_REAL, 0.0)


zeros: Any = (lambda: np.zeros(8)) if INTERPRETED else intrinsic(_typed_zeros)
"""Eight zeros."""
take: Any = _take if INTERPRETED else intrinsic(_typed_take)
"""``take(array, i)``: the eight numbers from ``array[i]`` on."""
put: Any = _put if INTERPRETED else intrinsic(_typed_put)
"""``put(array, i, lanes)``: to where they stand."""
total: Any = np.sum if INTERPRETED else intrinsic(_typed_total)
"""Their sum."""
