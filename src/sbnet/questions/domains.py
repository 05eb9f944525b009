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

from typing import NamedTuple

import numpy as np

from sbnet._types import HIDDEN, BoolArray, States
from sbnet.kernels.codes import NOISY_OR
from sbnet.model.network import CERTAIN, Network
from sbnet.parallel.blocks import row_blocks

_ROUNDING = 1e-9  # of certain log-odds that are the sum of a weight and a bias

Domains = list[BoolArray]
"""Of each variable, rows by states: can it have the state?"""


class _Rule(NamedTuple):
    """What one variable rules out: by a table of what is possible, or by thresholds.

    `raises` and `sure` have an array for each parent, thresholds by states: does the state raise the threshold, and
    does it do so without fail?
    """

    variable: int
    parents: list[int]
    noisy: bool
    possible: BoolArray | None
    needs: BoolArray
    always: BoolArray
    raises: list[BoolArray]
    sure: list[BoolArray]


class _Key:
    """Where a network keeps its rules."""


def _rules(network: Network) -> list[_Rule]:
    known: list[_Rule] | None = network._cache.get(_Key)
    if known is None:
        known = network._cache[_Key] = [rule for i in range(network.n_units) if (rule := _rule(network, i)) is not None]
    return known


def _rule(network: Network, i: int) -> _Rule | None:
    """The rule of a variable; None if it rules nothing out."""
    family, none = network.family(i), np.zeros(0, np.bool_)
    parents = [network.index(name) for name in family.parents]
    if family.table is not None:
        possible = family.table > 0.0
        return None if possible.all() else _Rule(i, parents, False, possible, none, none, [], [])
    bias, noisy = family.bias, family.gate == NOISY_OR
    weights = [np.hstack([np.zeros((len(bias), 1)), weight]) for weight in family.weights]
    lowered = np.zeros(len(bias), np.bool_)
    for weight in weights:
        lowered |= (weight < 0.0).any(axis=1)
    needs = bias == (0.0 if noisy else -CERTAIN)
    always = (bias == CERTAIN) & ~lowered
    raises = [weight > 0.0 for weight in weights]
    sure = [
        weight == CERTAIN if noisy else (abs(bias[:, None] + weight - CERTAIN) <= _ROUNDING) & ~lowered[:, None]
        for weight in weights
    ]
    for one in sure:
        one[:, 0] = False  # which is `always`
    if not (needs.any() or always.any() or any(one.any() for one in sure)):
        return None
    return _Rule(i, parents, noisy, None, needs, always, raises, sure)


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
    new = [np.ones_like(one) for one in domains]
    for k in range(len(rule.needs)):
        l = k + 1  # noqa: E741 (the letter of the definition)
        lifts = [(one & up[k]).any(axis=1) for one, up in zip(parents, rule.raises, strict=True)]
        count = np.sum(lifts, axis=0) if lifts else np.zeros(len(own), np.int64)
        sure = np.full(len(own), rule.always[k])
        for one, certain in zip(parents, rule.sure, strict=True):
            sure |= one.any(axis=1) & ~(one & ~certain[k]).any(axis=1)
        if rule.needs[k]:
            gone = slice(l, l + 1) if rule.noisy else slice(l, None)
            new[0][:, gone] &= (count > 0)[:, None]
            rest = own.copy()
            rest[:, gone] = False
            last = (count == 1) & _some(own) & ~_some(rest)  # it must be raised, and one parent can
            for one, lift, up in zip(new[1:], lifts, rule.raises, strict=True):
                one &= ~(last & lift)[:, None] | up[k]
        gone = slice(0, l) if rule.noisy else slice(k, k + 1)
        new[0][:, gone] &= ~sure[:, None]
        rest = own.copy()
        rest[:, gone] = False
        low = _some(own) & ~_some(rest)  # it must not be sure
        for one, certain in zip(new[1:], rule.sure, strict=True):
            one &= ~low[:, None] | ~certain[k]
    return new
