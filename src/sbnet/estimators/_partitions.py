"""Answers of estimators to Dask collections: lazy where the table is, computed where its partitions lie."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sbnet import checks
from sbnet.estimators._learning import make_seed
from sbnet.parallel import lazy

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=Any)


def by_partition(method: F) -> F:
    """A method of rows, which for a Dask collection becomes a task for each partition: lazy in, lazy out."""

    @wraps(method)
    def either(self: Any, X: Any) -> Any:
        return _lazily(self, method, X) if lazy.is_lazy(X) else method(self, X)

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


def _lazily(estimator: Any, method: Callable[..., Any], X: Any) -> Any:
    parts = lazy.Partitions.of(ordered(estimator, X))
    meta = method(estimator, _blank(estimator))[:0]
    shared = (method.__name__, bare(estimator), meta)
    pieces = lazy.mapped(_answered, shared, parts.pieces, range(len(parts.pieces)))
    return lazy.collected(pieces, parts.sizes, meta)


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
