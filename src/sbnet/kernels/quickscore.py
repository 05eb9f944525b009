r"""Exact sums over independent causes of noisy-OR findings, in 2^(positive findings) terms (Heckerman 1989).

With P(finding i on | causes) = 1 - e^{-x_i} the product over the positive findings multiplies out to

    P(V) = sum over subsets A of the positive findings of (-1)^|A| prod_{i in A} e^{-b_i} prod_j (q_j + r_j(A)) ,

where cause j is off with weight q_j and on with weight r_j(A) = r_j prod_{i in A} e^{-theta_ij}; the negative findings
are in q and r. The terms cancel, so all of this is done with numbers of two doubles each (31 digits), and the sum of
the sizes of the terms tells how many of those are left.

The last findings, up to LANES = 2^_INNER subsets of them, are done side by side: loops over lanes compile to vectors.
"""

from __future__ import annotations

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels._compile import bare, kernel

INNER = 6
LANES = 1 << INNER
_SPLITTER = 134217729.0  # 2^27 + 1


@bare
def _product(a: float, b: float) -> tuple[float, float]:
    """a b and its rounding error (Dekker)."""
    p = a * b
    c = _SPLITTER * a
    a_high = c - (c - a)
    a_low = a - a_high
    d = _SPLITTER * b
    b_high = d - (d - b)
    b_low = b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@bare
def times(a: float, a_rest: float, b: float, b_rest: float) -> tuple[float, float]:
    """The product of two numbers of two doubles each."""
    p, rest = _product(a, b)
    rest += a * b_rest + a_rest * b
    high = p + rest
    return high, rest - (high - p)


@bare
def plus(a: float, a_rest: float, b: float, b_rest: float) -> tuple[float, float]:
    """Their sum."""
    s = a + b
    back = s - a
    rest = ((a - (s - back)) + (b - back)) + (a_rest + b_rest)
    high = s + rest
    return high, rest - (high - s)


@bare
def over(a: float, a_rest: float, b: float, b_rest: float) -> tuple[float, float]:
    """Their quotient: two steps of long division."""
    first = a / b
    p, p_rest = times(first, 0.0, b, b_rest)
    left, left_rest = plus(a, a_rest, -p, -p_rest)
    second = (left + left_rest) / b
    high = first + second
    return high, second - (high - first)


@kernel
def score(
    first: int,
    last: int,
    ptr: IndexArray,
    cause: IndexArray,
    decay: FloatArray,
    leak: FloatArray,
    off: FloatArray,
    on: FloatArray,
    inner: IndexArray,
    table: FloatArray,
    with_means: bool,
    result: FloatArray,
    shares: FloatArray,
) -> None:
    """Add up the subsets `first` to `last` of the outer findings, each with all subsets of the inner ones.

    Finding i has the causes ``cause[ptr[i]:ptr[i + 1]]`` with e^-theta in `decay`; the last ones, as many as `table`
    has lanes for, are the inner ones, and `inner` are their causes: ``table[k]`` is the product of their decays in
    each lane. Numbers of two doubles stand side by side, in the last axis or, for lanes, in the first. The sum and the
    size of its terms go to `result`, the part of the sum with each cause on to `shares`.
    """
    n_lanes = table.shape[2]
    n_outer = len(leak) - _bits(n_lanes)
    n = len(off)
    now, value = np.empty((n, 2)), np.empty((n, 2))  # r_j(A), q_j + r_j(A)
    high, rest = np.empty(n_lanes), np.empty(n_lanes)
    by_lane = np.zeros((len(inner), 2, n_lanes))
    is_inner = np.zeros(n, np.bool_)
    for k in range(len(inner)):
        is_inner[inner[k]] = True
    lane_leak = np.empty((2, n_lanes))
    _lane_leaks(leak, n_outer, lane_leak)
    total, total_rest, size = 0.0, 0.0, 0.0
    for j in range(n):
        shares[j, 0] = shares[j, 1] = 0.0
    for subset in range(first, last):
        base, base_rest = 1.0, 0.0
        for j in range(n):
            now[j, 0], now[j, 1] = on[j, 0], on[j, 1]
        for i in range(n_outer):
            if (subset >> i) & 1:
                base, base_rest = times(base, base_rest, -leak[i, 0], -leak[i, 1])
                for e in range(ptr[i], ptr[i + 1]):
                    j = cause[e]
                    now[j, 0], now[j, 1] = times(now[j, 0], now[j, 1], decay[e, 0], decay[e, 1])
        for j in range(n):
            if not is_inner[j]:
                value[j, 0], value[j, 1] = plus(off[j, 0], off[j, 1], now[j, 0], now[j, 1])
                base, base_rest = times(base, base_rest, value[j, 0], value[j, 1])
        for lane in range(n_lanes):
            high[lane], rest[lane] = times(base, base_rest, lane_leak[0, lane], lane_leak[1, lane])
        for k in range(len(inner)):
            j = inner[k]
            _mix_in(off[j, 0], off[j, 1], now[j, 0], now[j, 1], table[k], high, rest)
        sum_, sum_rest = 0.0, 0.0
        for lane in range(n_lanes):
            sum_, sum_rest = plus(sum_, sum_rest, high[lane], rest[lane])
            size += abs(high[lane])
        total, total_rest = plus(total, total_rest, sum_, sum_rest)
        if with_means:
            for j in range(n):
                if not is_inner[j]:
                    part, part_rest = over(now[j, 0], now[j, 1], value[j, 0], value[j, 1])
                    part, part_rest = times(part, part_rest, sum_, sum_rest)
                    shares[j, 0], shares[j, 1] = plus(shares[j, 0], shares[j, 1], part, part_rest)
            for k in range(len(inner)):
                j = inner[k]
                _parts(off[j, 0], off[j, 1], now[j, 0], now[j, 1], table[k], high, rest, by_lane[k])
    for k in range(len(inner)):
        j = inner[k]
        for lane in range(n_lanes):
            shares[j, 0], shares[j, 1] = plus(shares[j, 0], shares[j, 1], by_lane[k, 0, lane], by_lane[k, 1, lane])
    result[0], result[1], result[2] = total, total_rest, size


@bare
def _bits(n: int) -> int:
    """The logarithm of a power of two."""
    bits = 0
    while (1 << bits) < n:
        bits += 1
    return bits


@bare
def _lane_leaks(leak: FloatArray, n_outer: int, lane_leak: FloatArray) -> None:
    """The product of -e^-b over the inner findings of each lane."""
    for lane in range(lane_leak.shape[1]):
        high, rest = 1.0, 0.0
        for i in range(n_outer, len(leak)):
            if (lane >> (i - n_outer)) & 1:
                high, rest = times(high, rest, -leak[i, 0], -leak[i, 1])
        lane_leak[0, lane], lane_leak[1, lane] = high, rest


@bare
def _mix_in(
    off: float, off_rest: float, on: float, on_rest: float, table: FloatArray, high: FloatArray, rest: FloatArray
) -> None:
    """Multiply each lane by q + r of one cause."""
    for lane in range(len(high)):
        r, r_rest = times(on, on_rest, table[0, lane], table[1, lane])
        u, u_rest = plus(off, off_rest, r, r_rest)
        high[lane], rest[lane] = times(high[lane], rest[lane], u, u_rest)


@bare
def _parts(
    off: float,
    off_rest: float,
    on: float,
    on_rest: float,
    table: FloatArray,
    high: FloatArray,
    rest: FloatArray,
    total: FloatArray,
) -> None:
    """Add the part of each lane in which one cause is on."""
    for lane in range(len(high)):
        r, r_rest = times(on, on_rest, table[0, lane], table[1, lane])
        u, u_rest = plus(off, off_rest, r, r_rest)
        part, part_rest = over(r, r_rest, u, u_rest)
        part, part_rest = times(part, part_rest, high[lane], rest[lane])
        total[0, lane], total[1, lane] = plus(total[0, lane], total[1, lane], part, part_rest)
