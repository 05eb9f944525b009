"""What the estimators share: a checked table, a network learned from it, posteriors of its rows, filled cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, validate_data

from sbnet._types import HIDDEN, FloatArray, States
from sbnet.errors import ParameterError
from sbnet.estimators import _learning
from sbnet.estimators._places import BINARY, Place
from sbnet.estimators._rows import Rows, columns, place
from sbnet.inference import PosteriorBatch, infer_many
from sbnet.network import Network

if TYPE_CHECKING:
    from sbnet.estimators.density import SBNDensity


class SBNEstimator(BaseEstimator):  # type: ignore[misc]
    """The part of an estimator that does not depend on what it is for."""

    bounds_: Any
    _n_hidden: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _settings(self) -> SBNDensity:
        """The arguments in force; they are read at each call."""
        raise NotImplementedError

    def _names(self) -> tuple[str, ...]:
        """Of the columns; those of a table without names are called as :func:`sbnet.layered` calls its units."""
        names = getattr(self, "feature_names_in_", None)
        return tuple(f"x{k}" for k in range(self.n_features_in_)) if names is None else tuple(names)

    def _table(self, X: Any, *, reset: bool, y: Any = "no_validation") -> Any:
        """Checked numbers with NaN, as they came; with `y`, both."""
        return validate_data(self, X, y, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")

    def _cells(self, table: FloatArray) -> States:
        """0, 1 or -1 (not observed) for each cell."""
        binarize, missing = self._settings().binarize, np.isnan(table)
        if binarize is None:
            good = missing | (table == 0.0) | (table == 1.0)
            if not good.all():
                row, column = (int(k) for k in np.argwhere(~good)[0])
                raise ParameterError(
                    f"column {column} ({self._names()[column]!r}) holds {table[row, column].item()!r} in row {row}; "
                    "with binarize=None cells are 0, 1 or NaN. Give a threshold, such as binarize=0.0"
                )
        cells: States = (table > (0.0 if binarize is None else binarize)).astype(np.int8)
        cells[missing] = HIDDEN
        return cells

    def _rows(self, table: FloatArray, sample_weight: Any) -> Rows:
        """The rows to learn from, those of weight zero among them."""
        weights: FloatArray = _check_sample_weight(sample_weight, table, dtype=np.float64)
        if np.any(weights < 0.0) or not np.any(weights > 0.0):
            raise ParameterError("sample_weight must not be negative, nor zero in all rows")
        return Rows(self._cells(table), weights, self._names())

    def _states(self, network: Network, table: FloatArray) -> States:
        return place(network, self._cells(table), self._names())

    def _infer(self, network: Network, states: States) -> PosteriorBatch:
        settings = self._settings()
        solver, threads = _learning.solver(settings), _learning.threads(settings)
        return infer_many(network, states, solver=solver, threads=threads, progress=None if settings.verbose else False)

    def _bounds(self, network: Network, states: States) -> FloatArray:
        """Lower bounds on the log-likelihood of the rows."""
        return self._infer(network, states).bound

    def _places(self, network: Network) -> list[Place]:
        """The columns as units of the network."""
        names = self._names()
        units = columns(network, names)
        return [Place(name, units[k : k + 1], BINARY, ("0", "1")) for k, name in enumerate(names)]

    def _fit_one(self, X: Any, sample_weight: Any) -> tuple[np.random.Generator, float]:
        """Learn one network for a whole table; the generator and the sum of the weights are returned."""
        rows, settings = self._rows(self._table(X, reset=True), sample_weight), self._settings()
        generator = np.random.default_rng(_learning.make_seed(settings.random_state))
        # A row of weight zero is no row, in the division into batches too.
        result = _learning.learn_from_scratch(settings, rows.keep(rows.weights > 0.0), generator)
        self.network_, self.bounds_, self.held_out_bounds_ = result.network, result.bounds, result.held_out
        self.n_iter_, self._n_hidden = len(self.bounds_), sum(_learning.layers(settings.hidden))
        return generator, float(rows.weights.sum())

    def _fill(self, table: FloatArray, values: Any) -> FloatArray:
        """The table with its NaN replaced by `values` of the posteriors of the rows that have some."""
        filled = table.copy()
        missing = np.isnan(table)
        rows = np.flatnonzero(missing.any(axis=1))
        if len(rows):
            posterior = self._infer(self.network_, self._states(self.network_, table[rows]))
            found = values(posterior)[:, columns(self.network_, self._names())]
            filled[rows] = np.where(missing[rows], found, table[rows])
        return filled
