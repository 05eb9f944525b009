"""Means and draws of a row's posterior from many complete states at once, and an estimate of ln P(evidence)."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, Model, States
from sbnet.inference.chains import observed, rows_at_once, whole_blocks
from sbnet.inference.equal_rows import first_equal
from sbnet.inference.solvers.row_completions import complete
from sbnet.kernels import codes as gates
from sbnet.kernels.chains import BARREN, HIDDEN, LANES, Chains, Graph, chains_of, graph_of
from sbnet.kernels.gibbs import sweep
from sbnet.kernels.particles import Private, filter_rows
from sbnet.kernels.random import GOLDEN, Seeds, row_seeds, splitmix, streams_of, uniforms
from sbnet.model.network import Network
from sbnet.parallel.blocks import Block, RowBlocks, join, map_blocks

NUMBER, SWEEPS = 256, 3
"""Particles of a row; Gibbs sweeps after sequential Monte Carlo, of which all but the first count for the means."""
_SUM_UP_TO = 64  # joint states of the private parents of a variable, as of six components of a per-column mixture
_LEAST, _MOST = 8, 256  # rows of a block


@dataclass(frozen=True, eq=False)
class Particles:
    """What the particles of each row have in common.

    Attributes
    ----------
    means : ndarray, rows by columns
        Means of the units given the evidence, of one with more than two states those of each from the second one on:
        averages of conditional probabilities, not of states.
    log_p : ndarray of shape (n,)
        Estimates of ln P(evidence), in nats; those of P itself are right in the mean. They are no bounds.
    drawn : ndarray of int8, rows by draws by units
        Complete states, drawn from the posterior.
    """

    means: FloatArray
    log_p: FloatArray
    drawn: States


def suits(network: Network) -> bool:
    """Are all its units sigmoid units?"""
    return bool((network.model.gate == gates.SIGMOID).all())


def particles(
    network: Network, states: States, seeds: Seeds, *, number: int, draws: int = 0, executor: Executor | None = None
) -> Particles:
    """Particles of each row, from a seed for each: neither the executor nor other rows change an answer."""
    return _of_blocks(network, states, seeds, Effort(number, SWEEPS, draws), executor)


def _of_blocks(network: Network, states: States, seeds: Seeds, effort: Effort, executor: Executor | None) -> Particles:
    blocks = RowBlocks(states, seeds, most=_MOST, least=_LEAST)
    graph = None if network.tables else graph_of(network.model)
    parts = map_blocks(partial(_particles, network, graph, effort), blocks, executor=executor)
    return Particles(
        join((part.means for part in parts), np.zeros((0, len(network.bias)))),
        join((part.log_p for part in parts), np.zeros(0)),
        join((part.drawn for part in parts), np.zeros((0, effort.draws, network.n_units), np.int8)),
    )


def average(
    network: Network, states: States, *, number: int, seed: int = 0, executor: Executor | None = None
) -> Particles:
    """Means and probabilities of rows. Equal ones are sampled once, and have one answer wherever they stand."""
    first = first_equal(states)
    each = np.unique(first)
    found = particles(network, states[each], seeds_of_rows(seed, states[each]), number=number, executor=executor)
    back = np.searchsorted(each, first)
    return Particles(found.means[back], found.log_p[back], found.drawn[back])


def log_probabilities(network: Network, states: States, seeds: Seeds, *, number: int, executor: Executor) -> FloatArray:
    """Estimates of ln P of rows, per-column mixtures marginalised; those of P itself are right in the mean."""
    return _of_blocks(network, states, seeds, Effort(number, sum_up_to=_SUM_UP_TO), executor).log_p


class Effort(NamedTuple):
    """How many particles a row has, Gibbs sweeps of them, draws; private parents with so many states are summed."""

    number: int
    sweeps: int = 0
    draws: int = 0
    sum_up_to: int = 1


def _particles(network: Network, graph: Graph | None, effort: Effort, block: Block) -> Particles:
    states, seeds = block.columns
    if graph is None:
        return _of_families(network, states, seeds, effort)
    return particle_rows(network.model, graph, states, network.bias, seeds, effort)


def particle_rows(
    model: Model, graph: Graph, states: States, bias: FloatArray, seeds: Seeds, effort: Effort
) -> Particles:
    """Particles of each row, moved by some sweeps, of which the first does not count; without any, there are no means.

    Private parents with no more joint states than `sum_up_to` are marginalised.
    """
    number, sweeps, draws, _ = effort
    n, most = len(states), rows_at_once(model, number)
    found = Particles(np.zeros((n, len(bias))), np.zeros(n), np.zeros((n, draws, states.shape[1]), np.int8))
    for first in range(0, n, most):
        rows = slice(first, first + most)
        chains = chains_of(graph, states[rows], bias, number)
        chains.draws["seed"] = streams_of(seeds[rows], whole_blocks(number)).reshape(-1, LANES)
        private, source = _private(model, states[rows], chains, effort), np.zeros((2, number), np.int64)
        filter_rows(graph, chains, states[rows], splitmix(seeds[rows]), number, private, source, found.log_p[rows])
        if sweeps == 0:
            continue
        sweep(graph, chains, np.ones(sweeps), min(sweeps - 1, 1))
        used, (seen, on) = np.arange(LANES) < chains.draws["used"][:, None], observed(model, states[rows])
        sums = np.where(used[:, None], chains.columns["average"], 0.0).sum(axis=2)
        found.means[rows] = np.where(seen, on, sums.reshape(len(seen), -1, len(bias)).sum(axis=1) / number)
        found.drawn[rows] = _pick(chains, states[rows], seeds[rows], number, draws)
    return found


def _of_families(network: Network, states: States, seeds: Seeds, effort: Effort) -> Particles:
    """Completions of each row where variables have tables; means are NaN where none has a positive probability."""
    found, numbers = complete(network, states, most=effort.number), np.arange(effort.draws, dtype=np.uint64)
    means = found.means(network.n_states)
    means[found.log_p == -np.inf] = np.nan
    with np.errstate(over="ignore"):
        drawn = [found.draw(uniforms(seeds + k * GOLDEN)) for k in numbers]
    return Particles(means, found.log_p, np.array(drawn, np.int8).reshape(-1, *states.shape).swapaxes(0, 1))


def _private(model: Model, states: States, chains: Chains, effort: Effort) -> Private:
    """The private parents of each row: hidden, with an observed child and no other that is not barren."""
    roles, n_states = chains.roles, model.n_states
    child, joint = np.full(states.shape, -1), np.ones(states.shape, np.int64)
    for u in np.unique(model.parent) if effort.sum_up_to > 1 else ():
        children = model.child[model.child_indptr[u] : model.child_indptr[u + 1]]
        told = roles[:, children] != BARREN
        (rows,) = np.nonzero((roles[:, u] == HIDDEN) & (told.sum(axis=1) == 1))
        v = children[told[rows].argmax(axis=1)]
        fits = (states[rows, v] >= 0) & (joint[rows, v] * n_states[u] <= effort.sum_up_to)
        rows, v = rows[fits], v[fits]
        child[rows, u] = v
        joint[rows, v] *= n_states[u]
    share, x = np.empty((effort.sum_up_to, LANES)), np.empty((effort.sum_up_to, int(n_states.max(initial=2)), LANES))
    return Private(child, joint, share, x, np.empty(LANES), np.empty(LANES, np.int64))


def _pick(chains: Chains, states: States, seeds: Seeds, number: int, draws: int) -> States:
    """Some of the particles of each row, far from one another: neighbours may be copies."""
    first = (uniforms(seeds) * number).astype(np.int64)[:, None]
    lane = (first + np.arange(draws) * number // max(draws, 1)) % number
    block = np.arange(len(states))[:, None] * (whole_blocks(number) // LANES) + lane // LANES
    drawn: States = chains.cells["state"][block, :, lane % LANES].astype(np.int8)
    return drawn


def seeds_of_rows(seed: int, states: States) -> Seeds:
    """A seed for each row that follows from what is in it: equal rows have equal answers wherever they stand."""
    return row_seeds(seed % 2**64, states)


def seeds_of_places(seed: int, n: int) -> Seeds:
    """A seed for each row that follows from its number: equal rows are drawn apart."""
    numbers = np.arange(1, n + 1, dtype=np.uint64) * GOLDEN
    with np.errstate(over="ignore"):
        found: Seeds = splitmix(splitmix(np.full(n, seed % 2**64, dtype=np.uint64)) + numbers)
    return found
