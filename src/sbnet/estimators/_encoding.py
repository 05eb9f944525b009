"""Tables of categories and numbers in an estimator: their encoder, the units of their columns, cells to fill."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_X_y, validate_data

from sbnet._types import HIDDEN, IndexArray, States
from sbnet.errors import ParameterError
from sbnet.estimators._given import Given
from sbnet.estimators._rows import Group, columns
from sbnet.estimators.encoder import BinaryEncoder, checked_table
from sbnet.estimators.settings import Settings
from sbnet.inference.solvers.block_gibbs import Chains, cell_probabilities
from sbnet.inference.solvers.places import Place
from sbnet.model.network import Network
from sbnet.tables.codings import PLAIN
from sbnet.tables.frames import is_records


def encoder_for(encode: Any, missing: Any) -> BinaryEncoder:
    """The encoder that `encode` asks for, in the coding that networks need: no unit for the most frequent category."""
    if isinstance(encode, BinaryEncoder):
        found: BinaryEncoder = clone(encode)
        found.set_params(drop="most_frequent", missing=missing if missing != () else encode.missing)
        return found
    if isinstance(encode, str) and encode == "auto":
        return BinaryEncoder(drop="most_frequent", missing=missing)
    raise ParameterError(f"encode is {encode!r}; give None, 'auto', or a BinaryEncoder")


def checked(
    estimator: Any, settings: Settings, X: Any, y: Any, *, reset: bool, sample_weight: Any
) -> tuple[Given, Any]:
    """A table as the units of its columns, and `y`; with `reset`, an encoder is fitted and kept."""
    if settings.binarize is not None:
        raise ParameterError("encode= and binarize= were both given; numbers are read by the one or by the other")
    X = checked_table(estimator, X)
    if not is_records(X):
        validate_data(estimator, X, y, reset=reset, skip_check_array=True)  # the number of columns, and their names
    if reset:
        encoder = encoder_for(settings.encode, settings.missing).fit(X, sample_weight=sample_weight)
        estimator.encoder_, estimator.codings_ = encoder, None
        if is_records(X):
            estimator.n_features_in_, estimator.feature_names_in_ = encoder.n_features_in_, encoder.feature_names_in_
        if not any(coding.units for coding in encoder.columns_):
            raise ParameterError("no column of the table has two different values, so there is nothing to learn")
        if settings.verbose:
            print(estimator.encoder_.columns_, file=sys.stderr)
    encoder = estimator.encoder_
    # What only rows of weight zero hold is not known, and does not matter.
    units = encoder._units(encoder._read(X, "missing" if reset else encoder.handle_unknown))
    if not (y is None or isinstance(y, str)):
        units, y = check_X_y(units, y, dtype=np.float64, ensure_all_finite="allow-nan", estimator=estimator)
    cells: States = np.where(np.isnan(units), HIDDEN, units).astype(np.int8)
    return Given(units, cells, (PLAIN,) * units.shape[1]), y


def groups(encoder: BinaryEncoder) -> tuple[Group, ...]:
    """The columns of more than two values."""
    return tuple(Group(c.units, c.is_thermometer) for c in encoder.columns_ if len(c.units) > 1)


def places(encoder: BinaryEncoder, network: Network) -> list[Place]:
    """The columns of the table in the network."""
    return [Place(c.name, columns(network, c.units), c.codes, c.labels) for c in encoder.columns_]


def completed(encoder: BinaryEncoder, network: Network, states: States, rng: np.random.Generator | None) -> IndexArray:
    """Rows by columns: the number of the value of each cell; where it is missing, the most probable one.

    Or, given a generator, a draw: the cells of a row are then drawn together.
    """
    own = places(encoder, network)
    if rng is not None:
        return values(own, Chains.begin(network, states, own, rng).run(network, rng).states)
    probabilities = cell_probabilities(network, states, own)
    best = np.column_stack([each.argmax(axis=1) for each in probabilities])
    given = values(own, states)
    return np.where(given < 0, best, given)


def values(own: list[Place], states: States) -> IndexArray:
    """Rows by columns: the number of the value of each cell."""
    return np.column_stack([place.values_of(states) for place in own])
