"""Several networks for one table, each with its columns in another order: the mean of their likelihoods.

A column has the columns before it as parents, so every order is another model of the same table; no order is best for
all rows. The logarithm of a mean of likelihoods is bounded from below by that of the mean of e^bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax

from sbnet import checks
from sbnet._types import FloatArray, IndexArray
from sbnet.errors import ParameterError
from sbnet.estimators import _choosing, _learning
from sbnet.estimators._report import Report
from sbnet.estimators._rows import Rows
from sbnet.learning import FitResult
from sbnet.model.mixtures import NetworkMixture
from sbnet.model.network import Network

if TYPE_CHECKING:
    from sbnet.estimators.density import SBNDensity


def learn(density: SBNDensity, rows: Rows, generator: np.random.Generator) -> list[tuple[FitResult, Report | None]]:
    """The network of the table as it stands, and others with its columns in random orders, chosen alike."""
    orders = checks.whole("orders", density.orders, 1)
    found = [_learning.learn_from_scratch(density, rows, generator)]
    report = found[0][1]
    for _ in range(1, orders):
        turned = _reordered(rows, generator)
        if report is None:
            found.append(_learning.learn_from_scratch(density, turned, generator))
        else:
            found.append((_choosing.learn_alike(density, turned, generator, report), report))
    return found


def as_mixture(networks: Any) -> NetworkMixture:
    """A mixture; of a network by itself all units are columns."""
    if isinstance(networks, Network):
        return NetworkMixture((networks,), networks.names)
    if not isinstance(networks, NetworkMixture):
        raise ParameterError(f"networks is {networks!r:.60}; give a NetworkMixture, or a Network")
    return networks


def install(density: Any, mixture: NetworkMixture) -> None:
    """Give an estimator networks, as if it had learned them from a table of zeros and ones."""
    width, network = len(mixture.columns), mixture.networks[0]
    density.n_features_in_ = width
    if mixture.columns != tuple(f"x{k}" for k in range(width)):
        density.feature_names_in_ = np.array(mixture.columns, dtype=object)
    density.network_, density.networks_ = network, mixture.networks
    density.recognitions_ = (None,) * len(mixture)
    density.encoder_ = density.codings_ = density.report_ = density.held_out_bounds_ = None
    density.bounds_, density.n_iter_, density.n_samples_seen_ = np.empty(0), 0, 0.0
    own = set(mixture.columns)
    # mixture variables come after columns
    density._n_hidden = next(k for k, name in enumerate(network.names) if name in own)
    density._generator = np.random.default_rng(_learning.make_seed(density.random_state))
    density._optimizer_state = None


def _reordered(rows: Rows, generator: np.random.Generator) -> Rows:
    """The columns in a random order; those that stand for one column stay together, and in their order."""
    grouped, n = {unit for group in rows.groups for unit in group.units}, len(rows.names) - rows.label_last
    blocks = [(name,) for name in rows.names[:n] if name not in grouped] + [group.units for group in rows.groups]
    return rows.named(tuple(unit for k in generator.permutation(len(blocks)) for unit in blocks[k]) + rows.names[n:])


def chosen(bounds: FloatArray, rng: np.random.Generator | None) -> IndexArray:
    """For each row a network: the likeliest, or one that is drawn by how likely they are."""
    share = softmax(bounds, axis=0)
    if rng is None:
        return np.asarray(share.argmax(axis=0), dtype=np.int64)
    drawn: IndexArray = (share.cumsum(axis=0) < rng.random(share.shape[1])).sum(axis=0)
    return np.minimum(drawn, len(share) - 1)


def together(values: FloatArray, bounds: FloatArray, rng: np.random.Generator | None) -> Any:
    """Values of each network, rows by columns, as one: their mean, or those of one network for each row."""
    if rng is not None:
        return values[chosen(bounds, rng), np.arange(values.shape[1])]
    return np.einsum("kr,krc->rc", softmax(bounds, axis=0), values)
