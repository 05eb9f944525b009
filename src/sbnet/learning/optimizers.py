"""Steps along a gradient, and priors on the parameters. Small frozen records; their state is a tuple of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray
from sbnet.errors import ParameterError


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
        _check_rate(self.rate, self.decay, self.until)
        checks.below_one("momentum", self.momentum)

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
        _check_rate(self.rate, self.decay, self.until)
        checks.below_one("beta1", self.beta1)
        checks.below_one("beta2", self.beta2)

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
        rate = _rate(self, epoch)
        scale = np.sqrt(second / (1.0 - self.beta2**count)) + 1e-8
        move: FloatArray = rate * first / (1.0 - self.beta1**count) / scale
        return move, (first, second, count)


@dataclass(frozen=True)
class _Prior:
    """What the priors have in common; `_pull` is the slope of the logarithm of their density."""

    scale: float | Sequence[float] = 1.0
    bias_scale: float = np.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _scales(self.scale, self.bias_scale))

    @cached_property
    def _weight_scale(self) -> FloatArray:
        return np.asarray(self.scale, dtype=np.float64)

    def slope(self, weight: FloatArray, bias: FloatArray) -> FloatArray:
        """The gradient of the logarithm of the prior, weights first."""
        _check_length(self._weight_scale, weight)
        return np.concatenate([self._pull(weight, self._weight_scale), self._pull(bias, self.bias_scale)])

    @staticmethod
    def _pull(values: FloatArray, scale: FloatArray | float) -> FloatArray:
        raise NotImplementedError


@dataclass(frozen=True)
class Gaussian(_Prior):
    """A Gaussian prior with mean zero on every weight, and on every bias if asked (footnote 6 of the paper).

    Parameters
    ----------
    scale : float or sequence of float
        Standard deviation of the weights: one for all, or one for each edge, in the order of ``network.weight``.
    bias_scale : float
        Standard deviation of the biases; infinite by default, which leaves them free.
    """

    @staticmethod
    def _pull(values: FloatArray, scale: FloatArray | float) -> FloatArray:
        return -values / scale**2


@dataclass(frozen=True)
class Laplace(_Prior):
    """A Laplace prior with mean zero, which pulls weak weights to zero.

    Parameters
    ----------
    scale : float or sequence of float
        Mean size of the weights: one for all, or one for each edge, in the order of ``network.weight``.
    bias_scale : float
        Mean size of the biases; infinite by default, which leaves them free.
    """

    @staticmethod
    def _pull(values: FloatArray, scale: FloatArray | float) -> FloatArray:
        pull: FloatArray = -np.sign(values) / scale
        return pull


def _rate(optimizer: SGD | Adam, epoch: int) -> float:
    rate = optimizer.rate / (1.0 + optimizer.decay * epoch)
    return rate if optimizer.until is None else rate * max(0.0, 1.0 - epoch / optimizer.until)


def _check_rate(rate: float, decay: float, until: int | None) -> None:
    checks.positive("rate", rate)
    checks.not_negative("decay", decay)
    if until is not None and not until >= 1:
        raise ParameterError(f"until is {until!r}; it must be a number of epochs, one or more")


def _scales(scale: float | Sequence[float], bias_scale: float) -> float | tuple[float, ...]:
    """Checked scales of the weights; many of them as a tuple, so that the record stays frozen."""
    found = np.asarray(scale, dtype=np.float64)
    bad = found[~(found > 0.0)] if found.ndim else found[None][~(found[None] > 0.0)]
    if found.ndim > 1 or bad.size or not bias_scale > 0.0:
        wrong = bad.tolist()[0] if bad.size else scale
        raise ParameterError(f"the scales of a prior are positive; got {wrong!r} and {bias_scale!r}")
    return tuple(found.tolist()) if found.ndim else float(found)


def _check_length(scale: FloatArray, weight: FloatArray) -> None:
    if scale.ndim and scale.shape != weight.shape:
        raise ParameterError(f"the prior has {len(scale)} scales, but the network has {len(weight)} edges")
