"""Steps along a gradient. Small frozen records; their state is a tuple of arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray


class Optimizer(Protocol):
    """Anything with these two can be given to :func:`sbnet.fit` as `optimizer`."""

    def init(self, n: int) -> tuple[FloatArray, ...]:
        """The state before the first step, for n parameters."""

    def step(
        self, gradient: FloatArray, state: tuple[FloatArray, ...], epoch: int
    ) -> tuple[FloatArray, tuple[FloatArray, ...]]:
        """How far to move the parameters up the gradient, and the new state. Epochs count from 0."""


@dataclass(frozen=True)
class SGD:
    """Gradient ascent, eqs. (25)-(26).

    Parameters
    ----------
    rate : float
        The learning rate η.
    momentum : float
        Share of the last step that is added to the next, from 0 up to, but not including, 1.
    decay : float
        The rate in epoch t, counted from 0, is ``rate / (1 + decay * t)``.
    until : int
        If given, it also falls along a straight line, to nothing after that many epochs: times ``1 - t / until``.
    """

    rate: float = 0.05
    momentum: float = 0.0
    decay: float = 0.0
    until: int | None = None

    def __post_init__(self) -> None:
        _check_rate(self)
        store_numbers(self, momentum=checks.below_one("momentum", self.momentum))

    def init(self, n: int) -> tuple[FloatArray, ...]:
        """The last step."""
        return (np.zeros(n if self.momentum else 0),)

    def step(
        self, gradient: FloatArray, state: tuple[FloatArray, ...], epoch: int
    ) -> tuple[FloatArray, tuple[FloatArray, ...]]:
        """Eqs. (25)-(26), plus a share of the last step."""
        move = _rate(self, epoch) * gradient
        if not self.momentum:
            return move, state
        move += self.momentum * state[0]
        return move, (move,)

    def size(self, state: tuple[FloatArray, ...], epoch: int) -> float:
        """The learning rate of the epoch; with momentum, what all the steps that a gradient takes part in come to."""
        return _rate(self, epoch) / (1.0 - self.momentum)


@dataclass(frozen=True)
class Adam:
    """Steps scaled by running averages of the gradient and of its square (Kingma & Ba, 2015).

    Parameters
    ----------
    rate : float
        About the size of a step in each parameter.
    beta1, beta2 : float
        Memory of the two averages.
    decay : float
        The rate in epoch t, counted from 0, is ``rate / (1 + decay * t)``.
    until : int
        If given, it also falls along a straight line, to nothing after that many epochs: times ``1 - t / until``.
    """

    rate: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.999
    decay: float = 0.0
    until: int | None = None

    def __post_init__(self) -> None:
        _check_rate(self)
        store_numbers(self, beta1=checks.below_one("beta1", self.beta1), beta2=checks.below_one("beta2", self.beta2))

    def init(self, n: int) -> tuple[FloatArray, ...]:
        """Both averages, and the number of steps."""
        return np.zeros(n), np.zeros(n), np.zeros(1)

    def step(
        self, gradient: FloatArray, state: tuple[FloatArray, ...], epoch: int
    ) -> tuple[FloatArray, tuple[FloatArray, ...]]:
        """The corrected averages, one over the root of the other."""
        first = self.beta1 * state[0] + (1.0 - self.beta1) * gradient
        second = self.beta2 * state[1] + (1.0 - self.beta2) * gradient**2
        count = state[2] + 1.0
        after = first, second, count
        move: FloatArray = first / (1.0 - self.beta1**count) * self.size(after, epoch)
        return move, after

    def size(self, state: tuple[FloatArray, ...], epoch: int) -> FloatArray:
        """The rate of the epoch over the root of the corrected average of squares."""
        size: FloatArray = _rate(self, epoch) / (np.sqrt(state[1] / (1.0 - self.beta2 ** state[2])) + 1e-8)
        return size


def _rate(optimizer: SGD | Adam, epoch: int) -> float:
    rate = optimizer.rate / (1.0 + optimizer.decay * epoch)
    return rate if optimizer.until is None else rate * max(0.0, 1.0 - epoch / optimizer.until)


def _check_rate(optimizer: SGD | Adam) -> None:
    rate, decay = checks.positive("rate", optimizer.rate), checks.not_negative("decay", optimizer.decay)
    store_numbers(optimizer, rate=rate, decay=decay)
    if optimizer.until is not None:
        checks.whole("until", optimizer.until, 1)


def store_numbers(record: object, **checked: float) -> None:
    """Fractions and the like as floats, which multiply arrays; plain numbers stay as given, and so do checkpoints."""
    for name, number in checked.items():
        if not isinstance(getattr(record, name), int | float):
            object.__setattr__(record, name, number)


@dataclass(frozen=True)
class InUnitsOfPrior:
    """Adam with each parameter measured in standard deviations of its prior, so that wide ones move faster.

    On held-out training images (three folds, one scan order): 2.6 % errors and a score of -0.4365, against 2.8 % and
    -0.4380 with Adam alone at the same rate.
    """

    adam: Adam
    scale: FloatArray

    def init(self, n: int) -> tuple[FloatArray, ...]:
        """The state of Adam."""
        return self.adam.init(n)

    def step(
        self, gradient: FloatArray, state: tuple[FloatArray, ...], epoch: int
    ) -> tuple[FloatArray, tuple[FloatArray, ...]]:
        """The gradient in the new units, and the step back in the old ones."""
        move, state = self.adam.step(self.scale * gradient, state, epoch)
        return self.scale * move, state
