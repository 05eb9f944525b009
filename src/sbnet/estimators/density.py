"""A density estimator for tables with missing values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import DensityMixin, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from sbnet._types import HIDDEN, FloatArray
from sbnet.errors import ParameterError, not_among
from sbnet.estimators import _learning, _reading
from sbnet.estimators._base import FromNetworks, SBNEstimator, ScoresRows
from sbnet.estimators._large import by_partition, ordered, transforms_by_partition
from sbnet.estimators._rows import Rows, columns, place
from sbnet.estimators.settings import Settings, Training, is_auto, layers
from sbnet.exact.probability import sample
from sbnet.inference.solvers.row_completions import complete
from sbnet.learning.streams import blocks_of, is_stream
from sbnet.model.mixtures import NetworkMixture


@transforms_by_partition
class SBNDensity(FromNetworks, ScoresRows, TransformerMixin, DensityMixin, SBNEstimator):  # type: ignore[misc]
    """The distribution of the rows of a table, as a belief network.

    Any table is taken: `schema_` says how each column was read. Where some have more than two states each becomes a
    variable of one network, regressed on those before it (sequential logits, an elastic net whose strength is chosen
    for each on validation rows, in the order of the columns that is best there); scores are then likelihoods, over
    intervals of numbers, exact where the missing cells of a row have at most 256 joint states and estimates beyond. The
    settings of hidden layers below are for tables in which all columns have two states: a sigmoid belief network.

    The columns are the bottom layer; hidden layers above explain their correlations. Cells may be missing (NaN), in
    learning and in use, and are left out rather than imputed. Learning goes through :func:`sbnet.fit`, from small
    random weights and biases of the columns that give their means. A column without any observed cell is a fair coin,
    apart from everything else. :doc:`/guide/densities` shows how to use it, :doc:`/explain/sparse_priors` why it learns
    well, and :doc:`/explain/why_bounds_hold` why its scores are bounds.

    Parameters
    ----------
    hidden : tuple of int, int or "auto"
        Sizes of the hidden layers, top to bottom; 0 or ``()`` for none. ``"auto"`` is 8 variables if the validation
        log-likelihood improves, and none if not; where the prior is given ``(8,)``; in the template of an
        :class:`SBNClassifier` ``(8, 24)``.
    autoregressive : bool
        Edges inside the bottom layer: column k has the columns before it among its parents; in the order of the table,
        or where the prior is chosen, in another one if the validation log-likelihood improves.
    column_mixtures : int or "auto"
        Per-column mixture: the number of binary latent variables that each column has of its own (see
        :func:`sbnet.add_column_mixtures`). With `autoregressive`, its regression on the columns before it becomes a
        mixture of regressions. One costs no tightness where all cells are observed. ``"auto"`` is one if the validation
        log-likelihood improves; where the prior is given, one, and none for more than 447 columns; in the template of a
        classifier or an imputer none.
    orders : int
        Networks to learn, each with the columns in another order; scores then bound the mean of their likelihoods. The
        first has the order that one alone would have; scales, hidden variables and per-column mixtures are chosen once.
    label : str or None
        A column to be told from the others, by name; without names the columns are ``"x0"``, ``"x1"`` and so on. It
        stays behind all of them, whatever their order: its parents are then all that tells of it.
    epochs : int or "auto"
        Passes over the table; ``"auto"`` goes on until held-out bounds no longer rise. Where the prior is given it is
        20, and more for small tables, until 250 steps are made; fewer where there are over 100,000 weights.
    prior : "auto", float, prior, mapping or None
        The prior on the weights. A number is the standard deviation of a Gaussian prior on all of them; a penalty such
        as ``sbnet.Laplace(0.5)`` is taken as it is; None, or infinity, is no prior. A mapping has a number, a penalty
        or None for each group of edges, such as ``{"autoregressive": 0.7, "hidden": 2.0}``: autoregressive edges are
        those from columns, and a group that is not named has no prior. ``"auto"`` chooses on held-out rows: Laplace
        priors with the scales of the best validation log-likelihood, and a Gaussian prior beside the autoregressive one
        if that improves it. See `report_`. (Below 50 rows nothing is chosen, and the prior is
        ``{"autoregressive": 0.5, "hidden": 2.0}``.)
    solver : MeanField, another DifferentiableSolver, or None
        For learning and for scores. None marginalises hidden variables exactly in rows without missing values, where
        they are one layer of at most ten, and one mixture variable a column: that is the likelihood itself. For all
        else it is the paper's logarithm term with a tolerance of 0.001 nats. It is read at each call:
        ``density.set_params(solver=sbnet.MeanField())`` gives tighter scores of rows with missing values.
    columns : mapping or None
        How to read some columns, where it is known better: ``{"age": "numbers", "id": "ignore", "grade": ["D", "C",
        "B", "A"]}``. Kinds are "yes/no", "words", "ordered", "numbers", "dates", "tick box" and "ignore".
    missing : list
        Values that mark missing cells, such as ``[-99, 9]``, beside NaN, None, NA and empty cells.
    settings : Training or None
        How weights are learned: batches, the optimiser, rows held out, an executor. See :class:`Training`.
    n_jobs : int or None
        Number of threads; None or -1 for all cores. Results do not depend on it.
    random_state : int, RandomState or None
        A whole number gives the same weights, samples and draws each time.
    verbose : bool or int
        Show progress.

    Attributes
    ----------
    network_ : Network
        Below the hidden layers are the columns, under their names if the table has any, else x0, x1 and so on; parents
        come first, so that columns may stand in another order than in the table, with mixture variables between
        them: name the columns of what is asked of it with :func:`sbnet.infer_many`, do not count on their places. Edges
        of weight zero are dropped where the prior is chosen.
    networks_ : tuple of Network
        With `orders`, the networks of all orders; `network_` is the first.
    mixture_ : NetworkMixture
        The same as one record, which :func:`sbnet.save` keeps in a file.
    recognitions_ : tuple
        For each network a prediction of its hidden units, from which scoring starts, beside one half; None without any.
    report_ : Report or None
        What was chosen, and what each candidate was worth on held-out rows; where columns have more than two states,
        the penalty of each too. Print it. None where nothing was chosen.
    bounds_ : ndarray
        Mean bound of each epoch, in nats, measured while the weights were moving.
    held_out_bounds_ : ndarray or None
        Mean bound of the held-out rows after each epoch.
    n_iter_ : int
        Epochs done.
    schema_ : Schema
        How each column was read: print it.
    n_samples_seen_ : float
        Rows learned from, or the sum of their weights.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If the table had names.

    Examples
    --------
    >>> import numpy as np
    >>> from sbnet.estimators import SBNDensity
    >>> X = np.array([[1, 1, 0], [1, 1, np.nan], [0, 0, 1], [0, np.nan, 1]] * 25)
    >>> density = SBNDensity(hidden=2, random_state=0).fit(X)
    >>> bool(density.score_samples([[1, 1, 0]]) > density.score_samples([[1, 0, 0]]))
    True
    """

    def __init__(
        self,
        *,
        hidden: Any = "auto",
        autoregressive: bool = True,
        column_mixtures: Any = "auto",
        orders: int = 1,
        label: str | None = None,
        epochs: Any = "auto",
        prior: Any = "auto",
        solver: Any = None,
        columns: Any = None,
        missing: Any = (),
        settings: Training | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden = hidden
        self.autoregressive = autoregressive
        self.column_mixtures = column_mixtures
        self.orders = orders
        self.label = label
        self.epochs = epochs
        self.prior = prior
        self.solver = solver
        self.columns = columns
        self.missing = missing
        self.settings = settings
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SBNDensity:
        """Learn a network from a table.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            NaN where a cell is missing. Or a Dask collection, or a stream of tables as in :func:`sbnet.fit`: what has
            to be seen at once is decided from 20,000 of their rows, or as many as have five million cells, and all are
            learned from after that.
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        SBNDensity
        """
        self._generator, self.n_samples_seen_ = self._fit_one(X, sample_weight)
        self._optimizer_state = None
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SBNDensity:
        """Go once over some rows, from the network there is, or from a start that the first rows give.

        The optimiser goes on where the last call left it; after :meth:`fit` it begins anew. The prior counts once for
        all rows seen so far, so the more of them have passed, the less it holds the weights. No rows are held out.
        (Where columns have more than two states the network is learned anew from all rows given to this method.)

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Or a stream of tables, as in :func:`sbnet.fit`: each block of it as if it were given alone.
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        SBNDensity
        """
        if is_stream(X):
            for block in blocks_of(X):
                self.partial_fit(ordered(self, block))
            return self
        settings = self._settings()
        if self.orders != 1:
            raise ParameterError(f"orders is {self.orders!r}; partial_fit() learns one network. Use fit(), or orders=1")
        first = not hasattr(self, "network_")
        rows = self._read_rows(X, sample_weight, reset=first)
        rows = rows.keep(rows.weights > 0.0)
        if not self._is_binary():
            return self._fit_more(rows, first)
        if first:
            generator = np.random.default_rng(_learning.make_seed(settings.random_state))
            network, state, bounds, seen = _learning.start(settings, rows, generator), None, np.empty(0), 0.0
            self.held_out_bounds_ = self.report_ = None
            self._n_hidden = sum(settings.layers)
        else:
            generator, network, state = self._generator, self.network_, self._optimizer_state
            bounds, seen = self.bounds_, self.n_samples_seen_
        weight = float(rows.weights.sum())
        optimizer = _learning.Resumed(settings.optimizer_until(None), state, len(bounds))
        prior = settings.prior if self.report_ is None else self.report_.priors
        once = replace(settings, epochs=1, prior=prior, optimizer=optimizer, validation_fraction=None, patience=None)
        result = _learning.learn(once, network, rows, generator, prior_share=weight / (seen + weight))
        self.network_, self.bounds_ = result.network, np.append(bounds, result.bounds)
        self.networks_, self.recognitions_ = (self.network_,), (None,)
        self.n_iter_, self.n_samples_seen_ = len(self.bounds_), seen + weight
        self._generator, self._optimizer_state = generator, optimizer.state
        return self

    def _fit_more(self, rows: Rows, first: bool) -> SBNDensity:
        """Networks of variables with states are learned anew from all rows so far, which are kept: a byte a cell."""
        kept: Rows | None = None if first else getattr(self, "_kept", None)
        if kept is not None:
            cells = np.concatenate([kept.cells, rows.cells])
            rows = replace(rows, cells=cells, weights=np.concatenate([kept.weights, rows.weights]))
        self._kept = rows
        self._generator, self.n_samples_seen_ = self._fit_rows(rows)
        self._optimizer_state = None
        return self

    @property
    def mixture_(self) -> NetworkMixture:
        """The networks of all orders as one record, which :func:`sbnet.save` keeps in a file."""
        check_is_fitted(self)
        return NetworkMixture(self.networks_, self._names())

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of :meth:`score_samples`.

        Parameters
        ----------
        X : table
            Rows, such as some held out.
        y : ignored
            Not used.

        Returns
        -------
        float
        """
        return float(np.asarray(self.score_samples(X).mean()))

    def sample(self, n_samples: int = 1) -> Any:
        """Draw rows: a table like the one learned from; zeros and ones if it was an array of these.

        With a whole number as `random_state` they are the same at each call.

        Parameters
        ----------
        n_samples : int

        Returns
        -------
        DataFrame or ndarray
        """
        check_is_fitted(self)
        rng = np.random.default_rng(_learning.make_seed(self.random_state))
        parts = [sample(network, n_samples, rng=rng) for network in self.networks_]
        which = rng.integers(len(parts), size=n_samples) if len(parts) > 1 else np.zeros(n_samples, np.int64)
        names = self._names()
        cells = [rows[:, columns(network, names)] for network, rows in zip(self.networks_, parts, strict=True)]
        drawn = np.array(cells)[which, np.arange(n_samples)]
        if self.schema_.table == "array" and self.schema_.is_binary:
            return drawn.astype(np.float64)
        return self.schema_.decode(drawn, rng)

    def probabilities(self, X: Any, *, column: str) -> FloatArray:
        """Probabilities of the states of a column, given the other observed cells of each row.

        Parameters
        ----------
        X : array-like or data frame
            Rows; columns that are not there, or cells that are missing, count as not observed. What the column itself
            holds is not looked at.
        column : str
            Its name.

        Returns
        -------
        ndarray of shape (n_samples, n_states)
            In the order of ``density.schema_[column].states``.
        """
        check_is_fitted(self)
        names = self._names()
        if column not in names:
            raise ParameterError(f"column: {not_among(column, names, 'the variables')}")
        cells = _reading.encoded(self.schema_, X)  # by name: a question may leave columns out
        cells[:, names.index(column)] = HIDDEN
        parts, logs = [], []
        for network in self.networks_:
            v = network.index(column)
            found = complete(network, place(network, cells, names), asked=np.array([v]))
            parts.append(found.probabilities(v, int(network.n_states[v])))
            logs.append(found.log_p)
        share = softmax(np.array(logs), axis=0)
        mean: FloatArray = np.einsum("kr,krs->rs", share, np.array(parts))
        return mean

    def transform(self, X: Any) -> FloatArray:
        """Posterior means of the variables in hidden layers, for use as features.

        A network without hidden layers gives the probabilities of the states of all columns, from the second state on:
        0 and 1 where a cell is observed.

        Parameters
        ----------
        X : table
            Rows, with or without missing cells.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        if not self._n_hidden:
            network, names = self.network_, self._names()
            found = complete(network, self._states(network, self._table(X, reset=False)[0]))
            parts = [found.probabilities(v, int(network.n_states[v]))[:, 1:] for v in columns(network, names)]
            return np.concatenate(parts, axis=1)
        states = self._states(self.network_, self._table(X, reset=False)[0])
        network, recognition = self._members()[0]
        return self._infer(network, states, recognition).means[:, : self._n_hidden]

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the columns of :meth:`transform`: those of the hidden variables, after the name of the class.

        Parameters
        ----------
        input_features : ignored
            Not used.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features)
        prefix = type(self).__name__.lower()
        if not self._n_hidden:
            states = [(name, state) for name in self._names() for state in self.network_.states[name][1:]]
            return np.array([f"{prefix}_{name}={state}" for name, state in states], dtype=object)
        return np.array([f"{prefix}_{name}" for name in self.network_.names[: self._n_hidden]], dtype=object)

    @by_partition
    def impute(self, X: Any) -> Any:
        """The table with missing cells filled in as :class:`SBNImputer` does: by posterior means of zeros and ones, and
        in other columns by values that somebody has.

        Parameters
        ----------
        X : table
            Rows to fill in.

        Returns
        -------
        DataFrame or ndarray, like `X`
        """
        check_is_fitted(self)
        if not self._is_binary():
            return self._fill_states(X, self.network_)
        return self._table(X, reset=False)[0].fill(self._completion().means)

    def _settings(self) -> Settings:
        return Settings.of(self, self.settings)


_SHORT = ("hidden", "columns", "missing", "n_jobs", "random_state", "verbose")


class FromTemplate(SBNEstimator):
    """An estimator with a template, and short-hands for the few settings that are often given."""

    density: Any
    hidden: Any
    settings: Any

    def set_params(self, **params: Any) -> Any:
        """Set arguments; those of the template as ``density__epochs=3``, also where none was given.

        Parameters
        ----------
        **params
            Arguments by name.

        Returns
        -------
        self
        """
        nested = any(name.startswith("density__") for name in params)
        if nested and params.get("density", self.density) is None:
            params = {**params, "density": SBNDensity()}
        return super().set_params(**params)

    def _auto(self) -> dict[str, Any]:
        """What "auto" in the template stands for here, where a density alone takes it for something else."""
        return {}

    def _settings(self) -> Settings:
        template = SBNDensity() if self.density is None else self.density
        if not isinstance(template, SBNDensity):
            raise ParameterError(f"density is {template!r}; give an SBNDensity, such as SBNDensity(epochs=5)")
        given = {name: getattr(self, name) for name in _SHORT if getattr(self, name, None) is not None}
        # Who runs an estimator decides on seeds and cores, as in scikit-learn's ensembles; but of two networks
        # one would be lost without a word, in a search over density__hidden for instance.
        both = "hidden" in given and not is_auto(template.hidden)
        if both and given["hidden"] != template.hidden and layers(given["hidden"]) != layers(template.hidden):
            raise ParameterError(
                f"hidden is {self.hidden!r}, but hidden of density is {template.hidden!r}; give one of them"
            )
        auto = {k: v for k, v in self._auto().items() if is_auto(given.get(k, getattr(template, k)))}
        return Settings.of(template, self.settings or template.settings, **{**given, **auto})
