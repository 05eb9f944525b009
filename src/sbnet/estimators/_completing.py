"""Learning where cells of more than two values are missing: their values are drawn anew before each epoch.

Mean field has no good posterior for units of which only few states are possible. So each row keeps a chain, see
:mod:`sbnet.inference.solvers.block_gibbs`, that follows the network while it learns; the gradient of a row completed by
a draw from the posterior is, on average, that of the log-likelihood of its observed cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sbnet._types import HIDDEN, BoolArray, FloatArray, States
from sbnet.estimators._rows import Rows, columns, place
from sbnet.inference.solvers.block_gibbs import Chains
from sbnet.inference.solvers.completions import informed
from sbnet.inference.solvers.places import BINARY, Place
from sbnet.learning import FitResult, fit
from sbnet.model.network import Network

FIRST, LATER = 5, 2
"""Sweeps of the chains before the first epoch, and before each later one."""


class Resumed:
    """An optimiser that begins in a given state and epoch, and keeps the last state."""

    def __init__(self, optimizer: Any, state: Any, epoch: int) -> None:
        self.optimizer, self.state, self.epoch = optimizer, state, epoch

    def init(self, n: int) -> Any:
        return self.optimizer.init(n) if self.state is None else self.state

    def step(self, gradient: FloatArray, state: Any, epoch: int) -> Any:
        move, self.state = self.optimizer.step(gradient, state, self.epoch + epoch)
        return move, self.state

    @property
    def size(self) -> Any:
        """The size of steps, if the optimiser tells it."""
        size = self.optimizer.size
        return lambda state, epoch: size(state, self.epoch + epoch)


def is_needed(rows: Rows) -> bool:
    """Is a cell of more than two values missing?"""
    names = [group.units[0] for group in rows.groups]
    return bool((rows.cells[:, [rows.names.index(name) for name in names]] == HIDDEN).any())


def learn_completing(
    network: Network,
    rows: Rows,
    stepping: Resumed,
    epochs: int,
    fraction: float | None,
    patience: int | None,
    options: dict[str, Any],
) -> FitResult:
    """Epoch by epoch, with one optimiser for all, from rows completed by draws.

    With a share of rows held out, the best epoch is kept; `options` are those of :func:`sbnet.fit`.
    """
    rng, watched = options["rng"], None
    if fraction is not None:
        rows, out = rows.divide(fraction, rng)
        watched = place(network, out.cells, out.names)
    states, places = place(network, rows.cells, rows.names), _places(network, rows)
    fill = _needed(network, states, places)
    chains = Chains.begin(network, states, places, rng)
    best: FitResult | None = None
    bounds: list[float] = []
    held_out: list[float] = []
    for epoch in range(epochs):
        chains.run(network, rng, LATER if epoch else FIRST)
        stepping.epoch, drawn = epoch, np.where(fill, chains.states, states)
        result = fit(
            network, drawn, epochs=1, optimizer=stepping, validation=watched, sample_weight=rows.weights, **options
        )
        network, bounds = result.network, [*bounds, *result.bounds]
        held_out += [] if result.held_out is None else list(result.held_out)
        if best is None or result.held_out is None or held_out[-1] > max(held_out[:-1], default=-np.inf):
            best = replace(result, best_epoch=epoch + 1)
        if result.interrupted or (patience is not None and epoch + 1 - best.best_epoch >= patience):
            break
    assert best is not None
    return replace(
        best, bounds=np.array(bounds), held_out=np.array(held_out) if held_out else None, interrupted=result.interrupted
    )


def completed(network: Network, states: States, places: Sequence[Place], rng: np.random.Generator) -> States:
    """The rows with their missing cells drawn once, from the posterior that the network has for them."""
    chains = Chains.begin(network, states, places, rng).run(network, rng, FIRST)
    return np.where(_needed(network, states, places), chains.states, states)


def _needed(network: Network, states: States, places: Sequence[Place]) -> BoolArray:
    """Missing cells of columns of which the observed ones tell something; all others may stay missing."""
    found: BoolArray = np.zeros(states.shape, dtype=np.bool_)
    units = np.concatenate([place.units for place in places])
    found[:, units] = (informed(network, states) & (states == HIDDEN))[:, units]
    return found


def _places(network: Network, rows: Rows) -> list[Place]:
    """The columns of the table; which state means which value does not matter here."""
    grouped = {unit for group in rows.groups for unit in group.units}
    places = [Place(name, columns(network, (name,)), BINARY, ("0", "1")) for name in rows.names if name not in grouped]
    for group in rows.groups:
        n = len(group.units)
        codes = np.tri(n + 1, n, -1, dtype=np.int8)
        if not group.is_thermometer:
            codes = np.vstack([np.zeros((1, n), np.int8), np.eye(n, dtype=np.int8)])
        places.append(Place(group.units[0], columns(network, group.units), codes, ()))
    return places
