"""Networks of several classes, tuned to tell them apart: each learns from the rows of all, with signed weights.

What is maximised is the sum over rows of ln P_y(x) + strength * ln p_y(x), with p the classes' probabilities at some
temperature: p_k(x) in proportion to prior_k P_k(x)^(1/temperature). Its gradient in the network of class k is the
ordinary one with the row weights [y = k] + strength / temperature * ([y = k] - p_k(x)), negative for rows of other
classes that look like its own. The first term keeps each network a density of its class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from sbnet._types import BoolArray, FloatArray, IndexArray
from sbnet.estimators import _learning
from sbnet.estimators._rows import Rows, place
from sbnet.estimators.settings import Settings
from sbnet.learning import Adam
from sbnet.learning.gradients import Objective, Solved
from sbnet.model.network import Network

STRENGTHS = (0.0, 10.0, 120.0)
"""Candidates: how much telling classes apart counts beside the density of each. More than that lowers the log-loss of
held-out digits yet, but their likelihoods too."""
EPOCHS, RATE = 5, 0.01
_SLIGHT = 1e-3  # rows of less weight are left out
_HOTTEST = 50.0

Mixture = tuple[Network, ...]


class Labelled(NamedTuple):
    """Rows, the number of the class of each, and the logarithms of the classes' priors."""

    rows: Rows
    label: IndexArray
    log_prior: FloatArray

    def keep(self, chosen: BoolArray) -> Labelled:
        """Some of the rows."""
        return Labelled(self.rows.keep(chosen), self.label[chosen], self.log_prior)


def temperature_of(bounds: FloatArray, label: IndexArray, weights: FloatArray, log_prior: FloatArray) -> float:
    """The temperature at which bounds, rows by classes, give these labels the highest probability; 1 or more."""
    own = np.arange(len(label))

    def loss(log_temperature: float) -> float:
        logs = log_softmax(bounds / np.exp(log_temperature) + log_prior, axis=1)
        return -float(weights @ logs[own, label])

    found = minimize_scalar(loss, bounds=(0.0, np.log(_HOTTEST)), method="bounded")
    return float(np.exp(found.x)) if loss(found.x) < loss(0.0) else 1.0


def log_loss(bounds: FloatArray, temperature: float, data: Labelled) -> float:
    """Mean of -ln p of the right class."""
    logs = log_softmax(bounds / temperature + data.log_prior, axis=1)[np.arange(len(data.label)), data.label]
    return -float(np.average(logs, weights=data.rows.weights))


def hold_out(label: IndexArray, share: float, rng: np.random.Generator) -> BoolArray:
    """Which rows are held out: about a share of each class, and never all of one."""
    out: BoolArray = np.zeros(len(label), dtype=np.bool_)
    for k in np.unique(label):
        own = rng.permutation(np.flatnonzero(label == k))
        out[own[: round(share * len(own))]] = True
    return out


class _Member:
    """One network on its way: its class, the states of all rows, and what an optimiser needs."""

    def __init__(self, settings: Settings, network: Network, label: int, rows: Rows, adam: Adam, prior: Any) -> None:
        self.label, self.network, self.rows, self.prior = label, network, rows, prior
        self.parameters = np.concatenate([network.weight, network.bias])
        self.memory = adam.init(len(self.parameters))
        self.moving = (~_learning.frozen(network, rows)).astype(np.float64)
        self.states = place(network, rows.cells, rows.names)
        solver = _learning.solver_for(settings, network, rows.names)
        self.objective = Objective.of(network, solver, settings.executor, _learning.threads(settings))

    def gradient(self, rows: IndexArray, weights: FloatArray, start: FloatArray | None = None) -> Solved:
        """The gradient of a weighted sum of bounds, and the bounds; from means that have been solved for, if given."""
        return self.objective.gradient(self.parameters, self.states[rows], start, weights)

    def move(self, gradient: Solved, pull: float, adam: Adam, epoch: int) -> None:
        """A step along it, and along the prior."""
        n, direction = self.network.n_edges, gradient.gradient
        if self.prior is not None:
            direction += pull * self.prior.gradient(self.parameters[:n], self.parameters[n:])
        step, self.memory = adam.step(direction, self.memory, epoch)
        self.parameters = self.parameters + step * self.moving

    def finished(self) -> Network:
        n = self.network.n_edges
        return self.network.with_parameters(weight=self.parameters[:n], bias=self.parameters[n:])


def tune(
    settings: Settings,
    mixtures: Sequence[Mixture],
    data: Labelled,
    strength: float,
    temperature: float,
    rng: np.random.Generator,
    priors: Sequence[Sequence[Any]],
) -> list[Mixture]:
    """The networks after some epochs of steps on all rows; `priors` are theirs, class by class."""
    if strength == 0.0 or len(mixtures) < 2:
        return [tuple(networks) for networks in mixtures]
    adam = Adam(RATE, until=EPOCHS)
    members = [
        _Member(settings, network, k, data.rows, adam, prior)
        for k, (ones, theirs) in enumerate(zip(mixtures, priors, strict=True))
        for network, prior in zip(ones, theirs, strict=True)
    ]
    classes, everything = np.array([m.label for m in members]), float(data.rows.weights.sum())
    n = len(data.label)
    for epoch in range(EPOCHS):
        order = rng.permutation(n)
        for start in range(0, n, settings.batch_size):
            rows = order[start : start + settings.batch_size]
            solved = [member.gradient(rows, np.zeros(len(rows))) for member in members]
            bounds = np.column_stack([found.bound for found in solved])
            signed = _signed(bounds, classes, data, rows, strength, temperature)
            for m, member in enumerate(members):
                heavy = np.abs(signed[:, m]) > _SLIGHT
                share = data.rows.weights[rows[heavy]] * signed[heavy, m] / max(data.rows.weights[rows].sum(), 1e-300)
                found = member.gradient(rows[heavy], share, solved[m].means[heavy])
                member.move(found, 1.0 / everything, adam, epoch)
    tuned = [member.finished() for member in members]
    return [tuple(one for one, k in zip(tuned, classes, strict=True) if k == label) for label in range(len(mixtures))]


def _signed(
    bounds: FloatArray, classes: IndexArray, data: Labelled, rows: IndexArray, strength: float, temperature: float
) -> FloatArray:
    """The weight of each row for each network; those of a class have equal shares in its mean bound."""
    label, n = data.label[rows], len(data.log_prior)
    own = classes == label[:, None]
    together = np.column_stack([bounds[:, classes == k].mean(axis=1) for k in range(n)])
    p = softmax(together / temperature + data.log_prior, axis=1)
    share = n / len(classes)
    signed: FloatArray = own + strength / temperature * (own - p[:, classes]) * share
    return signed
