"""Where scoring starts: a prediction of the hidden units from the cells of a row, learned with the network.

Mean field equations have several solutions. Learning follows each row from one epoch to the next and stays in a good
one; a row that is scored afresh starts at one half, and may end in another. So it is solved twice, from one half and
from what cells say about hidden units, and the better bound counts; both are rigorous.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.estimators import _learning
from sbnet.estimators._rows import Rows, place
from sbnet.estimators.settings import Settings
from sbnet.inference import DifferentiableSolver, MeanField, Solution, infer_many
from sbnet.model.network import Network

_ROWS, _RIDGE, _SURE = 4_000, 1.0, 0.01
"""Rows to learn from, the weight of the penalty, and how far from 0 and 1 means are taken to be."""


@dataclass(frozen=True, eq=False)
class Recognition:
    """Logits of the means of hidden units, linear in the cells: +1, -1, or 0 where a cell is missing.

    Attributes
    ----------
    units : ndarray of int
        The hidden units.
    weight : ndarray
        Hidden units by all units and one, for the intercept.
    """

    units: IndexArray
    weight: FloatArray

    def start(self, states: States) -> FloatArray:
        """Means to start from, rows by units; one half where nothing is known."""
        means = np.full(states.shape, 0.5)
        means[:, self.units] = 1.0 / (1.0 + np.exp(-np.clip(_signs(states) @ self.weight.T, -5.0, 5.0)))
        return means


def learn(settings: Settings, network: Network, n_hidden: int, rows: Rows) -> Recognition | None:
    """Least squares on the means of some rows, solved from several starts; None where no unit is hidden."""
    if not n_hidden:
        return None
    step = max(1, len(rows.cells) // _ROWS)
    some, share = place(network, rows.cells[::step], rows.names), rows.weights[::step, None]
    plain = _learning.solver(settings)
    other = MeanField(plain.log_term, plain.tol, restarts=3) if isinstance(plain, MeanField) else plain
    solver = _learning.solver_for(settings, network, rows.names, other)
    found = infer_many(network, some, solver=solver, threads=_learning.threads(settings), progress=False)
    units = np.arange(n_hidden)
    means = np.clip(found.means[:, units], _SURE, 1.0 - _SURE)
    x = _signs(some)
    gram = x.T @ (share * x) + _RIDGE * np.eye(x.shape[1])
    weight: FloatArray = np.linalg.solve(gram, x.T @ (share * np.log(means / (1.0 - means)))).T.astype(np.float64)
    return Recognition(units, weight)


def _signs(states: States) -> FloatArray:
    signs = np.where(states == HIDDEN, 0.0, 2.0 * states - 1.0)
    return np.concatenate([signs, np.ones((len(states), 1))], axis=1)


@dataclass(frozen=True, eq=False)
class Recognising:
    """A solver that starts from what a recognition says, too, and keeps the better answer of each row."""

    solver: DifferentiableSolver
    recognition: Recognition

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """Solve every row twice."""
        plain = self.solver.solve(network, states, start=start, trace=trace)
        if trace or start is not None:
            return plain
        predicted = self.solver.solve(network, states, start=self.recognition.start(states), trace=False)
        return plain.where(predicted.bound > plain.bound, predicted)
