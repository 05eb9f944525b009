"""What the estimators share: a checked table, a network learned from it, posteriors of its rows, filled cells."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import _check_sample_weight, check_X_y, validate_data

from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.errors import ParameterError, not_among
from sbnet.estimators import _choosing, _given, _large, _learning, _reading, _recognition
from sbnet.estimators._given import Given
from sbnet.estimators._recognition import Recognition
from sbnet.estimators._rows import Group, Rows, columns, place
from sbnet.estimators.encoder import BinaryEncoder, checked_table
from sbnet.estimators.settings import Settings, is_auto
from sbnet.inference import PosteriorBatch, infer_many
from sbnet.inference.solvers.block_gibbs import Chains, cell_probabilities
from sbnet.inference.solvers.completions import complete
from sbnet.inference.solvers.places import BINARY, Place
from sbnet.inference.solvers.row_completions import log_probabilities
from sbnet.learning.state_networks import StateRows, learn_states
from sbnet.learning.streams import is_stream
from sbnet.model.mixtures import NetworkMixture, log_mean
from sbnet.model.network import Network
from sbnet.parallel.lazy import is_lazy
from sbnet.tables.codings import PLAIN, Coding, show
from sbnet.tables.frames import Array, is_records
from sbnet.tables.schema import Schema

Member = tuple[Network, Recognition | None]
"""A network, and what it says of its hidden units before they are solved for."""


class SBNEstimator(BaseEstimator):  # type: ignore[misc]
    """The part of an estimator that does not depend on what it is for."""

    bounds_: Any
    report_: Any
    networks_: Any
    recognitions_: tuple[Recognition | None, ...]
    schema_: Schema | None
    encoder_: BinaryEncoder | None
    codings_: dict[str, Coding] | None
    _n_hidden: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = self._settings().binarize is None
        return tags

    def _settings(self) -> Settings:
        """The arguments in force, checked; they are read at each call."""
        raise NotImplementedError

    def _names(self) -> tuple[str, ...]:
        """Of the columns, or of their units; without any, they are called as :func:`sbnet.layered` calls its units."""
        if self.encoder_ is not None:
            return tuple(self.encoder_.get_feature_names_out())
        if self.schema_ is not None:
            return self.schema_.names
        names = getattr(self, "feature_names_in_", None)
        return tuple(f"x{k}" for k in range(self.n_features_in_)) if names is None else tuple(names)

    def _table(self, X: Any, *, reset: bool, y: Any = "no_validation", sample_weight: Any = None) -> tuple[Given, Any]:
        """A checked table, read as zeros and ones, and `y`; with `reset`, its codings are learned and kept."""
        settings = self._settings()
        if settings.encode is not None:
            return _encoded(self, settings, X, y, reset=reset, sample_weight=sample_weight)
        threshold = settings.binarize
        if reset:
            self.encoder_, self.schema_ = None, None
        if threshold is None and (reset or self.schema_ is not None):
            return self._by_schema(settings, X, y, reset=reset, sample_weight=sample_weight)
        sheet, values, y = _given.checked(
            self, X, y, reset=reset, missing=settings.missing, numbers=threshold is not None
        )
        names = self._names()
        if threshold is not None:
            if reset:
                self.codings_ = None
            states: States = np.where(np.isnan(values), HIDDEN, values > threshold).astype(np.int8)
            return Given(values, states, (PLAIN,) * len(names)), y
        if reset:
            self.codings_ = _given.learn(sheet, values, names)
            if settings.verbose:
                _given.tell(self.codings_)
        known = self.codings_ or dict.fromkeys(names, PLAIN)
        return Given(values, _given.cells(sheet, values, known), tuple(known.values())), y

    def _by_schema(self, settings: Settings, X: Any, y: Any, *, reset: bool, sample_weight: Any) -> tuple[Given, Any]:
        """A table as rows of states, by the schema, which is learned with `reset`."""
        X = _reading.checked(self, X, reset=reset)
        if reset:
            weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
            self.schema_ = _reading.learned(self, X, settings.columns, settings.missing, weights)
            self.codings_ = _given.codings_of(self.schema_) if self._is_binary() else None
            if settings.verbose:
                print(self.schema_, file=sys.stderr)
        assert self.schema_ is not None
        cells = _reading.encoded(self.schema_, X)
        if not (y is None or isinstance(y, str)):
            y = _reading.with_target(self, cells, y)
        if self.codings_ is None:
            return Given(cells, cells, ()), y
        values = _given.stacked(X, self.schema_, cells)
        return Given(values, cells, tuple(self.codings_.values())), y

    def _is_binary(self) -> bool:
        """Is every column a variable of two states? Then networks may have hidden variables and several orders."""
        schema = self.schema_
        return schema is None or (len(schema.variables) == len(schema.columns) and bool((schema.n_states == 2).all()))

    def _read_rows(self, X: Any, sample_weight: Any, *, reset: bool = True) -> Rows:
        return self._rows(self._table(X, reset=reset, sample_weight=sample_weight)[0], sample_weight)

    def _rows(self, table: Given, sample_weight: Any) -> Rows:
        """The rows to learn from, those of weight zero among them."""
        weights: FloatArray = _check_sample_weight(sample_weight, table.cells, dtype=np.float64)
        if np.any(weights < 0.0) or not np.any(weights > 0.0):
            raise ParameterError("sample_weight must not be negative, nor zero in all rows")
        rows, label = Rows(table.cells, weights, self._names(), self._groups()), self._label_units()
        if not label:
            return rows
        return replace(rows.named(tuple(n for n in rows.names if n not in label) + label), label_last=len(label) == 1)

    def _groups(self) -> tuple[Group, ...]:
        columns = () if self.encoder_ is None else self.encoder_.columns_
        return tuple(Group(column.units, column.is_thermometer) for column in columns if len(column.units) > 1)

    def _label_units(self) -> tuple[str, ...]:
        """The column that `label` names, or its units; none without one."""
        label = self._settings().label
        if label is None:
            return ()
        known = self._names() if self.encoder_ is None else tuple(column.name for column in self.encoder_.columns_)
        if label not in known:
            raise ParameterError(f"label: {not_among(label, known, 'the columns of the table')}")
        return (label,) if self.encoder_ is None else self.encoder_.columns_[known.index(label)].units

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
        if self.encoder_ is None:
            return self._infer(network, states, recognition).bound
        whole = complete(network, states, self._places(network))
        return whole.sum(self._infer(network, whole.states, recognition).bound)

    def _moved(self, one: Network, other: Network, states: States) -> States:
        """The rows of one network, as another has its units."""
        names = self._names()
        return states if one is other else place(other, states[:, columns(one, names)], names)

    def _places(self, network: Network) -> list[Place]:
        """The columns as units of the network."""
        if self.encoder_ is not None:
            return [Place(c.name, columns(network, c.units), c.codes, c.labels) for c in self.encoder_.columns_]
        found = []
        for name in self._names():
            coding = PLAIN if self.codings_ is None else self.codings_[name]
            words = tuple(show(value).strip("'") for value in (coding.zero, coding.one))
            found.append(Place(name, columns(network, (name,)), BINARY, words))
        return found

    def _fit_one(self, X: Any, sample_weight: Any) -> tuple[np.random.Generator, float]:
        """Learn one network for a whole table; the generator and the sum of the weights are returned."""
        if is_lazy(X) or is_stream(X):
            return _large.fit_one(self, X, sample_weight)
        return self._fit_rows(self._read_rows(X, sample_weight))

    def _fit_rows(self, rows: Rows) -> tuple[np.random.Generator, float]:
        settings = self._settings()
        generator = np.random.default_rng(_learning.make_seed(settings.random_state))
        if not self._is_binary():
            self._fit_states(rows.keep(rows.weights > 0.0), generator)
            return generator, float(rows.weights.sum())
        # A row of weight zero is no row, in the division into batches too.
        found = _choosing.learn(settings, rows.keep(rows.weights > 0.0), generator)
        (result, self.report_), self.networks_ = found[0], tuple(result.network for result, _ in found)
        self.network_, self.bounds_, self.held_out_bounds_ = result.network, result.bounds, result.held_out
        self.n_iter_ = len(self.bounds_)
        self._n_hidden = sum(settings.layers) if self.report_ is None else self.report_.hidden
        self.recognitions_ = tuple(_recognition.learn(settings, n, self._n_hidden, rows) for n in self.networks_)
        return generator, float(rows.weights.sum())

    def _fit_states(self, rows: Rows, generator: np.random.Generator) -> None:
        """One network of variables with states."""
        assert self.schema_ is not None
        found = StateRows(
            rows.named(self.schema_.names).cells,
            rows.weights,
            self.schema_.names,
            tuple(self.schema_.states.values()),
            self.schema_.ordered,
            self.schema_.names.index(rows.names[-1]) if rows.label_last else None,
        )
        threads = _learning.threads(self._settings())
        self.network_, report = learn_states(found, generator, threads=threads, products=0)
        self.networks_, self.recognitions_, self._n_hidden, self.report_ = (self.network_,), (None,), 0, report
        self.bounds_, self.held_out_bounds_, self.n_iter_ = np.array([report.held_out]), None, 1
        if self._settings().verbose:
            print(report, file=sys.stderr)

    def _fill_encoded(self, X: Any, rng: np.random.Generator | None, networks: Sequence[Member] | None = None) -> Any:
        """The table, of its own kind, with missing cells at their most probable values; or, given `rng`, at draws."""
        encoder = self.encoder_
        assert encoder is not None
        states = self._states(self.network_, self._table(X, reset=False)[0])
        given = encoder.read(X)
        rows, found = np.flatnonzero((given < 0).any(axis=1)), np.full_like(given, -1)
        if len(rows):
            found[rows] = self._completed(states[rows], rng, networks or self._members())
        return encoder.fill(X, np.where(given < 0, found, -1))

    def _completed(self, states: States, rng: np.random.Generator | None, networks: Sequence[Member]) -> IndexArray:
        """The number of the value of each cell, rows by columns: where one is missing, the most probable, or a draw.

        Draws of the cells of a row are made together. Of several networks each row has the likeliest, or a drawn one.
        """
        moved = [self._moved(self.network_, network, states) for network, _ in networks]
        which = np.zeros(len(states), np.int64)
        if len(networks) > 1:
            pairs = zip(networks, moved, strict=True)
            which = chosen(np.array([self._bounds_of(*member, rows) for member, rows in pairs]), rng)
        parts = []
        for (network, _), rows in zip(networks, moved, strict=True):
            places = self._places(network)
            if rng is None:
                best = np.column_stack([p.argmax(axis=1) for p in cell_probabilities(network, rows, places)])
                given = numbers(places, rows)
                parts.append(np.where(given < 0, best, given))
            else:
                parts.append(numbers(places, Chains.begin(network, rows, places, rng).run(network, rng).states))
        return np.array(parts)[which, np.arange(len(states))]

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


class FromNetworks:
    """Estimators that need a network and nothing else."""

    @classmethod
    def from_networks(cls, networks: Network | NetworkMixture, **arguments: Any) -> Self:
        """An estimator that need not be fitted: it works with networks that are there already.

        Parameters
        ----------
        networks : NetworkMixture or Network
            As :func:`sbnet.load` reads one from a file. Of a network by itself all units are columns.
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
        estimator.schema_ = estimator.encoder_ = estimator.codings_ = estimator.report_ = estimator.held_out_bounds_ = (
            None
        )
        estimator.bounds_, estimator.n_iter_, estimator.n_samples_seen_ = np.empty(0), 0, 0.0
        # mixture variables come after columns
        estimator._n_hidden = next(k for k, name in enumerate(estimator.network_.names) if name in set(names))
        estimator._generator = np.random.default_rng(_learning.make_seed(estimator.random_state))
        estimator._optimizer_state, estimator.draw_networks_ = None, ()
        made: Self = estimator
        return made


def _encoded(
    estimator: Any, settings: Settings, X: Any, y: Any, *, reset: bool, sample_weight: Any
) -> tuple[Given, Any]:
    """A table of categories and numbers as the units of its columns, and `y`; with `reset`, an encoder is fitted."""
    if settings.binarize is not None:
        raise ParameterError("encode= and binarize= were both given; numbers are read by the one or by the other")
    X = checked_table(estimator, X)
    if not is_records(X):
        validate_data(estimator, X, y, reset=reset, skip_check_array=True)  # the number of columns, and their names
    if reset:
        encode, missing = settings.encode, settings.missing
        if not isinstance(encode, BinaryEncoder) and not is_auto(encode):
            raise ParameterError(f"encode is {encode!r}; give None, 'auto', or a BinaryEncoder")
        encoder = BinaryEncoder() if is_auto(encode) else clone(encode)
        # the coding that networks need: no unit for the most frequent category
        encoder.set_params(drop="most_frequent", missing=encoder.missing if missing == () else missing)
        estimator.schema_ = None
        estimator.encoder_, estimator.codings_ = encoder.fit(X, sample_weight=sample_weight), None
        if is_records(X):
            estimator.n_features_in_, estimator.feature_names_in_ = encoder.n_features_in_, encoder.feature_names_in_
        if not any(coding.units for coding in encoder.columns_):
            raise ParameterError("no column of the table has two different values, so there is nothing to learn")
        if settings.verbose:
            print(encoder.columns_, file=sys.stderr)
    encoder = estimator.encoder_
    # What only rows of weight zero hold is not known, and does not matter.
    units = encoder._units(encoder._read(X, "missing" if reset else encoder.handle_unknown))
    if not (y is None or isinstance(y, str)):
        units, y = check_X_y(units, y, dtype=np.float64, ensure_all_finite="allow-nan", estimator=estimator)
    cells: States = np.where(np.isnan(units), HIDDEN, units).astype(np.int8)
    return Given(units, cells, (PLAIN,) * units.shape[1]), y


def numbers(places: list[Place], states: States) -> IndexArray:
    """The number of the value of each cell, rows by columns."""
    return np.column_stack([place.values_of(states) for place in places])


def chosen(bounds: FloatArray, rng: np.random.Generator | None) -> IndexArray:
    """For each row a network: the likeliest, or one that is drawn by how likely they are."""
    share = softmax(bounds, axis=0)
    if rng is None:
        return np.asarray(share.argmax(axis=0), dtype=np.int64)
    drawn: IndexArray = (share.cumsum(axis=0) < rng.random(share.shape[1])).sum(axis=0)
    return np.minimum(drawn, len(share) - 1)


def together(values: FloatArray, bounds: FloatArray, rng: np.random.Generator | None) -> Any:
    """Values of each network, rows by columns, as one: their mean, or those of one network for each row."""
    if rng is not None:
        return values[chosen(bounds, rng), np.arange(values.shape[1])]
    return np.einsum("kr,krc->rc", softmax(bounds, axis=0), values)
