"""What the estimators share: a checked table, a network learned from it, posteriors of its rows, filled cells."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, States
from sbnet.errors import ParameterError, not_among
from sbnet.estimators import _choosing, _large, _learning, _reading, _recognition
from sbnet.estimators._completing import Completion, together
from sbnet.estimators._given import Given
from sbnet.estimators._recognition import Recognition
from sbnet.estimators._rows import Rows, columns, place
from sbnet.estimators.settings import Settings
from sbnet.inference import PosteriorBatch, infer_many
from sbnet.inference.solvers.filling import draw, fill
from sbnet.inference.solvers.particles import NUMBER
from sbnet.inference.solvers.row_completions import log_probabilities
from sbnet.learning.streams import is_stream
from sbnet.model.mixtures import NetworkMixture, log_mean
from sbnet.model.network import Network
from sbnet.parallel.blocks import pool
from sbnet.parallel.lazy import is_lazy
from sbnet.tables import frames
from sbnet.tables.frames import Array
from sbnet.tables.kinds import WORDS, yes_or_no
from sbnet.tables.schema import Column, Schema

Member = tuple[Network, Recognition | None]
"""A network, and what it says of its hidden units before they are solved for."""


class SBNEstimator(BaseEstimator):  # type: ignore[misc]
    """The part of an estimator that does not depend on what it is for."""

    bounds_: Any
    report_: Any
    networks_: Any
    recognitions_: tuple[Recognition | None, ...]
    schema_: Schema
    _n_hidden: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def _settings(self) -> Settings:
        """The arguments in force, checked; they are read at each call."""
        raise NotImplementedError

    def _names(self) -> tuple[str, ...]:
        """The names of the columns that are variables."""
        return self.schema_.names

    def _table(self, X: Any, *, reset: bool, y: Any = "no_validation", sample_weight: Any = None) -> tuple[Given, Any]:
        """A checked table as rows of states, and `y`; with `reset`, how its columns are read is learned and kept."""
        settings, has_target = self._settings(), not (isinstance(y, str) and y == "no_validation")
        X = _reading.checked(self, X, reset=reset)
        y = _reading.target(self, X, y) if has_target else y
        if reset:
            weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
            classes = y if has_target else None
            self.schema_ = _reading.learned(self, X, settings.columns, settings.missing, weights, classes)
            if settings.verbose:
                print(self.schema_, file=sys.stderr)
        return Given(X, self.schema_, _reading.encoded(self.schema_, X)), y

    def _is_binary(self) -> bool:
        """Is every column a variable of two states? Then networks may have hidden variables."""
        schema = self.schema_
        return len(schema.variables) == len(schema.columns) and bool((schema.n_states == 2).all())

    def _read_rows(self, X: Any, sample_weight: Any, *, reset: bool = True) -> Rows:
        return self._rows(self._table(X, reset=reset, sample_weight=sample_weight)[0], sample_weight)

    def _rows(self, table: Given, sample_weight: Any) -> Rows:
        """The rows to learn from, those of weight zero among them."""
        weights: FloatArray = _check_sample_weight(sample_weight, table.cells, dtype=np.float64)
        if np.any(weights < 0.0) or not np.any(weights > 0.0):
            raise ParameterError("sample_weight must not be negative, nor zero in all rows")
        variables = {} if self._is_binary() else {one.name: one for one in self.schema_.variables}
        rows, label = Rows(table.cells, weights, self._names(), variables=variables), self._label()
        if label is None:
            return rows
        return replace(rows.named((*(n for n in rows.names if n != label), label)), label_last=True)

    def _label(self) -> str | None:
        """The column that `label` names; None without one."""
        label = self._settings().label
        if label is not None and label not in self._names():
            raise ParameterError(f"label: {not_among(label, self._names(), 'the columns of the table')}")
        return label

    def _states(self, network: Network, table: Given) -> States:
        return place(network, table.cells, self._names())

    def _infer(self, network: Network, states: States, recognition: Recognition | None = None) -> PosteriorBatch:
        """Posteriors of rows; a recognition says where to start, beside one half, unless a solver is given."""
        settings = self._settings()
        solver = _learning.solver_for(settings, network, self._names(), recognition)
        threads, progress = _learning.threads(settings), None if settings.verbose else False
        return infer_many(
            network, states, solver=solver, threads=threads, executor=settings.executor, progress=progress
        )

    def _members(self) -> list[Member]:
        """Each network that was learned from the table, with its recognition."""
        return list(zip(self.networks_, self.recognitions_, strict=True))

    def _bounds(self, states: States) -> FloatArray:
        """Lower bounds on the log-likelihood of the rows, which stand as the first of the networks has its units.

        Of several networks it is the mean likelihood that is bounded: ln of the mean of e^bound.
        """
        first = self.networks_[0]
        parts = [self._bounds_of(*member, self._moved(first, member[0], states)) for member in self._members()]
        return parts[0] if len(parts) == 1 else log_mean(np.array(parts))

    def _bounds_of(self, network: Network, recognition: Recognition | None, states: States) -> FloatArray:
        if not network.is_binary:
            return log_probabilities(network, states)
        return self._infer(network, states, recognition).bound

    def _moved(self, one: Network, other: Network, states: States) -> States:
        """The rows of one network, as another has its units."""
        names = self._names()
        return states if one is other else place(other, states[:, columns(one, names)], names)

    def _fit_one(self, X: Any, sample_weight: Any) -> tuple[np.random.Generator, float]:
        """Learn one network for a whole table; the generator and the sum of the weights are returned."""
        if is_lazy(X) or is_stream(X):
            return _large.fit_one(self, X, sample_weight)
        return self._fit_rows(self._read_rows(X, sample_weight))

    def _fit_rows(self, rows: Rows) -> tuple[np.random.Generator, float]:
        settings = self._settings()
        generator = np.random.default_rng(_learning.make_seed(settings.random_state))
        # A row of weight zero is no row, in the division into batches too.
        found = _choosing.learn(settings, rows.keep(rows.weights > 0.0), generator)
        (result, self.report_), self.networks_ = found[0], tuple(result.network for result, _ in found)
        self.network_, self.bounds_, self.held_out_bounds_ = result.network, result.bounds, result.held_out
        self.n_iter_ = len(self.bounds_)
        self._n_hidden = sum(settings.layers) if self.report_ is None else self.report_.hidden
        self.recognitions_ = tuple(_recognition.learn(settings, n, self._n_hidden, rows) for n in self.networks_)
        return generator, float(rows.weights.sum())

    def _completion(
        self, number: int = NUMBER, networks: Sequence[Network] | None = None, seed: int | None = None
    ) -> Completion:
        """Rows completed by so many particles; without a seed means are the same at each call."""
        settings = self._settings()
        if seed is None:
            seed = int(settings.random_state) if checks.is_whole(settings.random_state) else 0
        where = pool(settings.executor, _learning.threads(settings))
        return Completion(self.networks_ if networks is None else networks, self._names(), number, seed, where)

    def _fill(
        self,
        table: Given,
        values: Any,
        *,
        certain: bool = False,
        rng: np.random.Generator | None = None,
        networks: Sequence[Member] | None = None,
    ) -> Array:
        """The table with its missing cells filled by `values` of the posteriors of the rows that have some.

        Of several networks: their mean, each by how well it explains the row; or given `rng`, that of one of them.
        """

        def means(cells: States) -> Any:
            names, parts, bounds = self._names(), [], []
            for network, recognition in networks or self._members():
                posterior = self._infer(network, place(network, cells, names), recognition)
                parts.append(values(posterior)[:, columns(network, names)])
                bounds.append(posterior.bound)
            return parts[0] if len(parts) == 1 else together(np.array(parts), np.array(bounds), rng)

        return table.fill(means, certain)

    def _fill_states(
        self, X: Any, network: Network, *, rng: np.random.Generator | None = None, means: bool = True
    ) -> Any:
        """The table with missing cells filled in: as belongs together, numbers by what is expected if `means`, or given
        `rng` by draws.
        """
        schema = self.schema_
        cells, names = self._table(X, reset=False)[0].cells, schema.names
        some, units = np.flatnonzero((cells == HIDDEN).any(axis=1)), columns(network, names)
        rows, probabilities = cells.copy(), None
        states = place(network, cells[some], names)
        if rng is not None:
            rows[some] = draw(network, states, rng)[:, units]
        elif len(some):
            numbers = units[[bool(column.cuts) for column in schema.variables]] if means else units[:0]
            found = fill(network, states, numbers)
            rows[some] = found.states[:, units]
            if means:
                probabilities = [np.zeros((len(cells), int(n))) for n in schema.n_states]
                for own, unit in zip(probabilities, units, strict=True):
                    own[some] = found.probabilities[unit]
        return schema.fill(X, rows, probabilities, rng=rng)


class ScoresRows:
    """Estimators whose rows have scores."""

    @_large.by_partition
    def score_samples(self: Any, X: Any) -> FloatArray:
        """A lower bound on the log-likelihood of each row, over its observed cells, in nats: low for odd rows.

        Parameters
        ----------
        X : table
            Rows, whose missing cells are summed over.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        found: FloatArray = self._bounds(self._states(self.network_, self._table(X, reset=False)[0]))
        return found


class FromNetworks:
    """Estimators that need a network and nothing else."""

    @classmethod
    def from_networks(cls, networks: Network | NetworkMixture, **arguments: Any) -> Self:
        """An estimator that need not be fitted: it works with networks that are there already.

        Parameters
        ----------
        networks : NetworkMixture or Network
            As :func:`sbnet.load` reads one from a file. Of a network by itself all variables are columns.
        **arguments
            Arguments of the estimator, such as ``n_jobs`` or ``random_state``.

        Returns
        -------
        SBNDensity or SBNImputer

        Examples
        --------
        ``sb.save(density.mixture_, "table.sbn")``, and later, or elsewhere,
        ``SBNDensity.from_networks(sb.load("table.sbn")).score_samples(X)``
        """
        mixture = NetworkMixture((networks,), networks.names) if isinstance(networks, Network) else networks
        if not isinstance(mixture, NetworkMixture):
            raise ParameterError(f"networks is {networks!r:.60}; give a NetworkMixture, or a Network")
        estimator: Any = cls(**arguments)
        names = mixture.columns
        estimator.n_features_in_ = len(names)
        if names != tuple(f"x{k}" for k in range(len(names))):
            estimator.feature_names_in_ = np.array(names, dtype=object)
        estimator.network_, estimator.networks_ = mixture.networks[0], mixture.networks
        estimator.recognitions_ = (None,) * len(mixture)
        missing = (*frames.missing_values(arguments.get("missing") or ()), -1.0)
        estimator.schema_ = Schema(tuple(_column(mixture.networks[0], name) for name in names), "array", missing)
        estimator.report_ = estimator.held_out_bounds_ = None
        estimator.bounds_, estimator.n_iter_, estimator.n_samples_seen_ = np.empty(0), 0, 0.0
        # mixture variables come after columns
        estimator._n_hidden = next(k for k, name in enumerate(estimator.network_.names) if name in set(names))
        estimator._generator = np.random.default_rng(_learning.make_seed(estimator.random_state))
        estimator._optimizer_state, estimator.draw_networks_ = None, ()
        made: Self = estimator
        return made


def _column(network: Network, name: str) -> Column:
    """How a variable of a network is read: 0 and 1, or the names of its states."""
    states = network.states[name]
    if states == ("no", "yes"):
        return yes_or_no(name)
    return Column(name, WORDS, states, cells=tuple((state,) for state in states))
