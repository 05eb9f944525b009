"""Strength shared between classes: how far apart columns may be tied in one class is learned from the rows of all.

A class alone has few rows, and too many pairs of columns. Regressions on the rows of all classes together tell which
pairs matter; the weight of such a pair may then be large in the network of any class, and others are held near zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from sklearn.base import clone

from sbnet._types import FloatArray
from sbnet.build import add_switches
from sbnet.estimators import _learning, _mixtures
from sbnet.estimators._lateral import Scales, first_of
from sbnet.estimators._priors import is_auto
from sbnet.estimators._rows import Rows
from sbnet.learning import Adam, FitResult, Gaussian
from sbnet.network import Network

if TYPE_CHECKING:
    from sbnet.estimators.density import SBNDensity

POOLED = 1.0
"""The scale of the Laplace prior on the weights that all classes have in common."""
FLOOR, HIDDEN, SWITCH, BIAS = 0.25, 2.0, 4.0, 3.0
"""Standard deviations: of weights between columns that have nothing to do with each other; of those from hidden units
and from switches; of biases."""
RATE, BATCH, ROWS_IN_ALL = 0.1, 20, 17_500


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
        """The slope in the new units, and the step back in the old ones."""
        move, state = self.adam.step(self.scale * gradient, state, epoch)
        return self.scale * move, state


@dataclass(frozen=True, eq=False)
class Ties:
    """Columns in some order, and the weights that those before each have for it in all classes together."""

    names: tuple[str, ...]
    size: Any  # sparse: columns by columns

    def scales(self, network: Network) -> FloatArray:
        """The standard deviation of each weight; a switch is told by the columns that tell its own."""
        place = {name: k for k, name in enumerate(self.names)}
        at = np.array([place.get(name, -1) for name in network.names])
        of_column = np.array([place.get(name.rsplit(".switch", 1)[0], -1) for name in network.names])
        child, parent = network.graph.child_of_edge, network.graph.parent
        beside = (at[parent] >= 0) & (of_column[child] >= 0)
        scale = np.where(of_column[parent] >= 0, SWITCH, HIDDEN).astype(np.float64)
        size = np.asarray(self.size[of_column[child[beside]], at[parent[beside]]]).ravel()
        scale[beside] = np.hypot(size, FLOOR) * np.where(at[child[beside]] >= 0, 1.0, 2.0)
        return scale

    def prior(self, network: Network) -> Gaussian:
        """The prior on the weights of the network of any class."""
        return Gaussian(self.scales(network).tolist(), bias_scale=BIAS)


def tie(settings: SBNDensity, rows: Rows, generator: np.random.Generator, *, both_ways: bool) -> list[Ties]:
    """What all classes have in common, for each order of the columns that is asked for, and perhaps for its reverse.

    Of two networks that read a row from its two ends, one has as parents what the other has as children.
    """
    found, turned = [], rows
    for _ in range(settings.orders):
        for one in (turned, turned.named(turned.names[::-1]))[: 1 + both_ways]:
            size, _ = first_of(one).solved(Scales(POOLED), _learning.threads(settings)).weights()
            found.append(Ties(one.names, abs(scipy.sparse.csr_array(size))))
        turned = _mixtures._reordered(rows, generator)
    return found


def learn(settings: SBNDensity, rows: Rows, generator: np.random.Generator, ties: list[Ties]) -> list[Any]:
    """The networks of one class, one for each order."""
    return [(_learn_one(settings, rows.named(one.names), generator, one), None) for one in ties]


def _learn_one(settings: SBNDensity, rows: Rows, generator: np.random.Generator, ties: Ties) -> FitResult:
    network = _learning.start(settings, rows, generator, switches=0)
    count = _learning.switches_of(settings)
    fan_in = np.diff(network.graph.indptr)
    units = [name for name in rows.names if fan_in[network.index(name)]]
    if count and units:
        network = add_switches(network, units=units, count=count, rng=generator, scale=0.5, strength=SWITCH)
    scale = ties.scales(network)
    # What goes into switches starts at random, in units of the prior: two equal regressions would never part.
    into = np.array([".switch" in name for name in network.names])[network.graph.child_of_edge]
    network = network.with_parameters(weight=np.where(into, scale * network.weight, network.weight), bias=network.bias)
    epochs = int(np.clip(ROWS_IN_ALL / len(rows.cells), 5, 100)) if settings.epochs == "auto" else settings.epochs
    stepping = None  # what the settings say
    if settings.optimizer == "adam" and is_auto(settings.learning_rate):
        units_of = np.concatenate([scale, np.full(network.n_units, BIAS)])
        stepping = InUnitsOfPrior(Adam(RATE, until=max(epochs, 1)), units_of)
    small = clone(settings).set_params(batch_size=min(settings.batch_size, BATCH))
    return _learning.learn(small, network, rows, generator, epochs=epochs, prior=ties.prior(network), stepping=stepping)
