"""A label as the last variable of one network: learned with the other columns, told from what is observed of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.errors import ParameterError
from sbnet.estimators._rows import place
from sbnet.inference.solvers.row_completions import complete
from sbnet.learning.state_networks import StateRows, StatesReport, learn_states
from sbnet.model.network import Network
from sbnet.model.states import MOST_STATES
from sbnet.tables.schema import Schema

_COMPLETIONS = 128
"""Completions of a row with missing cells."""


def name_of(y: Any, taken: tuple[str, ...]) -> str:
    """The name of the label: that of a series, or "label"; another one if a column is called so."""
    name = str(getattr(y, "name", None) or "label")
    while name in taken:
        name += "'"
    return name


def order_of(counts: FloatArray) -> IndexArray:
    """Classes as states of a variable: two as they are, of more the most frequent one last."""
    return np.arange(2) if len(counts) == 2 else np.argsort(counts, kind="stable")


def learn(
    schema: Schema, cells: States, label: IndexArray, classes: Any, weight: FloatArray, name: str,
    rng: np.random.Generator, *, threads: int | None = None,
) -> tuple[Network, StatesReport]:  # fmt: skip
    """The network of the columns and, after them, of the label; `label` has the number of the class of each row."""
    if len(classes) < 2:
        raise ParameterError(f"y has one class, {checks.shown(classes[0])}; there is nothing to tell apart")
    if len(classes) > MOST_STATES:
        raise ParameterError(f"y has {len(classes)} classes; at most {MOST_STATES} are told apart")
    order = order_of(np.bincount(label, weights=weight, minlength=len(classes)).astype(np.float64))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    names = tuple(f"{classes[k]}" for k in order.tolist())
    if len(set(names)) < len(names) or not all(text.strip() for text in names):
        names = tuple(f"class {k}" for k in order.tolist())
    rows = StateRows(
        np.column_stack([cells, number[label]]).astype(np.int8),
        weight,
        (*schema.names, name),
        (*schema.states.values(), names),
        np.append(schema.ordered, False),
        len(schema.names),
    )
    return learn_states(rows, rng, threads=threads)


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
