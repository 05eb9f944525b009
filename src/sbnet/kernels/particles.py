"""Many complete states of one row, drawn from its posterior: sequential Monte Carlo, then a few Gibbs sweeps.

Variable by variable, parents first, every particle draws what is hidden and is weighed by what is observed; when few of
them count, those of little weight give way to copies of others (Gordon, Salmond & Smith 1993). So a row gets from one
value of several cells that hang together to another, where a chain that moves cell by cell would be caught. Gibbs
sweeps then part the copies.

The mean of the weights is an unbiased estimate of P(evidence). Its variance falls if hidden variables are marginalised
exactly instead of drawn. That is cheap for *private* parents, which have no child with a say in the evidence but one
observed variable, as those of a per-column mixture do: their joint states are summed over when that variable is
weighed, and one of them is drawn, given it.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sbnet._types import BoolArray, FloatArray, IndexArray, Model, States
from sbnet.kernels import thresholds
from sbnet.kernels.chains import chains_of, next_uniform, refresh
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.gibbs import average, predict, sweep
from sbnet.kernels.random import GOLDEN, mix, uniform
from sbnet.kernels.sampling import LANES, Record, cell_t, draw, draw_t, input_t, lanes, probability, set_inputs, widest
from sbnet.kernels.structs import struct
from sbnet.questions.reduction import live_variables, reduce

Seeds: TypeAlias = NDArray[np.uint64]

_FEW = 0.5  # particles are resampled when fewer than this share of them count
_LEAST = 1e-300

weight_t = struct(*lanes("weight"))
sum_t = struct(  # over the joint states of private parents
    *lanes("share"),  # the probability of one of them, and of what is observed
    *lanes("total"),
    ("chosen", "i8", LANES),
)


class Answers(NamedTuple):
    """Rows by thresholds: means of conditional probabilities; estimates of ln P by row; rows by draws by variables."""

    means: FloatArray
    log_p: FloatArray
    drawn: States


class _Particles(NamedTuple):
    """All particles of a row, in blocks of lanes, and what one block needs at a time."""

    number: int
    cells: np.ndarray  # variables by blocks
    draws: np.ndarray  # by block
    weights: np.ndarray  # by block
    source: IndexArray  # by particle
    inputs: np.ndarray  # room, thresholds by blocks
    moved: np.ndarray  # room, by threshold
    shares: np.ndarray  # room, states of private parents by blocks
    sums: np.ndarray  # room, one
    x: FloatArray  # room, by threshold


@inner
def _private_parents(model: Model, known: States, live: BoolArray, sum_up_to: int) -> tuple[IndexArray, IndexArray]:
    """By variable: the only child of a private parent, else -1; the number of joint states of its private parents."""
    child_of, joint = np.full(len(known), -1), np.ones(len(known), np.int64)
    for u in range(len(known)):
        if known[u] < 0 and live[u]:
            v, only = -1, True
            for c in range(model.child_indptr[u], model.child_indptr[u + 1]):
                if live[model.child[c]]:
                    only = only and v < 0
                    v = model.child[c]
            if only and known[v] >= 0 and joint[v] * model.n_states[u] <= sum_up_to:
                child_of[u] = v
                joint[v] *= model.n_states[u]
    return child_of, joint


@inner
def _weigh_sum(
    model: Model, known: States, bias: FloatArray, v: int, child_of: IndexArray, n_joint: int, cells: np.ndarray,
    all_of: _Particles,
) -> None:  # fmt: skip
    """P(v) in each lane, its private parents marginalised; they are drawn given v."""
    inputs, moved, shares, n_blocks, k = all_of.inputs, all_of.moved, all_of.shares, cells.shape[1], 0
    for e in range(model.indptr[v], model.indptr[v + 1]):
        u = model.parent[e]
        if child_of[u] == v:
            n = set_inputs(model, known, u, bias, cells, inputs)
            for b in range(n_blocks):
                for state in range(n + 1):
                    probability(model.gate[u], inputs, n, b, state, shares[k + state, b])
                for i in range(LANES):
                    cells[u, b].state[i] = 0
            k += n + 1
    n = set_inputs(model, known, v, bias, cells, inputs)
    for b in range(n_blocks):
        one, out = all_of.sums[0], all_of.draws[b]
        next_uniform(out)
        for i in range(LANES):
            one.total[i], one.chosen[i] = 0.0, 0
        for joint in range(n_joint):
            rest, k = joint, 0
            for i in range(LANES):
                one.share[i] = 1.0
                for l in range(n):  # noqa: E741 (the letter of the definition)
                    moved[l, 0].x[i] = inputs[l, b].x[i]
            for e in range(model.indptr[v], model.indptr[v + 1]):
                u = model.parent[e]
                if child_of[u] == v:
                    width = model.n_states[u] - 1
                    state, rest = rest % (width + 1), rest // (width + 1)
                    for i in range(LANES):
                        one.share[i] *= shares[k + state, b].p[i]
                    for l in range(n if state > 0 else 0):  # noqa: E741
                        weight = model.weight[model.block[e] + l * width + state - 1]
                        for i in range(LANES):
                            moved[l, 0].x[i] += weight
                    k += width + 1
            probability(model.gate[v], moved, n, 0, known[v], out)
            _count(joint, one, out)
        for e in range(model.indptr[v], model.indptr[v + 1]):
            u = model.parent[e]
            if child_of[u] == v:
                for i in range(LANES):
                    cells[u, b].state[i] = one.chosen[i] % model.n_states[u]
                    one.chosen[i] //= model.n_states[u]
        for i in range(LANES):
            out.p[i] = one.total[i]


@inner
def _count(joint: int, one: Record, out: Record) -> None:
    """A joint state enters the sum, and is chosen with its share of what there is so far."""
    for i in range(LANES):
        one.share[i] *= out.p[i]
        one.total[i] += one.share[i]
        new = one.share[i] / one.total[i] if one.total[i] > 0.0 else 0.0
        if out.uniform[i] < new:  # what is left of the number serves the joint states to come
            one.chosen[i] = joint
            out.uniform[i] /= new
        else:
            out.uniform[i] = (out.uniform[i] - new) / (1.0 - new)


@inner
def _resample(hidden: BoolArray, end: int, total: float, u: float, all_of: _Particles) -> None:
    """Each particle as often as its weight says: systematic resampling of the hidden variables before `end`."""
    number, source, weights, cells = all_of.number, all_of.source, all_of.weights, all_of.cells
    k, above = 0, weights[0].weight[0]
    for m in range(number):
        while above < (m + u) * total / number and k < number - 1:
            k += 1
            above += weights[k // LANES].weight[k % LANES]
        source[m] = k
    new = np.empty(number, np.int64)
    for v in range(end):
        if hidden[v]:
            for m in range(number):
                new[m] = cells[v, source[m] // LANES].state[source[m] % LANES]
            for m in range(number):
                cells[v, m // LANES].state[m % LANES] = new[m]
    _set_weights(number, weights)


@inner
def _set_weights(number: int, weights: np.ndarray) -> None:
    """All particles count as much; lanes without one do not."""
    for b in range(len(weights)):
        for i in range(LANES):
            weights[b].weight[i] = 1.0 if b * LANES + i < number else 0.0


@inner
def _total(weights: np.ndarray) -> tuple[float, float]:
    """The sum of the weights, and that of their squares."""
    total = squares = 0.0
    for b in range(len(weights)):
        for i in range(LANES):
            total += weights[b].weight[i]
            squares += weights[b].weight[i] ** 2
    return total, squares


@inner
def _hidden_parents(model: Model, known: States, v: int) -> int:
    """How many there are."""
    n = 0
    for e in range(model.indptr[v], model.indptr[v + 1]):
        n += known[model.parent[e]] < 0
    return n


@inner
def _filter(
    model: Model, known: States, bias: FloatArray, live: BoolArray, sum_up_to: int, seed: np.uint64, all_of: _Particles
) -> float:
    """Particles by the posterior, all of the same weight, and an estimate of P(evidence): its logarithm."""
    child_of, joint = _private_parents(model, known, live, sum_up_to)
    cells, draws, weights, inputs, number = all_of.cells, all_of.draws, all_of.weights, all_of.inputs, all_of.number
    hidden, log_p = live & (known < 0), 0.0
    _set_weights(number, weights)
    for v in range(len(known)):
        if not live[v] or child_of[v] >= 0:
            continue
        gate = model.gate[v]
        if known[v] >= 0 and _hidden_parents(model, known, v) == 0:
            log_p += thresholds.log_p(gate, known[v], bias[model.threshold[v] : model.threshold[v + 1]])
            continue
        if joint[v] > 1:
            _weigh_sum(model, known, bias, v, child_of, joint[v], cells, all_of)
        else:
            n = set_inputs(model, known, v, bias, cells, inputs)
            for b in range(len(draws)):
                if known[v] >= 0:
                    probability(gate, inputs, n, b, known[v], draws[b])
                    continue
                next_uniform(draws[b])
                draw(gate, inputs, n, b, all_of.x, draws[b])
                for i in range(LANES):
                    cells[v, b].state[i] = draws[b].state[i]
        for b in range(len(draws) if known[v] >= 0 else 0):
            for i in range(LANES):
                weights[b].weight[i] *= draws[b].p[i]
        if known[v] >= 0:
            total, squares = _total(weights)
            if total < number * _LEAST:  # impossible for all of them: none is better than another
                log_p += math.log(_LEAST)
                _set_weights(number, weights)
            elif total * total < _FEW * number * squares or total < 1e-100:
                log_p += math.log(total / number)
                seed += GOLDEN
                _resample(hidden, v, total, uniform(seed), all_of)
    total, _ = _total(weights)
    _resample(hidden, len(known), total, uniform(seed + GOLDEN), all_of)
    return log_p + math.log(total / number)


@kernel
def particle_rows(
    model: Model, states: States, bias: FloatArray, seeds: Seeds, number: int, sweeps: int, sum_up_to: int,
    answers: Answers,
) -> None:  # fmt: skip
    """So many particles of each row, moved by some sweeps, of which the first does not count for the means.

    Private parents with no more joint states than `sum_up_to` are marginalised. Without sweeps there are no means.
    """
    n_blocks, n, n_columns = (number + LANES - 1) // LANES, states.shape[1], bias.shape[1]
    flat, means, most = np.zeros(n_columns), answers.means, widest(model)
    all_of = _Particles(
        number, np.zeros((n, n_blocks), cell_t), np.zeros(n_blocks, draw_t), np.zeros(n_blocks, weight_t),
        np.zeros(number, np.int64), np.zeros((most, n_blocks), input_t), np.zeros((most, 1), input_t),
        np.zeros((2 * sum_up_to, n_blocks), draw_t), np.zeros(1, sum_t), np.zeros(most),
    )  # fmt: skip
    cells, draws = all_of.cells, all_of.draws
    for r in range(len(states)):
        known, live = states[r], live_variables(model, states[r])
        for m in range(n_blocks * LANES):
            draws[m // LANES].seed[m % LANES] = mix(seeds[r] + np.uint64(m + 1) * GOLDEN)
        answers.log_p[r] = _filter(model, known, bias[r], live, sum_up_to, mix(seeds[r]), all_of)
        if sweeps == 0:
            continue
        chains = chains_of(model, reduce(model, known), known, bias[r])
        for b in range(n_blocks):
            used = min(LANES, number - b * LANES)
            for v in range(n):
                if known[v] < 0:
                    chains.cells[v, 0] = cells[v, b]
            chains.draws[0] = draws[b]
            refresh(chains)
            for k in range(sweeps):
                sweep(chains, flat, 1.0, used)
                if k > 0 or sweeps == 1:
                    average(model, known, chains.columns, max(k - 1, 0))
            predict(model, chains, live)
            for v in range(n):
                if known[v] >= 0:
                    continue
                cells[v, b] = chains.cells[v, 0]
                for t in range(model.threshold[v], model.threshold[v + 1]):
                    total, column = 0.0, chains.columns[t]
                    for i in range(used):
                        total += column.average[i] if live[v] else column.p[i]
                    means[r, t] += total / number
        _observe(model, known, means[r])
        _pick(known, cells, number, seeds[r], answers.drawn[r])


@inner
def _observe(model: Model, known: States, means: FloatArray) -> None:
    """Observed variables are what they are."""
    for v in range(len(known)):
        for k in range(model.n_states[v] - 1 if known[v] >= 0 else 0):
            means[model.threshold[v] + k] = 1.0 if known[v] == k + 1 else 0.0


@inner
def _pick(known: States, cells: np.ndarray, number: int, seed: np.uint64, drawn: States) -> None:
    """Some of the particles, far from one another: neighbours may be copies."""
    first = int(uniform(seed) * number)
    for k in range(len(drawn)):
        m = (first + k * number // len(drawn)) % number
        for v in range(drawn.shape[1]):
            drawn[k, v] = known[v] if known[v] >= 0 else cells[v, m // LANES].state[m % LANES]
