"""Likelihood weighting: states drawn from the network, each weighed by how likely it makes the evidence.

Weights lie between 0 and a largest one that is known beforehand, so that their sum in units of the largest says how far
the average can be trusted, whatever the network: its relative error is that of so many yes-or-no draws (Dagum & Luby
1997). Where the sum stays small, there is no answer. It takes any unit, and states that are certain or impossible.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.errors import TooRareError
from sbnet.kernels.sampling import draw_rows, generative
from sbnet.model import gates
from sbnet.model.network import Network

_BLOCK, MOST = 1 << 13, 1 << 18
"""States that are drawn at once, and at most, for one row."""
_ENOUGH, _FEWEST = 10_000.0, 100.0
"""The sum of the weights, in units of the largest possible one, at which drawing ends; and below which all is noise."""


class Weighed(NamedTuple):
    """Means of all units, their standard errors, and how many states were drawn that agree with the evidence."""

    means: FloatArray
    error: FloatArray
    number: int


def weigh(network: Network, row: States) -> Weighed:
    """Posterior means for one row.

    Raises
    ------
    TooRareError
        If the evidence is too improbable for answers from samples.
    """
    n, number, total, squares = network.n_units, 0, 0.0, 0.0
    on, squares_on = np.zeros(n), np.zeros(n)
    for states, weight in draws(network, row):
        number, total = number + int((weight > 0.0).sum()), total + float(weight.sum())
        squares += float(weight @ weight)
        on, squares_on = on + weight @ states, squares_on + weight**2 @ states
    means = on / total
    spread = squares_on * (1.0 - 2.0 * means) + squares * means**2  # the sum of w^2 (S - m)^2, S being 0 or 1
    return Weighed(means, np.sqrt(np.maximum(spread, 0.0)) / total, number)


def draws(network: Network, row: States) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Blocks of complete states and their weights, the largest possible being 1; until there are enough of them."""
    rng, seen = np.random.default_rng(0), np.flatnonzero(row != HIDDEN)
    highest, total, n, net = _highest(network, row, seen), 0.0, 0, generative(network.model, network.bias)
    while total < _ENOUGH and n < MOST:
        states = np.repeat(row[None, :], _BLOCK, axis=0)
        draw_rows(net, rng.random(states.shape), states)
        complete = states.astype(np.float64)
        weight = np.exp(np.minimum(_log_weights(network, complete, seen) - highest, 0.0))
        total, n = total + float(weight.sum()), n + _BLOCK
        yield complete, weight
    if total < _FEWEST:
        raise TooRareError(
            f"of {n:,} samples {total:,.0f} agree with the evidence, too few for an answer; and mean field theory has "
            "none where units are states of one variable. Give fewer findings, or ask for "
            "guaranteed intervals: posterior_intervals(), --certain"
        )


def _log_weights(network: Network, states: FloatArray, seen: IndexArray) -> FloatArray:
    """ln P of what is observed, given the parents, by row."""
    graph, found = network.graph, np.zeros(len(states))
    for i in seen.tolist():
        own = slice(graph.indptr[i], graph.indptr[i + 1])
        x = network.bias[i] + states[:, graph.parent[own]] @ network.weight[own]
        found += gates.log_p(network.gate[i : i + 1], states[:, i], x)
    return found


def _highest(network: Network, row: States, seen: IndexArray) -> float:
    """The largest that ln P of what is observed can be, whatever the hidden units are."""
    graph, total = network.graph, 0.0
    for i in seen.tolist():
        own = slice(graph.indptr[i], graph.indptr[i + 1])
        known, weight = row[graph.parent[own]], network.weight[own]
        sign = 1.0 if row[i] else -1.0
        free = np.maximum(sign * weight[known == HIDDEN], 0.0).sum() * sign
        x = np.array([network.bias[i] + weight[known == 1].sum() + free])
        total += float(gates.log_p(network.gate[i : i + 1], row[i], x)[0])
    return total
