r"""Priors on weights and biases, all of them one penalty: an elastic net around a point.

.. math:: -\ln p(x) = \lambda_1 |x - c| + \tfrac12 \lambda_2 (x - c)^2 + \text{const}

A Gaussian prior has :math:`\lambda_2 = 1 / \text{scale}^2`, a Laplace prior :math:`\lambda_1 = 1 / \text{scale}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sbnet import checks
from sbnet._types import BoolArray, FloatArray
from sbnet.errors import ParameterError
from sbnet.learning.optimizers import store_numbers

_SCALE = "the scales of a prior are positive: give one number"
_LARGEST = np.finfo(float).max


class Part(NamedTuple):
    """A number for the weights, or one for each edge, and a number for the biases, or one for each unit."""

    weight: FloatArray | float = 0.0
    bias: FloatArray | float = 0.0

    def together(self, weight: FloatArray, bias: FloatArray) -> FloatArray | float:
        """One number for each parameter, weights first, or one for all."""
        if np.ndim(self.weight) == np.ndim(self.bias) == 0 and self.weight == self.bias:
            return float(self.bias)
        if np.ndim(self.weight) and np.shape(self.weight) != weight.shape:
            raise ParameterError(
                f"the prior has {np.size(self.weight)} scales, but the network has {len(weight)} edges"
            )
        return np.concatenate([np.broadcast_to(self.weight, weight.shape), np.broadcast_to(self.bias, bias.shape)])


_ZERO = Part()


@dataclass(frozen=True, eq=False)
class Penalty:
    """What the distance of each parameter from `centre` costs: `l1` times its size, and `l2` times half its square."""

    l1: Part = _ZERO
    l2: Part = _ZERO
    centre: Part = _ZERO

    def __add__(self, other: Penalty) -> Penalty:
        """Both at once, around the centre of the first. L1 and L2 together are an elastic net: many weights are zero,
        none is very large, and parents that say the same share what is to be said.
        """
        return replace(self, l1=_map(np.add, self.l1, other.l1), l2=_map(np.add, self.l2, other.l2))

    def times(self, factor: float) -> Penalty:
        return replace(self, l1=_map(np.multiply, self.l1, factor), l2=_map(np.multiply, self.l2, factor))

    def around(self, weight: FloatArray, bias: FloatArray) -> Penalty:
        return replace(self, centre=Part(weight, bias))

    @property
    def is_sparse(self) -> bool:
        """Does it have an L1 term, under which parameters come to rest at their centre?"""
        return bool(np.any(self.l1.weight) or np.any(self.l1.bias))

    def gradient(self, weight: FloatArray, bias: FloatArray, *, smooth: bool = False) -> FloatArray:
        """The gradient of the logarithm of the prior, weights first; with `smooth`, of its L2 term alone."""
        distance = np.concatenate([weight, bias]) - self.centre.together(weight, bias)
        gradient: FloatArray = -self.l2.together(weight, bias) * distance
        return gradient if smooth else gradient - self.l1.together(weight, bias) * np.sign(distance)

    def shrunk(self, weight: FloatArray, bias: FloatArray, step: FloatArray | float) -> FloatArray:
        """Parameters after a proximal step of that size along the L1 term; none goes beyond its centre."""
        values = np.concatenate([weight, bias])
        distance = values - self.centre.together(weight, bias)
        reach = np.minimum(step * self.l1.together(weight, bias), np.abs(distance))
        return values - np.copysign(reach, distance)


def _map(operation: Any, part: Part, other: Any) -> Part:
    weight, bias = other if isinstance(other, Part) else (other, other)
    return Part(operation(part.weight, weight), operation(part.bias, bias))


@dataclass(frozen=True)
class _Prior:
    """What the two priors have in common; many scales are kept as a tuple, so that the record stays frozen."""

    scale: float | Sequence[float] = 1.0
    bias_scale: float = np.inf
    _power: ClassVar[float]

    def __post_init__(self) -> None:
        found = checks.numbers("scale", self.scale, f"{_SCALE}, or one for each edge")
        bad = found[~(found > 0.0)]
        if found.ndim > 1 or bad.size:
            wrong = f"{bad[0]} among its numbers" if bad.size and found.ndim else checks.shown(self.scale)
            raise ParameterError(f"scale is {wrong}; {_SCALE}, or one for each edge")
        object.__setattr__(self, "scale", tuple(found.tolist()) if found.ndim else float(found))
        bias_scale = checks.positive_or_infinite("bias_scale", self.bias_scale, _SCALE)
        store_numbers(self, bias_scale=bias_scale)

    @cached_property
    def penalty(self) -> Penalty:
        """The prior as a penalty: L2 alone of a Gaussian one, L1 alone of a Laplace one."""
        with np.errstate(over="ignore", divide="ignore"):  # of a scale next to zero
            weight = np.minimum(np.asarray(self.scale, dtype=np.float64) ** -self._power, _LARGEST)
            strength = Part(weight, float(np.minimum(np.float64(self.bias_scale) ** -self._power, _LARGEST)))
        return Penalty(l1=strength) if self._power == 1.0 else Penalty(l2=strength)

    def gradient(self, weight: FloatArray, bias: FloatArray) -> FloatArray:
        """The gradient of the logarithm of the prior, weights first."""
        return self.penalty.gradient(weight, bias)


@dataclass(frozen=True)
class Gaussian(_Prior):
    """A Gaussian prior with mean zero on every weight, and on every bias if asked (footnote 6 of the paper).

    Parameters
    ----------
    scale : float or sequence of float
        Standard deviation of the weights: one for all, or one for each edge, in the order of ``network.weight``.
    bias_scale : float
        Standard deviation of the biases; infinite by default, which leaves them free.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> sb.fit(net, [[1, 1, 1], [0, 0, 0]], epochs=2, prior=sb.Gaussian(1.0), rng=0).network.n_units
    3
    """

    _power: ClassVar[float] = 2.0


@dataclass(frozen=True)
class Laplace(_Prior):
    """A Laplace prior with mean zero: where the data ask for little, weights are exactly zero.

    :func:`sbnet.fit` takes a step along the gradient of the bound and then draws each weight towards zero by what the
    prior asks, but not beyond it (a proximal step).

    Parameters
    ----------
    scale : float or sequence of float
        Mean size of the weights: one for all, or one for each edge, in the order of ``network.weight``.
    bias_scale : float
        Mean size of the biases; infinite by default, which leaves them free.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> sb.fit(net, [[1, 1, 1], [0, 0, 0]], epochs=2, prior=sb.Laplace(0.5), rng=0).network.n_units
    3
    """

    _power: ClassVar[float] = 1.0


def as_penalty(prior: Any) -> Penalty | None:
    """The penalty of a prior, or None; refuses what is no prior."""
    checks.no_class("prior", prior)
    if prior is None or isinstance(prior, Penalty):
        return prior
    if not isinstance(prior, _Prior):
        raise ParameterError(f"prior is {checks.shown(prior)}; give a prior, such as sbnet.Gaussian(1.0)")
    return prior.penalty


def by_edge(chosen: BoolArray, prior: Any, other: Any) -> Penalty:
    """`prior` on the chosen edges, `other` on all the rest and on the biases; None is no prior."""
    one, rest = as_penalty(prior) or Penalty(), as_penalty(other) or Penalty()
    parts = zip((one.l1, one.l2, one.centre), (rest.l1, rest.l2, rest.centre), strict=True)
    return Penalty(*(Part(np.where(chosen, a.weight, b.weight), b.bias) for a, b in parts))
