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

Units have two states. Messages stand state after state, term after term.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.structs import struct
from sbnet.kernels.thresholds import sigmoid

ComplexArray: TypeAlias = NDArray[np.complex128]

_NEVER = 1e-280  # a state so rare that what follows it does not matter
_SURE = 1.0 - 2.0**-53  # the largest number below one

unit_t = struct(
    ("parent", "i8"),  # the unit that it depends on in Q, or -1
    ("entry", "i8"),  # where its entries begin, and end
    ("entry_end", "i8"),
    ("field", "f8", 2),  # what is added to L in each of its states
    ("theta", "f8", 2),  # Q(S_k = 1 | s above); a root has it twice
    ("entropy", "f8", 2),  # of that
    ("p", "f8", 2),  # Q(S_k = s)
    ("gain", "f8", 2),  # what is gained from k on downwards
)
# where the terms w of a factor begin, and end; likewise its pieces
factor_t = struct(("term", "i8"), ("term_end", "i8"), ("piece", "i8"), ("piece_end", "i8"))
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


def messages(products: Products) -> Messages:
    """Room for them."""
    n, values = 2 * int(products.entries["terms"].sum()), products.factors[products.pieces["factor"]]
    sizes = n, n, n, n, *2 * [int((values["term_end"] - values["term"]).sum())], len(products.coefficient)
    return Messages(*(np.zeros(size, np.complex128) for size in sizes))


@inner(fast=True)
def _come(
    units: np.ndarray, entries: np.ndarray, below: IndexArray, of_unit: IndexArray, phi: ComplexArray,
    passed: ComplexArray, around: ComplexArray, outside: ComplexArray, rest: ComplexArray, k: int,
) -> None:  # fmt: skip
    """From above: what surrounds each entry of unit k."""
    unit = units[k]
    off, on = unit.theta[0], unit.theta[1]
    unit.gain[0], unit.gain[1] = unit.field[0], unit.field[1]
    for i in range(unit.entry, unit.entry_end):
        one = entries[of_unit[i]]
        at, n = one.message, one.terms
        if one.above < 0:
            for w in range(n):
                around[at + w] = rest[one.value + w] * unit.p[0]
                around[at + n + w] = rest[one.value + w] * unit.p[1]
            continue
        up = entries[one.above]
        for w in range(2 * n):  # all but what hangs from this entry, with the unit above in each state
            outside[at + w] = around[up.message + w]
        if up.phi >= 0:
            for w in range(2 * n):
                outside[at + w] *= phi[up.phi + w]
        for b in range(up.below, up.below_end):
            if below[b] != of_unit[i]:
                first = entries[below[b]].message
                for w in range(2 * n):
                    outside[at + w] *= passed[first + w]
        for w in range(n):
            around[at + w] = (1.0 - off) * outside[at + w] + (1.0 - on) * outside[at + n + w]
            around[at + n + w] = off * outside[at + w] + on * outside[at + n + w]


@inner(fast=True)
def _leave(
    units: np.ndarray, entries: np.ndarray, below: IndexArray, of_unit: IndexArray, phi: ComplexArray,
    inside: ComplexArray, passed: ComplexArray, outside: ComplexArray, rest: ComplexArray, k: int, moves: bool,
) -> None:  # fmt: skip
    """Upwards: all below unit k has moved. Its own move, and its messages."""
    unit, pull_off, pull_on = units[k], 0.0, 0.0
    for i in range(unit.entry, unit.entry_end):
        one = entries[of_unit[i]]
        at, n = one.message, one.terms
        for w in range(2 * n):
            inside[at + w] = phi[one.phi + w] if one.phi >= 0 else 1.0 + 0.0j
        for b in range(one.below, one.below_end):
            first = entries[below[b]].message
            for w in range(2 * n):
                inside[at + w] *= passed[first + w]
        if one.above < 0:
            for w in range(n):
                unit.gain[0] += (rest[one.value + w] * inside[at + w]).real
                unit.gain[1] += (rest[one.value + w] * inside[at + n + w]).real
        else:
            for w in range(n):
                step = inside[at + n + w] - inside[at + w]
                pull_off += (outside[at + w] * step).real
                pull_on += (outside[at + n + w] * step).real
    for s in range(2):
        p = units[unit.parent].p[s] if unit.parent >= 0 else 1.0
        if moves and p > _NEVER:
            unit.theta[s] = sigmoid(unit.gain[1] - unit.gain[0] + (pull_on if s > 0 else pull_off) / p)
        on = unit.theta[s]
        unit.entropy[s] = -on * math.log(max(on, _NEVER)) - (1.0 - on) * math.log1p(-min(on, _SURE))
        if unit.parent >= 0:
            units[unit.parent].gain[s] += unit.entropy[s] + (1.0 - on) * unit.gain[0] + on * unit.gain[1]
    for i in range(unit.entry, unit.entry_end):
        one = entries[of_unit[i]]
        at, n = one.message, one.terms
        for s in range(2 if one.above >= 0 else 0):
            on = unit.theta[s]
            for w in range(n):
                passed[at + s * n + w] = (1.0 - on) * inside[at + w] + on * inside[at + n + w]


@kernel
def maximise(
    forest: Forest, products: Products, messages: Messages, constant: float, tol: float, trace: FloatArray
) -> tuple[int, bool]:
    """Sweep from the Q in `theta` until a sweep gains less than `tol`: how many sweeps, and was that so?

    The bounds at the start and after each sweep go into `trace`. Before the first sweep there is one without moves.
    """
    units, walk_ptr, walk = forest
    factors, pieces, entries, below, of_unit, tree_ptr, tree_piece, coefficient, phi = products
    inside, passed, around, outside, rest, value, before = messages
    for sweep in range(len(trace)):
        for f in range(len(factors)):  # products over the pieces that follow each piece; those before it begin
            factor = factors[f]
            for w in range(factor.term, factor.term_end):
                before[w], after = coefficient[w], 1.0 + 0.0j
                for i in range(factor.piece_end - 1, factor.piece - 1, -1):
                    at = pieces[i].value + w - factor.term
                    rest[at] = after
                    after *= value[at]
        total = constant
        for tree in range(len(walk_ptr) - 1):  # the others held fixed
            for i in range(tree_ptr[tree], tree_ptr[tree + 1]):  # all other values of a factor; nothing is ever divided
                piece = pieces[tree_piece[i]]
                factor = factors[piece.factor]
                for w in range(factor.term_end - factor.term):
                    rest[piece.value + w] *= before[factor.term + w]
            for i in range(walk_ptr[tree], walk_ptr[tree + 1]):
                if walk[i] >= 0:
                    _come(units, entries, below, of_unit, phi, passed, around, outside, rest, walk[i])
                else:
                    k, moves = ~walk[i], sweep > 0
                    _leave(units, entries, below, of_unit, phi, inside, passed, outside, rest, k, moves)
            for i in range(walk_ptr[tree], walk_ptr[tree + 1]):  # marginals, and values of pieces from their tops
                if walk[i] < 0:
                    continue
                unit, off, on = units[walk[i]], 1.0, 0.0
                if unit.parent >= 0:
                    off, on = units[unit.parent].p[0], units[unit.parent].p[1]
                unit.p[0] = off * (1.0 - unit.theta[0]) + on * (1.0 - unit.theta[1])
                unit.p[1] = off * unit.theta[0] + on * unit.theta[1]
                total += off * unit.entropy[0] + on * unit.entropy[1]
                total += unit.p[0] * unit.field[0] + unit.p[1] * unit.field[1]
                for j in range(unit.entry, unit.entry_end):
                    one = entries[of_unit[j]]
                    first, n = factors[one.factor].term, one.terms
                    for w in range(n if one.above < 0 else 0):
                        at = one.message + w
                        value[one.value + w] = unit.p[0] * inside[at] + unit.p[1] * inside[at + n]
                        before[first + w] *= value[one.value + w]
        for w in range(len(before)):
            total += before[w].real
        trace[sweep] = total
        if sweep > 0 and trace[sweep] - trace[sweep - 1] < tol:
            return sweep, True
    return len(trace) - 1, False
