"""Estimators and Dask: learning from partitions where they lie, and answers that are lazy where the table is.

What an estimator decides by looking at many rows at once (codings, edges between columns, the scale of the prior,
hidden units, a start) it decides from at most 20,000 of them, drawn from all partitions; a table with no more rows is
learned from as if it were in memory. From there it goes on over all rows, with :func:`sbnet.fit` on the partitions.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sbnet import checks, lazy
from sbnet._types import BoolArray, IndexArray, States
from sbnet.errors import ParameterError
from sbnet.estimators import _learning, _priors
from sbnet.estimators._rows import place
from sbnet.learning import FitResult, Laplace, fit
from sbnet.network import Network
from sbnet.tables import as_frame

if TYPE_CHECKING:
    from sbnet.estimators._base import SBNEstimator
    from sbnet.estimators.classifier import SBNClassifier

F = TypeVar("F", bound=Callable[..., Any])

LIMIT = 20_000
"""Rows that are looked at in one place."""
EPOCHS = 5
"""Passes over all partitions, after the network of the sample, where `epochs` is left to be chosen."""


def by_partition(method: F) -> F:
    """A method of rows, which for a Dask collection becomes a task for each partition: lazy in, lazy out."""

    @wraps(method)
    def either(self: Any, X: Any) -> Any:
        return _lazily(self, method, X) if lazy.is_lazy(X) else method(self, X)

    return cast(F, either)


def _lazily(estimator: Any, method: Callable[..., Any], X: Any) -> Any:
    parts = lazy.Partitions.of(_in_order(estimator, X))
    meta = method(estimator, _blank(estimator))[:0]
    work, shared = lazy.task(partial(_answered, method.__name__)), lazy.once(_bare(estimator))
    pieces = [work(shared, piece, meta, number) for number, piece in enumerate(parts.pieces)]
    if hasattr(meta, "columns"):
        frames = checks.extra("dask.dataframe", "a Dask data frame", of="dask")
        return frames.from_delayed(pieces, meta=meta, verify_meta=False)
    return lazy.array(pieces, parts.sizes, meta.shape[1:], meta.dtype)


def _answered(name: str, estimator: Any, table: Any, nothing: Any, number: int) -> Any:
    """In a worker: one partition, to which the estimators of scikit-learn would object if it has no rows.

    Draws depend on where a row stands; so that they are not the same in every partition, each has a seed of its own.
    """
    if not len(table):
        return nothing
    if get_tags(estimator).non_deterministic:
        seed = _learning.make_seed(estimator._settings().random_state)
        estimator = copy.copy(estimator)
        estimator.random_state = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    return getattr(estimator, name)(table)


def _bare(estimator: Any) -> Any:
    """A copy that can travel, and that works in one thread: a worker has several tasks at once."""
    bare = copy.copy(estimator)
    if get_tags(estimator).non_deterministic:
        bare.random_state = _learning.make_seed(estimator._settings().random_state)  # once, for all partitions
    bare.n_jobs = 1 if estimator.n_jobs is None else estimator.n_jobs
    return bare


def in_order(estimator: Any, block: Any) -> Any:
    """A table of a stream, a data frame of any kind, with its columns as they were learned from."""
    frame, names = as_frame(block), getattr(estimator, "feature_names_in_", None)
    if frame is None or names is None or set(names) != set(frame.columns):
        return block
    return frame.select(list(names)).to_native()


def _in_order(estimator: Any, X: Any) -> Any:
    """A data frame with its columns as they were learned from."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None or not hasattr(X, "columns") or set(names) != set(X.columns):
        return X
    return X if list(names) == list(X.columns) else X[list(names)]


def _blank(estimator: Any) -> Any:
    """A row of which nothing is known."""
    check_is_fitted(estimator)
    row = np.full((1, estimator.n_features_in_), np.nan)
    names = getattr(estimator, "feature_names_in_", None)
    return row if names is None else checks.extra("pandas", "a Dask data frame").DataFrame(row, columns=list(names))


# --- learning ---------------------------------------------------------------------------------------------------------


def fit_one(estimator: SBNEstimator, X: Any, sample_weight: Any) -> tuple[np.random.Generator, float]:
    """A network from a sample of the rows, and then from all of them."""
    sample = _Sample(X, sample_weight, estimator._settings())
    generator, weight = estimator._fit_one(sample.rows(X), sample.weights)
    if sample.is_all:
        return generator, weight
    result = _go_on(estimator, estimator.network_, X, None, sample_weight, generator)
    estimator.network_, estimator.networks_ = result.network, (result.network,)
    estimator.bounds_, estimator.held_out_bounds_ = np.append(estimator.bounds_, result.bounds), result.held_out
    estimator.n_iter_, estimator.recognitions_ = len(estimator.bounds_), (None,)
    return generator, float(sample.n if sample_weight is None else np.asarray(sample_weight).sum())


def fit_classes(classifier: SBNClassifier, X: Any, y: Any, sample_weight: Any) -> SBNClassifier:
    """The same for the networks of all classes, each from the rows of its class."""
    settings = classifier._settings()
    sample = _Sample(X, sample_weight, settings)
    if not sample.is_all and classifier.tune is not None:
        raise ParameterError(f"networks are tuned together on {LIMIT:,} rows at most of a Dask table; set tune=None")
    target = np.asarray(y)  # a number or a word for each row
    classifier.fit(sample.rows(X), target[sample.chosen], sample.weights)
    if sample.is_all:
        return classifier
    unseen = set(np.unique(target)) - set(classifier.classes_)
    if unseen:
        raise ParameterError(f"class {min(unseen)!r} is too rare for a sample of {LIMIT:,} rows; leave it out")
    seed, networks, bounds = _learning.make_seed(settings.random_state), [], []
    for k, name in enumerate(classifier.classes_):
        generator = np.random.default_rng([seed, k, 1])
        of_class = sample.split(target == name)
        result = _go_on(classifier, classifier.networks_[k], X, of_class, sample_weight, generator)
        networks.append(result.network)
        bounds.append(np.append(classifier.bounds_[k], result.bounds))
    classifier.networks_, classifier.mixtures_ = networks, [(network,) for network in networks]
    classifier.bounds_, classifier.n_iter_ = bounds, max(map(len, bounds))
    if classifier.class_prior is None:
        weights = np.ones(len(target)) if sample_weight is None else np.asarray(sample_weight)
        number = np.searchsorted(classifier.classes_, target)
        classifier.class_log_prior_ = classifier._log_prior(np.bincount(number, weights=weights).astype(np.float64))
    return classifier


class _Sample:
    """Which rows are looked at in one place: all, or as many of each partition as its share is."""

    def __init__(self, X: Any, sample_weight: Any, settings: Any) -> None:
        self.counts = np.array(lazy.computed([lazy.task(len)(piece) for piece in lazy.Partitions.of(X).pieces]))
        self.n = int(self.counts.sum())
        self.is_all = self.n <= LIMIT
        if not self.is_all and settings.orders > 1:
            raise ParameterError(f"a mixture is learned from {LIMIT:,} rows at most of a Dask table; set orders=1")
        self.chosen: IndexArray = np.arange(self.n)
        if not self.is_all:
            rng = np.random.default_rng([_learning.make_seed(settings.random_state), 2])
            self.chosen = np.sort(rng.permutation(self.n)[:LIMIT])
        self.weights = None if sample_weight is None else np.asarray(sample_weight)[self.chosen]

    def rows(self, X: Any) -> Any:
        """The rows that were chosen, here."""
        taken = lazy.task(_taken)
        ends = np.cumsum(self.counts)
        parts = np.split(self.chosen, np.searchsorted(self.chosen, ends[:-1]))
        pieces = zip(lazy.Partitions.of(X).pieces, parts, ends - self.counts, strict=True)
        found = lazy.computed([taken(piece, rows - first) for piece, rows, first in pieces])
        found = [part for part in found if len(part)] or found[:1]
        if hasattr(X, "columns"):
            return checks.extra("pandas", "a Dask data frame").concat(found)
        return np.concatenate(found)

    def split(self, kept: BoolArray) -> list[BoolArray]:
        """Truth values for all rows, by partition."""
        return np.split(kept, np.cumsum(self.counts)[:-1])


def _taken(table: Any, rows: IndexArray) -> Any:
    return table.iloc[rows] if hasattr(table, "columns") else table[rows]


def _go_on(
    estimator: Any, network: Network, X: Any, kept: Any, sample_weight: Any, generator: np.random.Generator
) -> FitResult:
    """All rows, or those of a class, from a network that some of them have given."""
    settings = estimator._settings()
    parts = lazy.Partitions.of(_in_order(estimator, X))
    choices = [None] * len(parts.pieces) if kept is None else [lazy.once(part) for part in kept]
    read, shared, net = lazy.task(_states), lazy.once(_bare(estimator)), lazy.once(network)
    pieces = [read(shared, net, piece, choice) for piece, choice in zip(parts.pieces, choices, strict=True)]
    states = lazy.array(pieces, (np.nan,) * len(pieces), (network.n_units,), np.int8)
    if sample_weight is not None and kept is not None:
        sample_weight = np.asarray(sample_weight)[np.concatenate(kept)]
    epochs = EPOCHS if _priors.is_auto(settings.epochs) else settings.epochs
    fraction = settings.validation_fraction
    result = fit(
        network,
        states,
        epochs=epochs,
        optimizer=_learning.optimizer(settings, until=epochs),
        batch_size=max(settings.batch_size, 10 * len(pieces)),
        solver=_learning.solver(settings),
        prior=_prior(estimator, settings, network),
        validation=fraction,
        patience=settings.patience if fraction is not None else None,
        sample_weight=sample_weight,
        rng=generator,
        progress=bool(settings.verbose),
    )
    if result.interrupted:
        raise KeyboardInterrupt
    return result


def _prior(estimator: Any, settings: Any, network: Network) -> Any:
    """The prior that was given, or the scales that the sample has chosen."""
    report = getattr(estimator, "report_", None)
    if report is not None:
        scales = {"lateral": report.lateral_scale, "hidden": report.hidden_scale}
        settings.set_params(prior={group: Laplace(scale) for group, scale in scales.items()})
    return _priors.for_network(settings, network, estimator._names())


def _states(estimator: Any, network: Network, table: Any, kept: BoolArray | None) -> States:
    """In a worker: the rows of a partition in the places of their units."""
    if kept is not None:
        table = _taken(table, np.flatnonzero(kept))
    if not len(table):
        return np.empty((0, network.n_units), np.int8)
    return place(network, estimator._table(table, reset=False)[0].cells, estimator._names())
