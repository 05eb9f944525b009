r"""Where learning takes its steps: in the weights of sigmoid units, in the log-odds of the causes of noisy-OR units.

A weight :math:`\theta = -\ln(1 - p)` of a noisy-OR unit may not become negative, and the gradient in it grows
without limit as it nears zero. In :math:`\phi = \ln(p / (1 - p))`, so that :math:`\theta = \ln(1 + e^\phi)`, every
number is allowed, and :math:`\partial / \partial \phi = p\, \partial / \partial \theta` is bounded: a small enough step
along it raises the bound, as ever. A cause with p = 0 keeps it.
"""

from __future__ import annotations

import numpy as np

from sbnet._types import BoolArray, FloatArray
from sbnet.kernels.array_gates import softplus
from sbnet.kernels.codes import NOISY_OR
from sbnet.model.network import Network


def in_log_odds(network: Network) -> BoolArray | None:
    """Which parameters, weights first, are those of noisy-OR units; None if there are none."""
    noisy = network.gate == NOISY_OR
    return np.concatenate([noisy[network.graph.child_of_edge], noisy]) if noisy.any() else None


def rescaled(parameters: FloatArray, gradient: FloatArray, noisy: BoolArray | None) -> FloatArray:
    """The gradient in the coordinates of learning."""
    return gradient if noisy is None else np.where(noisy, -np.expm1(-parameters) * gradient, gradient)


def moved(parameters: FloatArray, move: FloatArray, noisy: BoolArray | None) -> FloatArray:
    """The parameters after a step in those coordinates."""
    if noisy is None:
        return parameters + move
    with np.errstate(divide="ignore", invalid="ignore"):
        free = np.where(parameters > 30.0, parameters, np.log(np.expm1(np.minimum(parameters, 30.0)))) + move
    after = np.where(noisy, softplus(np.maximum(free, -700.0)), parameters + move)
    return np.where(noisy & (parameters <= 0.0), parameters, after)
