"""The mutual information of the two variables of an edge, in closed form."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from sbnet._types import FloatArray
from sbnet.exact.probability import entropy_of
from sbnet.kernels.codes import NOISY_OR
from sbnet.model.network import Network


def of_edges(network: Network, means: FloatArray) -> FloatArray:
    """The mutual information of the two variables of each edge, if the parents of the child were independent."""
    mu = means[network.graph.parent]
    off, on = _probabilities_of_edges(network, means, 0.0), _probabilities_of_edges(network, means, 1.0)
    mixed = mu * on + (1.0 - mu) * off
    information: FloatArray = np.maximum(entropy_of(mixed) - mu * entropy_of(on) - (1.0 - mu) * entropy_of(off), 0.0)
    fixed = (means == 0.0) | (means == 1.0)
    information[fixed[network.graph.child_of_edge]] = 0.0
    return information


def _probabilities_of_edges(network: Network, means: FloatArray, state: float) -> FloatArray:
    """For each edge, the probability of the child if the parent has that state and its other parents their means.

    That of a noisy-OR unit is a product; the input of a sigmoid unit is taken as Gaussian, and the logistic function as
    a probit one of the same gradient at 0.
    """
    graph, weight, n = network.graph, network.weight, network.n_units
    child, mu = graph.child_of_edge, means[graph.parent]
    spread = weight**2 * mu * (1.0 - mu)
    center = (network.bias + np.bincount(child, weight * mu, n))[child] + weight * (state - mu)
    variance = np.maximum(np.bincount(child, spread, n)[child] - spread, 0.0)
    probability: FloatArray = expit(center / np.sqrt(1.0 + np.pi / 8.0 * variance))
    noisy = network.gate[child] == NOISY_OR
    if noisy.any():
        stays = np.log(np.maximum(1.0 + mu * np.expm1(-np.where(noisy, weight, 0.0)), 1e-300))
        absent = np.bincount(child, stays, n)[child] - stays - network.bias[child] - weight * state
        probability[noisy] = -np.expm1(np.minimum(absent[noisy], 0.0))
    return probability
