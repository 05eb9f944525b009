"""A classifier for binary tables with holes: one network for each class."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from sbnet._types import FloatArray
from sbnet.errors import ParameterError
from sbnet.estimators import _base
from sbnet.learning import FitResult


class SBNClassifier(ClassifierMixin, _base.SBNEstimator):  # type: ignore[misc]
    """A sigmoid belief network for each class, and Bayes' rule, as in section 4 of the paper.

    A row belongs to the class whose network gives it the highest bound plus logarithm of the class's prior. Cells may
    be missing (NaN), in learning and in use; a row without any observed cell has the priors as its probabilities.

    Probabilities come from bounds, not from likelihoods, so they are off by the difference between the slacks of two
    classes; ``sklearn.calibration.CalibratedClassifierCV`` mends that.

    Parameters
    ----------
    class_prior : array-like of shape (n_classes,) or None
        Probabilities of the classes, in the order of `classes_`; None for their share of the training rows.
    hidden, lateral, switches, epochs, batch_size, optimizer, learning_rate, prior_scale, \
lateral_prior_scale, solver, weight_scale, validation_fraction, patience, binarize, random_state, verbose
        As in :class:`SBNDensity`, for each network.
    n_jobs : int or None
        Processes that learn networks at the same time, and threads for scoring. None learns one network after the
        other. Results do not depend on it.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    networks_ : list of Network
        One for each class.
    class_log_prior_ : ndarray
        Logarithms of the priors.
    bounds_ : list of ndarray
        Mean bound of each epoch for each class, in nats, measured while the weights were moving.
    n_iter_ : int
        Epochs done, the largest number of all classes.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If the table had names.

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

    def __init__(
        self,
        *,
        hidden: Any = _base.HIDDEN_CLASSIFIER,
        class_prior: Any = None,
        lateral: bool = _base.LATERAL,
        switches: int = _base.SWITCHES,
        epochs: Any = _base.EPOCHS,
        batch_size: int = _base.BATCH_SIZE,
        optimizer: Any = _base.OPTIMIZER,
        learning_rate: float = _base.LEARNING_RATE,
        prior_scale: Any = _base.PRIOR_SCALE,
        lateral_prior_scale: float | None = _base.LATERAL_PRIOR_SCALE,
        solver: Any = None,
        weight_scale: float = _base.WEIGHT_SCALE,
        validation_fraction: float | None = None,
        patience: int | None = None,
        binarize: float | None = _base.BINARIZE,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden = hidden
        self.class_prior = class_prior
        self.lateral = lateral
        self.switches = switches
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.prior_scale = prior_scale
        self.lateral_prior_scale = lateral_prior_scale
        self.solver = solver
        self.weight_scale = weight_scale
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.binarize = binarize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

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
        table, y = self._table(X, y=y, reset=True)
        check_classification_targets(y)
        self.classes_, number = np.unique(y, return_inverse=True)
        weights, cells, recipe = self._weights(sample_weight, table), self._cells(table), self._recipe()
        share = np.bincount(number, weights=weights, minlength=len(self.classes_)).astype(np.float64)
        self.class_log_prior_ = self._log_prior(share)
        seed = _base.make_seed(self.random_state)
        in_turn = self.n_jobs in (None, 1)
        threads, progress = (self._threads(), bool(self.verbose)) if in_turn else (1, False)

        def task(k: int) -> Any:
            # A class without weight has a prior of zero; its rows count as one each, so that it can be learned.
            rows = (number == k) & ((weights > 0.0) | (share[k] == 0.0))
            start = np.random.default_rng([seed, k])
            return cells[rows], np.where(weights[rows] > 0.0, weights[rows], 1.0), self._names(), start

        jobs = (
            delayed(_base.learn_from_scratch)(recipe, *task(k), threads, progress) for k in range(len(self.classes_))
        )
        results: list[FitResult] = Parallel(n_jobs=1 if in_turn else self.n_jobs, verbose=int(self.verbose))(jobs)
        self.networks_ = [result.network for result in results]
        self.bounds_ = [result.bounds for result in results]
        self.n_iter_ = max(len(bounds) for bounds in self.bounds_)
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """The bound plus the logarithm of the prior of each class, in nats; for two classes, second minus first."""
        joint = self._joint(X)
        return joint[:, 1] - joint[:, 0] if len(self.classes_) == 2 else joint

    def predict(self, X: Any) -> Any:
        """The class with the highest bound plus logarithm of the prior."""
        joint = self._joint(X)
        return self.classes_[joint.argmax(axis=1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows that are given their class."""
        return float(super().score(X, y, sample_weight))

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes, from bounds in the place of likelihoods."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of :meth:`predict_proba`."""
        logs: FloatArray = log_softmax(self._joint(X), axis=1)
        return logs

    def _joint(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        cells = self._cells(self._table(X, reset=False))
        bounds = [self._infer(network, cells).bound for network in self.networks_]
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
