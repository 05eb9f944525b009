r"""Which evidence is impossible: what cannot be is propagated through the network.

A probability of exactly 0 or 1 is stored as a thousand nats (:data:`sbnet.model.network.CERTAIN`) and an empty input of
a noisy-OR unit counts as a probability of 1e-300, so that no kernel meets an infinity. A sum over such numbers is
finite where P(evidence) is zero. Whether it is zero is decided here, from four facts about units and edges:

- a unit *needs a cause* if it has no leak: it is off unless a parent with a positive weight is on;
- a unit is *always on* if its leak is 1, or its prior;
- a link *never fails* if its probability is 1: the child is on if the parent is.

A prior of 0 is a unit that needs a cause and has none. As clauses over "unit is on" they have at most one negated
literal each: "u is off, or one of its causes is on", "p is off, or c is on". With evidence they are a dual Horn
formula, for which unit propagation finds a contradiction if and only if there is one. So for noisy-OR units and their
roots the answer is exact: P is zero if and only if the propagation says so. A sigmoid unit with parents takes part as
far as its own numbers say so (leak 0 or 1, probability 1, nothing that prevents); the rest of its states are possible.

A unit held by intervention has its state, and no rule of its own. Variables with more states, and tables, are the
business of :mod:`sbnet.questions.domains`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.errors import EvidenceError
from sbnet.kernels.codes import NOISY_OR
from sbnet.model.network import CERTAIN, Network
from sbnet.parallel.blocks import row_blocks
from sbnet.questions import domains
from sbnet.questions.reduction import ends_of_weights, stretches

IMPOSSIBLE = "the evidence is impossible"
NO_STATE = f"{IMPOSSIBLE}: no joint state of the hidden variables has a probability above zero"
_ROUNDING = 1e-9  # of certain log-odds that are the sum of a weight and a bias
_NAMED = 3  # causes that a sentence names
EXCLUDED = 2000.0
"""Inputs that are lower by more than this stand for a probability of zero: likelihoods differ by e^1454 at most."""


def refusal(reason: str = NO_STATE) -> EvidenceError:
    """What is said where an answer would be nothing but a posterior."""
    return EvidenceError(f"{reason}; leave out a finding, or give the variable a leak")


def depth(network: Network) -> float:
    """No joint state that can be has a ln P as low as minus this, by more than a thousand nats.

    So what counts as e^-depth instead of zero changes no digit of a probability that is not zero. A threshold costs at
    most the size of its input and ln 2, or the logarithm of the smallest cause of a noisy-OR; a table its smallest
    entry.
    """
    gate = network.gate[network.columns[0]]
    of_edge = np.repeat(network.gate[network.graph.child_of_edge], np.diff(network.model.block))
    causes = np.concatenate([network.bias[gate == NOISY_OR], network.weight[of_edge == NOISY_OR]])
    least = [causes[causes > 0.0].min(initial=1.0)] * int((gate == NOISY_OR).sum())
    least += [table[table > 0.0].min() for table in network.tables.values()]
    size = np.abs(network.bias).sum() + np.abs(network.weight).sum() + len(network.bias) - np.log(least).sum()
    return 2.0 * float(size) + EXCLUDED


UNLIKELY = -600.0
"""Where ln P is lower than that, what kernels count in the place of zero may show."""
_FAINT = 1e-290  # inputs of a noisy-OR that kernels may count as more than they are


class _HasZeros:
    """Where a network keeps the answer."""


def has_zeros(network: Network) -> bool:
    """Do kernels count something as rare that is impossible, or rarer than they can tell?"""
    known: bool | None = network._cache.get(_HasZeros)
    if known is None:
        threshold, _ = ends_of_weights(network.model)
        noisy, bias, weight = network.gate[network.columns[0]] == NOISY_OR, network.bias, network.weight
        sure = (weight == CERTAIN) | (np.abs(bias[threshold] + weight - CERTAIN) <= _ROUNDING)
        known = bool((noisy & (bias < _FAINT)).any() or (np.abs(bias) == CERTAIN).any() or sure.any())
        network._cache[_HasZeros] = known
    return known


def remote(network: Network, log_p: FloatArray) -> BoolArray:
    """Which bounds on ln P are so low that what cannot be may be a part of them."""
    low: BoolArray = ~(log_p > UNLIKELY)
    return low if low.any() and has_zeros(network) else low & False


def without_zeros(network: Network, row: States, means: FloatArray, bound: float) -> float:
    r"""The lower bound of a factorial Q, as kernels have it, made one that counts zeros as zeros; it may be -∞.

    With A the joint states that can be and :math:`\delta` the rest of Q, the bound of Q given A is
    :math:`\sum_A Q \ln (P / Q) / (1 - \delta) + \ln(1 - \delta)`. What is outside of A adds next to nothing to the
    bound of Q, or takes from it: it has a probability of 1e-290 or less.
    """
    share = domains.excluded_share(network, row, means, _FAINT)
    if not share < 1.0:
        return -math.inf
    return bound / (1.0 - share) + math.log1p(-share) - 1e-15 * abs(bound) if share else bound


class _Links(NamedTuple):
    """Some of the edges, by one of their two units: unit u is linked to ``other[ptr[u]:ptr[u + 1]]``."""

    ptr: IndexArray
    other: IndexArray

    def of(self, unit: int) -> IndexArray:
        """The units that one unit is linked to."""
        return self.other[self.ptr[unit] : self.ptr[unit + 1]]

    def from_(self, rows: IndexArray, units: IndexArray) -> tuple[IndexArray, IndexArray, IndexArray]:
        """For each of some units in rows, each of its links: row, unit and other unit."""
        size = self.ptr[units + 1] - self.ptr[units]
        place, _ = stretches(self.ptr, units)
        return np.repeat(rows, size), np.repeat(units, size), self.other[place]


class _Rules(NamedTuple):
    """What is impossible in a network, whatever is observed."""

    needs: BoolArray  # by unit: it is off unless one of its causes is on
    always: BoolArray  # by unit: it is on
    causes: _Links  # of units that need one
    effects: _Links  # the other way round
    sure_causes: _Links  # by links that never fail
    sure_effects: _Links

    @property
    def empty(self) -> bool:
        """Is everything possible?"""
        return not (self.needs.any() or self.always.any() or len(self.sure_causes.other))


def _rules(network: Network) -> _Rules:
    """The rules of a network, computed once."""
    known: _Rules | None = network._cache.get(_Rules)
    if known is not None:
        return known
    graph, weight, bias = network.graph, network.weight, network.bias
    parent, child, n = graph.parent, graph.child_of_edge, network.n_units
    noisy = network.gate == NOISY_OR
    prevented = np.bincount(child[weight < 0.0], minlength=n) > 0
    needs = np.where(noisy, bias == 0.0, bias == -CERTAIN)
    always = (bias == CERTAIN) & ~prevented
    alone = np.abs(bias[child] + weight - CERTAIN) <= _ROUNDING  # the input of a sigmoid unit from this parent alone
    sure = np.where(noisy[child], weight == CERTAIN, alone & ~prevented[child])
    cause = needs[child] & (weight > 0.0)
    links = [
        _links(one[chosen], other[chosen], n)
        for chosen in (cause, sure)
        for one, other in ((child, parent), (parent, child))
    ]
    rules = network._cache[_Rules] = _Rules(needs, always, *links)
    return rules


def _links(unit: IndexArray, other: IndexArray, n: int) -> _Links:
    counts = np.bincount(unit, minlength=n)
    return _Links(np.concatenate([[0], np.cumsum(counts)]), other[np.argsort(unit, kind="stable")])


class _Known(NamedTuple):
    """Rows by units: the round in which each was found to be off, and on; 0 if it was given, -1 if it was not found."""

    off: IndexArray
    on: IndexArray

    @property
    def clash(self) -> BoolArray:
        """Which units can be in neither state."""
        return (self.off >= 0) & (self.on >= 0)


def impossible(network: Network, states: States, held: States | None = None) -> BoolArray:
    """Which rows of evidence have the probability zero.

    `held` has the states of units held by intervention, -1 for the others: one row for all, or one for each.
    """
    if not network.is_binary:
        return domains.impossible(network, states, held)
    found, rules = np.zeros(len(states), np.bool_), _rules(network)
    if rules.empty:
        return found
    apart = np.full((1, network.n_units), HIDDEN, np.int8) if held is None else held
    for rows in row_blocks(len(states), 4 * network.n_units):
        found[rows] = _propagated(rules, states[rows], apart if len(apart) == 1 else apart[rows]).clash.any(axis=1)
    return found


def reason(network: Network, row: States, held: States | None = None) -> str:
    """Why one row of evidence is impossible, as a sentence; empty if it is possible."""
    if not network.is_binary:
        i = domains.first_empty(network, row, held)
        if i < 0:
            return f"{IMPOSSIBLE}: reports rule out all that is left"
        name, observed = network.names[i], row[i] != HIDDEN
        state = f"be {network.states[name][row[i]]}" if observed else "be in any of its states"
        return f"{IMPOSSIBLE}: {name!r} cannot {state}, given the rest of it"
    rules = _rules(network)
    apart = np.full(network.n_units, HIDDEN, np.int8) if held is None else held
    known = _Known(*(rounds[0] for rounds in _propagated(rules, row[None, :], apart[None, :])))
    clash = np.flatnonzero(known.clash)
    if not len(clash):
        return ""
    clash = clash[np.minimum(known.off[clash], known.on[clash]) == 0]  # what was observed; others follow from it
    unit = int(clash[np.argmin(np.maximum(known.off[clash], known.on[clash]))])
    return f"{IMPOSSIBLE}: {_why(network, rules, known, unit)}"


def _propagated(rules: _Rules, states: States, held: States) -> _Known:
    """Unit propagation in all rows at once: each fact is followed along each of its edges once."""
    free = np.broadcast_to(held == HIDDEN, states.shape)
    given = np.where(free, states, held)
    known = _Known(np.where(given == 0, 0, -1), np.where(given == 1, 0, -1))
    left = np.repeat(np.diff(rules.causes.ptr)[None, :], len(states), axis=0)  # causes that may be on
    n = len(rules.needs)
    child = np.repeat(np.arange(n), np.diff(rules.causes.ptr))
    which = np.bincount(child, weights=rules.causes.other, minlength=n).astype(np.int64)
    which = np.repeat(which[None, :], len(states), axis=0)  # the sum of their numbers: the last one's own
    off = _joined(_where(given == 0), _new(known.off, _where(free & rules.needs & (left == 0)), 1))
    on = _joined(_where(given == 1), _new(known.on, _where(free & rules.always), 1))
    step = 2
    while len(off[0]) or len(on[0]):
        row, gone, child = rules.effects.from_(*off)
        np.subtract.at(left, (row, child), 1)
        np.subtract.at(which, (row, child), gone)
        bare = free[row, child] & (left[row, child] == 0)
        less = row[bare], child[bare]
        row, child = _joined((row, child), on)  # those that lost a cause, and those that were found to be on
        last = free[row, child] & rules.needs[child] & (left[row, child] == 1) & (known.on[row, child] >= 0)
        more = row[last], which[row[last], child[last]]
        row, _, parent = rules.sure_causes.from_(*_kept(off, free[off]))
        less = _joined(less, (row, parent))
        row, _, child = rules.sure_effects.from_(*on)
        more = _joined(more, _kept((row, child), free[row, child]))
        off, on = _new(known.off, less, step), _new(known.on, more, step)
        step += 1
    return known


_Places = tuple[IndexArray, IndexArray]  # rows and units


def _where(chosen: BoolArray) -> _Places:
    rows, units = np.nonzero(chosen)
    return rows, units


def _joined(one: _Places, other: _Places) -> _Places:
    return np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])


def _kept(places: _Places, kept: BoolArray) -> _Places:
    return places[0][kept], places[1][kept]


def _new(rounds: IndexArray, places: _Places, step: int) -> _Places:
    """Enter what was found in this round; those that were not known, each once."""
    fresh = np.unique(np.ravel_multi_index(_kept(places, rounds[places] < 0), rounds.shape))
    rounds.flat[fresh] = step
    rows, units = np.unravel_index(fresh, rounds.shape)
    return rows, units


def _why(network: Network, rules: _Rules, known: _Known, unit: int) -> str:
    """Why a unit cannot be in the state that was given.

    Every contradiction reaches such a unit: what a unit has to be because of others passes on to them.
    """
    names, has_parents = network.names, len(network.parents(unit)) > 0
    if known.on[unit] == 0:
        causes, before = rules.causes.of(unit), known.off[unit]
        gone = (known.off[causes] >= 0) & (known.off[causes] < before)
        effects = rules.sure_effects.of(unit)
        if rules.needs[unit] and gone.all():
            why = f"it has no leak and {_all_off(network, known, causes)}" if has_parents else "its prior is 0"
        else:
            effect = effects[(known.off[effects] >= 0) & (known.off[effects] < before)][0]
            off = "is off" if known.off[effect] == 0 else "has to be off"
            why = f"it never fails to turn on {names[effect]!r}, which {off}"
        return f"{names[unit]!r} cannot be on, for {why}"
    causes, before = rules.sure_causes.of(unit), known.on[unit]
    if rules.always[unit] and before == 1:
        why = f"its {'leak' if has_parents else 'prior'} is 1"
    else:
        cause = causes[(known.on[causes] >= 0) & (known.on[causes] < before)][0]
        why = f"its cause {names[cause]!r} {'is on' if known.on[cause] == 0 else 'has to be on'} and never fails"
    return f"{names[unit]!r} cannot be off, for {why}"


def _all_off(network: Network, known: _Known, causes: IndexArray) -> str:
    if not len(causes):
        return "no cause"
    named = [repr(network.names[i]) for i in causes[:_NAMED]]
    listed = [*named, *[f"{len(causes) - _NAMED:,} more"] * (len(causes) > _NAMED)]
    text = listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"
    given = bool(np.all(known.off[causes] == 0))
    verb = ("is" if len(causes) == 1 else "are") + " off" if given else "cannot be on"
    return f"its cause{'s' * (len(causes) != 1)} {text} {verb}"
