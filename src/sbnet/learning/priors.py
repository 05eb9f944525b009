"""Priors that are made of others: one for each group of edges, two at once, a share of one, or one around a point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.learning.optimizers import Shrinking


@dataclass(frozen=True, eq=False)
class ByEdge:
    """A prior for each group of edges.

    Parameters
    ----------
    parts : tuple
        Priors, or None for none. Biases have the first.
    group : ndarray of int
        The place among `parts` of the prior of each edge.
    """

    parts: tuple[Any, ...]
    group: IndexArray

    def slope(self, weight: FloatArray, bias: FloatArray) -> FloatArray:
        """The gradient of the logarithm of the prior, weights first."""
        return self._gather(lambda part: part.slope(weight, bias), np.zeros(len(weight) + len(bias)))

    def smooth(self, weight: FloatArray, bias: FloatArray) -> FloatArray:
        """The same for those parts that do not shrink."""
        zero = np.zeros(len(weight) + len(bias))
        return self._gather(
            lambda p: p.smooth(weight, bias) if isinstance(p, Shrinking) else p.slope(weight, bias), zero
        )

    def shrunk(self, weight: FloatArray, bias: FloatArray, step: FloatArray) -> FloatArray:
        """Weights and biases after a step along those parts that shrink."""
        values = np.concatenate([weight, bias])
        return self._gather(lambda p: p.shrunk(weight, bias, step) if isinstance(p, Shrinking) else values, values)

    def _gather(self, answer: Any, none: FloatArray) -> FloatArray:
        found, place = none.copy(), np.concatenate([self.group, np.zeros(len(none) - len(self.group), np.int64)])
        for number, part in enumerate(self.parts):
            own = place == number
            if part is not None and own.any():
                found[own] = answer(part)[own]
        return found

    def __repr__(self) -> str:
        return f"ByEdge({self.parts!r})"


@dataclass(frozen=True)
class Both:
    """Two priors on the same weights, one that shrinks and one that does not.

    A Laplace prior and a Gaussian one are an elastic net: many weights are zero, none is very large, and parents that
    say the same share what is to be said.
    """

    shrinking: Any
    other: Any

    def slope(self, weight: FloatArray, bias: FloatArray) -> FloatArray:
        """The sum of their gradients."""
        slope: FloatArray = self.shrinking.slope(weight, bias) + self.other.slope(weight, bias)
        return slope

    def smooth(self, weight: FloatArray, bias: FloatArray) -> FloatArray:
        """The gradient of the one that does not shrink, and of what the other leaves."""
        slope: FloatArray = self.shrinking.smooth(weight, bias) + self.other.slope(weight, bias)
        return slope

    def shrunk(self, weight: FloatArray, bias: FloatArray, step: FloatArray) -> FloatArray:
        """A step along the one that shrinks."""
        values: FloatArray = self.shrinking.shrunk(weight, bias, step)
        return values


@dataclass(frozen=True)
class Shared:
    """A share of a prior: rows that come by parts take the prior by parts."""

    prior: Any
    share: float

    def slope(self, weight: FloatArray, bias: FloatArray) -> FloatArray:
        """Its share of the gradient."""
        slope: FloatArray = self.share * self.prior.slope(weight, bias)
        return slope


@dataclass(frozen=True)
class SharedShrinking(Shared):
    """A share of a prior that shrinks."""

    def smooth(self, weight: FloatArray, bias: FloatArray) -> FloatArray:
        """Its share of the gradient of what does not shrink."""
        slope: FloatArray = self.share * self.prior.smooth(weight, bias)
        return slope

    def shrunk(self, weight: FloatArray, bias: FloatArray, step: FloatArray) -> FloatArray:
        """A shorter step."""
        values: FloatArray = self.prior.shrunk(weight, bias, self.share * step)
        return values


@dataclass(frozen=True, eq=False)
class Around:
    """A prior that draws to given weights and biases, in the place of zero."""

    prior: Any
    weight: FloatArray
    bias: FloatArray

    def slope(self, weight: FloatArray, bias: FloatArray) -> FloatArray:
        """The gradient at the distance from there."""
        slope: FloatArray = self.prior.slope(weight - self.weight, bias - self.bias)
        return slope


def shared(prior: Any, share: float) -> Any:
    """A share of a prior, of the same kind."""
    if prior is None or share == 1.0:
        return prior
    return (SharedShrinking if isinstance(prior, Shrinking) else Shared)(prior, share)
