"""An imputer for tables of any columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._set_output import _wrap_data_with_container
from sklearn.utils.validation import check_is_fitted

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, States
from sbnet.errors import ParameterError
from sbnet.estimators import _choosing
from sbnet.estimators._base import FromNetworks, Member
from sbnet.estimators._given import Given, as_asked
from sbnet.estimators._large import transforms_by_partition
from sbnet.estimators._learning import make_seed
from sbnet.estimators._rows import Rows
from sbnet.estimators.density import FromTemplate, SBNDensity
from sbnet.estimators.settings import Training, check_particles, count
from sbnet.exact.probability import sample
from sbnet.inference import PosteriorBatch
from sbnet.inference.solvers.particles import NUMBER
from sbnet.inference.solvers.places import Place
from sbnet.inference.solvers.row_completions import informed
from sbnet.learning.streams import is_stream
from sbnet.model.network import Network
from sbnet.parallel.lazy import is_lazy
from sbnet.tables.frames import Array


@transforms_by_partition
class SBNImputer(FromNetworks, OneToOneFeatureMixin, TransformerMixin, FromTemplate):  # type: ignore[misc]
    """Fill the missing cells of a table, from a network learned from the same or another table.

    Observed cells stay as they are, to the last bit, and the table comes back as it was given, of the same kind and
    with the same types. The cells of a row are filled in together, so that they do not contradict each other: with the
    completion of the row that has the most cells right in the mean, numbers with the seen value nearest to their
    posterior mean, or with a draw. Columns that name rows are left alone. :doc:`/guide/imputation` shows how to use it;
    behind it is an :class:`SBNDensity`, whose posteriors are exact sums (:doc:`/explain/elimination`) or particles.

    A table of zeros and ones alone is an array of numbers: what is filled in is the posterior mean of a cell given the
    observed cells of its row, a number between 0 and 1, or a draw of 0 or 1. Where all columns have two values, others
    than 0 and 1 are filled with the more probable one, or with a draw.

    Parameters
    ----------
    density, hidden, columns, missing, settings, random_state, verbose : as in :class:`SBNClassifier`
        For the one network that there is.
    n_jobs : int or None
        Number of threads. None leaves it to `density`; None there too, or -1, is all cores. Results do not depend on
        it.
    strategy : {"mean", "mode", "sample"}
        Fill with posterior means; or with the more probable value, in columns of zeros and ones and of numbers too; or
        with draws, which keep the spread, and within a row the correlations that the network finds.
    particles : int
        Complete states of each row that are drawn from its posterior, by sequential Monte Carlo and three Gibbs sweeps;
        means are averages of their conditional probabilities. More take longer and are more exact. 0 is mean field,
        which has no random numbers, but is overconfident where missing cells depend on one another. (Where columns have
        more than two states, completions of rows are gone through or drawn instead.)
    multiple : int or None
        How many completed tables :meth:`draws` gives. Each has a network of its own, learned in :meth:`fit` from rows
        drawn with replacement, so that they differ by as much as is not known: multiple imputations for Rubin's rules.

    Attributes
    ----------
    network_, bounds_, held_out_bounds_, n_iter_, schema_, n_features_in_, feature_names_in_ : as there
        As in :class:`SBNDensity`.
    draw_networks_ : tuple of Network
        Those of :meth:`draws`; none without `multiple`.

    Examples
    --------
    >>> from math import nan
    >>> X = [[1, 1, 0], [1, 1, nan], [0, 0, 1], [0, nan, 1]] * 25
    >>> from sbnet.estimators import SBNImputer
    >>> SBNImputer(hidden=2, random_state=0).fit(X).transform([[1, nan, 0], [0, 0, nan]]).round()
    array([[1., 1., 0.],
           [0., 0., 1.]])
    """

    def __init__(
        self,
        *,
        density: SBNDensity | None = None,
        hidden: Any = None,
        columns: Any = None,
        missing: Any = None,
        settings: Training | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int | None = None,
        strategy: str = "mean",
        particles: int = NUMBER,
        multiple: int | None = None,
    ) -> None:
        self.density = density
        self.hidden = hidden
        self.columns = columns
        self.missing = missing
        self.settings = settings
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.strategy = strategy
        self.particles = particles
        self.multiple = multiple

    def _auto(self) -> dict[str, Any]:
        return {"column_mixtures": 0}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.strategy == "sample"  # the draw for a row depends on where it stands
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SBNImputer:
        """Learn a network from a table, as :meth:`SBNDensity.fit` does; `y` is not used.

        Parameters
        ----------
        X : table
            A table of any kind, with missing cells.
        y : ignored
            Not used.
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        SBNImputer
            Itself.
        """
        if not isinstance(self.strategy, str) or self.strategy not in ("mean", "mode", "sample"):
            raise ParameterError(f"strategy is {checks.shown(self.strategy)}; give 'mean', 'mode' or 'sample'")
        check_particles(self.particles)
        if self.multiple is not None:
            count("multiple", self.multiple, 1, ", or None")
            if is_lazy(X) or is_stream(X):
                raise ParameterError("multiple= draws rows of the whole table; give fit() one in memory, or a sample")
        self.draw_networks_: tuple[Network, ...] = ()
        if self.multiple is None:
            self._fit_one(X, sample_weight)
            return self
        rows = self._read_rows(X, sample_weight)
        generator, _ = self._fit_rows(rows)
        self.draw_networks_ = tuple(self._learn_again(rows, generator) for _ in range(self.multiple))
        return self

    def transform(self, X: Any) -> Any:
        """The table with every missing cell filled in: numbers, or objects if there are words in it.

        Parameters
        ----------
        X : table
            Rows to fill in.

        Returns
        -------
        DataFrame or ndarray, like `X`
        """
        check_is_fitted(self)
        sampling, certain = self.strategy == "sample", self.strategy == "mode"
        if not self._is_binary():
            rng = np.random.default_rng(self._seed()) if sampling else None
            return self._fill_states(X, self.network_, rng=rng, means=not certain)
        table, _ = self._table(X, reset=False)
        if sampling:
            filled = self._drawn(table, self._members(), self._seed())
        elif self.particles:
            filled = table.fill(self._completion(self.particles).means, certain)
        else:
            filled = self._fill(table, lambda posterior: posterior.means, certain=certain)
        return as_asked(self, filled, X)

    def probabilities(self, X: Any, *, column: str) -> FloatArray:
        """Probabilities of the states of a column, as :meth:`SBNDensity.probabilities` gives them.

        Parameters
        ----------
        X : array_like or table
            Rows.
        column : str
            Its name.

        Returns
        -------
        ndarray of shape (n_samples, n_states)
            In the order of ``imputer.schema_[column].states``.
        """
        return SBNDensity.probabilities(self, X, column=column)

    def cell_probabilities(self, states: States, places: Sequence[Place]) -> list[FloatArray]:
        """Posterior probabilities of both values of columns, for rows of states of the variables of `network_`.

        Parameters
        ----------
        states : ndarray of int8, rows by variables
            0, 1, or -1 where a variable is not observed.
        places : sequence of Place
            The columns: their variables, and the states of these at each value.

        Returns
        -------
        list of ndarray, rows by values
            One for each column.
        """
        check_is_fitted(self)
        return self._completion(self.particles).probabilities(states, places)

    def draws(self, X: Any) -> list[Any]:
        """`multiple` completed tables, each as :meth:`transform` gives one: observed cells as they are, others drawn.

        What is estimated from each of them is put together by Rubin's rules: the mean of the estimates, with the mean
        of their variances plus (1 + 1/multiple) times the variance between them.

        Parameters
        ----------
        X : table
            Rows to fill in.

        Returns
        -------
        list of DataFrame or ndarray, like `X`
        """
        check_is_fitted(self)
        if not self.draw_networks_:
            raise ParameterError("draws() gives as many tables as `multiple` says; set it before fit(): multiple=5")
        seed = self._seed()
        found = []
        for k, network in enumerate(self.draw_networks_):
            if not self._is_binary():
                found.append(self._fill_states(X, network, rng=np.random.default_rng(seed + k)))
                continue
            filled = as_asked(self, self._drawn(self._table(X, reset=False)[0], [(network, None)], seed + k), X)
            array = isinstance(filled, np.ndarray)
            found.append(_wrap_data_with_container("transform", filled, X, self) if array else filled)
        return found

    def _learn_again(self, rows: Rows, generator: np.random.Generator) -> Network:
        """A network from rows drawn with replacement: how far it is from the other is what a table leaves open."""
        times = generator.multinomial(len(rows.weights), np.full(len(rows.weights), 1.0 / len(rows.weights)))
        weights, settings = rows.weights * times, self._settings()
        if not weights.any():
            weights = rows.weights
        again = replace(rows, weights=weights).keep(weights > 0.0)
        if self.report_ is not None:
            again = again.named(tuple(name for name in self.network_.names if name in set(again.names)))
        return _choosing.learn_one(settings, again, generator, self.report_)[0].network

    def _drawn(self, table: Given, networks: list[Member], seed: int) -> Array:
        if self.particles:
            return table.fill(
                self._completion(self.particles, [network for network, _ in networks], seed).draw, certain=True
            )
        generator = np.random.default_rng(seed)
        return self._fill(table, lambda posterior: _draw(posterior, generator), rng=generator, networks=networks)

    def _seed(self) -> int:
        return make_seed(self._settings().random_state)


def _draw(posterior: PosteriorBatch, generator: np.random.Generator) -> States:
    """Complete states of every row.

    Units with observed descendants are drawn from the mean field posterior, one by one. All others follow from them
    by the network's own probabilities, parents first: exact, and with all correlations.
    """
    network, states = posterior.network, posterior.evidence
    drawn = generator.random(states.shape) < posterior.means
    return sample(
        network, len(states), rng=generator, do=np.where(informed(network, states) & (states == HIDDEN), drawn, states)
    )
