"""The other logarithm terms, each an upper bound on <ln(1 + e^z)> for one unit, and the exact value itself.

All of them are linear in the mean of each single parent, so that a coordinate update is an exact maximisation.
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray
from sbnet.kernels._compile import bare, kernel, vector
from sbnet.kernels.gates import sigmoid, softplus

MAX_NODES = 512
OMEGA = 5.0  # where the sum over frequencies ends; what is left is bounded and added
_MARGIN = 15.0  # aliases of the sum are below e^-15 / 2 for |z| in the expected range
_BERNSTEIN = 16.0


# Few parents: a sum over their states.


@bare
def softplus_table(weight: FloatArray, bias: float, table: FloatArray) -> None:
    """ln(1 + e^z) for each of the 2^k states of the parents; bit b of the index is the state of parent b."""
    for state in range(1 << len(weight)):
        z = bias
        for b in range(len(weight)):
            if (state >> b) & 1:
                z += weight[b]
        table[state] = softplus(z)


@bare
def contract(table: FloatArray, first: int, k: int, mu: FloatArray, skip: int, scratch: FloatArray) -> float:
    """The mean over k independent parents of the table that begins at `first`.

    With `skip`, its slope in the mean of that parent instead.
    """
    size = 1 << k
    for s in range(size):
        scratch[s] = table[first + s]
    for b in range(k - 1, -1, -1):
        size >>= 1
        for s in range(size):
            off, on = scratch[s], scratch[s + size]
            scratch[s] = on - off if b == skip else off + mu[b] * (on - off)
    return scratch[0]


# The quadratic bound: sp(z) <= lam(c) (z^2 - c^2) + (z - c) / 2 + sp(c), best at c^2 = <z^2>.


@bare
def quadratic_lambda(c: float) -> float:
    """tanh(c/2) / (4c), by its series near zero."""
    return 0.125 - c * c / 96.0 if c < 1e-3 else math.tanh(0.5 * c) / (4.0 * c)


@bare
def quadratic_term(mean: float, second: float, c: float) -> float:
    """The bound for given <z>, <z^2> and c >= 0."""
    return quadratic_lambda(c) * (second - c * c) + 0.5 * (mean - c) + softplus(c)


# Any number of parents: sp(z) = z/2 + ln 2 + int_0^inf (1 - cos wz) / (w sinh pi w) dw, by the trapezoid rule.
#
# With step d, Poisson's summation formula gives the error of the rule in closed form: the sum over k >= 1 of
# ln[1 + (cosh z - 1) / (cosh s_k + 1)] with s_k = 2 pi k / d. It is never negative, so the rule is an upper bound for
# every step, and about e^(|z| - s_1) large. Cutting the sum at frequency W leaves out positive terms of at most
# int_W^inf 2 / (w sinh pi w) dw <= 4 e^(-pi W) / (pi W (1 - e^(-2 pi W))), which is added. So the result is rigorous.


@bare
def trapezoid_nodes(low: float, high: float, mean: float, variance: float, largest: float) -> int:
    """How many frequencies give about 1e-7; 0 if z stays far from 0.

    z lies between `low` and `high`, and but for a chance of 2 e^-16 (Bernstein's inequality) within t of its mean,
    t^2 = 2 u (variance + largest t / 3) with u = 16 and `largest` the largest weight.
    """
    if low > 20.0 or high < -20.0:
        return 0  # ln(1 + e^z) is straight there, and the paper's bound exact to 1e-9: for all z, not for most
    third = largest * _BERNSTEIN / 3.0
    reach = third + math.sqrt(third * third + 2.0 * variance * _BERNSTEIN)
    low, high = max(low, mean - reach), min(high, mean + reach)
    return math.ceil(OMEGA * (max(-low, high, 0.0) + _MARGIN) / (2.0 * math.pi))


@bare
def trapezoid_weights(nodes: int, out: FloatArray) -> float:
    """Weights of the frequencies q d, q = 1 ... nodes, d = 5 / nodes; returns all that does not depend on z."""
    step = OMEGA / nodes
    total = 0.0
    for q in range(nodes):
        w = (q + 1) * step
        out[q] = step / (w * math.sinh(math.pi * w))
        total += out[q]
    tail = 4.0 * math.exp(-math.pi * OMEGA) / (math.pi * OMEGA * (1.0 - math.exp(-2.0 * math.pi * OMEGA)))
    return total + tail + math.log(2.0)


@bare
def powers(angle: float, re: FloatArray, im: FloatArray) -> None:
    """e^(i q angle) for q = 1 ... n, by doubling: each power is one product away from two shorter ones."""
    n = len(re)
    re[0], im[0] = math.cos(angle), math.sin(angle)
    have = 1
    while have < n:
        more = min(have, n - have)
        _times(re[:more], im[:more], re[have - 1], im[have - 1], re[have : have + more], im[have : have + more])
        have += more


@vector
def _times(ar: FloatArray, ai: FloatArray, br: float, bi: float, out_r: FloatArray, out_i: FloatArray) -> None:
    for q in range(len(ar)):
        out_r[q] = ar[q] * br - ai[q] * bi
        out_i[q] = ar[q] * bi + ai[q] * br


# Characteristic functions phi(w) = <e^(iwz)> of several units share an array: that of one begins at `a` and has `n`
# frequencies, e^(i w J) of an edge begins at `e`. (Unsigned places, so that the loops become vectors.)


@vector
def mix_in(
    re: FloatArray, im: FloatArray, a: int, n: int, edge_re: FloatArray, edge_im: FloatArray, e: int, mu: float
) -> None:
    """Multiply a characteristic function by 1 - mu + mu e^(i w J), one more parent."""
    a_, e_ = np.uint64(a), np.uint64(e)
    for q in range(np.uint64(n)):
        fr = 1.0 - mu + mu * edge_re[e_ + q]
        fi = mu * edge_im[e_ + q]
        r, i = re[a_ + q], im[a_ + q]
        re[a_ + q] = r * fr - i * fi
        im[a_ + q] = r * fi + i * fr


@vector
def put_back(
    less_re: FloatArray,
    less_im: FloatArray,
    b: int,
    n: int,
    edge_re: FloatArray,
    edge_im: FloatArray,
    e: int,
    mu: float,
    re: FloatArray,
    im: FloatArray,
    a: int,
) -> None:
    """The same product, from the function without a parent at `b` to the whole function at `a`."""
    a_, b_, e_ = np.uint64(a), np.uint64(b), np.uint64(e)
    for q in range(np.uint64(n)):
        fr = 1.0 - mu + mu * edge_re[e_ + q]
        fi = mu * edge_im[e_ + q]
        r, i = less_re[b_ + q], less_im[b_ + q]
        re[a_ + q] = r * fr - i * fi
        im[a_ + q] = r * fi + i * fr


@vector
def take_out(
    re: FloatArray,
    im: FloatArray,
    a: int,
    n: int,
    edge_re: FloatArray,
    edge_im: FloatArray,
    e: int,
    mu: float,
    less_re: FloatArray,
    less_im: FloatArray,
    b: int,
) -> float:
    """Divide the function at `a` by the factor of one parent, into `b`; returns the smallest squared divisor."""
    a_, b_, e_ = np.uint64(a), np.uint64(b), np.uint64(e)
    smallest = 1.0
    for q in range(np.uint64(n)):
        fr = 1.0 - mu + mu * edge_re[e_ + q]
        fi = mu * edge_im[e_ + q]
        size = fr * fr + fi * fi
        inverse = 1.0 / size
        r, i = re[a_ + q], im[a_ + q]
        less_re[b_ + q] = (r * fr + i * fi) * inverse
        less_im[b_ + q] = (i * fr - r * fi) * inverse
        smallest = min(smallest, size)
    return smallest


@vector
def slope_sum(
    weights: FloatArray,
    a: int,
    n: int,
    less_re: FloatArray,
    less_im: FloatArray,
    b: int,
    edge_re: FloatArray,
    edge_im: FloatArray,
    e: int,
) -> float:
    """The sum of weights times Re[phi (e^(i w J) - 1)], phi without the parent."""
    a_, b_, e_ = np.uint64(a), np.uint64(b), np.uint64(e)
    total = 0.0
    for q in range(np.uint64(n)):
        total += weights[a_ + q] * (less_re[b_ + q] * (edge_re[e_ + q] - 1.0) - less_im[b_ + q] * edge_im[e_ + q])
    return total


@vector
def real_sum(weights: FloatArray, re: FloatArray, a: int, n: int) -> float:
    """The sum of weights times real parts."""
    a_ = np.uint64(a)
    total = 0.0
    for q in range(np.uint64(n)):
        total += weights[a_ + q] * re[a_ + q]
    return total


@vector
def moments(weight: FloatArray, mu: FloatArray, bias: float) -> tuple[float, float]:
    """<z> and <z^2>."""
    mean, variance = bias, 0.0
    for s in range(len(weight)):
        mean += weight[s] * mu[s]
        variance += weight[s] * weight[s] * mu[s] * (1.0 - mu[s])
    return mean, mean * mean + variance


@kernel
def trapezoid_term(weight: FloatArray, mu: FloatArray, bias: float, limit: int) -> float:
    """A rigorous upper bound on <ln(1 + e^z)>, about 1e-7 above it; infinity if it would need too many nodes."""
    low, high, mean, variance, largest = bias, bias, bias, 0.0, 0.0
    for s in range(len(weight)):
        low += min(weight[s], 0.0)
        high += max(weight[s], 0.0)
        largest = max(largest, abs(weight[s]))
        mean += weight[s] * mu[s]
        variance += weight[s] ** 2 * mu[s] * (1.0 - mu[s])
    nodes = trapezoid_nodes(low, high, mean, variance, largest)
    if nodes == 0 or nodes > limit:
        return np.inf
    step = OMEGA / nodes
    weights = np.empty(nodes)
    constant = trapezoid_weights(nodes, weights)
    re, im, er, ei = np.empty(nodes), np.empty(nodes), np.empty(nodes), np.empty(nodes)
    powers(step * bias, re, im)
    for s in range(len(weight)):
        powers(step * weight[s], er, ei)
        mix_in(re, im, 0, nodes, er, ei, 0, mu[s])
    second = mean * mean + variance
    return constant + 0.5 * mean + step * second / (4.0 * math.pi) - real_sum(weights, re, 0, nodes)


@kernel
def mean_sigmoid(weight: FloatArray, mu: FloatArray, bias: float) -> float:
    """<sigma(z)> for independent parents: the prediction for a unit that has no say in the evidence."""
    k = len(weight)
    if k == 0:
        return sigmoid(bias)
    low, high, mean, variance, largest = bias, bias, bias, 0.0, 0.0
    for s in range(k):
        low += min(weight[s], 0.0)
        high += max(weight[s], 0.0)
        largest = max(largest, abs(weight[s]))
        mean += weight[s] * mu[s]
        variance += weight[s] ** 2 * mu[s] * (1.0 - mu[s])
    if k <= 6:
        total = 0.0
        for state in range(1 << k):
            z, probability = bias, 1.0
            for b in range(k):
                if (state >> b) & 1:
                    z += weight[b]
                    probability *= mu[b]
                else:
                    probability *= 1.0 - mu[b]
            total += probability * sigmoid(z)
        return min(total, 1.0)  # the probabilities sum to one but for rounding
    nodes = trapezoid_nodes(low, high, mean, variance, largest)
    if nodes == 0 or nodes > MAX_NODES:
        return sigmoid(mean / math.sqrt(1.0 + math.pi * variance / 8.0))
    step = OMEGA / nodes
    re, im, er, ei = np.empty(nodes), np.empty(nodes), np.empty(nodes), np.empty(nodes)
    powers(step * bias, re, im)
    for s in range(k):
        powers(step * weight[s], er, ei)
        mix_in(re, im, 0, nodes, er, ei, 0, mu[s])
    total = 0.5 + step * mean / (2.0 * math.pi)  # sin(wz) / sinh(pi w) at w = 0 is z / pi; half of it counts
    for q in range(nodes):
        total += step * im[q] / math.sinh(math.pi * (q + 1) * step)
    return min(max(total, 0.0), 1.0)
