"""The mean field equations, solved by coordinate ascent.

One sweep updates Q one variable at a time by eq. (24), then every term is given new parameters. Each of these steps can
only raise the bound (footnote 4): in one Q_v, the bound is linear plus entropy plus convex, and eq. (24) maximises it
with the convex part replaced by its tangent; in one xi it is concave.
"""

import math

import numpy as np

from sbnet.kernels import terms, thresholds
from sbnet.kernels.codes import SIGMOID
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.kinds import XI
from sbnet.kernels.structs import LANES
from sbnet.kernels.terms import ENOUGH, ROUGH, WHOLE

EDGE = 1e-14  # probabilities of states keep this distance from 0: it costs a bound at most 1e-14 of the weights
LEAST = 1e-17  # where nothing moves they may be smaller, but sixteen of them must have a product
_FARTHEST = -math.log(EDGE)
_LARGE = 1e250
# What steps of parameters must promise to be taken: a share of the tolerance or of the rise, but no more nats than that
_SHARE, _OF_RISE, _AT_MOST = 0.2, 0.02, 2e-3
_FEW = 1e-6  # nats: the exact term makes do with few frequencies until a sweep gains less
_TURNS = 8  # of a term that may begin with less than it needs in the end
_STEPS = 20  # of parameters, before a row with a good start is swept


@inner(fast=True)
def sweep(verbs, problem, hidden, factors, blocks, tiles, numbers, root, field, old, q):
    """Eq. (24) for one variable after the other: all at once, the bound could fall. Returns the entropy of Q."""
    entropy, product = 0.0, 1.0
    for j in range(len(hidden)):
        v = hidden[j]
        own_field(verbs, v, problem, factors, blocks, tiles, numbers, root, q, field)  # a <x> - c <t(x)>
        verbs.pull(v, problem, blocks, tiles, numbers, q, field)  # what the children say
        scale, rest = softmax(field, old, q, v.column, v.column_end)
        set_loads(v, factors, blocks, q)
        verbs.push(v, problem, blocks, tiles, numbers, old, q)  # the children's terms follow
        product, entropy = product * scale, entropy + rest
        if product > _LARGE:
            product, entropy = 1.0, entropy + math.log(product)
    return entropy + math.log(product)


@inner(fast=True)
def softmax(field, old, q, first, end):
    """Q of one variable from the field of each state compared with state 0; Q as it was goes to `old`.

    Its entropy is the logarithm of the first number plus the second. No state gets a probability below EDGE.
    """
    for k in range(first, end):
        old[k - first] = q[k]
    if end == first + 1:
        z = min(max(field[0], -_FARTHEST), _FARTHEST)
        t = math.exp(-abs(z))
        q[first] = (1.0 if z >= 0.0 else t) / (1.0 + t)
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
def own_field(verbs, v, problem, factors, blocks, tiles, numbers, root, q, field):
    """What the parents of a variable say about its states, compared with state 0: see `thresholds.log_odds`."""
    before = 0.0
    for s in range(v.states - 1):
        if v.own < 0:
            field[s] = root[v.column + s]
            continue
        factor = factors[v.own + s]
        before += blocks[factor.block].x[factor.lane]
        field[s] = before
        if factor.gate != SIGMOID:
            field[s] -= verbs.look(v.own + s, problem, blocks, tiles, numbers, q)
        elif s + 2 < v.states:  # the next threshold counts for this state and for all above it
            field[s] = before = before - verbs.look(v.own + s + 1, problem, blocks, tiles, numbers, q)


@inner(fast=True)
def set_loads(v, factors, blocks, q):
    """<a> and <c> of the thresholds of a hidden variable."""
    for f in range(v.own, v.own + v.states - 1 if v.own >= 0 else v.own):
        factor, block = factors[f], blocks[factors[f].block]
        loads = thresholds.mean_loads(factor.gate, factor.level, q, v.column, v.column_end)
        block.a[factor.lane], block.c[factor.lane] = loads


@inner(fast=True)
def bound_at(blocks, root, q):
    """Eq. (16) but for constants and entropy: sum over factors of <a> <x> - <c> <t(x)>, and roots."""
    total = 0.0
    for b in range(len(blocks)):
        block = blocks[b]
        for i in range(LANES):
            total += block.a[i] * block.x[i] - block.c[i] * block.t[i]
    for k in range(len(q)):
        total += q[k] * root[k]  # zero but for those of roots
    return total


@inner
def entropy_of(hidden, q):
    """The entropy of independent variables."""
    total = 0.0
    for j in range(len(hidden)):
        rest = 1.0
        for k in range(hidden[j].column, hidden[j].column_end):
            total -= q[k] * math.log(q[k])
            rest -= q[k]
        total -= rest * math.log(rest)
    return total


@kernel
def ascend(which, gate, threshold, problem, blocks, tiles, numbers, places, scratch, states, bias, answers, stop, warm,
           at_all, first, end):  # fmt: skip
    """Solve rows `first` to `end`: sweep until the bound rises too little. Returns where that ended, and why.

    If `warm`, someone has found Q, and it deserves the best parameters before it moves. Sweeps and bounds go on from
    those that the answers have. A term may begin with less than it needs in the end, and ends with all (`refine`).
    """
    verbs, hidden, factors = terms.verbs(which), problem.hidden, problem.factors
    root, field, old, q = scratch
    tol, max_sweeps, trace = stop.tol, stop.max_sweeps, answers.trace
    for r in range(first, end):
        start = begin(r, problem, blocks, gate, threshold, states, bias, answers.means, answers.xi,
                      EDGE if max_sweeps > 0 else LEAST, q, root)  # fmt: skip
        done, best, settled = answers.sweeps[r], answers.bound[r], False
        for turn in range(_TURNS):
            stage = verbs.refine(turn, at_all, problem, blocks, tiles, numbers, places, q)
            if stage > ROUGH:
                return r, stage
            if stage == ENOUGH:
                break
            patient = warm and (stage == ROUGH or turn == 0)
            only_evaluate = stage == WHOLE and turn > 0 and tol >= _FEW
            near, most = max(tol, _FEW) if stage == ROUGH else tol, done if only_evaluate else max_sweeps
            bound, rise, converged, started, turns = -np.inf, np.inf, len(hidden) == 0, False, 0
            while not started or (done < most and not converged):
                if started:
                    done += 1
                    entropy = sweep(verbs, problem, hidden, factors, blocks, tiles, numbers, root, field, old, q)
                else:
                    entropy = entropy_of(hidden, q)
                enough = max(_SHARE * near, min(_OF_RISE * rise, _AT_MOST)) / max(len(blocks), 1) if started else 0.0
                promise = verbs.value(problem, blocks, tiles, numbers, q, enough, turn + turns == 0, done < most)
                before, bound = bound, start + entropy + bound_at(blocks, root, q)
                if started:
                    rise = bound - before
                    converged = rise + promise < near
                turns += 1
                started = started or not patient or promise < near or turns > _STEPS
                if done < trace.shape[1]:
                    trace[r, done] = bound
            settled = settled if only_evaluate else converged
            if stage == WHOLE:
                rise, best = bound - best, best if bound <= best else bound  # NaN shows
                if turn > 1 and rise < tol:
                    break
        answers.bound[r], answers.sweeps[r], answers.converged[r] = best, done, settled
        store(r, problem, blocks, threshold, states, q, answers.means, answers.xi, answers.t)
    return end, ENOUGH


@kernel
def set_weights(problem, weight, blocks, tiles):
    """The weights of the network, everywhere; how far they let inputs reach."""
    hidden, factors, slots, children = problem.hidden, problem.factors, problem.slots, problem.children
    for s in range(len(slots)):
        slots[s].weight = weight[slots[s].place]
    for k in range(len(tiles)):
        tile = tiles[k]
        for i in range(LANES):
            tile.weight[i] = slots[tile.slot[i]].weight if tile.slot[i] >= 0 else 0.0
    for b in range(len(blocks)):
        block = blocks[b]
        for i in range(LANES):
            block.below[i] = block.above[i] = block.largest[i] = block.squares[i] = 0.0
    for j in range(len(hidden)):
        for c in range(hidden[j].child, hidden[j].child_end):
            factor, least, most = factors[children[c].factor], 0.0, 0.0
            block, i = blocks[factor.block], factor.lane
            for s in range(children[c].slot, children[c].slot + hidden[j].states - 1):
                least, most = min(least, slots[s].weight), max(most, slots[s].weight)
            block.below[i] += least
            block.above[i] += most
            block.largest[i] = max(block.largest[i], most - least)
            block.squares[i] += (most - least) * (most - least)


@inner
def begin(r, problem, blocks, gate, threshold, states, bias, means, xi, edge, q, root):
    """Bring a row into the blocks, Q from its means; returns the part of the bound that does not depend on Q.

    That is ln P of what is observed and has no hidden parents, and of state 0 of roots. No state of Q is below `edge`.
    An xi that is not NaN is held at that value.
    """
    hidden, factors, start = problem.hidden, problem.factors, 0.0
    for v in problem.known:
        for k in range(threshold[v], threshold[v + 1]):
            start += thresholds.log_part(gate[v], k - threshold[v] + 1, max(states[r, v], 0), bias[r, k])
    for f in range(len(factors)):
        factor = factors[f]
        block, i = blocks[factor.block], factor.lane
        block.h[i], block.t[i] = bias[r, factor.threshold], np.nan
        block.low[i], block.high[i] = block.h[i] + block.below[i], block.h[i] + block.above[i]
        held = xi[r, factor.threshold]
        block.free[i], block.xi[i] = (1.0, 0.5) if np.isnan(held) else (0.0, held)
        if factor.hidden < 0:
            block.a[i], block.c[i] = thresholds.loads(factor.gate, factor.level, states[r, factor.variable])
    for j in range(len(hidden)):
        v, total = hidden[j], 0.0
        first = threshold[v.variable]
        for k in range(v.column, v.column_end):
            s = k - v.column
            if v.own < 0:
                root[k] = thresholds.log_odds(gate[v.variable], s + 1, bias[r, first : first + v.states - 1])
            q[k] = min(max(means[r, first + s], edge), 1.0 - edge)
            total += q[k]
        for k in range(v.column, v.column_end):
            q[k] *= min(1.0, (1.0 - edge) / total)
        set_loads(v, factors, blocks, q)
    return start


@inner
def store(r, problem, blocks, threshold, states, q, means, xi, t):
    """The results of a row, but for its barren variables, which are NaN."""
    hidden, factors = problem.hidden, problem.factors
    for v in range(states.shape[1]):
        for k in range(threshold[v], threshold[v + 1]):
            means[r, k], xi[r, k] = math.nan if states[r, v] < 0 else 0.0, math.nan
        if states[r, v] > 0:
            means[r, threshold[v] + states[r, v] - 1] = 1.0
    for j in range(len(hidden)):
        v = hidden[j]
        for k in range(v.column, v.column_end):
            means[r, threshold[v.variable] + k - v.column] = q[k]
    for f in range(len(factors)):
        factor = factors[f]
        if factor.kind == XI:
            xi[r, factor.threshold] = blocks[factor.block].xi[factor.lane]
        if t.shape[1]:
            t[r, factor.threshold] = blocks[factor.block].t[factor.lane]
