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
from sbnet.learning.priors import Both
from sbnet.learning.regressions import TOL, Design, Regressions, regress_columns
from sbnet.model.network import Network

SWITCHING = 0.5
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

    def penalty(self, coefficient: FloatArray) -> FloatArray:
        """What each weight costs, after its size in an earlier solution."""
        share = HALF / (HALF + np.abs(coefficient)) if self.adaptive else np.ones(len(coefficient))
        return share / self.autoregressive

    def ridge(self, n: int) -> FloatArray:
        """What half the square of each weight costs."""
        return np.full(n, self.spread**-2.0)

    def prior(self, network: Network, names: tuple[str, ...]) -> Any:
        """The prior on the weights of a network; parents of a mixture variable may be others than those of its column,
        so their scale is at least `SWITCHING`.
        """
        scale, column = 1.0 / self.penalty(network.weight), np.zeros(network.n_units, dtype=np.bool_)
        column[columns(network, names)] = True
        into, beside = column[network.graph.child_of_edge], column[network.graph.parent]
        scale = np.where(beside, np.where(into, scale, np.maximum(scale, SWITCHING)), self.hidden)
        sparse = Laplace(scale.tolist()) if len(scale) else Laplace(self.hidden)
        if np.isinf(self.spread):
            return sparse
        return Both(sparse, Gaussian(np.where(beside & into, self.spread, np.inf).tolist()))


@dataclass(frozen=True, eq=False)
class Autoregressive:
    """A table, and the coefficients of its columns that were found last."""

    rows: Rows
    design: Design
    coefficients: list[FloatArray]

    def solved(self, scales: Scales, threads: int | None, tol: float = NEARLY) -> Autoregressive:
        """The best coefficients under these scales, from those that are there."""

        def penalty(k: int) -> FloatArray:
            return scales.penalty(self.coefficients[k][:-1])

        found = regress_columns(
            self.design, penalty, ridge=scales.ridge, start=self.coefficients, threads=threads, tol=tol
        )
        return replace(self, coefficients=found.coefficients)

    def weights(self) -> tuple[scipy.sparse.csr_array, FloatArray]:
        """Columns by columns, only what is not zero; and biases."""
        return Regressions(self.design, self.coefficients).weights()


def first_of(rows: Rows) -> Autoregressive:
    """No weights yet."""
    design = Design.of(rows.cells, rows.weights)
    return Autoregressive(rows, design, design.alone())


def refitted(autoregressive: Autoregressive, rows: Rows, scales: Scales, threads: int | None) -> Autoregressive:
    """Regressions of other rows, under the penalties of these."""
    whole = first_of(rows)
    if np.array_equal(whole.design.turned, autoregressive.design.turned):
        whole = replace(whole, coefficients=autoregressive.coefficients)
    if scales.before is not None:
        whole = whole.solved(Scales(scales.before), threads, TOL)
    return whole.solved(scales, threads, TOL)


@dataclass(frozen=True, eq=False)
class Drawn:
    """A table behind hidden units that were drawn from their posteriors, and are columns like others, before all of
    them: autoregressive edges are then for what hidden units leave.
    """

    rows: Rows
    design: Design
    bias: FloatArray
    coefficients: list[FloatArray]

    @classmethod
    def of(
        cls,
        settings: Settings,
        rows: Rows,
        network: Network,
        rng: np.random.Generator,
        before: Autoregressive | Drawn | None = None,
    ) -> Drawn:
        """By a network of the same rows; coefficients of columns may start from those of other regressions of them."""
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
        return cls(rows, design, np.log(share / (1.0 - share)), start)

    def solved(self, scales: Scales, threads: int | None) -> Drawn:
        """The best coefficients under these scales, from those that are there."""
        n = len(self.bias)

        def penalty(k: int) -> FloatArray:
            return np.concatenate([np.full(n, 1.0 / scales.hidden), np.full(k, 1.0 / scales.autoregressive)])

        def ridge(k: int) -> FloatArray:
            return np.concatenate([np.zeros(n), scales.ridge(k)])

        found = regress_columns(self.design, penalty, ridge=ridge, start=self.coefficients, threads=threads, tol=NEARLY)
        return replace(self, coefficients=found.coefficients)

    def network(self) -> Network:
        """Hidden units, and columns with the parents that were found."""
        weights, bias = Regressions(self.design, self.coefficients).weights()
        return _learning.assembled(self.rows, weights, bias, self.bias)
