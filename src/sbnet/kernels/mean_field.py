"""The mean field equations of one pattern, solved by coordinate ascent.

One sweep updates Q one variable at a time by eq. (24), then every term is given new parameters. Each of these steps can
only raise the bound (footnote 4): in one Q_v, the bound is linear plus entropy plus convex, and eq. (24) maximises it
with the convex part replaced by its tangent; in one xi it is concave.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, Model, States
from sbnet.kernels import thresholds
from sbnet.kernels.compiling import inner
from sbnet.kernels.gates import SIGMOID
from sbnet.kernels.newterms import Verbs
from sbnet.kernels.structs import LANES, Problem

EDGE = 1e-14  # probabilities of states keep this distance from 0: it costs a bound at most 1e-14 of the weights
_FARTHEST = -math.log(EDGE)
_LARGE = 1e250
# What steps of parameters must promise to be worth taking: a share of the tolerance, or, while the bound rises faster,
# of its rise, but no more nats than that.
_SHARE, _OF_RISE, _AT_MOST = 0.2, 0.02, 2e-3
_STEPS = 20  # of parameters, before a row with a good start is swept
ROUNDS = 4  # how often the exact term may be given new frequencies
FEW = 1e-6  # nats: the exact term makes do with few frequencies until a sweep gains less


class Scratch(NamedTuple):
    """What a row needs beside its blocks."""

    root: FloatArray  # by column: log-odds against state 0 of a variable without hidden parents
    field: FloatArray  # the field of one variable, and its Q before a move
    old: FloatArray


@inner(fast=True)
def sweep(
    verbs: Verbs,
    problem: Problem,
    blocks: np.ndarray,
    tiles: np.ndarray,
    numbers: FloatArray,
    scratch: Scratch,
    q: FloatArray,
) -> float:
    """Eq. (24) for one variable after the other: all at once, the bound could fall. Returns the entropy of Q."""
    hidden, factors, root, field, old = problem.hidden, problem.factors, scratch.root, scratch.field, scratch.old
    entropy, product = 0.0, 1.0
    for j in range(len(hidden)):
        one = hidden[j]
        own_field(verbs, one, problem, factors, blocks, tiles, numbers, root, q, field)  # a <x> - c <t(x)>
        verbs.pull(one, problem, blocks, tiles, numbers, q, field)  # what the children say
        scale, rest = softmax(field, old, q, one.column, one.column_end)
        product, entropy = product * scale, entropy + rest
        if product > _LARGE:
            product, entropy = 1.0, entropy + math.log(product)
        set_loads(one, factors, blocks, q)
        verbs.push(one, problem, blocks, tiles, numbers, old, q)  # the children's terms follow
    return entropy + math.log(product)


@inner(fast=True)
def softmax(field: FloatArray, old: FloatArray, q: FloatArray, first: int, end: int) -> tuple[float, float]:
    """Q of one variable from the field of each state compared with state 0; Q as it was goes to `old`.

    Its entropy is the logarithm of the first number plus the second. Fields are cut off so that no state has a
    probability below EDGE.
    """
    for k in range(first, end):
        old[k - first] = q[k]
    if end == first + 1:
        z = min(max(field[0], -_FARTHEST), _FARTHEST)
        t = math.exp(-abs(z))
        q[first] = 1.0 / (1.0 + t) if z >= 0.0 else t / (1.0 + t)
        return 1.0 + t, abs(z) * t / (1.0 + t)
    top = 0.0
    for k in range(first, end):
        top = max(top, field[k - first])
    total = math.exp(max(-top, -_FARTHEST))  # of state 0
    mean = total * max(-top, -_FARTHEST)
    for k in range(first, end):
        z = max(field[k - first] - top, -_FARTHEST)
        q[k] = math.exp(z)
        total, mean = total + q[k], mean + q[k] * z
    for k in range(first, end):
        q[k] /= total
    return total, -mean / total


@inner(fast=True)
def own_field(
    verbs: Verbs, one: np.ndarray, problem: Problem, factors: np.ndarray, blocks: np.ndarray, tiles: np.ndarray,
    numbers: FloatArray, root: FloatArray, q: FloatArray, field: FloatArray,
) -> None:  # fmt: skip
    """What the parents of a variable say about its states, compared with state 0: see `thresholds.log_odds`."""
    before = 0.0
    for s in range(one.states - 1):
        if one.own < 0:
            field[s] = root[one.column + s]
            continue
        factor = factors[one.own + s]
        before += blocks[factor.block].x[factor.lane]
        if factor.gate != SIGMOID:
            field[s] = before - verbs.look(one.own + s, problem, blocks, tiles, numbers, q)
            continue
        if s + 2 < one.states:  # the next threshold counts for this state and for all above it
            before -= verbs.look(one.own + s + 1, problem, blocks, tiles, numbers, q)
        field[s] = before


@inner(fast=True)
def bound_at(hidden: np.ndarray, blocks: np.ndarray, root: FloatArray, q: FloatArray) -> float:
    """Eq. (16) but for constants and entropy: sum over factors of <a> <x> - <c> <t(x)>, and roots."""
    total = 0.0
    for b in range(len(blocks)):
        block = blocks[b]
        for i in range(LANES):
            total += block.a[i] * block.x[i] - block.c[i] * block.t[i]
    for j in range(len(hidden)):
        if hidden[j].own < 0:
            for k in range(hidden[j].column, hidden[j].column_end):
                total += q[k] * root[k]
    return total


@inner
def entropy_of(hidden: np.ndarray, q: FloatArray) -> float:
    """The entropy of independent variables."""
    total = 0.0
    for j in range(len(hidden)):
        rest = 1.0
        for k in range(hidden[j].column, hidden[j].column_end):
            total -= q[k] * math.log(q[k])
            rest -= q[k]
        total -= rest * math.log(rest)
    return total


@inner(fast=True)
def ascend(
    verbs: Verbs, problem: Problem, blocks: np.ndarray, tiles: np.ndarray, numbers: FloatArray, scratch: Scratch,
    q: FloatArray, constant: float, trace: FloatArray, tol: float, max_sweeps: int, warm: bool, done: int,
) -> tuple[int, bool, float]:  # fmt: skip
    """Sweep until the bound rises too little: sweeps so far, whether that came about, and the bound.

    If `warm`, someone has found Q, and it deserves the best parameters before it moves.
    """
    bound, rise, converged, started, turns = -np.inf, np.inf, len(problem.hidden) == 0, False, 0
    while not started or (done < max_sweeps and not converged):
        if started:
            done += 1
            entropy = sweep(verbs, problem, blocks, tiles, numbers, scratch, q)
        else:
            entropy = entropy_of(problem.hidden, q)
        enough = max(_SHARE * tol, min(_OF_RISE * rise, _AT_MOST)) / max(len(blocks), 1) if started else 0.0
        promise = verbs.value(problem, blocks, tiles, numbers, q, enough, turns == 0)
        before, bound = bound, constant + entropy + bound_at(problem.hidden, blocks, scratch.root, q)
        if started:
            rise = bound - before
            converged = rise + promise < tol
        turns += 1
        started = started or not warm or promise < tol or turns > _STEPS
        if done < len(trace):
            trace[done] = bound
    return done, converged, bound


@inner
def begin(
    problem: Problem, blocks: np.ndarray, model: Model, states: States, bias: FloatArray, means: FloatArray,
    q: FloatArray, root: FloatArray,
) -> float:  # fmt: skip
    """Bring a row into the blocks, Q from its means; returns the part of the bound that does not depend on Q.

    That is ln P of what is observed and has no hidden parents, and of state 0 of roots. No state of Q is below EDGE.
    """
    hidden, factors, threshold, gate, constant = problem.hidden, problem.factors, model.threshold, model.gate, 0.0
    for v in problem.known:
        x = bias[threshold[v] : threshold[v + 1]]
        constant += thresholds.log_p(gate[v], max(np.int64(states[v]), 0), x)
    for f in range(len(factors)):
        factor = factors[f]
        block, i = blocks[factor.block], factor.lane
        block.h[i], block.t[i] = bias[factor.threshold], np.nan
        block.low[i], block.high[i] = block.h[i] + block.below[i], block.h[i] + block.above[i]
        if factor.hidden < 0:
            block.a[i], block.c[i] = thresholds.loads(factor.gate, factor.level, states[factor.variable])
    for j in range(len(hidden)):
        one, total = hidden[j], 0.0
        first = threshold[one.variable]
        for k in range(one.column, one.column_end):
            s = k - one.column
            if one.own < 0:
                x = bias[first : first + one.states - 1]
                root[k] = thresholds.log_odds(gate[one.variable], s + 1, x)
            q[k] = min(max(means[first + s], EDGE), 1.0 - EDGE)
            total += q[k]
        for k in range(one.column, one.column_end):
            q[k] *= min(1.0, (1.0 - EDGE) / total)
        set_loads(one, factors, blocks, q)
    return constant


@inner(fast=True)
def set_loads(one: np.ndarray, factors: np.ndarray, blocks: np.ndarray, q: FloatArray) -> None:
    """<a> and <c> of the thresholds of a hidden variable."""
    for f in range(one.own, one.own + one.states - 1 if one.own >= 0 else one.own):
        factor = factors[f]
        block = blocks[factor.block]
        block.a[factor.lane], block.c[factor.lane] = thresholds.mean_loads(
            factor.gate, factor.level, q, one.column, one.column_end
        )
