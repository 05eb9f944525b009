"""Which evidence is impossible where variables have more than two states or tables: what is left of their domains.

The domain of a variable is the set of states that it can have; evidence leaves one, or a report with likelihoods of
zero a few. A family takes away states that no joint state of the others allows, until nothing changes. A row is
impossible if a domain is empty. That is certain; the reverse is not: where domains are left, a sum may be zero all the
same. Complete states are always decided.

Certainty is what :mod:`sbnet.questions.support` says: a threshold *needs* a parent that raises it if its bias is 0
(noisy-OR) or stands for a probability of 0 (sigmoid), and is *sure* by a bias or a parent of probability 1, if nothing
lowers it. For a sigmoid variable, v >= l is impossible if threshold l has what it needs from no parent, and v = l - 1
if it is sure; for a noisy-OR, v = l and v < l are. Of a table, entries of zero are impossible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sbnet._types import HIDDEN, BoolArray, FloatArray, States
from sbnet.kernels.codes import NOISY_OR
from sbnet.model.network import CERTAIN, Network
from sbnet.parallel.blocks import row_blocks
from sbnet.questions.by_state import probabilities
from sbnet.questions.reduction import live_variables

_ROUNDING = 1e-9  # of certain log-odds that are the sum of a weight and a bias

Domains = list[BoolArray]
"""Of each variable, rows by states: can it have the state?"""


class Certainties(NamedTuple):
    """What is certain of the thresholds of a variable.

    `raises` and `sure` have an array for each parent, thresholds by states: does the state raise the threshold, and
    does it do so without fail?
    """

    needs: BoolArray
    always: BoolArray
    raises: list[BoolArray]
    sure: list[BoolArray]

    def any(self) -> bool:
        """Is anything certain?"""
        return bool(self.needs.any() or self.always.any() or any(one.any() for one in self.sure))


def certainties(gate: int, bias: FloatArray, weights: Sequence[FloatArray], faint: float = 0.0) -> Certainties:
    """Those of a variable without a table; inputs of a noisy-OR up to `faint` count as none."""
    noisy = gate == NOISY_OR
    weights = [np.hstack([np.zeros((len(bias), 1)), weight]) for weight in weights]
    lowered = np.zeros(len(bias), np.bool_)
    for weight in weights:
        lowered |= (weight < 0.0).any(axis=1)
    sure = [
        weight == CERTAIN if noisy else (abs(bias[:, None] + weight - CERTAIN) <= _ROUNDING) & ~lowered[:, None]
        for weight in weights
    ]
    for one in sure:
        one[:, 0] = False  # which is `always`
    needs = bias <= faint if noisy else bias == -CERTAIN
    return Certainties(needs, (bias == CERTAIN) & ~lowered, [weight > faint for weight in weights], sure)


class _Rule(NamedTuple):
    """What one variable rules out: by a table of what is possible, or by thresholds."""

    variable: int
    parents: list[int]
    noisy: bool
    possible: BoolArray | None
    certain: Certainties


class _Key:
    """Where a network keeps its rules."""


def _rules(network: Network) -> list[_Rule]:
    known: list[_Rule] | None = network._cache.get(_Key)
    if known is None:
        known = network._cache[_Key] = [rule for i in range(network.n_units) if (rule := _rule(network, i)) is not None]
    return known


def _rule(network: Network, i: int) -> _Rule | None:
    """The rule of a variable; None if it rules nothing out."""
    family = network.family(i)
    parents = [network.index(name) for name in family.parents]
    possible = None if family.table is None else family.table > 0.0
    certain = certainties(family.gate, family.bias, family.weights)
    if possible.all() if possible is not None else not certain.any():
        return None
    return _Rule(i, parents, family.gate == NOISY_OR, possible, certain)


def impossible(network: Network, states: States, held: States | None, barred: Domains | None = None) -> BoolArray:
    """Which rows of evidence are found to be impossible; `barred` are domains that reports leave."""
    found = np.zeros(len(states), np.bool_)
    if not _rules(network) and barred is None:
        return found
    for rows in row_blocks(len(states), 4 * int(network.n_states.sum())):
        mine = None if barred is None else [one[rows] for one in barred]
        apart = held if held is None or len(held) == 1 else held[rows]
        found[rows] = np.any([~one.any(axis=1) for one in _left(network, states[rows], apart, mine)], axis=0)
    return found


def first_empty(network: Network, row: States, held: States | None) -> int:
    """The observed variable that the rest of the evidence contradicts, or else the first one without a state; -1 if all
    have one."""
    apart = None if held is None else held[None, :]
    empty = [not one.any() for one in _left(network, row[None, :], apart, None)]
    seen = np.flatnonzero(np.array(empty) & (row != HIDDEN))
    return -1 if not any(empty) else int(seen[-1] if len(seen) else np.argmax(empty))


def excluded_share(network: Network, row: States, means: FloatArray, faint: float) -> float:
    """The share of what cannot be in a factorial distribution that has these means and the evidence, or more.

    What takes an input of a noisy-OR of `faint` or less counts too. No variable of a family has a table.
    """
    total, live = 0.0, live_variables(network.model, row)
    q = {i: _distribution(network, row, means, i) for i in np.flatnonzero(live).tolist()}
    for i, own in q.items():
        family = network.family(i)
        certain, noisy = certainties(family.gate, family.bias, family.weights, faint), family.gate == NOISY_OR
        parents = [q[network.index(name)] for name in family.parents]
        for k in range(len(family.bias)):
            if certain.needs[k]:
                off = (p[~up[k]].sum() for p, up in zip(parents, certain.raises, strict=True))
                total += (own[k + 1] if noisy else own[k + 1 :].sum()) * math.prod(off)
            sure = sum(p[one[k]].sum() for p, one in zip(parents, certain.sure, strict=True)) + certain.always[k]
            total += (own[: k + 1].sum() if noisy else own[k]) * sure
    return float(total) * (1.0 + 1e-9)


def _distribution(network: Network, row: States, means: FloatArray, i: int) -> FloatArray:
    """Of one variable; rounding counts where it is hidden."""
    if row[i] != HIDDEN:
        return np.asarray(np.arange(network.n_states[i]) == row[i], np.float64)
    return probabilities(means[network.columns_of(i)]) + 2.0**-50


def _left(network: Network, states: States, held: States | None, barred: Domains | None) -> Domains:
    """The domains that are left."""
    free = np.broadcast_to(True if held is None else held == HIDDEN, states.shape)
    given = states if held is None else np.where(free, states, held)
    domains = []
    for i, n in enumerate(network.n_states.tolist()):
        own = (given[:, i : i + 1] == HIDDEN) | (given[:, i : i + 1] == np.arange(n))
        domains.append(own if barred is None else own & barred[i])
    changed = True
    while changed:
        before = sum(int(one.sum()) for one in domains)
        for rule in _rules(network):
            narrowed = _by_table if rule.possible is not None else _by_thresholds
            kept = [domains[rule.variable], *(domains[j] for j in rule.parents)]
            for one, new in zip(kept, narrowed(rule, kept), strict=True):
                one &= new | ~free[:, rule.variable][:, None]  # one that is held has no rule of its own
        changed = sum(int(one.sum()) for one in domains) < before
    return domains


def _by_table(rule: _Rule, domains: Domains) -> Domains:
    """What a table leaves of the domains of its variable and of its parents."""
    assert rule.possible is not None
    own, *parents = domains
    axes = [*parents, own]
    new = [np.zeros_like(one) for one in axes]
    for rows in row_blocks(len(own), rule.possible.size):
        joint = np.broadcast_to(rule.possible, (len(own[rows]), *rule.possible.shape)).copy()
        for k, one in enumerate(axes):
            shape = [len(joint), *([1] * len(axes))]
            shape[k + 1] = one.shape[1]
            joint &= one[rows].reshape(shape)
        for k in range(len(axes)):
            new[k][rows] = joint.any(axis=tuple(a for a in range(1, joint.ndim) if a != k + 1))
    return [new[-1], *new[:-1]]


def _some(domain: BoolArray) -> BoolArray:
    """In which rows it has a state."""
    return np.logical_or.reduce(domain, axis=1)  # type: ignore[no-any-return]


def _by_thresholds(rule: _Rule, domains: Domains) -> Domains:
    """What thresholds leave of the domains of their variable and of its parents."""
    own, *parents = domains
    new, rules = [np.ones_like(one) for one in domains], rule.certain
    for k in range(len(rules.needs)):
        l = k + 1  # noqa: E741 (the letter of the definition)
        lifts = [(one & up[k]).any(axis=1) for one, up in zip(parents, rules.raises, strict=True)]
        count = np.sum(lifts, axis=0) if lifts else np.zeros(len(own), np.int64)
        sure = np.full(len(own), rules.always[k])
        for one, certain in zip(parents, rules.sure, strict=True):
            sure |= one.any(axis=1) & ~(one & ~certain[k]).any(axis=1)
        if rules.needs[k]:
            gone = slice(l, l + 1) if rule.noisy else slice(l, None)
            new[0][:, gone] &= (count > 0)[:, None]
            rest = own.copy()
            rest[:, gone] = False
            last = (count == 1) & _some(own) & ~_some(rest)  # it must be raised, and one parent can
            for one, lift, up in zip(new[1:], lifts, rules.raises, strict=True):
                one &= ~(last & lift)[:, None] | up[k]
        gone = slice(0, l) if rule.noisy else slice(k, k + 1)
        new[0][:, gone] &= ~sure[:, None]
        rest = own.copy()
        rest[:, gone] = False
        low = _some(own) & ~_some(rest)  # it must not be sure
        for one, certain in zip(new[1:], rules.sure, strict=True):
            one &= ~low[:, None] | ~certain[k]
    return new
