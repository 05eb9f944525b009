"""A transformer from tables of categories and numbers to tables of zeros and ones, and back."""

from __future__ import annotations

import html
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import (
    _check_feature_names,
    _check_feature_names_in,
    _check_n_features,
    _check_sample_weight,
    check_array,
    check_is_fitted,
)

from sbnet import checks
from sbnet._types import FloatArray, IndexArray
from sbnet.errors import CodingWarning, ParameterError, TableError
from sbnet.estimators import _given
from sbnet.estimators._originals import Originals
from sbnet.estimators.codings import ColumnCoding, Kind, Rules
from sbnet.estimators.settings import count
from sbnet.tables.frames import Sheet, as_array, as_frame, is_records, sheet


def checked_table(estimator: Any, X: Any) -> Any:
    """A data frame or records as they are; all else as an array of two dimensions, or scikit-learn's error."""
    if as_frame(X) is None and not is_records(X):
        # Lists as objects, for numbers beside text would become text; and masked cells as missing ones.
        X = as_array(X) if isinstance(X, Sequence | np.ma.MaskedArray) else X
        return check_array(X, dtype=None, ensure_all_finite=False, estimator=estimator)
    if not len(X):
        raise TableError(f"the table has 0 sample(s); a minimum of 1 is required by {type(estimator).__name__}")
    return X


class Columns(tuple[ColumnCoding, ...]):
    """How the columns of a table were read; one line for each when printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


class BinaryEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Categories and numbers as units of 0 and 1, with NaN where a cell is missing; and back.

    How a column is read follows from what it holds in fitting:

    ====================================================  ======================================================
    a column of                                           becomes
    ====================================================  ======================================================
    two values: truth values, 0 and 1, "no" and "yes"     one unit: ``smoker``, or ``smoker=yes``
    one value and blanks, as where all that apply are     one unit, 0 where the cell is blank, with a warning: a blank
    ticked; not 0 and blanks                              is "not chosen", and no cell is missing
    ordered categories (those of `ordered`, too)          a thermometer, a unit for each step: ``size>S``, ``size>M``
    text, or categories without an order                  one unit for each category: ``colour=red``, …
    whole numbers, at most `n_levels` different ones      a thermometer of its levels: ``rating>1``, ``rating>2``, …
    whole numbers, 20 or more, no two of them equal       nothing, with a warning: see `identifiers`
    other numbers                                         a thermometer of quantiles: ``age>31``, ``age>45``, …
    ====================================================  ======================================================

    Parameters
    ----------
    n_bins : int
        Intervals of a number, with about equally many training rows in each.
    n_levels : int
        Whole numbers with at most that many different values keep each of them.
    drop : {None, "most_frequent"}
        Leave out the unit of the most frequent category, which is then the state with all units at 0. It is what the
        estimators do inside: as many units as a category has values would be one too many.
    ordered : mapping or None
        Columns whose values have an order, lowest first: ``{"size": ["S", "M", "L"]}``.
    missing : sequence
        Values that mean "missing", beside NaN and None: ``("don't know", 99)``.
    handle_unknown : {"error", "missing"}
        What to do with a category that was not there in fitting. Numbers are compared with thresholds, so they are
        always known, unless the column had two values only.
    identifiers : {"leave out", "keep"}
        What to do with a column of 20 or more whole numbers of which no two are equal. Such numbers name rows, and say
        nothing of others; so they are left out, with a :class:`~sbnet.errors.CodingWarning`, and their cells stay as
        they are. ``"keep"`` takes them as measurements.

    Attributes
    ----------
    columns_ : tuple of ColumnCoding
        How each column was read; prints as one line for each.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If the table had names.

    Examples
    --------
    >>> import pandas as pd
    >>> from sbnet.estimators import BinaryEncoder
    >>> table = pd.DataFrame({"colour": ["red", "blue", "green", None], "smoker": ["no", "yes", None, "no"]})
    >>> table["weight"] = [71.5, 84.25, 66.0, 90.5]
    >>> encoder = BinaryEncoder(n_bins=2).fit(table)
    >>> encoder.columns_
    colour: categories, blue, green, red
    smoker: two values, no and yes
    weight: number, threshold at 80
    >>> encoder.transform(table)
    array([[ 0.,  0.,  1.,  0.,  0.],
           [ 1.,  0.,  0.,  1.,  1.],
           [ 0.,  1.,  0., nan,  0.],
           [nan, nan, nan,  0.,  1.]])
    >>> encoder.inverse_transform([[0.1, 0.2, 0.7, 0.9, 0.3]])
      colour smoker  weight
    0    red    yes    66.0
    """

    def __init__(
        self,
        *,
        n_bins: int = 4,
        n_levels: int = 7,
        drop: str | None = None,
        ordered: Mapping[Any, Sequence[Any]] | None = None,
        missing: Any = (),
        handle_unknown: str = "error",
        identifiers: str = "leave out",
    ) -> None:
        self.n_bins = n_bins
        self.n_levels = n_levels
        self.drop = drop
        self.ordered = ordered
        self.missing = missing
        self.handle_unknown = handle_unknown
        self.identifiers = identifiers

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BinaryEncoder:
        """Decide how each column is read.

        Parameters
        ----------
        X : table
            Any table that :func:`sbnet.infer_many` takes: an array, a data frame of any library, a list of mappings.
        y
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            Weights count as repetitions, in quantiles and frequencies; a row of weight zero is no row.

        Returns
        -------
        BinaryEncoder
        """
        checks.choice("drop", self.drop, (None, "most_frequent"))
        checks.choice("handle_unknown", self.handle_unknown, ("error", "missing"))
        checks.choice("identifiers", self.identifiers, ("leave out", "keep"))
        for name in ("n_bins", "n_levels"):
            count(name, getattr(self, name), 2)
        rules = Rules(int(self.n_bins), int(self.n_levels), self.drop, self.identifiers)
        found = self._sheet(X, reset=True)
        order = self._order(found)
        weights = _check_sample_weight(sample_weight, np.empty((found.n_rows, 1)), dtype=np.float64)
        if np.any(weights < 0.0) or not np.any(weights > 0.0):
            raise ParameterError("sample_weight must not be negative, nor zero in all rows")
        codings = rules.codes(found.columns, weights, order)
        units = [unit for coding in codings for unit in coding.units]
        twice = next((unit for k, unit in enumerate(units) if unit in units[:k]), None)
        if twice is not None:
            raise TableError(f"two columns would have a unit {twice!r}; rename one of the columns")
        _warn(codings)
        self.columns_ = Columns(codings)
        self._originals = Originals.of(X, codings, [column.name for column in found.columns])
        return self

    def transform(self, X: Any) -> FloatArray:
        """Zeros and ones, a column for each unit; NaN where a cell is missing."""
        return self._units(self.read(X))

    def _units(self, index: IndexArray) -> FloatArray:
        parts = [coding.states(index[:, k]) for k, coding in enumerate(self.columns_)]
        return np.hstack(parts)

    def read(self, X: Any) -> IndexArray:
        """The number of each cell's value, rows by columns, in the order of ``columns_[k].labels``; -1 if missing."""
        return self._read(X, self.handle_unknown)

    def _read(self, X: Any, handle_unknown: str) -> IndexArray:
        check_is_fitted(self)
        columns = self._sheet(X, reset=False).columns
        pairs = zip(columns, self.columns_, strict=True)
        return np.column_stack([coding.read(column, handle_unknown) for column, coding in pairs])

    def inverse_transform(self, X: Any) -> Any:
        """The table that these units stand for: the most probable value of each column.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_units)
            Zeros and ones, or means between them. A cell is missing where one of its units is NaN.

        Returns
        -------
        table
            Of the same kind as in fitting, with the same types of columns: a pandas table for a pandas table. Numbers
            are the medians of the training values in their intervals.
        """
        check_is_fitted(self)
        means: FloatArray = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
        starts = np.cumsum([0, *(len(coding.units) for coding in self.columns_)])
        if means.shape[1] != starts[-1]:
            raise ParameterError(f"the table has {means.shape[1]} columns; the encoder makes {starts[-1]} units")
        if np.any((means < 0.0) | (means > 1.0)):
            raise ParameterError("means must lie between 0 and 1")
        index = [coding.most_probable(means[:, starts[k] : starts[k + 1]]) for k, coding in enumerate(self.columns_)]
        return self.table(np.column_stack(index))

    def fill(self, X: Any, index: IndexArray) -> Any:
        """The table with some of its cells replaced by values that columns had in fitting.

        Parameters
        ----------
        X
            A table.
        index : ndarray of int, rows by columns
            The number of the new value, as :meth:`read` counts them; -1 leaves the cell as it is.
        """
        check_is_fitted(self)
        return self._originals.fill(X, index)

    def table(self, index: IndexArray) -> Any:
        """A table, of the kind that was there in fitting, of the values with these numbers; -1 is a missing cell."""
        check_is_fitted(self)
        return self._originals.table(index)

    @property
    def values_(self) -> Any:
        """For each column a cell of each of its values, as they stood in the table that was learned from."""
        check_is_fitted(self)
        return self._originals.columns

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the units."""
        check_is_fitted(self)
        _check_feature_names_in(self, input_features)
        return np.array([unit for coding in self.columns_ for unit in coding.units], dtype=object)

    def _sheet(self, X: Any, *, reset: bool) -> Sheet:
        """The columns of a table, after scikit-learn's checks of its shape and names."""
        if is_records(X):
            return _given._by_name(self, sheet(X, self.missing), reset)
        X = checked_table(self, X)
        _check_feature_names(self, X, reset=reset)
        found = sheet(X, self.missing)
        if reset:
            self.n_features_in_ = len(found.columns)
        elif len(found.columns) != self.n_features_in_:
            _check_n_features(self, X, reset=False)
        return found

    def _order(self, found: Sheet) -> dict[Any, Sequence[Any]]:
        if self.ordered is not None and not isinstance(self.ordered, Mapping):
            raise ParameterError(f'ordered is {checks.shown(self.ordered)}; give a mapping: {{"size": ["S", "M"]}}')
        order = dict(self.ordered or {})
        for name, values in order.items():
            if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str | bytes) or not len(values):
                raise ParameterError(f"ordered of {name!r} is {checks.shown(values)}; list its values, lowest first")
        names = [column.name for column in found.columns]
        strange = [name for name in order if name not in names]
        if strange:
            raise ParameterError(f"ordered names column {strange[0]!r}, which is not in the table")
        return order


def _warn(codings: Sequence[ColumnCoding]) -> None:
    """Name the columns that were read in a way that may surprise."""
    told = {
        Kind.CHOSEN: "one value and blanks: read as chosen or not chosen, a blank as not chosen. If blanks are answers "
        "that are missing, leave such columns out: they tell nothing",
        Kind.IDENTIFIER: "whole numbers of which no two are equal: left out, as they name rows. If they are "
        "measurements, take BinaryEncoder(identifiers='keep')",
    }
    for kind, text in told.items():
        names = [coding.name for coding in codings if coding.kind is kind]
        if names:
            shown = ", ".join(repr(name if len(name) <= 40 else f"{name[:39]}…") for name in names[:20])
            more = f" and {len(names) - 20} more" if len(names) > 20 else ""
            verb = "column {} holds" if len(names) == 1 else "columns {} hold"
            warnings.warn(f"{verb.format(shown + more)} {text}", CodingWarning, stacklevel=3)
