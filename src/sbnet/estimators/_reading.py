"""Tables read by a schema, with the checks that scikit-learn asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_X_y, validate_data

from sbnet._types import States
from sbnet.errors import ParameterError, TableError
from sbnet.model.states import MOST_STATES
from sbnet.tables import frames
from sbnet.tables.schema import Schema


def checked(estimator: Any, X: Any, *, reset: bool) -> Any:
    """A data frame, records or a mapping as they are, and all else as an array of two dimensions; or scikit-learn's
    error. With `reset` the names and the number of columns are kept.
    """
    named = _has_names(X)
    if scipy.sparse.issparse(X):
        raise TypeError("the table is sparse, and sparse data is not supported; X.toarray() makes it dense")
    if frames.as_frame(X) is None and not named:
        # Lists as objects, for numbers beside text would become text; and masked cells as missing ones.
        X = frames.as_array(X) if isinstance(X, Sequence | np.ma.MaskedArray) else X
        X = check_array(X, dtype=None, ensure_all_finite=False, estimator=estimator)
    elif not len(X) or (isinstance(X, dict) and not len(next(iter(X.values())))):
        raise TableError(f"the table has 0 sample(s); a minimum of 1 is required by {type(estimator).__name__}")
    if not named:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    elif not reset:
        _check_names(estimator, X)
    return X


def _has_names(X: Any) -> bool:
    """Records, a mapping of columns, or an array with fields?"""
    return frames.is_records(X) or isinstance(X, dict) or bool(getattr(getattr(X, "dtype", None), "names", None))


def _check_names(estimator: Any, X: Any) -> None:
    """Records and mappings have names but no order, and may leave some out; they may not have others."""
    found = set().union(*X) if frames.is_records(X) else set(X if isinstance(X, dict) else X.dtype.names)
    strange = found - set(getattr(estimator, "feature_names_in_", found))
    if strange:
        name = min(strange, key=str)
        raise TableError(f"the records name a column {name!r}, which the table that was learned from did not have")


def learned(estimator: Any, X: Any, columns: Any, missing: Any, weights: Any, y: Any = None) -> Schema:
    """How the columns of a table are read, beside a label if there is one; an error if that leaves nothing to learn."""
    classes = None if y is None else np.unique(y, return_inverse=True)[1]
    schema = Schema.learn(X, columns, missing=missing, weights=weights, classes=classes)
    if not schema.variables:
        one = "; n_samples = 1" if len(X) == 1 else ""
        raise ParameterError(f"no column of the table has two different values, so there is nothing to learn{one}")
    wide = next((column for column in schema.variables if len(column.states) > MOST_STATES), None)
    if wide is not None:
        raise TableError(f"column {wide.name!r} has {len(wide.states)} states; at most {MOST_STATES} are taken")
    if _has_names(X):  # which have names, but nothing that scikit-learn could see
        estimator.n_features_in_ = len(schema.columns)
        estimator.feature_names_in_ = np.array([column.name for column in schema.columns], dtype=object)
    return schema


def encoded(schema: Schema, X: Any) -> States:
    """Rows of states; -1 where a cell is missing."""
    cells: States = schema.encode(X).astype(np.int8)
    return cells


def target(estimator: Any, X: Any, y: Any) -> Any:
    """The class of each row of a table, checked."""
    n = len(next(iter(X.values()))) if isinstance(X, dict) else len(X)
    classes = check_X_y(np.zeros((n, 1)), y, dtype=None, estimator=estimator)[1]
    check_classification_targets(classes)
    if len(np.unique(classes)) > MOST_STATES:
        raise ParameterError(f"y has {len(np.unique(classes))} classes; at most {MOST_STATES} are told apart")
    return classes
