"""An outlier detector for tables with missing values, which says which cells make a row unlikely."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from sbnet import checks
from sbnet._types import FloatArray, IndexArray
from sbnet.errors import ParameterError
from sbnet.estimators._base import ScoresRows
from sbnet.estimators._explain import Explanations, explain_rows
from sbnet.estimators._given import codings_of
from sbnet.estimators._large import by_partition
from sbnet.estimators.density import FromTemplate, SBNDensity
from sbnet.estimators.settings import Training
from sbnet.inference.solvers.places import Place
from sbnet.learning.streams import is_stream
from sbnet.tables.words import shown


class SBNOutlier(ScoresRows, OutlierMixin, FromTemplate):  # type: ignore[misc]
    """Rows that a density learned from the table, an :class:`SBNDensity`, finds improbable.

    The score of a row is a lower bound on the logarithm of its probability, over its observed cells, in nats. Cells may
    be missing (NaN), in learning and in use: nothing is imputed, and a row with fewer cells has less to be odd with.
    :doc:`/guide/outliers` shows how to use it, :doc:`/explain/why_bounds_hold` why scores are bounds.

    Parameters
    ----------
    density, hidden, columns, missing, settings, random_state, verbose : as in :class:`SBNClassifier`
        For the one network that there is.
    n_jobs : int or None
        Number of threads. None leaves it to `density`; None there too, or -1, is all cores.
    contamination : "auto" or float
        The share of outliers among the training rows, above 0 and up to 0.5, which sets the threshold. ``"auto"`` puts
        it one and a half times the interquartile range of the training scores below their lower quartile, so that
        rows which stand apart are outliers; or at their lowest hundredth, where hardly any row does.

    Attributes
    ----------
    offset_ : float
        The threshold in nats: rows with a lower score are outliers.
    network_, bounds_, held_out_bounds_, n_iter_, schema_, n_features_in_, feature_names_in_ : as there
        As in :class:`SBNDensity`.

    Examples
    --------
    >>> import numpy as np
    >>> from sbnet.estimators import SBNOutlier
    >>> X = np.array([[1, 1, 1, 0], [1, 1, np.nan, 0], [0, 0, 0, 1], [0, np.nan, 0, 1]] * 25)
    >>> outlier = SBNOutlier(hidden=2, random_state=0).fit(X)
    >>> outlier.predict([[1, 1, 1, 0], [1, 1, 1, 1], [np.nan, 1, np.nan, 1]])
    array([ 1, -1, -1])
    >>> outlier.explain([[1, 1, 1, 1]])[0].names[0]  # the cell that is least likely given the others
    'x3'
    """

    def __init__(
        self,
        *,
        density: SBNDensity | None = None,
        hidden: Any = None,
        columns: Any = None,
        missing: Any = None,
        contamination: Any = "auto",
        settings: Training | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int | None = None,
    ) -> None:
        self.density = density
        self.hidden = hidden
        self.columns = columns
        self.missing = missing
        self.settings = settings
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.contamination = contamination

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SBNOutlier:
        """Learn a network from a table, as :meth:`SBNDensity.fit` does, and the threshold from its scores.

        Parameters
        ----------
        X : table
            A table of any kind, with missing cells.
        y : ignored
            Not used.
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        SBNOutlier
            Itself.
        """
        share = _share(self.contamination)
        if is_stream(X):
            raise ParameterError("the rows are scored once more for a threshold; give a table, or a Dask collection")
        self._fit_one(X, sample_weight)
        scores = np.asarray(self.score_samples(X))
        weights = _check_sample_weight(sample_weight, scores[:, None], dtype=np.float64)
        if share is None:
            least, low, high = (_quantile(scores, weights, at) for at in (0.01, 0.25, 0.75))
            self.offset_ = max(least, low - 1.5 * (high - low))
        else:
            self.offset_ = _quantile(scores, weights, share)
        return self

    @by_partition
    def decision_function(self, X: Any) -> FloatArray:
        """Nats above the threshold; negative for outliers.

        Parameters
        ----------
        X : table
            Rows to judge.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.score_samples(X) - self.offset_

    @by_partition
    def predict(self, X: Any) -> IndexArray:
        """-1 for outliers, 1 for all other rows.

        Parameters
        ----------
        X : table
            Rows to judge.

        Returns
        -------
        ndarray of int, shape (n_samples,)
        """
        return np.where(self.decision_function(X) < 0.0, -1, 1)

    def explain(self, X: Any) -> Explanations:
        """Which cells make each row unlikely: how many nats each of them costs, given the others of its row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to explain.

        Returns
        -------
        Explanations
            An :class:`Explanation` for each row, to print, to draw or to turn into a pandas table.
        """
        check_is_fitted(self)
        states, labels = self._states(self.network_, self._table(X, reset=False)[0]), getattr(X, "index", None)
        if labels is None or callable(labels):  # not the index of a pandas table; a list has a method index
            labels = range(len(states))
        return explain_rows(states, self._explained(), self._bounds, labels)

    def _explained(self) -> list[Place]:
        """The columns, each with its states; of two values with these."""
        found, variables = [], self.schema_.variables
        words = [column.states for column in variables]
        if self._is_binary():
            words = [tuple(shown(v).strip("'") for v in (own.zero, own.one)) for own in codings_of(self.schema_)]
        for column, labels in zip(variables, words, strict=True):
            unit, codes = self.network_.index(column.name), np.arange(len(labels), dtype=np.int8)[:, None]
            found.append(Place(column.name, np.array([unit]), codes, labels))
        return found


def _share(contamination: Any) -> float | None:
    """The share of outliers; None where the scores are to decide."""
    if isinstance(contamination, str) and contamination == "auto":
        return None
    number = isinstance(contamination, int | float | np.integer | np.floating) and not isinstance(contamination, bool)
    if not number or not 0.0 < contamination <= 0.5:
        raise ParameterError(
            f"contamination is {checks.shown(contamination)}; give 'auto', or a share above 0 and up to 0.5"
        )
    return float(contamination)


def _quantile(scores: FloatArray, weights: FloatArray, share: float) -> float:
    """The weighted quantile of scores; half-way between two scores where they divide the weight exactly."""
    order = np.argsort(scores, kind="stable")
    order = order[weights[order] > 0.0]
    below, slack = np.cumsum(weights[order]), 1e-12 * weights.sum()
    wanted = share * below[-1]
    last = len(order) - 1
    low = min(int(np.searchsorted(below, wanted - slack, side="left")), last)
    high = min(int(np.searchsorted(below, wanted + slack, side="right")), last)
    return float(0.5 * scores[order[low]] + 0.5 * scores[order[high]])
