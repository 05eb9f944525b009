"""A classifier for binary tables with holes: one network for each class."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from sbnet._types import FloatArray
from sbnet.errors import ParameterError
from sbnet.estimators._learning import make_seed
from sbnet.estimators._mixtures import learn
from sbnet.estimators._partitions import by_partition, fit_classes
from sbnet.estimators._template import FromTemplate
from sbnet.estimators.density import SBNDensity
from sbnet.lazy import is_lazy
from sbnet.learning import FitResult


class SBNClassifier(ClassifierMixin, FromTemplate):  # type: ignore[misc]
    """A sigmoid belief network for each class, and Bayes' rule, as in section 4 of the paper.

    A row belongs to the class whose network gives it the highest bound plus logarithm of the class's prior. Cells may
    be missing (NaN), in learning and in use; a row without any observed cell has the priors as its probabilities.

    Probabilities come from bounds, not from likelihoods, so they are off by the difference between the slacks of two
    classes; ``sklearn.calibration.CalibratedClassifierCV`` mends that.

    Parameters
    ----------
    density : SBNDensity or None
        How each network is learned: a template with all settings, which is copied, not fitted. None is
        ``SBNDensity()``. Its arguments may be set from here, as ``density__epochs``.
    hidden, binarize, encode, missing, random_state, verbose
        As in :class:`SBNDensity`. Where given they take the place of those of `density`; None leaves them to it. Two
        different `hidden` are refused.
    n_jobs : int or None
        Processes that learn networks at the same time, and threads for scoring. None leaves it to `density`; None
        there too learns one network after the other. Results do not depend on it.
    executor : concurrent.futures.Executor or None
        As in :class:`SBNDensity`, if networks are learned one after the other, and for scoring.
    class_prior : array-like of shape (n_classes,) or None
        Probabilities of the classes, in the order of `classes_`; None for their share of the training rows.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    networks_ : list of Network
        One for each class.
    mixtures_ : list of tuple of Network
        All networks of each class; with ``orders=1`` in the template, the one in `networks_`.
    class_log_prior_ : ndarray
        Logarithms of the priors.
    bounds_ : list of ndarray
        Mean bound of each epoch for each class, in nats, measured while the weights were moving.
    n_iter_ : int
        Epochs done, the largest number of all classes.
    codings_, n_features_in_, feature_names_in_
        As in :class:`SBNDensity`.

    Examples
    --------
    >>> import numpy as np
    >>> from sbnet.estimators import SBNClassifier
    >>> X = np.array([[1, 1, 0], [1, 1, np.nan], [0, 0, 1], [0, np.nan, 1]] * 25)
    >>> y = np.array(["left", "left", "right", "right"] * 25)
    >>> classifier = SBNClassifier(hidden=2, random_state=0).fit(X, y)
    >>> classifier.predict([[1, 1, np.nan], [np.nan, 0, 1]])
    array(['left', 'right'], dtype='<U5')
    """

    _AUTO: ClassVar[dict[str, Any]] = {"hidden": (8, 24), "switches": 0, "prior_scale": 2.0}

    def __init__(
        self,
        *,
        density: SBNDensity | None = None,
        hidden: Any = None,
        binarize: float | None = None,
        encode: Any = None,
        missing: Any = None,
        class_prior: Any = None,
        n_jobs: int | None = None,
        executor: Any = None,
        random_state: Any = None,
        verbose: int | None = None,
    ) -> None:
        super().__init__(
            density=density,
            hidden=hidden,
            binarize=binarize,
            encode=encode,
            missing=missing,
            n_jobs=n_jobs,
            executor=executor,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_prior = class_prior

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SBNClassifier:
        """Learn a network from the rows of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a cell is missing.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        SBNClassifier
        """
        if is_lazy(X):
            return fit_classes(self, X, y, sample_weight)
        table, y = self._table(X, y=y, reset=True, sample_weight=sample_weight)
        check_classification_targets(y)
        self.classes_, number = np.unique(y, return_inverse=True)
        rows, settings = self._rows(table, sample_weight), self._settings()
        share = np.bincount(number, weights=rows.weights, minlength=len(self.classes_)).astype(np.float64)
        self.class_log_prior_ = self._log_prior(share)
        # A class without weight has a prior of zero; its rows count as one each, so that it can be learned.
        weights = np.where(share[number] > 0.0, rows.weights, 1.0)
        parts = (replace(rows, weights=weights).keep((number == k) & (weights > 0.0)) for k in range(len(share)))
        seed, n_jobs, verbose = make_seed(settings.random_state), settings.n_jobs, settings.verbose
        if n_jobs not in (None, 1):  # processes for networks instead of threads for rows
            settings.set_params(n_jobs=1, verbose=0)
        jobs = (delayed(learn)(settings, part, np.random.default_rng([seed, k])) for k, part in enumerate(parts))
        found = Parallel(n_jobs=1 if n_jobs is None else n_jobs, verbose=int(verbose or 0))(jobs)
        results: list[FitResult] = [parts[0][0] for parts in found]
        self.networks_ = [result.network for result in results]
        self.mixtures_ = [tuple(result.network for result, _ in parts) for parts in found]
        self.bounds_ = [result.bounds for result in results]
        self.n_iter_ = max(len(bounds) for bounds in self.bounds_)
        return self

    @by_partition
    def decision_function(self, X: Any) -> FloatArray:
        """The bound plus the logarithm of the prior of each class, in nats; for two classes, second minus first."""
        joint = self._joint(X)
        return joint[:, 1] - joint[:, 0] if len(self.classes_) == 2 else joint

    @by_partition
    def predict(self, X: Any) -> Any:
        """The class with the highest bound plus logarithm of the prior."""
        joint = self._joint(X)
        return self.classes_[joint.argmax(axis=1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows that are given their class."""
        rows = (np.asarray(self.predict(X)), np.asarray(y)) if is_lazy(X) else (self.predict(X), y)
        return float(accuracy_score(rows[1], rows[0], sample_weight=sample_weight))

    @by_partition
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes, from bounds in the place of likelihoods."""
        return np.exp(self.predict_log_proba(X))

    @by_partition
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of :meth:`predict_proba`."""
        logs: FloatArray = log_softmax(self._joint(X), axis=1)
        return logs

    def _joint(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        table = self._table(X, reset=False)[0]
        bounds = [self._bounds(networks, self._states(networks[0], table)) for networks in self.mixtures_]
        joint: FloatArray = np.column_stack(bounds) + self.class_log_prior_
        return joint

    def _log_prior(self, share: FloatArray) -> FloatArray:
        prior = share / share.sum() if self.class_prior is None else np.asarray(self.class_prior, dtype=np.float64)
        if prior.shape != share.shape or np.any(prior < 0.0) or not np.isclose(prior.sum(), 1.0):
            raise ParameterError(
                f"class_prior is {self.class_prior!r}; "
                f"give a probability for each of the {len(share)} classes, with sum 1"
            )
        with np.errstate(divide="ignore"):
            logs: FloatArray = np.log(prior)
        return logs
