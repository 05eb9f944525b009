"""What the estimators share: a checked table, a network learned from it, posteriors of its rows, filled cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, validate_data

<<<<<<< HEAD
from sbnet import checks
from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.build import add_switches, layered
from sbnet.errors import NetworkError, ParameterError
from sbnet.inference import MeanField, PosteriorBatch, infer_many
from sbnet.learning import SGD, Adam, FitResult, Gaussian, fit
from sbnet.network import Network

# The defaults of all three estimators; only `hidden` and `switches` differ between them.
HIDDEN_DENSITY: tuple[int, ...] = (8,)
HIDDEN_CLASSIFIER: tuple[int, ...] = (8, 24)
HIDDEN_IMPUTER: tuple[int, ...] = (8,)
LATERAL = True
SWITCHES_DENSITY = 1
SWITCHES = 0
EPOCHS = "auto"
BATCH_SIZE = 100
OPTIMIZER = "adam"
LEARNING_RATE = 0.03
PRIOR_SCALE = 2.0
LATERAL_PRIOR_SCALE = 0.5
WEIGHT_SCALE = 0.2
BINARIZE = 0.0
SOLVER = MeanField(log_term="xi", tol=1e-3)
"""The solver for learning and for scoring, where none is given."""


@dataclass(frozen=True)
class Recipe:
    """How a network is made and learned: the arguments of an estimator, checked. It travels to worker processes."""

    hidden: tuple[int, ...]
    lateral: bool
    switches: int
    weight_scale: float
    epochs: Any
    batch_size: int
    optimizer: Any
    prior_scale: Any
    lateral_prior_scale: float | None
    solver: MeanField
    validation: float | None
    patience: int | None
    prior_share: float = 1.0

    def start(
        self, cells: FloatArray, weights: FloatArray, names: Sequence[str] | None, generator: np.random.Generator
    ) -> Network:
        """Random weights, and biases of the visible units at the logits of the columns' means.

        A column without a single observed cell is cut off: nothing is known about it, and with its edges in place it
        would be learned as one more hidden unit, whose states have nothing to do with the column.
        """
        width = cells.shape[1]
        network = layered((*self.hidden, width), rng=generator, scale=self.weight_scale, lateral=self.lateral)
        if names is not None:
            own = {f"{name}.switch{k + 1}" for name in names for k in range(self.switches)}
            taken = {*network.names[:-width], *own} & set(names)
            if taken:
                raise NetworkError(f"column {min(taken)!r} has the name of a hidden unit; rename the column")
            network = replace(network, names=(*network.names[:-width], *names))
        ones, zeros = weights @ (cells == 1.0), weights @ (cells == 0.0)
        bias = network.bias.copy()
        bias[-width:] = np.log((ones + 0.5) / (zeros + 0.5))
        # Weights between columns need no noise to part them from each other, and would have to unlearn it.
        beside = network.graph.parent >= network.n_units - width
        network = network.with_parameters(weight=np.where(beside, 0.0, network.weight), bias=bias)
        if self.switches:
            network = add_switches(network, count=self.switches, rng=generator, scale=self.weight_scale)
        unseen = _unseen(network, cells, names)
        cut = unseen[network.graph.parent] | unseen[network.graph.child_of_edge]
        return network.with_parameters(
            weight=np.where(cut, 0.0, network.weight), bias=np.where(unseen, 0.0, network.bias)
        )

    def learn(
        self,
        network: Network,
        cells: FloatArray,
        weights: FloatArray,
        names: Sequence[str] | None,
        generator: np.random.Generator,
        threads: int | None,
        progress: bool,
    ) -> FitResult:
        """Climb the bound from `network`; columns without an observed cell stay as they are."""
        unseen, child = _unseen(network, cells, names), network.graph.child_of_edge
        edges = np.flatnonzero(unseen[network.graph.parent] | unseen[child])
        units = network.names
        frozen: list[str | tuple[str, str]] = [(units[network.graph.parent[e]], units[child[e]]) for e in edges]
        frozen += [units[i] for i in np.flatnonzero(unseen)]
        hold_out = self.validation is not None and len(cells) > 1  # one row cannot be divided
        epochs = _epochs(len(cells), self.batch_size) if self.epochs == "auto" else self.epochs
        optimizer = self.optimizer
        if isinstance(optimizer, partial):  # given by name: its rate falls to nothing over all epochs
            optimizer = optimizer(until=max(epochs, 1))
        result = fit(
            network,
            evidence(network, cells, names),
            epochs=epochs,
            optimizer=optimizer,
            batch_size=self.batch_size,
            solver=self.solver,
            prior=self._prior(network, columns(network, cells.shape[1], names)),
            validation=self.validation if hold_out else None,
            patience=self.patience if hold_out else None,
            sample_weight=weights,
            frozen=frozen,
            rng=generator,
            threads=threads,
            progress=progress,
        )
        if result.interrupted:  # an estimator is fitted or it is not, and a search over settings must stop
            raise KeyboardInterrupt
        return result

    def steady_optimizer(self) -> Any:
        """The optimiser for passes without an end, at a rate that stays."""
        return self.optimizer() if isinstance(self.optimizer, partial) else self.optimizer

    def _prior(self, network: Network, visible: IndexArray) -> Any:
        """A Gaussian prior with one scale for the weights from columns and one for all others; or what was given."""
        if self.prior_scale is None or (np.isscalar(self.prior_scale) and self.prior_scale == np.inf):
            return None
        prior = self.prior_scale
        if not hasattr(prior, "slope"):
            lateral = np.isin(network.graph.parent, visible)
            beside = prior if self.lateral_prior_scale is None else self.lateral_prior_scale
            prior = Gaussian(np.where(lateral, beside, prior).tolist()) if lateral.any() else Gaussian(prior)
        return prior if self.prior_share == 1.0 else _Shared(prior, self.prior_share)


class _Shared:
    """A share of a prior."""

    def __init__(self, prior: Any, share: float) -> None:
        self.prior, self.share = prior, share

    def slope(self, weight: FloatArray, bias: FloatArray) -> Any:
        return self.share * self.prior.slope(weight, bias)


def learn_from_scratch(
    recipe: Recipe,
    cells: FloatArray,
    weights: FloatArray,
    names: Sequence[str] | None,
    generator: np.random.Generator,
    threads: int | None,
    progress: bool,
) -> FitResult:
    """A start and all epochs, from one generator."""
    network = recipe.start(cells, weights, names, generator)
    return recipe.learn(network, cells, weights, names, generator, threads, progress)
=======
from sbnet._types import HIDDEN, FloatArray, States
from sbnet.errors import ParameterError
from sbnet.estimators import _learning
from sbnet.estimators._rows import Rows, columns, place
from sbnet.inference import PosteriorBatch, infer_many
from sbnet.network import Network

if TYPE_CHECKING:
    from sbnet.estimators.density import SBNDensity
>>>>>>> estimators


class SBNEstimator(BaseEstimator):  # type: ignore[misc]
    """The part of an estimator that does not depend on what it is for."""

    bounds_: Any
    _n_hidden: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

<<<<<<< HEAD
    def _recipe(self) -> Recipe:
        """The arguments, checked; those that :func:`sbnet.fit` checks are left to it."""
        hidden = tuple(self.hidden) if isinstance(self.hidden, Iterable) else (self.hidden,)
        if self.patience is not None and self.validation_fraction is None:
            raise ParameterError("patience watches held-out rows; give their share with validation_fraction=")
        if self.validation_fraction is not None:
            checks.chance("validation_fraction", self.validation_fraction)
        return Recipe(
            hidden,
            bool(self.lateral),
            self.switches,
            self.weight_scale,
            self.epochs,
            self.batch_size,
            self._optimizer(),
            self.prior_scale,
            self.lateral_prior_scale,
            self._solver(),
            self.validation_fraction,
            self.patience,
        )
=======
    def _settings(self) -> SBNDensity:
        """The arguments in force; they are read at each call."""
        raise NotImplementedError
>>>>>>> estimators

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
