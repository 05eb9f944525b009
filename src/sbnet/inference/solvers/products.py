r"""ln P(H, V) as a sum of products of functions of single hidden units: under a tree the mean of each is exact.

A *factor*, a unit with hidden parents, adds :math:`\ln P(S_i \mid x)`, and becomes

- with few hidden parents a sum over all their states and its own, each a product of indicators;
- with more, for a sigmoid unit: :math:`S_i x` is a sum of pairs, and

  .. math:: \ln(1 + e^z) \le \ln 2 + \frac z2 + \sum_q w_q (1 - \cos \omega_q z) + \text{tail} + e^{|z| - 2 \pi / d},
      \qquad w_q = \frac{d}{\omega_q \sinh \pi \omega_q}, \quad \omega_q = (q + \tfrac12) d ,

  the midpoint rule for the integral of :mod:`sbnet.kernels.terms.exact`. Its error is the same sum over aliases with
  alternating signs, so it lies below by at most the first of them, which is the last term; what lies beyond the last
  frequency is at most the tail, for the midpoint rule does not exceed the integral of a convex function. Unlike the
  trapezoid rule it has no frequency zero, and needs no second moments. The step d follows from the range of z. Where
  that is too wide, :math:`\ln(1 + e^z) \le T \ln(1 + e^{z/T})` for :math:`T \ge 1` brings it down: what is lost is at
  most :math:`(T - 1) \ln 2`, and little where \|z\| is well above T;
- with more, for a noisy-OR unit: the same with real exponentials, as in :mod:`sbnet.kernels.terms.series`.

All of it is linear in means of products. None of these functions exceeds 1 in size, so nothing overflows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sbnet import kernels
from sbnet._types import FloatArray, IndexArray, Model, States
from sbnet.kernels.codes import NOISY_OR
from sbnet.kernels.structs import Problem
from sbnet.model import gates
from sbnet.model.states import offsets
from sbnet.quadrature.frequencies import FAR, MARGIN, MAX_NODES, OMEGA
from sbnet.quadrature.lobatto import NODES, NOTHING, UNTIL, WEIGHTS, nodes_for

if TYPE_CHECKING:
    from sbnet.kernels.structured import Forest, Products

ComplexArray: TypeAlias = NDArray[np.complex128]

_MOST = 4_000_000
"""Messages, half a gigabyte: where slots alone would need more, sums have fewer frequencies."""
_FEWEST = 32


class Factor(NamedTuple):
    """Re of the sum of coefficients times products: `phi` has units by two states by terms."""

    units: tuple[int, ...]
    phi: ComplexArray
    coefficient: ComplexArray


class Expansion(NamedTuple):
    """A row of a problem: ln P is at least constant + fields + factors. `size` is that of the numbers in it."""

    constant: float
    field: FloatArray  # hidden units by states
    factors: list[Factor]
    size: float


class _Sum:
    """What has been added so far."""

    def __init__(self, n: int) -> None:
        self.constant, self.size = 0.0, 0.0
        self.field = np.zeros((n, 2))
        self.tables: dict[tuple[int, ...], FloatArray] = {}
        self.sums: list[Factor] = []

    def add(self, constant: float, size: float) -> None:
        self.constant += constant
        self.size += size

    def table(self, units: Sequence[int], values: FloatArray) -> None:
        """A value for each state of some units, one axis for each; tables of the same units become one."""
        order = sorted(range(len(units)), key=units.__getitem__)
        key, table = tuple(units[i] for i in order), values.transpose(order)
        self.size += float(np.abs(values).max())
        self.tables[key] = self.tables[key] + table if key in self.tables else table

    def pairs(self, one: int, others: IndexArray, weight: FloatArray) -> None:
        """weight S S' for pairs of units."""
        for other, w in zip(others.tolist(), weight.tolist(), strict=True):
            self.table((one, other), np.array([[0.0, 0.0], [0.0, w]]))


def expand(model: Model, problem: Problem, states: States, bias: FloatArray, enumerate_up_to: int) -> Expansion:
    """The sum for one row of units with two states; `bias` has the evidence absorbed."""
    total = _Sum(len(problem.hidden))
    _known(total, model, problem, states, bias)
    sizes = problem.factors["slot_end"] - problem.factors["slot"]
    slots_in_sums = int(sizes[sizes > enumerate_up_to].sum())
    cap = int(np.clip(_MOST // max(slots_in_sums, 1), _FEWEST, MAX_NODES))  # frequencies of a sum, at most
    parent, weight = problem.slots["parent"], problem.slots["weight"]
    for i, own, first, end in problem.factors[["variable", "hidden", "slot", "slot_end"]].tolist():
        slots = slice(first, end)
        one = _One(int(states[i]), own, float(bias[i]), parent[slots], weight[slots], model.gate[i : i + 1])
        if len(one.parents) <= enumerate_up_to:
            _enumerated(total, one)
        elif model.gate[i] == NOISY_OR:
            _noisy_or(total, one)
        else:
            _sigmoid(total, one, cap)
    factors = []
    for units, table in total.tables.items():
        if np.any(table):  # a term for each state in which the table is not zero
            found = np.argwhere(table != 0.0).T
            phi = np.stack([found == 0, found == 1], axis=1).astype(np.complex128)
            factors.append(Factor(units, phi, table[table != 0.0].astype(np.complex128)))
    return Expansion(total.constant, total.field, factors + total.sums, total.size)


class _One(NamedTuple):
    """A factor: its state, or its place among the hidden units; bias, hidden parents and weights; its gate."""

    state: int
    own: int
    bias: float
    parents: IndexArray
    weight: FloatArray
    gate: States


def _known(total: _Sum, model: Model, problem: Problem, states: States, bias: FloatArray) -> None:
    """Units whose inputs are known."""
    place = {int(i): k for k, i in enumerate(problem.hidden["variable"])}
    for i in problem.known.tolist():
        gate, x = model.gate[i : i + 1], bias[i : i + 1]
        if states[i] >= 0:
            total.add(float(gates.log_p(gate, states[i], x)[0]), 0.0)
        else:
            total.field[place[i]] += [float(gates.log_p(gate, s, x)[0]) for s in (0, 1)]


@cache
def _states(n: int) -> FloatArray:
    """All states of n units, the last changing fastest."""
    return np.array(list(itertools.product((0.0, 1.0), repeat=n)))


def _enumerated(total: _Sum, one: _One) -> None:
    units, n = one.parents.tolist(), len(one.parents)
    x = one.bias + _states(n) @ one.weight
    if one.own < 0:
        total.table(units, gates.log_p(one.gate, one.state, x).reshape((2,) * n))
    else:
        both = np.stack([gates.log_p(one.gate, s, x) for s in (0, 1)], axis=1)
        total.table([*units, one.own], both.reshape((2,) * (n + 1)))


def _sigmoid(total: _Sum, one: _One, cap: int) -> None:
    """S x - ln(1 + e^x), with an upper bound in place of the logarithm."""
    weight, h = one.weight, one.bias
    if one.own < 0:
        total.add(one.state * h, 0.0)
        total.field[one.parents, 1] += one.state * weight
    else:
        total.field[one.own, 1] += h
        total.pairs(one.own, one.parents, weight)
    low, high = h + np.minimum(weight, 0.0).sum(), h + np.maximum(weight, 0.0).sum()
    if low > FAR or high < -FAR:  # there it is straight, but for e^-20
        straight = 1.0 if low > FAR else 0.0
        total.add(-straight * h - math.exp(-max(low, -high)), 0.0)
        total.field[one.parents, 1] -= straight * weight
        return
    reach = max(-low, high, 0.0)
    heat = max(1.0, reach / (2.0 * math.pi * cap / OMEGA - MARGIN))
    n = min(math.ceil(OMEGA * (reach / heat + MARGIN) / (2.0 * math.pi)), cap)
    step = OMEGA / n
    omega = (np.arange(n) + 0.5) * step
    w = step / (omega * np.sinh(math.pi * omega))
    tail = 4.0 * math.exp(-math.pi * OMEGA) / (math.pi * OMEGA * -math.expm1(-2.0 * math.pi * OMEGA))
    alias = math.exp(reach / heat - 2.0 * math.pi / step)
    total.add(-heat * (math.log(2.0) + w.sum() + tail + alias) - 0.5 * h, heat * w.sum())
    total.field[one.parents, 1] -= 0.5 * weight
    on = np.exp(1j * np.outer(weight / heat, omega))
    phi = np.stack([np.ones_like(on), on], axis=1)
    total.sums.append(Factor(tuple(one.parents.tolist()), phi, heat * w * np.exp(1j * (h / heat) * omega)))


def _noisy_or(total: _Sum, one: _One) -> None:
    """(S - 1) x - S t(x), with a sum of exponentials in place of t."""
    weight, h = one.weight, one.bias
    if one.state != 1:
        total.add(-h, 0.0)
        total.field[one.parents, 1] -= weight
    if one.own >= 0:
        total.field[one.own, 1] += h
        total.pairs(one.own, one.parents, weight)
    if one.state == 0:
        return
    least = float(weight[weight > NOTHING].min(initial=np.inf))
    n = nodes_for(least)
    reach = UNTIL[n - 1] * (least + h)
    tail = math.exp(-reach) / reach
    counts = weight > NOTHING
    decay = np.exp(-np.outer(np.where(counts, weight, 0.0), NODES[:n]))
    w = WEIGHTS[:n] * np.exp(-NODES[:n] * h)
    none = float(gates.rarity(np.array([h]))[0]) - w.sum() - tail  # where no cause is on, t itself
    on = np.hstack([decay, np.where(counts, 0.0, 1.0)[:, None]])
    phi = np.stack([np.ones_like(on), on], axis=1).astype(np.complex128)
    units = one.parents.tolist()
    total.size += float(w.sum() + abs(none) + tail)
    if one.own < 0:
        total.constant -= tail
    else:
        total.field[one.own, 1] -= tail
        mine = np.stack([np.zeros(n + 1), np.ones(n + 1)]).astype(np.complex128)
        units, phi = [*units, one.own], np.concatenate([phi, mine[None]])
    total.sums.append(Factor(tuple(units), phi, -np.append(w, none).astype(np.complex128)))


# --- a forest under it ------------------------------------------------------------------------------------------------


def lay_out(factors: Sequence[Factor], forest: Forest, depth: IndexArray, tree: IndexArray) -> Products:
    """The pieces of every factor: its units in each tree, and those on the way between them.

    Where the entries of a unit stand is noted in the forest.
    """
    entries = list[int]()  # of each the unit, the piece, the entry above, and the slot of its unit in the factor, or -1
    pieces, factor_of, tree_of, parent = [0], list[int](), list[int](), forest.units["parent"].tolist()
    for f, factor in enumerate(factors):
        slot = {unit: s for s, unit in enumerate(factor.units)}
        for t in sorted({int(tree[unit]) for unit in factor.units}):
            place: dict[int, int] = {}
            for unit, above in _spanned([u for u in factor.units if tree[u] == t], parent, depth):
                place[unit] = len(entries) // 4
                entries += unit, len(factor_of), place.get(above, -1), slot.get(unit, -1)
            factor_of.append(f)
            tree_of.append(t)
        pieces.append(len(factor_of))
    numbers = (np.array(values, dtype=np.int64) for values in (entries, pieces, factor_of, tree_of))
    return _records(factors, forest, *numbers)


def _spanned(units: Sequence[int], parent: Sequence[int], depth: IndexArray) -> list[tuple[int, int]]:
    """The units of the smallest subtree with all of these, from its top down, each with the one above it."""
    by_depth: dict[int, set[int]] = {}
    for unit in units:
        by_depth.setdefault(int(depth[unit]), set()).add(unit)
    found, level = [], max(by_depth)
    while True:
        now = by_depth.pop(level)
        if len(now) == 1 and not by_depth:
            found.append((now.pop(), -1))
            return found[::-1]
        level -= 1
        for unit in now:
            found.append((unit, parent[unit]))
            by_depth.setdefault(level, set()).add(parent[unit])


def _by(key: IndexArray, n: int) -> tuple[IndexArray, IndexArray]:
    """Where the places of each key begin, and the places."""
    return offsets(np.bincount(key, minlength=n)), np.argsort(key, kind="stable").astype(np.int64)


def _records(
    factors: Sequence[Factor], forest: Forest, entries: IndexArray, first_piece: IndexArray, factor_of: IndexArray,
    tree_of: IndexArray,
) -> Products:  # fmt: skip
    """Factors, pieces and entries as records."""
    layout, none = kernels.structured, np.empty(0, np.complex128)
    unit, piece, above, slot = entries.reshape(-1, 4).T
    all_factors, pieces = np.zeros(len(factors), layout.factor_t), np.zeros(len(factor_of), layout.piece_t)
    term = offsets(np.array([len(factor.coefficient) for factor in factors]))
    all_factors["term"], all_factors["term_end"] = term[:-1], term[1:]
    all_factors["piece"], all_factors["piece_end"] = first_piece[:-1], first_piece[1:]
    pieces["factor"], pieces["value"] = factor_of, offsets(np.diff(term)[factor_of])[:-1]
    made = np.zeros(len(unit), layout.entry_t)
    made["unit"], made["factor"], made["value"], made["above"] = unit, factor_of[piece], pieces["value"][piece], above
    made["terms"] = n = np.diff(term)[made["factor"]]
    hangs = np.flatnonzero(above >= 0)
    begins, below = _by(above[hangs], len(unit))
    made["below"], made["below_end"] = begins[:-1], begins[1:]
    phi = offsets(np.array([factor.phi.size for factor in factors]))
    made["phi"] = np.where(slot >= 0, phi[made["factor"]] + 2 * n * slot, -1)
    made["message"] = offsets(2 * n)[:-1]
    begins, of_unit = _by(unit, len(forest.units))
    forest.units["entry"], forest.units["entry_end"] = begins[:-1], begins[1:]
    coefficient = np.concatenate([none, *(factor.coefficient for factor in factors)])
    functions = np.concatenate([none, *(factor.phi.ravel() for factor in factors)])
    by_tree = _by(tree_of, len(forest.walk_ptr) - 1)
    products: Products = layout.Products(
        all_factors, pieces, made, hangs[below], of_unit, *by_tree, coefficient, functions
    )
    return products
