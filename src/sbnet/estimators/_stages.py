"""Stages of learning: some epochs each, at a rate that falls to nothing and is lower from one to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray
from sbnet.estimators import _learning
from sbnet.estimators._autoregressive import Scales
from sbnet.estimators._priors import is_auto, is_autoregressive
from sbnet.estimators._rows import Rows
from sbnet.learning import Adam, FitResult
from sbnet.model.network import Network

if TYPE_CHECKING:
    from sbnet.estimators.density import SBNDensity

RATE, GENTLE = 0.1, 0.03
"""The rate of the first stage, and a gentle one."""
MOST = 8
"""Stages, as long as held-out bounds rise."""
_SLOW, _SLOWER = 0.3, 0.1  # how much slower autoregressive weights go in either: they start where they belong
_FEW, _MANY, _MOST = 8, 12, 20  # epochs of a stage, from and to; and the most over all rows
_LAST = 6  # the number of a stage that goes at the rate of the last one, over all rows
_LEAST, _ENOUGH = 400, 1_000  # steps of a stage, at least, and those after which no more epochs are needed
_LONG = 180_000  # rows in all that the last epochs go over, if there are at least two of them


def stage(
    density: SBNDensity,
    rows: Rows,
    scales: Scales,
    network: Network,
    generator: np.random.Generator,
    *,
    epochs: int,
    number: int,
    rate: float,
) -> Network:
    """One stage, from a network."""
    return _climb(density, rows, scales, network, generator, epochs, number, rate, quiet=True).network


def stage_epochs(density: SBNDensity, rows: Rows, number: int, rate: float) -> int:
    """Epochs of a stage; the first of a gentle rate has twice as many."""
    auto = min(max(_FEW, -(-_ENOUGH // _steps(density, rows))), _MANY)
    return _epochs(density, rows, auto) * (2 if rate == GENTLE and number == 1 else 1)


def last_stage(
    density: SBNDensity, rows: Rows, scales: Scales, network: Network, generator: np.random.Generator, rate: float
) -> FitResult:
    """The one over all rows: as many epochs as were asked for, or few, the fewer the longer the table."""
    if is_auto(density.epochs):
        epochs = _epochs(density, rows, max(2, min(_MOST, round(_LONG / max(len(rows.cells), 1)))))
    else:
        epochs = checks.whole("epochs", density.epochs, 1)
    return _climb(density, rows, scales, network, generator, epochs, _LAST, rate, quiet=False)


def _epochs(density: SBNDensity, rows: Rows, auto: int) -> int:
    """So many, or more for small tables; no more than were asked for."""
    if is_auto(density.epochs):
        return max(auto, -(-_LEAST // _steps(density, rows)))
    return min(auto, checks.whole("epochs", density.epochs, 1))


def _steps(density: SBNDensity, rows: Rows) -> int:
    """Of one epoch."""
    return max(-(-len(rows.cells) // max(density.batch_size, 1)), 1)


def _climb(
    density: SBNDensity,
    rows: Rows,
    scales: Scales,
    network: Network,
    generator: np.random.Generator,
    epochs: int,
    number: int,
    rate: float,
    quiet: bool,
) -> FitResult:
    autoregressive = is_autoregressive(network, rows.names)
    slow = _SLOW if rate == RATE else _SLOWER
    factor = np.concatenate([np.where(autoregressive, slow, 1.0), np.ones(network.n_units)])
    ours = density.optimizer == "adam" and is_auto(density.learning_rate)
    stepping = _Paced(rate / number, epochs, factor) if ours else _learning.optimizer(density, until=epochs)
    prior = scales.prior(network, rows.names)
    return _learning.learn(
        density, network, rows, generator, epochs=epochs, prior=prior, stepping=stepping, quiet=quiet
    )


@dataclass(frozen=True, eq=False)
class _Paced:
    """Adam, at a pace of its own for each parameter."""

    rate: float
    until: int
    factor: FloatArray

    @property
    def _adam(self) -> Adam:
        return Adam(self.rate, until=self.until)

    def init(self, n: int) -> tuple[FloatArray, ...]:
        return self._adam.init(n)

    def step(self, gradient: FloatArray, state: tuple[FloatArray, ...], epoch: int) -> Any:
        move, state = self._adam.step(gradient, state, epoch)
        return move * self.factor, state

    def size(self, state: tuple[FloatArray, ...], epoch: int) -> FloatArray:
        return self._adam.size(state, epoch) * self.factor
