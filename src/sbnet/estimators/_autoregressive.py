"""The autoregressive weights of a density, by regressions: their scales, their starts, and hidden units as columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from sbnet._types import FloatArray, States
from sbnet.estimators import _learning
from sbnet.estimators._rows import Rows, columns, place
from sbnet.estimators.settings import Settings
from sbnet.inference import infer_many
from sbnet.learning import Gaussian, Laplace
from sbnet.learning.regressions import TOL, Design, Regressions, regress_columns
from sbnet.model.build import layered
from sbnet.model.graph import Graph
from sbnet.model.network import Network

TO_MIXTURES = 0.5
"""The least scale of the weights from columns to mixture variables."""
HIDDEN_SCALE = 2.0
"""The scale of the weights from hidden units, until another is found better."""
NEARLY = 1e-5
"""As long as scales are compared, and where other learning follows, regressions are solved to so many nats a row."""
HALF = 0.5
"""With scales of their own, a weight of this size is penalised half as much as one near zero."""


@dataclass(frozen=True)
class Scales:
    """The scale of the Laplace prior on autoregressive weights; the scale under which their sizes were found, if each
    weight has a scale of its own (an adaptive lasso); the scale of the weights from hidden units; and the standard
    deviation of autoregressive weights under a Gaussian prior beside the other (an elastic net).
    """

    autoregressive: float
    before: float | None = None
    hidden: float = HIDDEN_SCALE
    spread: float = np.inf

    @property
    def first(self) -> float:
        """The scale to begin with."""
        return self.autoregressive if self.before is None else self.before

    @property
    def adaptive(self) -> bool:
        """Has each weight a scale of its own?"""
        return self.before is not None

    def __str__(self) -> str:
        strong = " (adaptive lasso)" if self.adaptive else ""
        if np.isfinite(self.spread):
            strong = f" (elastic net, Gaussian scale {self.spread:.3g})"
        edges = f"scale {self.autoregressive:.3g} for autoregressive edges{strong}"
        return f"Laplace prior, {edges}, {self.hidden:.3g} for hidden ones"

    def penalty(self, coefficient: FloatArray) -> FloatArray:
        """What each weight costs, after its size in an earlier solution."""
        share = HALF / (HALF + np.abs(coefficient)) if self.adaptive else np.ones(len(coefficient))
        return share / self.autoregressive

    def prior(self, network: Network, names: tuple[str, ...]) -> Any:
        """The prior on the weights of a network; parents of a mixture variable may be others than those of its column,
        so their scale is at least `TO_MIXTURES`.
        """
        scale, column = 1.0 / self.penalty(network.weight), np.zeros(network.n_units, dtype=np.bool_)
        column[columns(network, names)] = True
        into, beside = column[network.graph.child_of_edge], column[network.graph.parent]
        scale = np.where(beside, np.where(into, scale, np.maximum(scale, TO_MIXTURES)), self.hidden)
        sparse = Laplace(scale.tolist()) if len(scale) else Laplace(self.hidden)
        if np.isinf(self.spread):
            return sparse
        return sparse.penalty + Gaussian(np.where(beside & into, self.spread, np.inf).tolist()).penalty


@dataclass(frozen=True, eq=False)
class Autoregressive:
    """Regressions of the columns of a table on those before them, and the coefficients that were found last.

    Before all columns there may be hidden units, drawn from their posteriors, with these biases: the edges between
    columns are then for what hidden units leave. With `every` above one, only so many columns are regressed: enough of
    a wide table to compare scales by.
    """

    rows: Rows
    design: Design
    coefficients: list[FloatArray]
    hidden_bias: FloatArray
    every: int = 1

    @classmethod
    def of(cls, rows: Rows, every: int = 1) -> Autoregressive:
        """No weights yet."""
        design = Design.of(rows.cells, rows.weights)
        return cls(rows, design, design.alone(), np.empty(0), every)

    @classmethod
    def behind(
        cls,
        settings: Settings,
        rows: Rows,
        network: Network,
        rng: np.random.Generator,
        before: Autoregressive | None = None,
    ) -> Autoregressive:
        """Behind the hidden units of a network; coefficients of columns may start from those of other regressions."""
        states, own = place(network, rows.cells, rows.names), columns(network, rows.names)
        solver = _learning.solver_for(settings, network, rows.names)
        found = infer_many(network, states, solver=solver, threads=_learning.threads(settings), progress=False)
        hidden = np.setdiff1d(np.arange(network.n_units), own)
        n, means = len(hidden), found.means[:, hidden]
        drawn: States = (rng.random(means.shape) < means).astype(np.int8)
        design = Design.of(np.concatenate([drawn, rows.cells], axis=1), rows.weights, first=n)
        share = np.clip(np.average(means, axis=0, weights=rows.weights), 1e-3, 1.0 - 1e-3)
        start = design.alone()
        if before is not None and np.array_equal(before.design.turned[before.design.first :], design.turned[n:]):
            start = [np.concatenate([np.zeros(n), c[before.design.first :]]) for c in before.coefficients]
        return cls(rows, design, start, np.log(share / (1.0 - share)))

    def solved(self, scales: Scales, threads: int | None, tol: float = NEARLY) -> Autoregressive:
        """The best coefficients under these scales, from those that are there."""
        n = len(self.hidden_bias)

        def penalty(k: int) -> FloatArray:
            return np.concatenate([np.full(n, 1.0 / scales.hidden), scales.penalty(self.coefficients[k][n:-1])])

        def ridge(k: int) -> FloatArray:
            return np.concatenate([np.zeros(n), np.full(k, scales.spread**-2.0)])

        how: dict[str, Any] = {"threads": threads, "tol": tol, "every": self.every}
        found = regress_columns(self.design, penalty, ridge=ridge, start=self.coefficients, **how)
        return replace(self, coefficients=found.coefficients)

    def refitted(self, rows: Rows, scales: Scales, threads: int | None) -> Autoregressive:
        """Regressions of other rows of the same table, under these scales."""
        whole = Autoregressive.of(rows)
        if np.array_equal(whole.design.turned, self.design.turned):
            whole = replace(whole, coefficients=self.coefficients)
        if scales.before is not None:
            whole = whole.solved(Scales(scales.before), threads, TOL)
        return whole.solved(scales, threads, TOL)

    def weights(self) -> tuple[scipy.sparse.csr_array, FloatArray]:
        """Columns by hidden units and columns, only what is not zero; and biases."""
        return Regressions(self.design, self.coefficients).weights()

    def network(self) -> Network:
        """Hidden units without parents, and columns whose parents are those that have a weight."""
        (weights, bias), n = self.weights(), len(self.hidden_bias)
        graph = Graph(np.concatenate([np.zeros(n, np.int64), weights.indptr]), weights.indices)
        names = (*layered((n, 1)).names[:n], *self.rows.names)
        return Network(names, graph, weights.data, np.concatenate([self.hidden_bias, bias]))
