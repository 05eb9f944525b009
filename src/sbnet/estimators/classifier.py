"""A classifier for tables with missing values: a label in one network, or a network for each class."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.errors import ParameterError
from sbnet.estimators import _choosing, _label, _learning, _pooling, _tuning
from sbnet.estimators._large import by_partition, fit_classes
from sbnet.estimators._learning import make_seed
from sbnet.estimators._pooling import Pooled
from sbnet.estimators._rows import Rows, place
from sbnet.estimators._tuning import Labelled, Mixture
from sbnet.estimators.density import FromTemplate, SBNDensity
from sbnet.estimators.settings import DEFAULT_PRIOR, Training, check_particles, flag, is_auto, prior_for
from sbnet.exact.probability import sample
from sbnet.inference.associations import associations, mutual_information
from sbnet.inference.solvers.particles import log_probabilities, seeds_of_rows
from sbnet.learning import FitResult
from sbnet.learning.streams import is_stream
from sbnet.model.network import Network
from sbnet.parallel.blocks import pool
from sbnet.parallel.lazy import is_lazy

_FEW = 100
"""A class of fewer rows than this is pooled with the others."""
_ENOUGH, _EACH, _SHARE = 200, 10, 0.15
"""Rows in all, and of each class, below which none are held out; the share that is."""
_PARTICLES = 128
_DRAWS = 1 << 14


class SBNClassifier(ClassifierMixin, FromTemplate):  # type: ignore[misc]
    """The class of each row of a table, with missing values marginalised.

    Of an ordinary table the label becomes the last variable of one network of all columns, an :class:`SBNDensity`. Its
    regression on the columns is a straight line in each and what boosted trees add for one, two or three of them, as
    the validation log-likelihood chooses, and a missing cell is marginalised by the rest of the network. Nothing has to
    be set. :doc:`/guide/classification` shows how to use it, :doc:`/explain/theory` has the mathematics.

    For arrays of zeros and ones, and where `density`, `hidden` or `tune` is given and all columns have two states,
    there is a sigmoid belief network for each class, and Bayes' rule, as in section 4 of the paper. A row
    belongs to the class whose network gives it the highest bound plus logarithm of the class's prior. Cells may be
    missing (NaN), in learning and in use; a row without any observed cell has the priors as its probabilities.

    Networks of classes are overconfident, for each is wrong in its own way, and probabilities come from
    bounds, not from likelihoods. So they are taken at a temperature: p_k in proportion to prior_k P_k^(1/temperature),
    with the temperature that gives held-out rows the right class with the highest probability.

    Parameters
    ----------
    density : SBNDensity or None
        How each network is learned: a template with all settings, which is copied, not fitted. None is
        ``SBNDensity()``. Its arguments may be set from here, as ``density__epochs``.
    hidden, missing, settings, random_state, verbose : as in :class:`SBNDensity`
        Where given they take the place of those of `density`; None leaves them to it. Two different `hidden` are
        refused.
    n_jobs : int or None
        Processes that learn networks at the same time, and threads for scoring. None leaves it to `density`; None
        there too learns one network after the other. Results do not depend on it.
    columns : mapping or None
        How to read some columns; see :class:`SBNDensity`.
    class_weight : None, "balanced" or mapping
        Weights of the classes in learning, as in scikit-learn; they multiply those of rows.
    class_prior : array-like of shape (n_classes,) or None
        Probabilities of the classes, in the order of `classes_`; None for their share of the training rows.
    tune : None or "discriminative"
        None learns each network from the rows of its class alone. ``"discriminative"`` goes on with the rows of all
        classes: networks are raised where they tell classes apart, and are still densities. How much that counts is
        chosen on held-out rows. Networks then have no hidden layers and two mixture variables for each column, unless
        `density` says otherwise; and where classes are pooled, each has two networks for each of the `orders` of
        `density`: one reads the columns in that order, the other from its end. Takes two to five times as long.
    pooled : bool or "auto"
        Whether the rows of all classes decide which pairs of columns may be tied closely, where the prior is left
        open: a help to classes of few rows. ``"auto"`` is with `tune`, or if a class has fewer than 100 rows. With
        `tune`, and no hidden layers, networks of classes also begin at one of all classes, and are drawn to it.
    calibrate : bool
        Whether the temperature is chosen on held-out rows, a seventh of each class: networks are then learned twice,
        the second time from all rows. Tables of fewer than 200 rows, or with a class of fewer than 10, have
        temperature 1.
    particles : int or None
        Rows with missing cells are scored by an estimate of ln P from so many complete states, see :class:`SBNImputer`,
        in the place of a bound, which is looser the more cells are missing; mixtures are summed over, not drawn. 0 for
        bounds. None is 128 with `tune`, and 0 without.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    schema_ : Schema
        How each column was read: print it.
    network_, label_, report_ : Network, str, object
        Of one network: the network, the name of the label in it, and what was chosen; print the last.
    networks_ : list of Network
        That one, or one for each class.
    mixtures_ : list of tuple of Network
        All networks of each class, of which `networks_` has the first. What counts for a class is the mean of their
        bounds: itself a bound, of the logarithm of their mean likelihood.
    class_log_prior_ : ndarray
        Logarithms of the priors.
    temperature_ : float
        1 if it was not chosen; above that, probabilities are less sure than bounds alone would have them.
    strength_ : float
        How much telling classes apart counted in learning, beside the densities; 0 without `tune`.
    bounds_ : list of ndarray
        Mean bound of each epoch for each class, in nats, measured while the weights were moving.
    n_iter_ : int
        Epochs done, the largest number of all classes.
    feature_information_ : ndarray of shape (n_features,)
        How much each column alone tells about the class, in nats.
    n_features_in_, feature_names_in_ : int, ndarray of str
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

    _kept: tuple[Rows, IndexArray, str] | None
    _one: bool

    def __init__(
        self,
        *,
        density: SBNDensity | None = None,
        hidden: Any = None,
        missing: Any = None,
        columns: Any = None,
        class_prior: Any = None,
        class_weight: Any = None,
        tune: str | None = None,
        pooled: Any = "auto",
        calibrate: bool = True,
        particles: int | None = None,
        settings: Training | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int | None = None,
    ) -> None:
        self.density = density
        self.hidden = hidden
        self.missing = missing
        self.settings = settings
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.class_prior = class_prior
        self.class_weight = class_weight
        self.columns = columns
        self.tune = tune
        self.pooled = pooled
        self.calibrate = calibrate
        self.particles = particles

    def _auto(self) -> dict[str, Any]:
        hidden, mixtures = (0, 2) if self.tune else ((8, 24), 0)
        return {"hidden": hidden, "column_mixtures": mixtures, "prior": DEFAULT_PRIOR}

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
        self._check()
        if is_lazy(X) or is_stream(X):
            return fit_classes(self, X, y, sample_weight)
        given = y
        table, y = self._table(X, y=y, reset=True, sample_weight=sample_weight)
        self.classes_, number = np.unique(y, return_inverse=True)
        rows = self._rows(table, sample_weight)
        if self.class_weight is not None:
            rows = replace(rows, weights=rows.weights * self._class_weights(y))
        self._kept = None
        if self._wants_one():
            return self._fit_label(rows, number, _label.name_of(given, rows.names))
        self._one = False
        share = np.bincount(number, weights=rows.weights, minlength=len(self.classes_)).astype(np.float64)
        self.class_log_prior_ = self._log_prior(share)
        # A class without weight has a prior of zero; its rows count as one each, so that it can be learned.
        weights = np.where(share[number] > 0.0, rows.weights, 1.0)
        data = Labelled(replace(rows, weights=weights), number, self.class_log_prior_).keep(weights > 0.0)
        seed, pooling = make_seed(self._settings().random_state), self._is_pooled(data)
        self.temperature_, self.strength_, sharpness = 1.0, 0.0, 1.0
        counts = np.bincount(data.label)
        enough = len(data.label) >= _ENOUGH and counts.min() >= _EACH and len(self.classes_) > 1
        if enough and (self.calibrate or self.tune is not None):
            sharpness = self._choose(data, seed, pooling)
        found, pooled = self._learn(data, seed, pooling)
        self.mixtures_ = self._tuned(found, data, self.strength_, sharpness, seed, pooled)
        self.networks_ = [networks[0] for networks in self.mixtures_]
        self.bounds_ = [each[0].bounds for each in found]
        self.n_iter_ = max(len(bounds) for bounds in self.bounds_)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> SBNClassifier:
        """Learn from more rows: the network is learned anew from all that were given to this method, a byte a cell.

        How columns are read follows from the first rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like
            All classes, at the first call.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        SBNClassifier
        """
        self._check()
        kept = getattr(self, "_kept", None)
        if kept is None and classes is None and not hasattr(self, "classes_"):
            raise ParameterError("the first rows may not have all classes; give all of them, classes=…")
        table, target = self._table(X, y=y, reset=kept is None, sample_weight=sample_weight)
        if self._is_binary() and any(one is not None for one in (self.tune, self.density, self.hidden)):
            raise ParameterError("networks of classes are learned by fit(); leave hidden=, density= and tune= unset")
        if classes is not None:
            self.classes_ = np.unique(classes)
        number = np.minimum(np.searchsorted(self.classes_, target), len(self.classes_) - 1)
        if np.any(self.classes_[number] != target):
            raise ParameterError(f"y has a class {target[self.classes_[number] != target][0]!r} that classes= had not")
        rows, name = self._rows(table, sample_weight), _label.name_of(y, self._names())
        if kept is not None:
            rows = replace(
                rows,
                cells=np.concatenate([kept[0].cells, rows.cells]),
                weights=np.concatenate([kept[0].weights, rows.weights]),
            )
            number, name = np.concatenate([kept[1], number]), kept[2]
        self._kept = rows, number, name
        return self._fit_label(rows, number, name)

    def _class_weights(self, y: Any) -> FloatArray:
        """A weight for each row, by its class."""
        try:
            weights: FloatArray = compute_sample_weight(self.class_weight, y)
        except (TypeError, ValueError, AttributeError) as error:
            shown = checks.shown(self.class_weight)
            raise ParameterError(f"class_weight is {shown}; give None, 'balanced' or a mapping by class") from error
        return weights

    def _wants_one(self) -> bool:
        """Is there one network, with the label as its last variable? There is one for each class if settings of such
        networks were given, and for arrays of zeros and ones.
        """
        schema, given = self.schema_, (self.tune, self.density, self.hidden)
        if schema is None or not self._is_binary():
            return schema is not None
        return schema.table != "array" and all(one is None for one in given)

    def _fit_label(self, rows: Rows, label: IndexArray, name: str) -> SBNClassifier:
        """One network of columns and label."""
        assert self.schema_ is not None
        self._one = True
        settings, counted = self._settings(), rows.weights > 0.0
        share = np.bincount(label, weights=rows.weights, minlength=len(self.classes_)).astype(np.float64)
        with np.errstate(divide="ignore"):
            self.class_log_prior_, self._share = self._log_prior(share), np.log(share / share.sum())
        cells, weights, label = rows.cells[counted], rows.weights[counted], label[counted]
        rng = np.random.default_rng(make_seed(settings.random_state))
        self.label_, threads = name, _learning.threads(settings)
        learned = _label.learn(self.schema_, cells, label, self.classes_, weights, name, rng, threads=threads)
        self.network_, self.report_, self._order = learned
        self.networks_, self.mixtures_ = [self.network_], [(self.network_,)]
        self.bounds_, self.n_iter_ = [np.array([learned[1].held_out])], 1
        self.temperature_, self.strength_ = 1.0, 0.0
        return self

    @property
    def feature_information_(self) -> FloatArray:
        """How much each column alone tells about the class: mutual information in nats, of rows drawn from the model.

        A column that was left out tells nothing. As for any column by itself, what two of them say is told twice.
        """
        check_is_fitted(self)
        names = self._names()
        if self._one:
            found = associations(self.network_, about=self.label_, among=(*names, self.label_))
            told = {pair.other if pair.one == self.label_ else pair.one: pair.nats for pair in found}
        else:
            counts = np.round(_DRAWS * np.exp(self.class_log_prior_)).astype(np.int64)
            drawn = [(net, sample(net, n, rng=0)) for net, n in zip(self.networks_, counts.tolist(), strict=True)]
            rows = np.concatenate([part[:, [*map(net.index, names)]] for net, part in drawn])
            label, n_states = np.repeat(np.arange(len(counts)), counts), np.array([2, len(counts)])
            pairs = (np.column_stack([column, label]) for column in rows.T)
            told = {name: mutual_information(pair, n_states) for name, pair in zip(names, pairs, strict=True)}
        columns = names if self.schema_ is None else [column.name for column in self.schema_.columns]
        return np.array([told.get(name, 0.0) for name in columns])

    def _check(self) -> None:
        if self.tune is not None and not (isinstance(self.tune, str) and self.tune == "discriminative"):
            raise ParameterError(f"tune is {checks.shown(self.tune)}; give None or 'discriminative'")
        if not isinstance(self.pooled, bool | np.bool_) and not is_auto(self.pooled):
            raise ParameterError(f"pooled is {checks.shown(self.pooled)}; give True, False or 'auto'")
        flag("calibrate", self.calibrate)
        if self.particles is not None:
            check_particles(self.particles)

    def _is_pooled(self, data: Labelled) -> bool:
        """Is there partial pooling of classes? Only where the prior is left open, and there are columns to be tied."""
        settings, template = self._settings(), self.density or SBNDensity()
        left_open = is_auto(template.prior)
        possible = left_open and settings.autoregressive
        few = np.bincount(data.label).min() < _FEW
        wanted = (self.tune is not None or few) if self.pooled == "auto" else bool(self.pooled)
        return bool(possible and wanted and len(self.classes_) > 1 and len(data.rows.names) > 1)

    def _choose(self, data: Labelled, seed: int, pooling: bool) -> float:
        """Strength of tuning, and temperature, by the log-loss of held-out rows; and the temperature to tune at."""
        out = _tuning.hold_out(data.label, _SHARE, np.random.default_rng([seed, len(self.classes_)]))
        inside, outside = data.keep(~out), data.keep(out)
        found, pooled = self._learn(inside, seed, pooling)
        sharpness, losses = 1.0, []
        for strength in _tuning.STRENGTHS if self.tune else (0.0,):
            mixtures = self._tuned(found, inside, strength, sharpness, seed, pooled)
            bounds = self._scores(mixtures, outside.rows.cells)
            temperature = _tuning.temperature_of(bounds, outside.label, outside.rows.weights, data.log_prior)
            losses.append((_tuning.log_loss(bounds, temperature, outside), strength, temperature))
            sharpness = temperature if strength == 0.0 else sharpness
        _, self.strength_, best = min(losses)
        self.temperature_ = best if self.calibrate else 1.0
        return sharpness

    def _learn(self, data: Labelled, seed: int, pooling: bool) -> tuple[list[list[FitResult]], list[Pooled] | None]:
        """A network for each class, or several in other orders; and what classes have in common, if they are pooled."""
        settings, pooled = self._settings(), None
        n_jobs, verbose = settings.n_jobs, settings.verbose
        if pooling:
            pooled = _pooling.pool(settings, data.rows, np.random.default_rng(seed), both_ways=self.tune is not None)
        if n_jobs not in (None, 1):  # processes for networks instead of threads for rows
            settings = replace(settings, n_jobs=1, verbose=0)
        parallel = Parallel(n_jobs=1 if n_jobs is None else n_jobs, verbose=int(verbose or 0))
        # Classes begin at a network of all, but not with hidden layers, whose units would mean another thing in each;
        # and networks that are not tuned, of few rows, gained nothing by it.
        if pooled is not None and self.tune is not None and not settings.layers:
            sources = [np.random.default_rng([seed, len(self.classes_), k]) for k in range(len(pooled))]
            common = delayed(_pooling.with_common_network)
            pooled = list(parallel(common(settings, data, *each) for each in zip(sources, pooled, strict=True)))
        jobs = []
        for k in range(len(self.classes_)):
            part, source = data.rows.keep(data.label == k), np.random.default_rng([seed, k])
            if pooled is None:
                jobs.append(delayed(_choosing.learn)(settings, part, source))
            else:
                jobs.append(delayed(_pooling.learn)(settings, part, source, pooled, k))
        return [[result for result, _ in each] for each in parallel(jobs)], pooled

    def _tuned(
        self,
        learned: list[list[FitResult]],
        data: Labelled,
        strength: float,
        temperature: float,
        seed: int,
        pooled: list[Pooled] | None,
    ) -> list[Mixture]:
        settings, mixtures = self._settings(), [tuple(result.network for result in each) for each in learned]

        def prior(network: Network, label: int, order: int) -> Any:
            if pooled is not None:
                return pooled[order].prior(network, label)
            return prior_for(settings.prior, network, self._names())

        priors = [[prior(network, k, m) for m, network in enumerate(each)] for k, each in enumerate(mixtures)]
        return _tuning.tune(settings, mixtures, data, strength, temperature, np.random.default_rng(seed), priors)

    @by_partition
    def decision_function(self, X: Any) -> FloatArray:
        """The bound of each class plus `temperature_` times the logarithm of its prior, in nats.

        For two classes, second minus first.

        Parameters
        ----------
        X : table
            Rows like those learned from; cells may be missing.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
        """
        joint = self._joint(X)
        return joint[:, 1] - joint[:, 0] if len(self.classes_) == 2 else joint

    @by_partition
    def predict(self, X: Any) -> Any:
        """The most probable class.

        Parameters
        ----------
        X : table
            Rows like those learned from; cells may be missing.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        joint = self._joint(X)
        return self.classes_[joint.argmax(axis=1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows that are given their class.

        Parameters
        ----------
        X : table
            Rows like those learned from; cells may be missing.
        y : array of shape (n_samples,)
            Their classes.
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        float
        """
        rows = (np.asarray(self.predict(X)), np.asarray(y)) if is_lazy(X) else (self.predict(X), y)
        return float(accuracy_score(rows[1], rows[0], sample_weight=sample_weight))

    @by_partition
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes, in proportion to prior P^(1/temperature), with bounds for ln P.

        Parameters
        ----------
        X : table
            Rows like those learned from; cells may be missing.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return np.exp(self.predict_log_proba(X))

    @by_partition
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of :meth:`predict_proba`.

        Parameters
        ----------
        X : table
            Rows like those learned from; cells may be missing.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        logs: FloatArray = log_softmax(self._joint(X) / self.temperature_, axis=1)
        return logs

    def _joint(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        cells = self._table(X, reset=False)[0].cells
        if self._one:
            p = _label.probabilities(self.network_, self.label_, cells, self._names(), self._order)
            with np.errstate(divide="ignore"):
                logs: FloatArray = np.log(p)
            return logs if self.class_prior is None else logs + self.class_log_prior_ - self._share
        number = self.particles if self.particles is not None else _PARTICLES if self.tune else 0
        gaps = (cells == HIDDEN).any(axis=1) & bool(number)
        bounds = np.empty((len(cells), len(self.classes_)))
        for rows, particles in ((~gaps, 0), (gaps, number)):
            if rows.any():
                bounds[rows] = self._scores(self.mixtures_, cells[rows], particles)
        joint: FloatArray = bounds + self.temperature_ * self.class_log_prior_
        return joint

    def _scores(self, mixtures: list[Mixture], cells: States, particles: int = 0) -> FloatArray:
        """Rows by classes: mean bounds of the networks of a class, or estimates of ln P from so many particles.

        By Jensen's inequality mean bounds are no more than ln of their mean likelihood. They tell classes apart better
        than that logarithm, which hangs on one network, perhaps another in each class.
        """
        settings, names, means = self._settings(), self._names(), []
        for networks in mixtures:
            parts = []
            for network in networks:
                states = place(network, cells, names)
                if particles:
                    where = pool(settings.executor, _learning.threads(settings))
                    seeds = seeds_of_rows(0, states)
                    parts.append(log_probabilities(network, states, seeds, number=particles, executor=where))
                else:
                    parts.append(self._bounds_of(network, None, states))
            means.append(np.mean(parts, axis=0))
        return np.column_stack(means)

    def _log_prior(self, share: FloatArray) -> FloatArray:
        try:
            prior = share / share.sum() if self.class_prior is None else np.asarray(self.class_prior, np.float64)
        except (TypeError, ValueError, OverflowError):
            prior = np.array([np.nan])
        if prior.shape != share.shape or np.any(prior < 0.0) or not np.isclose(prior.sum(), 1.0):
            raise ParameterError(
                f"class_prior is {checks.shown(self.class_prior)}; "
                f"give a probability for each of the {len(share)} classes, with sum 1"
            )
        with np.errstate(divide="ignore"):
            logs: FloatArray = np.log(prior)
        return logs
