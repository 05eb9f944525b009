"""Steps along a gradient. Small frozen records; their state is a tuple of arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from sbnet import checks
from sbnet._types import FloatArray
from sbnet.errors import ParameterError

_SCALE = "give one positive number for each parameter, weights first"


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

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> sb.fit(net, [[1, 1, 1], [0, 0, 0]], epochs=2, optimizer=sb.SGD(0.05, momentum=0.9), rng=0).network.n_units
    3
    """

    rate: float = 0.05
    momentum: float = 0.0
    decay: float = 0.0
    until: int | None = None

    def __post_init__(self) -> None:
        _check_rate(self)
        store_numbers(self, momentum=checks.below_one("momentum", self.momentum))

    def init(self, n: int) -> tuple[FloatArray, ...]:
        """The state before the first step: that of the last one, zero."""
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
    scale : sequence of float
        The unit in which each parameter is measured, weights first, such as the standard deviation of its prior: those
        with wide priors then move faster. All are 1 by default.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> sb.fit(net, [[1, 1, 1], [0, 0, 0]], epochs=2, optimizer=sb.Adam(0.01), rng=0).network.n_units
    3
    """

    rate: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.999
    decay: float = 0.0
    until: int | None = None
    scale: ArrayLike | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_rate(self)
        if self.scale is not None:
            scale = checks.numbers("scale", self.scale, _SCALE)
            if scale.ndim != 1 or not np.all((scale > 0.0) & np.isfinite(scale)):
                raise ParameterError(f"scale is {checks.shown(self.scale)}; {_SCALE}")
            object.__setattr__(self, "scale", scale)
        store_numbers(self, beta1=checks.below_one("beta1", self.beta1), beta2=checks.below_one("beta2", self.beta2))

    def init(self, n: int) -> tuple[FloatArray, ...]:
        """The state before the first step: both averages, and the number of steps."""
        return np.zeros(n), np.zeros(n), np.zeros(1)

    def step(
        self, gradient: FloatArray, state: tuple[FloatArray, ...], epoch: int
    ) -> tuple[FloatArray, tuple[FloatArray, ...]]:
        """The corrected averages, one over the root of the other."""
        unit = 1.0 if self.scale is None else np.asarray(self.scale)
        gradient = unit * gradient
        first = self.beta1 * state[0] + (1.0 - self.beta1) * gradient
        second = self.beta2 * state[1] + (1.0 - self.beta2) * gradient**2
        count = state[2] + 1.0
        after = first, second, count
        move: FloatArray = unit * (first / (1.0 - self.beta1**count) * self._length(after, epoch))
        return move, after

    def size(self, state: tuple[FloatArray, ...], epoch: int) -> FloatArray:
        """The rate of the epoch over the root of the corrected average of squares, in units of the parameters."""
        length = self._length(state, epoch)
        return length if self.scale is None else np.asarray(self.scale) ** 2 * length

    def _length(self, state: tuple[FloatArray, ...], epoch: int) -> FloatArray:
        length: FloatArray = _rate(self, epoch) / (np.sqrt(state[1] / (1.0 - self.beta2 ** state[2])) + 1e-8)
        return length


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
