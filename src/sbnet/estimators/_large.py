"""Learning from tables that are not in one place: the partitions of a Dask collection, or the blocks of a stream.

What an estimator decides by looking at many rows at once (states of columns, edges, the scale of the prior, hidden
units, a start) it decides from at most 20,000 of them, or more where columns are few, drawn from all; of an iterator,
which is gone through once, from the first. A table with no more rows is learned from as if it were in memory. From
there it goes on over all rows, with :func:`sbnet.fit`, where they lie or as they pass by.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, cast

import narwhals as nw
import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sbnet import checks
from sbnet._types import BoolArray, FloatArray, IndexArray, States
from sbnet.errors import ParameterError
from sbnet.estimators import _learning
from sbnet.estimators._learning import make_seed
from sbnet.estimators._rows import Rows, place
from sbnet.estimators.settings import is_auto
from sbnet.learning import FitResult
from sbnet.learning.streams import Files, blocks_of, is_once, is_stream
from sbnet.model.network import Network
from sbnet.parallel import lazy
from sbnet.tables.frames import as_array, as_frame, is_records

if TYPE_CHECKING:
    from sbnet.estimators._base import SBNEstimator
    from sbnet.estimators.classifier import SBNClassifier


LIMIT, CELLS = 20_000, 5_000_000
"""Rows that are looked at in one place; more of them where columns are few, up to so many cells."""
EPOCHS, GENTLE = 5, 0.003
"""Passes over all rows, after the network of the sample, where `epochs` is left to be chosen; and the rate where there
are variables with more than two states, whose regressions have been solved.
"""


def fit_one(estimator: SBNEstimator, X: Any, sample_weight: Any) -> tuple[np.random.Generator, float]:
    """A network from a sample of the rows, and then from all of them."""
    settings = estimator._settings()
    source = (_Blocks if is_stream(X) else _Partitions)(X, sample_weight, settings)
    rows = estimator._read_rows(source.sample, source.weights)
    generator, weight = estimator._fit_rows(rows)
    if source.is_all:
        return generator, weight
    result = _go_on(estimator, estimator.network_, source, rows, generator)
    estimator.network_, estimator.networks_ = result.network, (result.network,)
    estimator.bounds_, estimator.held_out_bounds_ = np.append(estimator.bounds_, result.bounds), result.held_out
    estimator.n_iter_, estimator.recognitions_ = len(estimator.bounds_), (None,)
    return generator, float(source.n if sample_weight is None else np.asarray(sample_weight).sum())


def fit_classes(classifier: SBNClassifier, X: Any, y: Any, sample_weight: Any) -> SBNClassifier:
    """The networks of all classes, each from a sample of the rows of its class, and then from all of them."""
    if is_stream(X):
        raise ParameterError("a classifier needs the class of each row beside it; give a table, or a Dask collection")
    settings = classifier._settings()
    source = _Partitions(X, sample_weight, settings, cells=0)
    if not source.is_all and classifier.tune is not None:
        raise ParameterError(f"networks are tuned together on {LIMIT:,} rows at most of a Dask table; set tune=None")
    target = np.asarray(y)  # a number or a word for each row
    seen = target[source.chosen]
    classifier.fit(source.sample, seen, source.weights)
    if source.is_all or classifier._one:  # a network of all columns is learned from the sample alone
        return classifier
    unseen = set(np.unique(target)) - set(classifier.classes_)
    if unseen:
        raise ParameterError(f"class {min(unseen)!r} is too rare for a sample of {LIMIT:,} rows; leave it out")
    rows = classifier._read_rows(source.sample, source.weights, reset=False)
    seed, networks, bounds = _learning.make_seed(settings.random_state), [], []
    for k, name in enumerate(classifier.classes_):
        generator = np.random.default_rng([seed, k, 1])
        part, network = source.of(target == name), classifier.networks_[k]
        result = _go_on(classifier, network, part, rows.keep(seen == name), generator)
        networks.append(result.network)
        bounds.append(np.append(classifier.bounds_[k], result.bounds))
    classifier.networks_, classifier.mixtures_ = networks, [(network,) for network in networks]
    classifier.bounds_, classifier.n_iter_ = bounds, max(map(len, bounds))
    if classifier.class_prior is None:
        weights = np.ones(len(target)) if sample_weight is None else np.asarray(sample_weight)
        number = np.searchsorted(classifier.classes_, target)
        classifier.class_log_prior_ = classifier._log_prior(np.bincount(number, weights=weights).astype(np.float64))
    return classifier


def _go_on(
    estimator: Any, network: Network, source: _Partitions | _Blocks, rows: Rows, generator: np.random.Generator
) -> FitResult:
    """All rows of a source, from the network that `rows`, some of them, have given."""
    settings, report = estimator._settings(), getattr(estimator, "report_", None)
    if report is not None:  # the scales that the sample has chosen
        settings = replace(settings, prior=report.priors)
    if not network.is_binary and settings.steps_are_ours:
        settings = replace(settings, learning_rate=GENTLE)
    settings = replace(settings, batch_size=max(settings.batch_size, source.fewest))
    epochs = source.epochs if is_auto(settings.epochs) else settings.epochs
    elsewhere = source.states(estimator, network), source.settings
    return _learning.learn(settings, network, rows, generator, epochs=epochs, source=elsewhere)


def _states(estimator: Any, network: Network, table: Any, kept: BoolArray | None) -> States:
    """Where the rows are: those of a partition or of a block in the places of their units."""
    if kept is not None:
        table = _taken(table, np.flatnonzero(kept))
    if not len(table):
        return np.empty((0, network.n_units), np.int8)
    return place(network, estimator._table(table, reset=False)[0].cells, estimator._names())


class _Partitions:
    """A Dask collection: all its rows are looked at in one place, or as many of each partition as its share is."""

    epochs = EPOCHS

    def __init__(self, X: Any, sample_weight: Any, settings: Any, *, cells: int | None = None) -> None:
        self._X = X
        self._kept: list[BoolArray] | None = None
        pieces, fraction = lazy.Partitions.of(X).pieces, settings.validation_fraction
        patience = None if fraction is None else settings.patience
        self.settings = {"validation": fraction, "patience": patience, "sample_weight": sample_weight}
        self.fewest = 10 * len(pieces)  # rows of a step that are worth the tasks
        self.counts = np.array(lazy.computed(lazy.mapped(len, (), pieces)))
        self.n = int(self.counts.sum())
        limit = max(LIMIT, (CELLS if cells is None else cells) // X.shape[1])
        self.is_all = self.n <= limit
        if not self.is_all:
            _check_orders(settings, limit, "a Dask table")
        rng = np.random.default_rng([_learning.make_seed(settings.random_state), 2])
        self.chosen: IndexArray = np.arange(self.n) if self.is_all else np.sort(rng.permutation(self.n)[:limit])
        self.weights = None if sample_weight is None else np.asarray(sample_weight)[self.chosen]
        ends = np.cumsum(self.counts)
        parts = np.split(self.chosen, np.searchsorted(self.chosen, ends[:-1]))
        rows = [part - first for part, first in zip(parts, ends - self.counts, strict=True)]
        found = lazy.computed(lazy.mapped(_taken, (), pieces, rows))
        found = [part for part in found if len(part)] or found[:1]
        is_frame = hasattr(X, "columns")
        self.sample = checks.extra("pandas", "a Dask data frame").concat(found) if is_frame else np.concatenate(found)

    def of(self, kept: BoolArray) -> _Partitions:
        """Some of the rows, those of a class."""
        part = copy.copy(self)
        part._kept = np.split(kept, np.cumsum(self.counts)[:-1])
        if self.settings["sample_weight"] is not None:
            part.settings = self.settings | {"sample_weight": np.asarray(self.settings["sample_weight"])[kept]}
        return part

    def states(self, estimator: Any, network: Network) -> Any:
        """A Dask array."""
        pieces = lazy.Partitions.of(ordered(estimator, self._X)).pieces
        choices = [None] * len(pieces) if self._kept is None else [lazy.once(part) for part in self._kept]
        states = lazy.mapped(_states, (bare(estimator), network), pieces, choices)
        return lazy.collected(states, (np.nan,) * len(states), np.empty((0, network.n_units), np.int8))


class _Blocks:
    """A stream: rows drawn from all of it are looked at in one place; of an iterator, some of the first."""

    weights = None
    fewest = 1

    def __init__(self, X: Any, sample_weight: Any, settings: Any) -> None:
        if sample_weight is not None:
            raise ParameterError("sample_weight goes with a table; from a stream every row counts once")
        self._seed, self._once = _learning.make_seed(settings.random_state), is_once(X)
        self._X: Any = Files(X) if isinstance(X, str | os.PathLike) else X
        rng, self.epochs = np.random.default_rng([self._seed, 2]), 1 if self._once else EPOCHS
        first, count = [], 0
        for block in X if self._once else ():
            first.append(block)
            count += len(_block(block))
            if count > _limit(_block(block)):
                break
        self.sample, self.n = _drawn(iter(first) if self._once else blocks_of(self._X), rng)
        self.is_all = self.n == len(self.sample)
        if self._once:
            self._X = chain(first, X)
        if not self.is_all:
            _check_orders(settings, len(self.sample), "a stream")
            if self._once and not is_auto(settings.epochs) and settings.epochs != 1:
                raise ParameterError(
                    f"epochs is {settings.epochs!r}, but an iterator can be gone through once; give a function that "
                    "makes one, or epochs=1"
                )
        self.settings = {"threads": _learning.threads(settings), "executor": settings.executor}

    def states(self, estimator: Any, network: Network) -> Any:
        """An iterator of blocks, or a function that makes one for each epoch."""
        rng = np.random.default_rng([self._seed, 3])

        def once() -> Iterator[States]:
            self.n = 0
            for block in blocks_of(self._X, rng):
                states = _states(estimator, network, ordered(estimator, block), None)
                self.n += len(states)
                yield states

        return once() if self._once else once


def _limit(block: Any) -> int:
    """Rows that are looked at in one place, by how many columns there are."""
    width = len(block[0]) if isinstance(block, list) and block else np.shape(block)[-1]
    return max(LIMIT, CELLS // max(width, 1))


def _drawn(blocks: Iterator[Any], rng: np.random.Generator) -> tuple[Any, int]:
    """At most so many rows as are looked at, in their order, each with the same probability, and how many there are.

    Each row has a random number, and those with the least are kept.
    """
    held: list[tuple[Any, FloatArray]] = []
    count, n, limit = 0, 0, LIMIT
    for block in map(_block, blocks):
        held.append((block, rng.random(len(block))))
        count, n, limit = count + len(block), n + len(block), _limit(block)
        if count > 2 * limit:
            held, count = _thinned(held, limit), limit
    if not n:
        raise ParameterError("there are no rows to learn from")
    found = [block for block, numbers in _thinned(held, limit) if len(numbers)]
    if isinstance(found[0], nw.DataFrame):
        return nw.concat([block.select(found[0].columns) for block in found]).to_native(), n
    return list(chain.from_iterable(found)) if isinstance(found[0], list) else np.concatenate(found), n


def _thinned(held: list[tuple[Any, FloatArray]], limit: int) -> list[tuple[Any, FloatArray]]:
    """The rows with the least numbers."""
    numbers = np.concatenate([own for _, own in held])
    if len(numbers) <= limit:
        return held
    first = np.partition(numbers, limit)[limit]
    found = []
    for block, own in held:
        rows = np.flatnonzero(own < first)
        found.append(([block[r] for r in rows] if isinstance(block, list) else block[rows], own[rows]))
    return found


def _block(block: Any) -> Any:
    """A data frame of any kind, a list of records or an array; each knows its length and can be indexed by rows."""
    frame = as_frame(block)
    return frame if frame is not None else list(block) if is_records(block) else as_array(block)


def _taken(table: Any, rows: IndexArray) -> Any:
    return table.iloc[rows] if hasattr(table, "columns") else table[rows]


def _check_orders(settings: Any, limit: int, what: str) -> None:
    if settings.orders > 1:
        raise ParameterError(f"a mixture is learned from {limit:,} rows at most of {what}; set orders=1")


F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=Any)


def by_partition(method: F) -> F:
    """A method of rows, which for a Dask collection becomes a task for each partition: lazy in, lazy out."""

    @wraps(method)
    def either(self: Any, X: Any) -> Any:
        if not lazy.is_lazy(X):
            return method(self, X)
        check_is_fitted(self)
        names, blank = getattr(self, "feature_names_in_", None), np.full((1, self.n_features_in_), np.nan)
        if names is not None:
            blank = checks.extra("pandas", "a Dask data frame").DataFrame(blank, columns=list(names))
        parts, meta = lazy.Partitions.of(ordered(self, X)), method(self, blank)[:0]
        shared = (method.__name__, bare(self), meta)
        pieces = lazy.mapped(_answered, shared, parts.pieces, range(len(parts.pieces)))
        return lazy.collected(pieces, parts.sizes, meta)

    return cast(F, either)


def transforms_by_partition(transformer: C) -> C:
    """`transform` of a class :func:`by_partition`, outside of scikit-learn's ``set_output``, which would compute a lazy
    answer to put it into a frame.
    """
    at_once, transform = transformer.fit_transform, by_partition(transformer.transform)

    @wraps(at_once)
    def fit_transform(self: Any, X: Any, y: Any = None, **settings: Any) -> Any:
        return self.fit(X, y, **settings).transform(X) if lazy.is_lazy(X) else at_once(self, X, y, **settings)

    transformer.transform, transformer.fit_transform = transform, fit_transform
    return transformer


def _answered(name: str, estimator: Any, nothing: Any, table: Any, number: int) -> Any:
    """In a worker: one partition, to which the estimators of scikit-learn would object if it has no rows.

    Draws depend on where a row stands; so that they are not the same in every partition, each has a seed of its own.
    """
    if not len(table):
        return nothing
    if get_tags(estimator).non_deterministic:
        seed = make_seed(estimator._settings().random_state)
        estimator = copy.copy(estimator)
        estimator.random_state = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    return getattr(estimator, name)(table)


def bare(estimator: Any) -> Any:
    """A copy that can travel, and that works in one thread: a worker has several tasks at once."""
    copied = copy.copy(estimator)
    if get_tags(estimator).non_deterministic:
        copied.random_state = make_seed(estimator._settings().random_state)  # once, for all partitions
    copied.n_jobs = 1 if estimator.n_jobs is None else estimator.n_jobs
    return copied


def ordered(estimator: Any, X: Any) -> Any:
    """A data frame of any kind, or a Dask one, with its columns as they were learned from."""
    names = getattr(estimator, "feature_names_in_", None)
    frame: Any = X if lazy.is_lazy(X) else as_frame(X)
    if names is None or not hasattr(frame, "columns") or set(names) != set(frame.columns):
        return X
    return frame[list(names)] if frame is X else frame.select(list(names)).to_native()
