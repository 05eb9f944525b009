"""Climb the bound of a distribution that is a forest: exact within a tree, factorial between trees.

Q(H) = prod_k Q(S_k | S_q(k)), where q(k) is the one unit that k depends on in Q, if any. What is climbed is

    L = constant + sum_k <field_k(S_k)> + sum_f Re sum_w coefficient_fw <prod_j phi_fjw(S_j)> + entropy of Q ,

sums of means of products of functions of single units: see `inference.products` for how ln P becomes that. Such a mean
is a product over trees. Within a tree it takes the units of the factor and those on the way between them, a *piece*,
which hangs from its *top*; each unit of a piece is an *entry*, and sends a message up:

    inside(s) = phi(s) prod_{c below} passed_c(s) ,     passed(s) = sum_t Q(S_k = t | S_q(k) = s) inside(t) .

L is linear in each Q(S_k = 1 | S_q(k) = s), entropy aside, so the best value, all else fixed, is sigma of its slope
over P(S_q(k) = s): the analogue of eq. (24). A tree is walked from its root: what surrounds each entry is laid down on
the way to the leaves, and units move on the way back, when all below them has moved. For a chain whose posterior is a
chain this is forward-backward, and one walk is enough. No walk lowers L.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sbnet._types import FloatArray, IndexArray, Stop
from sbnet.kernels._compile import bare, inner, kernel
from sbnet.kernels.gates import sigmoid

ComplexArray: TypeAlias = NDArray[np.complex128]

_NEVER = 1e-280  # a state so rare that what follows it does not matter


class Forest(NamedTuple):
    """The trees. ``parent[k]`` is the unit that k depends on, or -1; the units that depend on k are
    ``child[child_ptr[k]:child_ptr[k + 1]]``. `walk` goes through tree after tree, each from ``walk_ptr[tree]`` on: k
    where it comes to unit k from above, ~k where it leaves it upwards.
    """

    parent: IndexArray
    child_ptr: IndexArray
    child: IndexArray
    walk_ptr: IndexArray
    walk: IndexArray


class Products(NamedTuple):
    """The factors, laid out for a forest: the coefficients of factor f stand from ``wave_ptr[f]`` on, its pieces from
    ``piece_ptr[f]`` on.

    Piece p has its values from ``value_at[p]`` on; those of tree t are ``tree_piece[tree_ptr[t]:tree_ptr[t + 1]]``.
    Entry e is unit ``unit[e]`` in piece ``piece[e]``; ``above[e]`` is the entry that it hangs from, or -1 for a top,
    ``below[below_ptr[e]:...]`` are those that hang from it. Its functions stand in `phi` from ``phi_at[e]`` on, first
    those of state 0 (-1: a unit between others has none), its messages from ``at[e]`` on. The entries of unit k are
    ``unit_entry[unit_ptr[k]:unit_ptr[k + 1]]``.
    """

    coefficient: ComplexArray
    wave_ptr: IndexArray
    piece_ptr: IndexArray
    factor: IndexArray  # of each piece
    value_at: IndexArray
    tree_ptr: IndexArray
    tree_piece: IndexArray
    unit: IndexArray
    piece: IndexArray
    above: IndexArray
    below_ptr: IndexArray
    below: IndexArray
    phi_at: IndexArray
    at: IndexArray
    unit_ptr: IndexArray
    unit_entry: IndexArray
    phi: ComplexArray

    @property
    def n_messages(self) -> int:
        """Waves of all entries."""
        return int(np.diff(self.wave_ptr)[self.factor[self.piece]].sum())


class Messages(NamedTuple):
    """What is on its way: for each entry and state, wave after wave; `rest` and `value` for each piece."""

    inside: ComplexArray
    passed: ComplexArray
    around: ComplexArray  # the weight of everything else, with the unit in that state
    outside: ComplexArray  # the same, with the unit above in that state
    rest: ComplexArray  # the coefficient times the values of the other pieces
    value: ComplexArray
    before: ComplexArray  # for each factor: its coefficients times the values of the pieces that have been settled


class Marginals(NamedTuple):
    """Of unit k in places 2 k and 2 k + 1: Q(S_k = 1 | s above), Q(S_k = s), and what is gained from k on downwards."""

    theta: FloatArray
    chance: FloatArray
    gain: FloatArray


@bare
def _entropy(theta: float) -> float:
    total = 0.0
    if theta > 0.0:
        total -= theta * math.log(theta)
    if theta < 1.0:
        total -= (1.0 - theta) * math.log1p(-theta)
    return total


@bare
def _waves(products: Products, e: int) -> int:
    f = products.factor[products.piece[e]]
    return products.wave_ptr[f + 1] - products.wave_ptr[f]


@bare
def _marginal(forest: Forest, q: Marginals, k: int) -> None:
    """Q(S_k = s), from the unit above."""
    theta, chance, above = q.theta, q.chance, forest.parent[k]
    if above < 0:
        chance[2 * k], chance[2 * k + 1] = 1.0 - theta[2 * k], theta[2 * k]
    else:
        off, on = chance[2 * above], chance[2 * above + 1]
        chance[2 * k] = off * (1.0 - theta[2 * k]) + on * (1.0 - theta[2 * k + 1])
        chance[2 * k + 1] = off * theta[2 * k] + on * theta[2 * k + 1]


@bare
def _times_phi(products: Products, e: int, n: int, out: ComplexArray, at: int) -> None:
    """Multiply by the functions of an entry."""
    if products.phi_at[e] >= 0:
        for w in range(2 * n):
            out[at + w] *= products.phi[products.phi_at[e] + w]


@bare
def _set_inside(products: Products, m: Messages, e: int) -> None:
    at, n = products.at[e], _waves(products, e)
    for w in range(2 * n):
        m.inside[at + w] = 1.0
    _times_phi(products, e, n, m.inside, at)
    for b in range(products.below_ptr[e], products.below_ptr[e + 1]):
        other = products.at[products.below[b]]
        for w in range(2 * n):
            m.inside[at + w] *= m.passed[other + w]


@bare
def _set_passed(products: Products, m: Messages, theta: FloatArray, e: int) -> None:
    at, n, k = products.at[e], _waves(products, e), products.unit[e]
    for s in range(2):
        on = theta[2 * k + s]
        for w in range(n):
            m.passed[at + s * n + w] = (1.0 - on) * m.inside[at + w] + on * m.inside[at + n + w]


@bare
def _set_outside(products: Products, m: Messages, e: int) -> None:
    """The weight of all but what hangs from entry e, with the unit above in each state."""
    at, n, up = products.at[e], _waves(products, e), products.above[e]
    for w in range(2 * n):
        m.outside[at + w] = m.around[products.at[up] + w]
    _times_phi(products, up, n, m.outside, at)
    for b in range(products.below_ptr[up], products.below_ptr[up + 1]):
        if products.below[b] != e:
            other = products.at[products.below[b]]
            for w in range(2 * n):
                m.outside[at + w] *= m.passed[other + w]


@bare
def _come(forest: Forest, products: Products, m: Messages, q: Marginals, k: int) -> None:
    """From above: what surrounds each entry of unit k."""
    _marginal(forest, q, k)
    for i in range(products.unit_ptr[k], products.unit_ptr[k + 1]):
        e = products.unit_entry[i]
        at, n = products.at[e], _waves(products, e)
        if products.above[e] < 0:
            rest = products.value_at[products.piece[e]]
            for s in range(2):
                for w in range(n):
                    m.around[at + s * n + w] = m.rest[rest + w] * q.chance[2 * k + s]
        else:
            _set_outside(products, m, e)
            off, on = q.theta[2 * k], q.theta[2 * k + 1]
            for w in range(n):
                a, b = m.outside[at + w], m.outside[at + n + w]
                m.around[at + w] = (1.0 - off) * a + (1.0 - on) * b
                m.around[at + n + w] = off * a + on * b


@bare
def _leave(forest: Forest, products: Products, m: Messages, q: Marginals, field: FloatArray, k: int) -> None:
    """Upwards: all below unit k has moved. Its own move, and its messages."""
    theta, gain, slope_off, slope_on = q.theta, q.gain, 0.0, 0.0
    gain[2 * k], gain[2 * k + 1] = field[2 * k], field[2 * k + 1]
    for i in range(forest.child_ptr[k], forest.child_ptr[k + 1]):
        c = forest.child[i]
        for s in range(2):
            on = theta[2 * c + s]
            gain[2 * k + s] += _entropy(on) + (1.0 - on) * gain[2 * c] + on * gain[2 * c + 1]
    for i in range(products.unit_ptr[k], products.unit_ptr[k + 1]):
        e = products.unit_entry[i]
        at, n = products.at[e], _waves(products, e)
        _set_inside(products, m, e)
        if products.above[e] < 0:
            rest = products.value_at[products.piece[e]]
            for s in range(2):
                for w in range(n):
                    gain[2 * k + s] += (m.rest[rest + w] * m.inside[at + s * n + w]).real
        else:
            for w in range(n):
                step = m.inside[at + n + w] - m.inside[at + w]
                slope_off += (m.outside[at + w] * step).real
                slope_on += (m.outside[at + n + w] * step).real
    _move(forest, q, k, gain[2 * k + 1] - gain[2 * k], slope_off, slope_on)
    for i in range(products.unit_ptr[k], products.unit_ptr[k + 1]):
        if products.above[products.unit_entry[i]] >= 0:
            _set_passed(products, m, theta, products.unit_entry[i])


@bare
def _move(forest: Forest, q: Marginals, k: int, rise: float, slope_off: float, slope_on: float) -> None:
    above = forest.parent[k]
    if above < 0:
        q.theta[2 * k] = q.theta[2 * k + 1] = sigmoid(rise)
        return
    if q.chance[2 * above] > _NEVER:
        q.theta[2 * k] = sigmoid(rise + slope_off / q.chance[2 * above])
    if q.chance[2 * above + 1] > _NEVER:
        q.theta[2 * k + 1] = sigmoid(rise + slope_on / q.chance[2 * above + 1])


@bare
def _open_sweep(products: Products, m: Messages) -> None:
    """The products over the pieces that follow each piece; those over the pieces before it begin."""
    for f in range(len(products.wave_ptr) - 1):
        for w in range(products.wave_ptr[f], products.wave_ptr[f + 1]):
            m.before[w] = products.coefficient[w]
            after = 1.0 + 0.0j
            for p in range(products.piece_ptr[f + 1] - 1, products.piece_ptr[f] - 1, -1):
                at = products.value_at[p] + w - products.wave_ptr[f]
                m.rest[at] = after
                after *= m.value[at]


@bare
def _set_rest(products: Products, m: Messages, p: int) -> None:
    """The coefficients of a factor times the values of all its pieces but one; nothing is ever divided."""
    start, end, at = (
        products.wave_ptr[products.factor[p]],
        products.wave_ptr[products.factor[p] + 1],
        products.value_at[p],
    )
    for w in range(end - start):
        m.rest[at + w] *= m.before[start + w]


@bare
def _set_value(products: Products, m: Messages, chance: FloatArray, e: int) -> None:
    """The mean of a piece, from its top."""
    at, n, k, value = products.at[e], _waves(products, e), products.unit[e], products.value_at[products.piece[e]]
    before = products.wave_ptr[products.factor[products.piece[e]]]
    for w in range(n):
        m.value[value + w] = chance[2 * k] * m.inside[at + w] + chance[2 * k + 1] * m.inside[at + n + w]
        m.before[before + w] *= m.value[value + w]


@bare
def _settle(forest: Forest, products: Products, m: Messages, q: Marginals, tree: int) -> None:
    """The marginals of a tree and the values of its pieces, after its units have moved."""
    for i in range(forest.walk_ptr[tree], forest.walk_ptr[tree + 1]):
        k = forest.walk[i]
        if k >= 0:
            _marginal(forest, q, k)
            for j in range(products.unit_ptr[k], products.unit_ptr[k + 1]):
                if products.above[products.unit_entry[j]] < 0:
                    _set_value(products, m, q.chance, products.unit_entry[j])


@bare
def _sweep(forest: Forest, products: Products, m: Messages, q: Marginals, field: FloatArray) -> None:
    """One walk through each tree, the others held fixed."""
    _open_sweep(products, m)
    for tree in range(len(forest.walk_ptr) - 1):
        for i in range(products.tree_ptr[tree], products.tree_ptr[tree + 1]):
            _set_rest(products, m, products.tree_piece[i])
        for i in range(forest.walk_ptr[tree], forest.walk_ptr[tree + 1]):
            k = forest.walk[i]
            if k >= 0:
                _come(forest, products, m, q, k)
            else:
                _leave(forest, products, m, q, field, ~k)
        _settle(forest, products, m, q, tree)


@bare
def _begin(forest: Forest, products: Products, m: Messages, q: Marginals) -> None:
    """All messages upwards, and all values, at the present Q."""
    for i in range(len(forest.walk)):
        k = ~forest.walk[i]
        if k >= 0:
            for j in range(products.unit_ptr[k], products.unit_ptr[k + 1]):
                _set_inside(products, m, products.unit_entry[j])
                _set_passed(products, m, q.theta, products.unit_entry[j])
    _open_sweep(products, m)
    for tree in range(len(forest.walk_ptr) - 1):
        _settle(forest, products, m, q, tree)


@bare
def _bound(forest: Forest, products: Products, m: Messages, q: Marginals, field: FloatArray, constant: float) -> float:
    """L after a sweep, added up factor by factor and unit by unit."""
    total = constant
    for f in range(len(products.wave_ptr) - 1):
        mine = 0.0
        for w in range(products.wave_ptr[f], products.wave_ptr[f + 1]):
            mine += m.before[w].real
        total += mine
    for k in range(len(forest.parent)):
        above, off, on = forest.parent[k], 1.0, 0.0
        if above >= 0:
            off, on = q.chance[2 * above], q.chance[2 * above + 1]
        total += off * _entropy(q.theta[2 * k]) + on * _entropy(q.theta[2 * k + 1])
        total += q.chance[2 * k] * field[2 * k] + q.chance[2 * k + 1] * field[2 * k + 1]
    return total


@inner
def _zeros(n: int) -> ComplexArray:
    return np.zeros(n, np.complex128)


@inner
def _messages(products: Products) -> Messages:
    n, pieces = 0, 0
    for e in range(len(products.unit)):
        n += 2 * _waves(products, e)
    for f in range(len(products.piece_ptr) - 1):
        waves = products.wave_ptr[f + 1] - products.wave_ptr[f]
        pieces += waves * (products.piece_ptr[f + 1] - products.piece_ptr[f])
    return Messages(
        _zeros(n), _zeros(n), _zeros(n), _zeros(n), _zeros(pieces), _zeros(pieces), _zeros(len(products.coefficient))
    )


@kernel
def climb(
    forest: Forest, products: Products, field: FloatArray, constant: float, stop: Stop, theta: FloatArray,
    chance: FloatArray, trace: FloatArray,
) -> tuple[int, bool]:  # fmt: skip
    """Sweep from the Q in `theta` until a sweep gains less than `tol`: how many sweeps, and was that so?

    The bounds at the start and after each sweep go into `trace`, the means into `chance`.
    """
    m, q = _messages(products), Marginals(theta, chance, np.zeros(len(theta)))
    _begin(forest, products, m, q)
    trace[0] = _bound(forest, products, m, q, field, constant)
    for n in range(1, stop.max_sweeps + 1):
        _sweep(forest, products, m, q, field)
        trace[n] = _bound(forest, products, m, q, field, constant)
        if trace[n] - trace[n - 1] < stop.tol:
            return n, True
    return stop.max_sweeps, False
