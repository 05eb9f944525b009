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
from sbnet.inference import MeanField, Solution, infer_many
from sbnet.model.network import Network

_ROWS, _RIDGE, _SURE = 4_000, 1.0, 0.01
"""Rows to learn from, the weight of the penalty, and how far from 0 and 1 means are taken to be."""


@dataclass(frozen=True, eq=False)
class Recognition:
    """A solver with a second start: logits of the means of hidden units, linear in the cells (+1, -1, or 0 if missing).

    Attributes
    ----------
    units : ndarray of int
        The hidden units.
    weight : ndarray
        Hidden units by all units and one, for the intercept.
    """

    units: IndexArray
    weight: FloatArray

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """Solve every row from one half and from what cells say, and keep the better answer of each."""
        plain = _learning.SOLVER.solve(network, states, start=start, trace=trace)
        if trace or start is not None:
            return plain
        means = np.full(states.shape, 0.5)
        means[:, self.units] = 1.0 / (1.0 + np.exp(-np.clip(_signs(states) @ self.weight.T, -5.0, 5.0)))
        predicted = _learning.SOLVER.solve(network, states, start=means, trace=False)
        return plain.where(predicted.bound > plain.bound, predicted)


def learn(settings: Settings, network: Network, n_hidden: int, rows: Rows) -> Recognition | None:
    """Least squares on the means of some rows, solved from several starts; None where no unit is hidden."""
    if not n_hidden:
        return None
    step = max(1, len(rows.cells) // _ROWS)
    some, share = place(network, rows.cells[::step], rows.names), rows.weights[::step, None]
    several = MeanField(_learning.SOLVER.log_term, _learning.SOLVER.tol, restarts=3)
    solver = _learning.solver_for(settings, network, rows.names, several)
    if isinstance(settings.solver, MeanField):
        solver = MeanField(settings.solver.log_term, settings.solver.tol, restarts=3)
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
