"""A label as the last variable of one network: learned with the other columns, told from what is observed of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.errors import ParameterError
from sbnet.estimators._rows import place
from sbnet.inference.solvers.row_completions import complete
from sbnet.learning.sequential import Features
from sbnet.learning.state_networks import StateRows, StatesReport, learn_states
from sbnet.model.network import Network
from sbnet.tables.schema import Schema

_COMPLETIONS = 128
"""Completions of a row with missing cells."""


def name_of(y: Any, taken: tuple[str, ...]) -> str:
    """The name of the label: that of a series, or "label"; another one if a column is called so."""
    name = str(getattr(y, "name", None) or "label")
    while name in taken:
        name += "'"
    return name


def order_of(schema: Schema, cells: States, label: IndexArray, weight: FloatArray, n: int) -> IndexArray:
    """Classes as states of a variable, each told from those after it: two as they are. Of more, their means of all
    features, in standard deviations, are projected on a line, and the order is that on the line, from its rarer end.
    """
    share = np.bincount(label, weights=weight, minlength=n) / weight.sum()
    if n < 3:
        return np.arange(n)
    features = Features.of(schema.n_states, schema.ordered)
    x = features.read(cells, len(features.variable))
    seen, of_class = (cells != HIDDEN).T[features.variable], weight * (label == np.arange(n)[:, None])
    total = of_class @ seen.T
    mean = np.divide(of_class @ (x & seen).T, total, out=np.zeros(total.shape), where=total > 0.0)
    middle = share @ mean
    scaled = np.sqrt(share)[:, None] * (mean - middle) / np.sqrt(np.maximum(middle * (1.0 - middle), 1e-6))
    line = np.linalg.svd(scaled, full_matrices=False)[0][:, 0] / np.sqrt(np.maximum(share, 1e-12))
    order = np.argsort(line, kind="stable")
    return order if share[order[0]] <= share[order[-1]] else order[::-1]


def learn(
    schema: Schema, cells: States, label: IndexArray, classes: Any, weight: FloatArray, name: str,
    rng: np.random.Generator, *, threads: int | None = None,
) -> tuple[Network, StatesReport, IndexArray]:  # fmt: skip
    """The network of the columns and, after them, of the label, and the order of the classes as its states; `label` has
    the number of the class of each row.
    """
    if len(classes) < 2:
        raise ParameterError(f"y has one class, {checks.shown(classes[0])}; there is nothing to tell apart")
    order = order_of(schema, cells, label, weight, len(classes))
    names = tuple(f"{classes[k]}" for k in order.tolist())
    if len(set(names)) < len(names) or not all(text.strip() for text in names):
        names = tuple(f"class {k}" for k in order.tolist())
    rows = StateRows(
        np.column_stack([cells, np.argsort(order)[label]]).astype(np.int8),
        weight,
        (*schema.names, name),
        (*schema.states.values(), names),
        np.append(schema.ordered, False),
        len(schema.names),
    )
    return *learn_states(rows, rng, threads=threads), order


def probabilities(
    network: Network, name: str, cells: States, columns: tuple[str, ...], order: IndexArray
) -> FloatArray:
    """The probabilities of the classes, rows by classes: missing cells are marginalised."""
    states = place(network, np.column_stack([cells, np.full(len(cells), HIDDEN)]), (*columns, name))
    v = network.index(name)
    found = complete(network, states, asked=np.array([v]), most=_COMPLETIONS).probabilities(v, len(order))
    p = np.empty_like(found)
    p[:, order] = found
    return p
