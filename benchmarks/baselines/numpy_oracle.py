"""One row of the algorithm in obvious NumPy: one equation per line, nothing kept from one line to the next."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sbnet import Network

Vector = NDArray[np.float64]


class Solution(NamedTuple):
    """The bound in nats, the means of the hidden units, and the bound after each sweep."""

    bound: float
    means: Vector
    trace: list[float]


def solve(network: Network, x: ArrayLike, tol: float = 1e-4, max_sweeps: int = 500) -> Solution:
    """Mean field bound of one row; the last ``len(x)`` units are observed, the others are hidden."""
    J, h = network.weight_matrix(), network.bias
    observed = np.asarray(x, dtype=float)
    n_hidden = network.n_units - len(observed)
    mu = np.concatenate([np.full(n_hidden, 0.5), observed])
    xi = np.full(network.n_units, 0.5)
    trace: list[float] = []
    while len(trace) < max_sweeps:
        for i in range(network.n_units):
            xi[i] = best_xi(J[i], h[i], mu, xi[i])
        for j in range(n_hidden):
            mu[j] = sigmoid(h[j] + J[j] @ mu + J[:, j] @ (mu - xi) + influence(J, h, mu, xi, j).sum())  # eq. (24)
        trace.append(bound(J, h, mu, xi, n_hidden))
        if len(trace) > 1 and trace[-1] - trace[-2] < tol:
            break
    return Solution(trace[-1], mu[:n_hidden], trace)


def log_averages(J_i: Vector, h_i: float, mu: Vector, xi_i: float) -> tuple[float, float]:
    """Logarithms of eqs. (30) and (31)."""
    log_A = -xi_i * h_i + np.log(1 - mu + mu * np.exp(-xi_i * J_i)).sum()
    log_B = (1 - xi_i) * h_i + np.log(1 - mu + mu * np.exp((1 - xi_i) * J_i)).sum()
    return log_A, log_B


def objective(J_i: Vector, h_i: float, mu: Vector, xi_i: float) -> float:
    """The right hand side of eq. (20)."""
    return xi_i * (J_i @ mu + h_i) + np.logaddexp(*log_averages(J_i, h_i, mu, xi_i))


def derivatives(J_i: Vector, h_i: float, mu: Vector, xi_i: float) -> tuple[float, float]:
    """First and second derivative of the objective: moments of z under the two tilted distributions."""
    log_A, log_B = log_averages(J_i, h_i, mu, xi_i)
    phi = sigmoid(log_B - log_A)  # eq. (32)
    a, b = np.exp(-xi_i * J_i), np.exp((1 - xi_i) * J_i)
    alpha, beta = mu * a / (1 - mu + mu * a), mu * b / (1 - mu + mu * b)
    m_A, m_B = h_i + J_i @ alpha, h_i + J_i @ beta
    v_A, v_B = J_i**2 @ (alpha * (1 - alpha)), J_i**2 @ (beta * (1 - beta))
    first = h_i + J_i @ mu - (1 - phi) * m_A - phi * m_B
    second = (1 - phi) * v_A + phi * v_B + phi * (1 - phi) * (m_B - m_A) ** 2
    return first, second


def best_xi(J_i: Vector, h_i: float, mu: Vector, xi_i: float) -> float:
    """One Newton step inside (0, 1), halved until the objective does not rise."""
    first, second = derivatives(J_i, h_i, mu, xi_i)
    new = xi_i - first / (second + 1e-300)
    new = xi_i / 2 if new <= 0 else (1 + xi_i) / 2 if new >= 1 else new
    before = objective(J_i, h_i, mu, xi_i)
    for _ in range(40):
        if objective(J_i, h_i, mu, new) <= before + 1e-12:
            return new
        new = (new + xi_i) / 2
    return xi_i


def influence(J: Vector, h: Vector, mu: Vector, xi: Vector, j: int) -> Vector:
    """K_ij for all children i of unit j, eq. (33)."""
    K = np.zeros(len(h))
    for i in np.flatnonzero(J[:, j]):
        log_A, log_B = log_averages(J[i], h[i], mu, xi[i])
        phi = sigmoid(log_B - log_A)
        a, b = np.exp(-xi[i] * J[i, j]), np.exp((1 - xi[i]) * J[i, j])
        K[i] = (1 - phi) * (1 - a) / (1 - mu[j] + mu[j] * a) + phi * (1 - b) / (1 - mu[j] + mu[j] * b)
    return K


def bound(J: Vector, h: Vector, mu: Vector, xi: Vector, n_hidden: int) -> float:
    """Eq. (22), with the entropy of eq. (16)."""
    energy = sum(mu[i] * (J[i] @ mu + h[i]) - objective(J[i], h[i], mu, xi[i]) for i in range(len(h)))
    m = np.clip(mu[:n_hidden], 1e-300, 1 - 1.2e-16)
    return float(energy - np.sum(m * np.log(m) + (1 - m) * np.log(1 - m)))


def sigmoid(x: float) -> float:
    """The logistic function, without overflow."""
    return 1 / (1 + np.exp(-x)) if x > 0 else np.exp(x) / (1 + np.exp(x))
