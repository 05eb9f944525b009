"""Sums over hidden variables of a network by elimination, where its structure makes that cheap."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Protocol

import numpy as np

from sbnet._types import FloatArray, Model, States
from sbnet.exact.elimination import Answers, Likelihoods, Plan, draw, explain, plan, solve
from sbnet.exact.factors import families_of
from sbnet.kernels.codes import NOISY_OR

_LARGEST = 22.0
"""Larger tables, of 32 megabytes and more, are summed in parts: for each joint state of some variables."""


class Numbers(Protocol):
    """The part of a network that sums need."""

    @property
    def model(self) -> Model: ...
    @property
    def bias(self) -> FloatArray: ...
    @property
    def names(self) -> Sequence[str]: ...


def patterns(network: Numbers, states: States) -> list[np.ndarray]:
    """The numbers of rows that one plan serves: the same variables are observed, and the same noisy-OR ones are 0."""
    noisy = network.model.gate == NOISY_OR
    shown = np.where(states < 0, -1, np.where(noisy & (states == 0), 0, 1)).astype(np.int8)
    found = dict[bytes, list[int]]()
    for r, row in enumerate(shown):
        found.setdefault(row.tobytes(), []).append(r)
    return [np.array(rows) for rows in found.values()]


class Sum:
    """The sum of a product of families: those of some variables, for evidence of one pattern.

    Raises
    ------
    TooManyHiddenError
        If the largest table has more than ``2**limit`` numbers.
    """

    def __init__(
        self, network: Numbers, states: States, variables: Iterable[int], limit: float, *, maximum: bool = False,
        soft: Iterable[int] = (),
    ) -> None:  # fmt: skip
        self.network, self.variables, self.maximum, self.soft = network, sorted(variables), maximum, tuple(soft)
        self.plan = self._plan(states, limit)

    def _plan(self, states: States, limit: float) -> Plan:
        model = self.network.model
        by_name = getattr(self.network, "tables", {})
        tables = {self.network.names.index(name): table for name, table in by_name.items()}
        families = families_of(model, self.network.bias, self.variables, tables)
        names, soft, maximum = self.network.names, self.soft, self.maximum
        return plan(families, model.n_states, states, soft=soft, limit=limit, maximum=maximum, names=names)

    def solve(
        self, states: States, wanted: Iterable[int] | None = (), likelihoods: Likelihoods | None = None
    ) -> Answers:
        """ln P of each row, and posteriors of variables, rows by states."""
        asked = [v for v in self.plan.names if v >= 0] if wanted is None else list(wanted)
        soft = likelihoods or {}
        if self.plan.bits <= _LARGEST or soft:
            return solve(self.plan, states, soft, asked)
        rows = [self._in_parts(self.plan, row, asked) for row in states]
        both = {v: np.array([row.posteriors[v] for row in rows]) for v in asked}
        return Answers(np.array([row.log_p[0] for row in rows]), both)

    def explain(self, states: States) -> tuple[FloatArray, States]:
        """The largest ln P of each row, and the state that has it."""
        return explain(self.plan, states)

    def draw(self, row: States, n: int, rng: np.random.Generator) -> States:
        """Samples of the posterior of one row, of a plan that was made with `maximum`."""
        return draw(self.plan, row, n, rng)

    def _in_parts(self, plan: Plan, row: States, asked: list[int]) -> Answers:
        """One row, part by part: for each joint state of variables that the largest tables have in common."""
        cut, n_states = list[int](), self.network.model.n_states
        for _ in range(math.ceil(plan.bits - _LARGEST) + 2):
            widest = [v for v in (plan.names[k] for k in plan.order.widest) if v >= 0]
            if plan.bits <= _LARGEST or not widest:  # a table over accumulators alone stays as it is
                break
            cut.append(max(widest, key=lambda v: sum(plan.names.index(v) in work.joint for work in plan.steps)))
            states = row[None, :].copy()
            states[:, cut] = 1
            plan = self._plan(states, np.inf)
        joint = np.array(list(product(*(range(n_states[v]) for v in cut))), np.int8)
        states = np.repeat(row[None, :], len(joint), axis=0)
        states[:, cut] = joint
        parts = solve(plan, states, wanted=[v for v in asked if v not in cut])
        top = parts.log_p.max()
        weight = np.exp(parts.log_p - (top if top > -np.inf else 0.0))
        total = weight.sum()
        found = dict[int, FloatArray]()
        for v in asked:
            if v in cut:
                shares = np.bincount(joint[:, cut.index(v)], weight, n_states[v])
            else:
                shares = (np.where(weight[:, None] > 0.0, parts.posteriors[v], 0.0) * weight[:, None]).sum(axis=0)
            found[v] = shares / total if total else np.full(n_states[v], np.nan)
        with np.errstate(divide="ignore"):
            return Answers(np.array([top + np.log(total)]), found)
