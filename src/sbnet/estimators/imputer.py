"""An imputer for binary tables with holes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sbnet._types import HIDDEN, BoolArray, FloatArray, States
from sbnet.errors import ParameterError
from sbnet.estimators import _base
from sbnet.inference import PosteriorBatch
from sbnet.probability import sample


class SBNImputer(OneToOneFeatureMixin, TransformerMixin, _base.SBNEstimator):  # type: ignore[misc]
    """Fill the holes of a binary table, from a sigmoid belief network learned from the same or another table.

    Observed cells stay as they are, to the last bit; what is filled in is the posterior mean of a cell given the
    observed cells of its row, a number between 0 and 1, or a draw of 0 or 1. With a table in other numbers than 0
    and 1, cells above `binarize` count as 1, and what is filled in is still on the scale from 0 to 1.

    Parameters
    ----------
    strategy : {"mean", "sample"}
        Fill with posterior means; or with draws, which keep the spread, and within a row the correlations that the
        network finds. Several draws (from several values of `random_state`) make multiple imputations.
    hidden, lateral, switches, epochs, batch_size, optimizer, learning_rate, prior_scale, \
lateral_prior_scale, solver, weight_scale, validation_fraction, patience, binarize, n_jobs, random_state, verbose
        As in :class:`SBNDensity`.

    Attributes
    ----------
    network_ : Network
        Its last units are the columns, with their names if the table has any.
    bounds_ : ndarray
        Mean bound of each epoch, in nats, measured while the weights were moving.
    held_out_bounds_ : ndarray or None
        Mean bound of the held-out rows after each epoch.
    n_iter_ : int
        Epochs done.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If the table had names.

    Examples
    --------
    >>> import numpy as np
    >>> from sbnet.estimators import SBNImputer
    >>> X = np.array([[1, 1, 0], [1, 1, np.nan], [0, 0, 1], [0, np.nan, 1]] * 25)
    >>> SBNImputer(hidden=2, random_state=0).fit(X).transform([[1, np.nan, 0], [0, 0, np.nan]]).round()
    array([[1., 1., 0.],
           [0., 0., 1.]])
    """

    def __init__(
        self,
        *,
        strategy: str = "mean",
        hidden: Any = _base.HIDDEN_IMPUTER,
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
        self.strategy = strategy
        self.hidden = hidden
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.strategy == "sample"  # the draw for a row depends on the rows before it
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SBNImputer:
        """Learn a network from a table.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a cell is missing.
        y
            Not used.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        SBNImputer
        """
        if self.strategy not in ("mean", "sample"):
            raise ParameterError(f"strategy is {self.strategy!r}; give 'mean' or 'sample'")
        self._fit_one(X, sample_weight)
        return self

    def transform(self, X: Any) -> FloatArray:
        """The table with every NaN filled in."""
        check_is_fitted(self)
        table = self._table(X, reset=False)
        if self.strategy == "mean":
            return self._fill(table, lambda posterior: posterior.means)
        generator = np.random.default_rng(_base.make_seed(self.random_state))
        return self._fill(table, lambda posterior: _draw(posterior, generator))


def _draw(posterior: PosteriorBatch, generator: np.random.Generator) -> States:
    """Complete states of every row.

    Units with observed descendants are drawn from the mean field posterior, one by one. All others follow from them
    by the network's own probabilities, parents first: exact, and with all correlations.
    """
    network, states = posterior.network, posterior.evidence
    model = network.model
    informed: BoolArray = states != HIDDEN
    for j in reversed(range(network.n_units)):
        children = model.child[model.child_indptr[j] : model.child_indptr[j + 1]]
        informed[:, j] |= informed[:, children].any(axis=1)
    drawn = generator.random(states.shape) < posterior.means
    return sample(network, len(states), rng=generator, do=np.where(informed & (states == HIDDEN), drawn, states))
