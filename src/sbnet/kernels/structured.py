"""Maximise the bound of a distribution that is a forest: exact within a tree, factorial between trees.

Q(H) = prod_k Q(S_k | S_q(k)), where q(k) is the one unit that k depends on in Q, if any. What is maximised is

    L = constant + sum_k <field_k(S_k)> + sum_f Re sum_w coefficient_fw <prod_j phi_fjw(S_j)> + entropy of Q ,

sums of means of products of functions of single units: see `inference.products` for how ln P becomes that. Such a mean
is a product over trees. Within a tree it takes the units of the factor and those on the way between them, a *piece*,
which hangs from its *top*; each unit of a piece is an *entry*, and sends a message up:

    inside(s) = phi(s) prod_{c below} passed_c(s) ,     passed(s) = sum_t Q(S_k = t | S_q(k) = s) inside(t) .

L is linear in each Q(S_k = 1 | S_q(k) = s), entropy aside, so the best value, all else fixed, is sigma of its gradient
over P(S_q(k) = s): the analogue of eq. (24). A tree is walked from its root: what surrounds each entry is laid down on
the way to the leaves, and units move on the way back, when all below them has moved. For a chain whose posterior is a
chain this is forward-backward, and one walk is enough. No walk lowers L.

Units have two states. Numbers of unit k stand in places 2 k and 2 k + 1, messages state after state, term after term.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sbnet._types import FloatArray, IndexArray, Stop
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.structs import struct
from sbnet.kernels.thresholds import sigmoid

ComplexArray: TypeAlias = NDArray[np.complex128]

_NEVER = 1e-280  # a state so rare that what follows it does not matter

unit_t = struct(
    ("parent", "i8"),  # the unit that it depends on in Q, or -1
    ("child", "i8"),  # where the units that depend on it begin in the list, and end
    ("child_end", "i8"),
    ("entry", "i8"),  # likewise its entries
    ("entry_end", "i8"),
)
factor_t = struct(
    ("term", "i8"),  # where its terms begin, w, and end
    ("term_end", "i8"),
    ("piece", "i8"),
    ("piece_end", "i8"),
)
piece_t = struct(("factor", "i8"), ("value", "i8"))  # and where its values begin, one for each term
entry_t = struct(
    ("unit", "i8"),
    ("factor", "i8"),
    ("value", "i8"),  # where the values of its piece begin
    ("terms", "i8"),  # how many
    ("above", "i8"),  # the entry that it hangs from, or -1 for a top
    ("below", "i8"),  # where those that hang from it begin in the list, and end
    ("below_end", "i8"),
    ("phi", "i8"),  # where its functions begin; -1: a unit between others has none
    ("message", "i8"),  # where its messages begin
)


class Forest(NamedTuple):
    """The trees. `walk` goes through tree after tree, each from ``walk_ptr[tree]`` on: k where it comes to unit k from
    above, ~k where it leaves it upwards.
    """

    units: np.ndarray  # of unit_t
    child: IndexArray
    walk_ptr: IndexArray
    walk: IndexArray


class Products(NamedTuple):
    """The factors, laid out for a forest. Pieces of tree t are ``tree_piece[tree_ptr[t]:tree_ptr[t + 1]]``."""

    factors: np.ndarray  # of factor_t
    pieces: np.ndarray  # of piece_t
    entries: np.ndarray  # of entry_t
    below: IndexArray  # entries by the entry above
    of_unit: IndexArray  # entries by unit
    tree_ptr: IndexArray
    tree_piece: IndexArray
    coefficient: ComplexArray
    phi: ComplexArray


class Messages(NamedTuple):
    """What is on its way: for each entry and state, term after term; `rest` and `value` for each piece."""

    inside: ComplexArray
    passed: ComplexArray
    around: ComplexArray  # the weight of everything else, with the unit in that state
    outside: ComplexArray  # the same, with the unit above in that state
    rest: ComplexArray  # the coefficient times the values of the other pieces
    value: ComplexArray
    before: ComplexArray  # for each factor: its coefficients times the values of the pieces that have been settled


class Marginals(NamedTuple):
    """Q(S_k = 1 | s above), Q(S_k = s), and what is gained from k on downwards."""

    theta: FloatArray
    p: FloatArray
    gain: FloatArray


@inner
def _entropy(theta: float) -> float:
    total = 0.0
    if theta > 0.0:
        total -= theta * math.log(theta)
    if theta < 1.0:
        total -= (1.0 - theta) * math.log1p(-theta)
    return total


@inner
def _set_marginal(above: int, theta: FloatArray, p: FloatArray, k: int) -> None:
    """Q(S_k = s), from the unit above."""
    if above < 0:
        p[2 * k], p[2 * k + 1] = 1.0 - theta[2 * k], theta[2 * k]
    else:
        off, on = p[2 * above], p[2 * above + 1]
        p[2 * k] = off * (1.0 - theta[2 * k]) + on * (1.0 - theta[2 * k + 1])
        p[2 * k + 1] = off * theta[2 * k] + on * theta[2 * k + 1]


@inner(fast=True)
def _times(out: ComplexArray, at: int, other: ComplexArray, first: int, n: int) -> None:
    for w in range(n):
        out[at + w] *= other[first + w]


@inner(fast=True)
def _set_inside(
    entries: np.ndarray, below: IndexArray, phi: ComplexArray, inside: ComplexArray, passed: ComplexArray, e: int
) -> None:
    one = entries[e]
    at, n, first = one.message, 2 * one.terms, one.phi
    for w in range(n):
        inside[at + w] = phi[first + w] if first >= 0 else 1.0 + 0.0j
    for b in range(one.below, one.below_end):
        _times(inside, at, passed, entries[below[b]].message, n)


@inner(fast=True)
def _set_passed(one: Any, theta: FloatArray, inside: ComplexArray, passed: ComplexArray) -> None:
    at, n = one.message, one.terms
    for s in range(2):
        on = theta[2 * one.unit + s]
        for w in range(n):
            passed[at + s * n + w] = (1.0 - on) * inside[at + w] + on * inside[at + n + w]


@inner(fast=True)
def _set_outside(
    entries: np.ndarray, below: IndexArray, phi: ComplexArray, passed: ComplexArray, around: ComplexArray,
    outside: ComplexArray, e: int,
) -> None:  # fmt: skip
    """The weight of all but what hangs from entry e, with the unit above in each state."""
    one, up = entries[e], entries[entries[e].above]
    at, n = one.message, 2 * one.terms
    first = up.message
    for w in range(n):
        outside[at + w] = around[first + w]
    if up.phi >= 0:
        _times(outside, at, phi, up.phi, n)
    for b in range(up.below, up.below_end):
        if below[b] != e:
            _times(outside, at, passed, entries[below[b]].message, n)


@inner
def _come(unit: Any, products: Products, m: Messages, q: Marginals, k: int) -> None:
    """From above: what surrounds each entry of unit k."""
    _, _, entries, below, of_unit, _, _, _, phi = products
    _, passed, around, outside, rest, _, _ = m
    theta, p, _ = q
    _set_marginal(unit.parent, theta, p, k)
    off, on = theta[2 * k], theta[2 * k + 1]
    for i in range(unit.entry, unit.entry_end):
        one = entries[of_unit[i]]
        at, n, value = one.message, one.terms, one.value
        if one.above < 0:
            for w in range(n):
                around[at + w] = rest[value + w] * p[2 * k]
                around[at + n + w] = rest[value + w] * p[2 * k + 1]
        else:
            _set_outside(entries, below, phi, passed, around, outside, of_unit[i])
            for w in range(n):
                a, b = outside[at + w], outside[at + n + w]
                around[at + w] = (1.0 - off) * a + (1.0 - on) * b
                around[at + n + w] = off * a + on * b


@inner
def _leave(
    units: np.ndarray, child: IndexArray, products: Products, m: Messages, q: Marginals, field: FloatArray, k: int
) -> None:
    """Upwards: all below unit k has moved. Its own move, and its messages."""
    _, _, entries, below, of_unit, _, _, _, phi = products
    inside, passed, _, outside, rest, _, _ = m
    theta, p, gain = q
    unit, gradient_off, gradient_on = units[k], 0.0, 0.0
    gain[2 * k], gain[2 * k + 1] = field[2 * k], field[2 * k + 1]
    for i in range(unit.child, unit.child_end):
        c = child[i]
        for s in range(2):
            on = theta[2 * c + s]
            gain[2 * k + s] += _entropy(on) + (1.0 - on) * gain[2 * c] + on * gain[2 * c + 1]
    for i in range(unit.entry, unit.entry_end):
        one = entries[of_unit[i]]
        at, n, value = one.message, one.terms, one.value
        _set_inside(entries, below, phi, inside, passed, of_unit[i])
        if one.above < 0:
            for s in range(2):
                for w in range(n):
                    gain[2 * k + s] += (rest[value + w] * inside[at + s * n + w]).real
        else:
            for w in range(n):
                step = inside[at + n + w] - inside[at + w]
                gradient_off += (outside[at + w] * step).real
                gradient_on += (outside[at + n + w] * step).real
    rise, above = gain[2 * k + 1] - gain[2 * k], unit.parent
    if above < 0:
        theta[2 * k] = theta[2 * k + 1] = sigmoid(rise)
    else:
        if p[2 * above] > _NEVER:
            theta[2 * k] = sigmoid(rise + gradient_off / p[2 * above])
        if p[2 * above + 1] > _NEVER:
            theta[2 * k + 1] = sigmoid(rise + gradient_on / p[2 * above + 1])
    for i in range(unit.entry, unit.entry_end):
        if entries[of_unit[i]].above >= 0:
            _set_passed(entries[of_unit[i]], theta, inside, passed)


@inner
def _open_sweep(products: Products, rest: ComplexArray, value: ComplexArray, before: ComplexArray) -> None:
    """The products over the pieces that follow each piece; those over the pieces before it begin."""
    factors, pieces, coefficient = products.factors, products.pieces, products.coefficient
    for f in range(len(factors)):
        factor = factors[f]
        for w in range(factor.term, factor.term_end):
            before[w] = coefficient[w]
            after = 1.0 + 0.0j
            for i in range(factor.piece_end - 1, factor.piece - 1, -1):
                at = pieces[i].value + w - factor.term
                rest[at] = after
                after *= value[at]


@inner
def _settle(forest: Forest, products: Products, m: Messages, theta: FloatArray, p: FloatArray, tree: int) -> None:
    """The marginals of a tree and the values of its pieces, after its units have moved."""
    units, walk, factors, entries, of_unit = (
        forest.units,
        forest.walk,
        products.factors,
        products.entries,
        products.of_unit,
    )
    inside, value, before = m.inside, m.value, m.before
    for i in range(forest.walk_ptr[tree], forest.walk_ptr[tree + 1]):
        k = walk[i]
        if k < 0:
            continue
        _set_marginal(units[k].parent, theta, p, k)
        for j in range(units[k].entry, units[k].entry_end):
            one = entries[of_unit[j]]
            if one.above < 0:  # the mean of a piece, from its top
                at, n, first = one.message, one.terms, factors[one.factor].term
                for w in range(n):
                    value[one.value + w] = p[2 * k] * inside[at + w] + p[2 * k + 1] * inside[at + n + w]
                    before[first + w] *= value[one.value + w]


@inner
def _sweep(forest: Forest, products: Products, m: Messages, q: Marginals, field: FloatArray) -> None:
    """One walk through each tree, the others held fixed."""
    units, child, walk_ptr, walk = forest
    factors, pieces, _, _, _, tree_ptr, tree_piece, _, _ = products
    rest, before = m.rest, m.before
    _open_sweep(products, rest, m.value, before)
    for tree in range(len(walk_ptr) - 1):
        for i in range(tree_ptr[tree], tree_ptr[tree + 1]):  # all other values of a factor; nothing is ever divided
            piece = pieces[tree_piece[i]]
            factor = factors[piece.factor]
            _times(rest, piece.value, before, factor.term, factor.term_end - factor.term)
        for i in range(walk_ptr[tree], walk_ptr[tree + 1]):
            k = walk[i]
            if k >= 0:
                _come(units[k], products, m, q, k)
            else:
                _leave(units, child, products, m, q, field, ~k)
        _settle(forest, products, m, q.theta, q.p, tree)


@inner
def _begin(forest: Forest, products: Products, m: Messages, q: Marginals) -> None:
    """All messages upwards, and all values, at the present Q."""
    units, entries, of_unit = forest.units, products.entries, products.of_unit
    for i in range(len(forest.walk)):
        k = ~forest.walk[i]
        if k >= 0:
            for j in range(units[k].entry, units[k].entry_end):
                _set_inside(entries, products.below, products.phi, m.inside, m.passed, of_unit[j])
                _set_passed(entries[of_unit[j]], q.theta, m.inside, m.passed)
    _open_sweep(products, m.rest, m.value, m.before)
    for tree in range(len(forest.walk_ptr) - 1):
        _settle(forest, products, m, q.theta, q.p, tree)


@inner
def _bound(
    units: np.ndarray, factors: np.ndarray, before: ComplexArray, theta: FloatArray, p: FloatArray, field: FloatArray
) -> float:
    """L after a sweep but for the constant, added up factor by factor and unit by unit."""
    total = 0.0
    for f in range(len(factors)):
        mine = 0.0
        for w in range(factors[f].term, factors[f].term_end):
            mine += before[w].real
        total += mine
    for k in range(len(units)):
        above, off, on = units[k].parent, 1.0, 0.0
        if above >= 0:
            off, on = p[2 * above], p[2 * above + 1]
        total += off * _entropy(theta[2 * k]) + on * _entropy(theta[2 * k + 1])
        total += p[2 * k] * field[2 * k] + p[2 * k + 1] * field[2 * k + 1]
    return total


@kernel
def maximise(
    forest: Forest, products: Products, field: FloatArray, constant: float, stop: Stop, theta: FloatArray,
    p: FloatArray, trace: FloatArray,
) -> tuple[int, bool]:  # fmt: skip
    """Sweep from the Q in `theta` until a sweep gains less than `tol`: how many sweeps, and was that so?

    The bounds at the start and after each sweep go into `trace`, the means into `p`.
    """
    units, factors = forest.units, products.factors
    n = values = 0
    for e in range(len(products.entries)):
        n += 2 * products.entries[e].terms
    for i in range(len(products.pieces)):
        factor = factors[products.pieces[i].factor]
        values += factor.term_end - factor.term
    none = 0.0 + 0.0j
    m = Messages(
        np.full(n, none), np.full(n, none), np.full(n, none), np.full(n, none), np.full(values, none),
        np.full(values, none), np.full(len(products.coefficient), none),
    )  # fmt: skip
    q = Marginals(theta, p, np.zeros(len(theta)))
    _begin(forest, products, m, q)
    trace[0] = constant + _bound(units, factors, m.before, theta, p, field)
    for sweep in range(1, stop.max_sweeps + 1):
        _sweep(forest, products, m, q, field)
        trace[sweep] = constant + _bound(units, factors, m.before, theta, p, field)
        if trace[sweep] - trace[sweep - 1] < stop.tol:
            return sweep, True
    return stop.max_sweeps, False
