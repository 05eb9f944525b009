r"""Sums of P(evidence) and P(cause, evidence) as functions of one conditional distribution of a network.

Both are straight in all entries of it together: the derivative by P(v = k | parents) is P of the evidence and those
states of the parents if v is held at k, so that a family takes one sum for each state, and gives all of its numbers at
any value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray
from sbnet.exact.answers import exact_posterior
from sbnet.kernels.codes import NOISY_OR
from sbnet.model.conditional import Family
from sbnet.model.gates import sigma
from sbnet.model.network import Network
from sbnet.questions.question import ask_one

_ROWS = 1 << 12
"""Joint states of hidden parents up to which a family is taken as a whole; beyond, each number takes a sum."""


@dataclass(frozen=True, eq=False)
class Sums:
    """ln P(evidence), and the means of the causes, zero where the evidence is impossible."""

    network: Network
    evidence: dict[str, Any]
    causes: list[str]
    limit: int
    log_p: float
    means: FloatArray

    @classmethod
    def of(cls, network: Network, evidence: dict[str, Any], causes: list[str], limit: int) -> Sums:
        """Exact sums for the evidence."""
        found = exact_posterior(network, evidence, units=causes, limit=limit)
        means = np.nan_to_num(np.asarray(found, dtype=np.float64))
        return cls(network, evidence, causes, limit, float(found.log_likelihood), means)

    @property
    def labels(self) -> list[str]:
        """What to call each of the means."""
        titles = []
        for name in self.causes:
            states = self.network.states[name]
            titles += [name] if len(states) == 2 else [f"{name} = {state}" for state in states[1:]]
        return titles

    def at(self, family: Family) -> FloatArray:
        """P(evidence) and P(cause, evidence) with another conditional distribution, over P(evidence) of this one."""
        other = Sums.of(with_family(self.network, family), self.evidence, self.causes, self.limit)
        ratio = math.exp(other.log_p - self.log_p)
        return np.array([ratio, *(ratio * other.means)])

    def likelihood(self, name: str) -> FloatArray:
        """The likelihood of each state of a variable, given what is observed of it."""
        n, seen = len(self.network.states[name]), self.evidence.get(name)
        likelihood: FloatArray = np.ones(n)
        if seen is None:
            return likelihood
        asked = ask_one(self.network, {name: seen}, None)
        state = int(asked.given[0][self.network.index(name)])
        if asked.conditions is not None and asked.conditions.reports[0]:
            likelihood = np.exp(asked.conditions.constant[0]) * sigma(np.array(asked.conditions.reports[0][0].inputs))
        return likelihood if state == HIDDEN else likelihood * (np.arange(n) == state)


def with_family(network: Network, family: Family) -> Network:
    """A network with another conditional distribution of one variable."""
    if family.table is not None:
        return network.with_parameters(tables={family.name: family.table})
    weight = {(u, family.name): block for u, block in zip(family.parents, family.weights, strict=True)}
    return network.with_parameters(bias={family.name: family.bias}, weight=weight)


class Curve(NamedTuple):
    """P(evidence), and then P(cause, evidence) of each cause, over P(evidence) as it is: straight in the entries of one
    conditional distribution. `rows` are joint states of the parents, `gradient` is rows by states of v by those."""

    now: FloatArray
    rows: IndexArray
    gradient: FloatArray
    family: Family

    @classmethod
    def of(cls, now: Sums, family: Family) -> Curve | None:
        """By holding the variable at each of its states; None where its parents have too many states together."""
        above = [now.likelihood(name) for name in family.parents]
        possible = [np.flatnonzero(p) for p in above]
        n = math.prod(len(one) for one in possible)
        few = 16 * (len(family.parents) + 1) if family.gate == NOISY_OR else _ROWS
        if n > few:
            return None
        rows = np.stack([one.ravel() for one in np.meshgrid(*possible, indexing="ij")], axis=1) if above else None
        rows = np.zeros((1, 0), np.int64) if rows is None else rows
        weight = np.prod([p[rows[:, k]] for k, p in enumerate(above)], axis=0) * np.ones(n)
        others = {name: value for name, value in now.evidence.items() if name not in (family.name, *family.parents)}
        named = [
            others | {u: states[s] for u, states, s in zip(family.parents, family.parent_states, row, strict=True)}
            for row in rows.tolist()
        ]
        gradient = np.zeros((n, len(family.states), 1 + len(now.means)))
        for k in np.flatnonzero(now.likelihood(family.name)):
            held = {family.name: family.states[k]}
            found = exact_posterior(now.network, named, do=held, units=now.causes, limit=now.limit, progress=False)
            share = weight * now.likelihood(family.name)[k] * np.exp(found.log_likelihood - now.log_p)
            gradient[:, k, 0] = share
            gradient[:, k, 1:] = share[:, None] * np.nan_to_num(np.asarray(found))
        return cls(np.array([1.0, *now.means]), rows, gradient, family)

    def at(self, other: Family) -> FloatArray:
        """With another distribution of the same variable."""
        return self.now + self.along(other.distribution(self.rows) - self.family.distribution(self.rows))

    def along(self, change: FloatArray) -> FloatArray:
        """How much they change with the entries."""
        moved: FloatArray = np.einsum("rk,rkc->c", change, self.gradient)
        return moved
