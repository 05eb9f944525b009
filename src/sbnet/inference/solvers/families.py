"""Samples where variables have tables: many complete states of one row of evidence at once, in NumPy.

What a variable is given its parents is asked of its family, whatever its gate: of a table by its entries, of others by
the inputs of their thresholds. Entries of zero stay zero, so that what cannot be is never drawn.

Random numbers follow from a seed for each row and sample, and a count; so a row has the same answer beside any others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sbnet._types import HIDDEN, FloatArray, States
from sbnet.errors import TooManyHiddenError, TooRareError
from sbnet.exact.sparse import Sum
from sbnet.inference.solvers.row_completions import Conditional, complete, families_in
from sbnet.kernels.random import GOLDEN, Seeds, row_seeds, splitmix, streams_of, uniforms
from sbnet.model.network import Network
from sbnet.questions.by_state import probabilities
from sbnet.questions.reduction import live_variables
from sbnet.questions.support import NO_STATE, impossible

_PARTICLES = 256
"""Completions of a row from which chains are given states to begin with."""
_TABLE_BITS = 22
"""The logarithm to base 2 of the largest table of an elimination that looks for a state of positive probability."""


class Row:
    """One row of evidence: its variables in order, and what each of them is asked."""

    def __init__(self, network: Network, row: States) -> None:
        self.network, self.row = network, row
        self.all = [Conditional(family) for family in families_in(network, range(network.n_units))]
        live = live_variables(network.model, row)
        self.live = np.flatnonzero(live).tolist()
        self.hidden = np.flatnonzero(live & (row == HIDDEN)).tolist()
        self.barren = np.flatnonzero(~live).tolist()
        self.children: dict[int, list[Conditional]] = {v: [] for v in self.hidden}
        for i in self.live:
            for u in self.all[i].parents:
                if u in self.children:
                    self.children[u].append(self.all[i])

    def log_joint(self, states: States, variables: list[int] | None = None) -> FloatArray:
        """ln P of live variables, or of some, given their parents."""
        chosen = self.live if variables is None else variables
        return sum((self.all[i].of_state(states) for i in chosen), np.zeros(len(states)))

    def given_others(self, v: int, states: States, children: list[Conditional] | None = None) -> FloatArray:
        """ln P of each state of a hidden variable given all others, or some children, but for a constant."""
        log_p = self.all[v].log_p(states)
        for child in self.children[v] if children is None else children:
            log_p = log_p + child.told(v, states)
        return log_p

    def filled(self, number: int) -> States:
        """Complete states with the evidence filled in, `number` of them."""
        return np.repeat(self.row[None, :], number, axis=0)


def shares(log_p: FloatArray) -> FloatArray:
    """Probabilities in proportion to e^log_p; equal ones where nothing can be."""
    top = log_p.max(axis=1, keepdims=True)
    p = np.exp(np.where(top > -np.inf, log_p - np.where(top > -np.inf, top, 0.0), 0.0))
    total = p[:, 0].copy()
    for k in range(1, p.shape[1]):  # NumPy's own order of sums varies with the number of rows
        total += p[:, k]
    return p / total[:, None]


def draw(p: FloatArray, u: FloatArray) -> States:
    """A state from the probabilities of each row; never one of probability zero."""
    ends = np.cumsum(p, axis=1)
    last = p.shape[1] - 1 - np.argmax(p[:, ::-1] > 0.0, axis=1)
    state: States = np.minimum((u[:, None] * ends[:, -1:] >= ends).sum(axis=1), last).astype(np.int8)
    return state


class Numbers:
    """Uniform numbers, one after the other, for each of several streams."""

    def __init__(self, streams: Seeds) -> None:
        self.streams, self.count = streams, 0

    def next(self) -> FloatArray:
        """The next uniform number of each stream."""
        self.count += 1
        with np.errstate(over="ignore"):
            return uniforms(self.streams + np.uint64(self.count) * GOLDEN)


# --- states to begin with ---------------------------------------------------------------------------------------------


def begin(row: Row, number: int, seed: np.uint64) -> States:
    """States of positive probability: particles, or if all of those are impossible the most probable state.

    Raises
    ------
    TooRareError
        If neither is found.
    """
    most = max(_PARTICLES, number)
    found = complete(row.network, row.row[None, :], asked=np.empty(0, np.int64), most=most, seed=int(seed))
    if found.log_p[0] > -np.inf:
        above, middles = np.cumsum(found.share), (np.arange(number) + 0.5) / number
        chosen: States = found.states[np.searchsorted(above, middles * above[-1], side="right")]
        return chosen
    best = most_probable_state(row.network, row.row, row.live)
    if best is None:
        raise TooRareError(
            f"none of {most:,} particles has a positive probability, and elimination, which would find a state that "
            "has, is too large; ask log_likelihood(), or give fewer findings, or tables without zeros"
        )
    return np.repeat(best[None, :], number, axis=0)


def most_probable_state(network: Network, row: States, variables: list[int], limit: int = _TABLE_BITS) -> States | None:
    """The best state by elimination; none if that takes a larger table.

    Raises
    ------
    TooRareError
        If no state has a positive probability.
    """
    try:
        log_p, best = Sum(network, row[None, :], variables, limit, maximum=True).explain(row[None, :])
    except TooManyHiddenError:
        return None
    if log_p[0] == -np.inf:
        raise TooRareError(NO_STATE)
    state: States = best[0]
    return state


# --- Gibbs sampling ---------------------------------------------------------------------------------------------------


def sweeps(row: Row, states: States, numbers: Numbers, number: int) -> Iterator[dict[int, FloatArray]]:
    """Draw every hidden variable given all others, so often; the probabilities it was drawn from, by variable.

    Barren variables come last: they have no children with a say.
    """
    for _ in range(number):
        found = {}
        for v in row.hidden:
            found[v] = shares(row.given_others(v, states))
            states[:, v] = draw(found[v], numbers.next())
        for v in row.barren:
            found[v] = shares(row.all[v].log_p(states))
            states[:, v] = draw(found[v], numbers.next())
        yield found


def chain_means(
    network: Network, states: States, seed: np.uint64, samples: int, burn_in: int, chains: int
) -> tuple[FloatArray, FloatArray]:
    """Means of conditional probabilities in each chain, rows by chains by columns, and their variances.

    They are zeros in rows that are impossible.
    """
    means = np.zeros((len(states), chains, len(network.bias)))
    within, gone = np.zeros_like(means), impossible(network, states)
    for r, (evidence, own) in enumerate(zip(states, row_seeds(seed, states), strict=True)):
        if gone[r]:
            continue
        row = Row(network, evidence)
        for v in np.flatnonzero(evidence != HIDDEN).tolist():
            means[r, :, network.columns_of(v)] = np.arange(1, network.n_states[v]) == evidence[v]
        now, numbers = begin(row, chains, own), Numbers(splitmix(streams_of(own[None], chains)[0]))
        for k, found in enumerate(sweeps(row, now, numbers, burn_in + samples)):
            for v, p in found.items() if k >= burn_in else ():
                at = network.columns_of(v)
                change = p[:, 1:] - means[r, :, at]
                means[r, :, at] += change / (k - burn_in + 1)
                within[r, :, at] += change * (p[:, 1:] - means[r, :, at])
    return means, within / (samples - 1)


# --- importance sampling ----------------------------------------------------------------------------------------------


class _Proposal:
    """The factorial distribution with the means of a solution; no state is impossible."""

    def __init__(self, row: Row, means: FloatArray) -> None:
        self.row, self.q = row, dict[int, FloatArray]()
        for v in row.hidden:
            own = np.maximum(probabilities(means[row.network.columns_of(v)]), 1e-14)
            self.q[v] = own / own.sum()

    def draw(self, states: States, numbers: Numbers) -> None:
        for v, q in self.q.items():
            states[:, v] = draw(np.tile(q, (len(states), 1)), numbers.next())

    def log_q(self, states: States) -> FloatArray:
        return sum((np.log(q)[states[:, v]] for v, q in self.q.items()), np.zeros(len(states)))


def log_weights(
    network: Network, evidence: States, means: FloatArray, defence: float, seed: np.uint64, samples: int
) -> FloatArray:
    """ln w of each sample, with <w> = P(V): as :func:`sbnet.inference.importance.log_weights` has it."""
    row = Row(network, evidence)
    numbers, proposal = _streams(seed, evidence, samples), _Proposal(row, means)
    states, forward = row.filled(samples), row.filled(samples)
    defended = numbers.next() < defence
    proposal.draw(states, numbers)
    for v in row.hidden:
        forward[:, v] = draw(shares(row.all[v].log_p(forward)), numbers.next())
    states[defended] = forward[defended]
    log_prior = row.log_joint(states, row.hidden)
    log_p = log_prior + row.log_joint(states, [i for i in row.live if evidence[i] != HIDDEN])
    log_w: FloatArray = log_p - np.logaddexp(np.log1p(-defence) + proposal.log_q(states), np.log(defence) + log_prior)
    return log_w


def annealed_weights(
    network: Network, evidence: States, means: FloatArray, steps: int, seed: np.uint64, samples: int
) -> FloatArray:
    """ln w of each sample, with <w> = P(V): annealed importance sampling through Q^(1-b) P^b (Neal 2001)."""
    row = Row(network, evidence)
    numbers, proposal, states = _streams(seed, evidence, samples), _Proposal(row, means), row.filled(samples)
    proposal.draw(states, numbers)
    log_w = (row.log_joint(states) - proposal.log_q(states)) / steps
    for beta in np.arange(1, steps) / steps:
        for v in row.hidden:
            mixed = beta * row.given_others(v, states) + (1.0 - beta) * np.log(proposal.q[v])
            states[:, v] = draw(shares(mixed), numbers.next())
        log_w = log_w + (row.log_joint(states) - proposal.log_q(states)) / steps
    return log_w


def _streams(seed: np.uint64, evidence: States, samples: int) -> Numbers:
    return Numbers(streams_of(row_seeds(seed, evidence[None]), samples)[0])
