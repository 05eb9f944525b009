"""Means and draws of a row's posterior from many complete states at once, and an estimate of ln P(evidence)."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sbnet._types import FloatArray, States
from sbnet.inference.equal_rows import first_equal
from sbnet.kernels import codes as gates
from sbnet.kernels.particles import Answers, particle_rows
from sbnet.kernels.random import GOLDEN, splitmix
from sbnet.model.network import Network
from sbnet.parallel.blocks import Block, RowBlocks, join, map_blocks
from sbnet.questions.reduction import absorb

Seeds: TypeAlias = NDArray[np.uint64]
NUMBER, SWEEPS = 256, 3
"""Particles of a row; Gibbs sweeps after sequential Monte Carlo, of which all but the first count for the means."""
_SUM_UP_TO = 64  # joint states of the private parents of a variable, as of six components of a per-column mixture
_MOST = 256  # rows of a block


@dataclass(frozen=True, eq=False)
class Particles:
    """What the particles of each row have in common.

    Attributes
    ----------
    means : ndarray, rows by units
        Means of the units given the evidence: averages of conditional probabilities, not of states.
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
    """So many particles of each row, by a seed for each: neither the executor nor other rows change an answer."""
    blocks = RowBlocks(states, seeds, most=_MOST)
    parts = map_blocks(partial(_particles, network, number, draws), blocks, executor=executor)
    n = network.n_units
    return Particles(
        join((part.means for part in parts), np.zeros((0, n))),
        join((part.log_p for part in parts), np.zeros(0)),
        join((part.drawn for part in parts), np.zeros((0, draws, n), np.int8)),
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
    blocks = RowBlocks(states, seeds, most=_MOST)
    parts = map_blocks(partial(_log_probabilities, network, number), blocks, executor=executor)
    found: FloatArray = join(parts, np.zeros(0))
    return found


def _particles(network: Network, number: int, draws: int, block: Block) -> Particles:
    states, seeds = block.columns
    n, width = states.shape
    answers = Answers(np.zeros((n, len(network.bias))), np.zeros(n), np.zeros((n, draws, width), np.int8))
    particle_rows(network.model, states, absorb(network, states), seeds, number, SWEEPS, 1, answers)
    return Particles(*answers)


def _log_probabilities(network: Network, number: int, block: Block) -> FloatArray:
    states, seeds = block.columns
    answers = Answers(np.zeros((0, 0)), np.zeros(len(states)), np.zeros((0, 0, 0), np.int8))
    particle_rows(network.model, states, absorb(network, states), seeds, number, 0, _SUM_UP_TO, answers)
    return answers.log_p


def seeds_of_rows(seed: int, states: States) -> Seeds:
    """A seed for each row that follows from what is in it: equal rows have equal answers wherever they stand."""
    found = np.full(len(states), seed % 2**64, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in np.ascontiguousarray((states + 2).T):
            found = splitmix(found * np.uint64(3) + column.astype(np.uint64))
    return found


def seeds_of_places(seed: int, n: int) -> Seeds:
    """A seed for each row that follows from its number: equal rows are drawn apart."""
    numbers = np.arange(1, n + 1, dtype=np.uint64) * GOLDEN
    with np.errstate(over="ignore"):
        found: Seeds = splitmix(splitmix(np.full(n, seed % 2**64, dtype=np.uint64)) + numbers)
    return found
