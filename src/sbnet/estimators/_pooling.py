"""Partial pooling of classes: a network for the rows of all, and how far that of a class may be from it.

A class alone has few rows, and too many pairs of columns. Regressions on the rows of all classes together tell which
pairs matter. Then one network learns from these rows, with the class of a row as columns before all others, so that its
weights say what columns have to do with each other within a class. The networks of the classes begin there, and are
drawn to it: weakly for pairs that matter, strongly for others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from sbnet._types import BoolArray, FloatArray, States
from sbnet.estimators import _learning
from sbnet.estimators._autoregressive import Autoregressive, Scales
from sbnet.estimators._rows import Rows
from sbnet.estimators.settings import Settings, is_auto
from sbnet.learning import Adam, FitResult, Gaussian
from sbnet.model.build import add_column_mixtures
from sbnet.model.graph import Graph
from sbnet.model.network import Network

if TYPE_CHECKING:
    from sbnet.estimators._tuning import Labelled

POOLED = 1.0
"""The scale of the Laplace prior on the weights that all classes have in common."""
FLOOR, HIDDEN, SWITCH, BIAS = 0.25, 2.0, 4.0, 3.0
"""Standard deviations: of weights between columns that have nothing to do with each other; of those from hidden units
and from mixture variables; of biases."""
RATE, BATCH, ROWS_IN_ALL, ROWS_TOGETHER = 0.1, 20, 17_500, 100_000
"""How to learn, and how many rows are seen in all epochs: for a class, and for the network of all classes."""


@dataclass(frozen=True, eq=False)
class Pooled:
    """Columns in some order, and the weights that those before each have for it in all classes together.

    `common` is the network of all classes, if there is one, with a unit for each of them before the columns: `labels`.
    """

    names: tuple[str, ...]
    size: Any  # sparse: columns by columns
    labels: tuple[str, ...] = ()
    common: Network | None = None

    def scales(self, network: Network) -> FloatArray:
        """The standard deviation of each weight; a mixture variable is told by the columns that tell its own."""
        place = {name: k for k, name in enumerate(self.names)}
        at = np.array([place.get(name, -1) for name in network.names])
        of_column = np.array([place.get(name.rsplit(".switch", 1)[0], -1) for name in network.names])
        child, parent = network.graph.child_of_edge, network.graph.parent
        beside = (at[parent] >= 0) & (of_column[child] >= 0)
        scale = np.where(of_column[parent] >= 0, SWITCH, HIDDEN).astype(np.float64)
        scale[self.is_label(network)[parent]] = BIAS
        size = np.asarray(self.size[of_column[child[beside]], at[parent[beside]]]).ravel()
        scale[beside] = np.hypot(size, FLOOR) * np.where(at[child[beside]] >= 0, 1.0, 2.0)
        return scale

    def is_label(self, network: Network) -> BoolArray:
        """Which units stand for classes."""
        return np.isin(network.names, self.labels)

    def prior(self, network: Network, label: int) -> Any:
        """The prior on the weights of the network of a class."""
        held = Gaussian(self.scales(network).tolist(), bias_scale=BIAS)
        if self.common is None:
            return held
        centre = self.of_class(self.common, label)
        return held.penalty.around(centre.weight, centre.bias)

    def of_class(self, common: Network, label: int) -> Network:
        """The network of all classes as rows of one of them see it: their label only shifts biases."""
        n, graph = len(self.labels), common.graph
        child, own, kept = graph.child_of_edge, graph.parent == label, graph.parent >= n
        bias = common.bias + np.bincount(child[own], weights=common.weight[own], minlength=common.n_units)
        count = np.bincount(child[kept] - n, minlength=common.n_units - n)
        smaller = Graph(np.concatenate([[0], np.cumsum(count)]), graph.parent[kept] - n)
        return Network(common.names[n:], smaller, common.weight[kept], bias[n:])


def pool(settings: Settings, rows: Rows, generator: np.random.Generator, *, both_ways: bool) -> list[Pooled]:
    """What all classes have in common, for each order of the columns that is asked for, and perhaps for its reverse.

    Of two networks that read a row from its two ends, one has as parents what the other has as children.
    """
    found, turned = [], rows
    for _ in range(settings.orders):
        for one in (turned, turned.named(turned.names[::-1]))[: 1 + both_ways]:
            size, _ = Autoregressive.of(one).solved(Scales(POOLED), _learning.threads(settings)).weights()
            found.append(Pooled(one.names, abs(scipy.sparse.csr_array(size))))
        turned = rows.shuffled(generator)
    return found


def with_common_network(settings: Settings, data: Labelled, generator: np.random.Generator, pooled: Pooled) -> Pooled:
    """With a network of all classes, from the rows of all."""
    classes = np.arange(len(data.log_prior))
    stem = "class"
    while any(name.startswith(stem) for name in pooled.names):
        stem += "_"
    pooled = replace(pooled, labels=tuple(f"{stem}{k}" for k in classes))
    of_row: States = (data.label[:, None] == classes).astype(np.int8)
    cells = np.concatenate([of_row, data.rows.named(pooled.names).cells], axis=1)
    rows = Rows(cells, data.rows.weights, pooled.labels + pooled.names)
    network = _start(settings, rows, generator, pooled)
    scale = pooled.scales(network)
    prior = Gaussian(scale.tolist(), bias_scale=BIAS)
    found = _train(settings, network, rows, generator, scale, prior, ROWS_TOGETHER, quiet=True)
    return replace(pooled, common=found.network)


def learn(
    settings: Settings, rows: Rows, generator: np.random.Generator, pooled: list[Pooled], label: int
) -> list[tuple[FitResult, None]]:
    """The networks of one class, one for each order."""
    found: list[tuple[FitResult, None]] = []
    for one in pooled:
        own = rows.named(one.names)
        if one.common is None:
            network = _start(settings, own, generator, one)
        else:
            network = _learning.without_unseen(one.of_class(one.common, label), own)
        prior, scale = one.prior(network, label), one.scales(network)
        found.append((_train(settings, network, own, generator, scale, prior, ROWS_IN_ALL), None))
    return found


def _start(settings: Settings, rows: Rows, generator: np.random.Generator, pooled: Pooled) -> Network:
    """Nothing is known yet but the means of columns; those that have others before them get mixtures."""
    network = _learning.start(settings, rows, generator, column_mixtures=0)
    count = _learning.column_mixtures_of(settings, len(rows.names))
    fan_in = np.diff(network.graph.indptr)
    units = [name for name in pooled.names if fan_in[network.index(name)] > len(pooled.labels)]
    if count and units:
        network = add_column_mixtures(network, units=units, count=count, rng=generator, scale=0.5, strength=SWITCH)
    # What goes into mixture variables starts at random, in units of the prior: two equal regressions would never part.
    into = np.array([".switch" in name for name in network.names])[network.graph.child_of_edge]
    unit = np.where(pooled.is_label(network)[network.graph.parent], 0.0, pooled.scales(network))
    return network.with_parameters(weight=np.where(into, unit * network.weight, network.weight), bias=network.bias)


def _train(
    settings: Settings,
    network: Network,
    rows: Rows,
    generator: np.random.Generator,
    scale: FloatArray,
    prior: Any,
    in_all: int,
    *,
    quiet: bool = False,
) -> FitResult:
    """Learn, each weight in units of its own; unless epochs are given, until so many rows have been seen in all."""
    epochs = int(np.clip(in_all / len(rows.cells), 5, 100)) if is_auto(settings.epochs) else settings.epochs
    stepping = None  # what the settings say
    if settings.steps_are_ours:
        units_of = np.concatenate([scale, np.full(network.n_units, BIAS)])
        stepping = Adam(RATE, until=max(epochs, 1), scale=units_of)
    small = replace(settings, batch_size=min(settings.batch_size, BATCH))
    return _learning.learn(small, network, rows, generator, epochs=epochs, prior=prior, stepping=stepping, quiet=quiet)
