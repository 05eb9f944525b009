"""Chains of Gibbs sweeps that begin at random: their means, and weights of annealed ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray, Model, States
from sbnet.exact.probability import log_p_of_inputs
from sbnet.inference.importance import draw, factorial, seeds_of
from sbnet.kernels.chains import BARREN, HIDDEN, LANES, Chains, chains_of, graph_of
from sbnet.kernels.gibbs import sweep
from sbnet.kernels.random import GOLDEN, Seeds, row_seeds, streams_of, uniforms
from sbnet.questions.reduction import columns

_NUMBERS = 1 << 18  # in the records of some rows: what is worked on at a time


class Length(NamedTuple):
    """The length of chains: sweeps that count, sweeps before them (burn-in), and the number of chains of a row."""

    samples: int
    burn_in: int
    chains: int


def rows_at_once(model: Model, number: int) -> int:
    """How many rows there is room for, with so many lanes each."""
    return max(_NUMBERS // (whole_blocks(number) * (len(model.gate) + 2 * int(model.threshold[-1]) + 1)), 1)


def whole_blocks(number: int) -> int:
    """The number of lanes, rounded up to whole blocks."""
    return -(-number // LANES) * LANES


def by_row(values: FloatArray, n_rows: int) -> FloatArray:
    """Blocks by thresholds by lanes, as rows by lanes by thresholds."""
    n, width, _ = values.shape
    return values.reshape(n_rows, n // n_rows, width, LANES).swapaxes(2, 3).reshape(n_rows, -1, width)


def observed(model: Model, states: States) -> tuple[BoolArray, BoolArray]:
    """Rows by columns: is the variable observed; and in that state?"""
    variable, state = columns(model)
    return states[:, variable] >= 0, states[:, variable] == state


def gibbs_means(
    model: Model, states: States, bias: FloatArray, seed: np.uint64, length: Length
) -> tuple[FloatArray, FloatArray, States]:
    """Means of conditional probabilities in each chain, rows by chains by thresholds; variances, and last states."""
    means = np.empty((len(states), length.chains, len(bias)))
    last = np.empty((*means.shape[:2], len(model.gate)), np.int8)
    within, graph, most = np.empty_like(means), graph_of(model), rows_at_once(model, length.chains)
    for first in range(0, len(states), most):
        rows = slice(first, first + most)
        chains = chains_of(graph, states[rows], bias, length.chains)
        seeds = streams_of(row_seeds(seed, states[rows]), whole_blocks(length.chains))
        for r, streams in enumerate(seeds):
            hidden, numbers = _begin(chains, r, streams)
            _put(chains, r, hidden, (numbers * model.n_states[hidden, None]).astype(np.int64))
        sweep(graph, chains, np.ones(length.burn_in + length.samples), length.burn_in)
        seen, on = (values[:, None] for values in observed(model, states[rows]))
        average, spread = (
            by_row(chains.columns[name], len(seeds))[:, : length.chains] for name in ("average", "spread")
        )
        means[rows], within[rows] = np.where(seen, on, average), np.where(seen, 0.0, spread / (length.samples - 1))
        cells = chains.cells["state"].swapaxes(1, 2).reshape(len(seeds), -1, len(model.gate))
        last[rows] = cells[:, : length.chains]
    return means, within, last


def anneal(
    model: Model, states: States, bias: FloatArray, means: FloatArray, steps: int, seed: np.uint64, samples: int
) -> FloatArray:
    """ln w of each sample for one row, with <w> = P(V): annealed importance sampling (Neal 2001).

    H comes from the factorial distribution Q with the given means, by column, and goes through Q^(1-b) P^b, b rising
    from 0 to 1 in `steps` steps; ln w is the mean of ln P(H, V) - ln Q(H) over them.
    """
    log_w, graph, n = np.empty(samples), graph_of(model), len(states)
    variable, state = columns(model)
    q, log_q0 = factorial(means, variable, n)
    prior = np.log(q) - log_q0[variable]
    most = rows_at_once(model, LANES) * LANES
    for first in range(0, samples, most):
        number = min(most, samples - first)
        chains = chains_of(graph, states[None], bias, number)
        chains.prior[:] = prior
        hidden, numbers = _begin(chains, 0, seeds_of(seed, states, whole_blocks(number), first))
        _put(chains, 0, hidden, np.array([draw(q[variable == v], u) for v, u in zip(hidden, numbers, strict=True)]))
        complete = chains.cells["state"].swapaxes(1, 2).reshape(-1, n).astype(np.int8)
        gap = log_p_of_inputs(model, bias, complete)[:, chains.roles[0] != BARREN].sum(axis=1)
        gap -= log_q0[hidden].sum() + (complete[:, variable] == state) @ np.where(np.isin(variable, hidden), prior, 0.0)
        chains.draws["gap"] = chains.draws["total"] = gap.reshape(-1, LANES)
        beta = np.arange(1, steps) / steps
        sweep(graph, chains, beta, len(beta))
        log_w[first : first + number] = chains.draws["total"].reshape(-1)[:number] / steps
    return log_w


def _begin(chains: Chains, r: int, streams: Seeds) -> tuple[IndexArray, FloatArray]:
    """The hidden variables of a row, and a random number for each in each lane; streams go on from there."""
    blocks = slice(r * len(streams) // LANES, (r + 1) * len(streams) // LANES)
    hidden = np.flatnonzero(chains.roles[r] == HIDDEN)
    seeds = streams + np.arange(1, len(hidden) + 1, dtype=np.uint64)[:, None] * GOLDEN
    chains.draws["seed"][blocks] = (seeds[-1] if len(hidden) else streams).reshape(-1, LANES)
    return hidden, uniforms(seeds)


def _put(chains: Chains, r: int, hidden: IndexArray, states: IndexArray) -> None:
    """States of the hidden variables of a row, variables by lanes."""
    if len(hidden):
        n = states.shape[1] // LANES
        chains.cells["state"][r * n : (r + 1) * n, hidden] = states.reshape(len(hidden), n, LANES).swapaxes(0, 1)
