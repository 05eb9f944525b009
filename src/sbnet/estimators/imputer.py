"""An imputer for binary tables with holes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sbnet._types import HIDDEN, States
from sbnet.errors import ParameterError
from sbnet.estimators._completions import informed
from sbnet.estimators._given import as_asked
from sbnet.estimators._learning import make_seed
from sbnet.estimators._partitions import by_partition
from sbnet.estimators._template import FromTemplate
from sbnet.estimators.density import SBNDensity
from sbnet.inference import PosteriorBatch
from sbnet.probability import sample


class SBNImputer(OneToOneFeatureMixin, TransformerMixin, FromTemplate):  # type: ignore[misc]
    """Fill the holes of a binary table, from a sigmoid belief network learned from the same or another table.

    Observed cells stay as they are, to the last bit. In a column of zeros and ones, what is filled in is the posterior
    mean of a cell given the observed cells of its row, a number between 0 and 1, or a draw of 0 or 1. A column of two
    other values, such as "yes" and "no" or 1 and 2, is filled with these: with the more probable one, or with a draw.
    With a threshold, `binarize`, what is filled in is on the scale from 0 to 1. With `encode`, a table of categories
    and numbers comes back as it was given, of the same kind and with the same types, its holes filled with the most
    probable values or with draws.

    Parameters
    ----------
    density, hidden, binarize, encode, missing, random_state, verbose
        As in :class:`SBNClassifier`, for the one network.
    n_jobs : int or None
        Number of threads. None leaves it to `density`; None there too, or -1, is all cores.
    executor : concurrent.futures.Executor or None
        As in :class:`SBNDensity`.
    strategy : {"mean", "mode", "sample"}
        Fill with posterior means; or with the more probable value, in columns of zeros and ones too; or with draws,
        which keep the spread, and within a row the correlations that the network finds. Several draws (from several
        values of `random_state`) make multiple imputations.

    Attributes
    ----------
    network_, bounds_, held_out_bounds_, n_iter_, codings_, encoder_, n_features_in_, feature_names_in_
        As in :class:`SBNDensity`.

    Examples
    --------
    >>> from math import nan
    >>> X = [[1, 1, 0], [1, 1, nan], [0, 0, 1], [0, nan, 1]] * 25
    >>> from sbnet.estimators import SBNImputer
    >>> SBNImputer(hidden=2, random_state=0).fit(X).transform([[1, nan, 0], [0, 0, nan]]).round()
    array([[1., 1., 0.],
           [0., 0., 1.]])
    """

    _AUTO: ClassVar[dict[str, Any]] = {"switches": 0}

    def __init__(
        self,
        *,
        density: SBNDensity | None = None,
        hidden: Any = None,
        binarize: float | None = None,
        encode: Any = None,
        missing: Any = None,
        n_jobs: int | None = None,
        executor: Any = None,
        random_state: Any = None,
        verbose: int | None = None,
        strategy: str = "mean",
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
        self.strategy = strategy

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.strategy == "sample"  # the draw for a row depends on the rows before it
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SBNImputer:
        """Learn a network from a table with holes, as :meth:`SBNDensity.fit` does; `y` is not used."""
        if self.strategy not in ("mean", "mode", "sample"):
            raise ParameterError(f"strategy is {self.strategy!r}; give 'mean', 'mode' or 'sample'")
        self._fit_one(X, sample_weight)
        return self

    @by_partition
    def transform(self, X: Any) -> Any:
        """The table with every missing cell filled in: numbers, or objects if there are words in it."""
        check_is_fitted(self)
        if self.encoder_ is not None:
            sampling = self.strategy == "sample"
            return self._fill_encoded(
                X, np.random.default_rng(make_seed(self._settings().random_state)) if sampling else None
            )
        table, _ = self._table(X, reset=False)
        if self.strategy != "sample":
            filled = self._fill(table, lambda posterior: posterior.means, certain=self.strategy == "mode")
        else:
            generator = np.random.default_rng(make_seed(self._settings().random_state))
            filled = self._fill(table, lambda posterior: _draw(posterior, generator), rng=generator)
        return as_asked(self, filled, X)


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
