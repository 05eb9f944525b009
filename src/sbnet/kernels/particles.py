"""Many complete states of one row, drawn from its posterior: sequential Monte Carlo, then a few Gibbs sweeps.

Unit by unit, parents first, every particle draws what is hidden and is weighed by what is observed; when few of them
count, those of little weight give way to copies of others (Gordon, Salmond & Smith 1993). So a row gets from one value
of several cells that hang together to another, where a chain that moves cell by cell would be caught. Gibbs sweeps then
part the copies. The particles of a unit stand side by side: every inner loop is one of vectors. For sigmoid units.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sbnet._types import FloatArray, IndexArray, Model, Problem, States
from sbnet.kernels._compile import address, bare, kernel, vector
from sbnet.kernels.gates import sigmoid
from sbnet.kernels.random import GOLDEN, uniform
from sbnet.kernels.reduce import call_posed, posed
from sbnet.kernels.states import known_units
from sbnet.kernels.vector_math import exp_minus, log

Seeds: TypeAlias = NDArray[np.uint64]

_FEW = 0.5  # particles are chosen anew when fewer than this share of them count
_STEEP = 600.0  # weights beyond this count as this: no chance is smaller than e^-690 anyway
_LEAST = 1e-300


class Answers(NamedTuple):
    """Rows by units: means of the conditional chances; estimates of ln P by row; rows by draws by units: states."""

    means: FloatArray
    log_p: FloatArray
    drawn: States


class Room(NamedTuple):
    """By particle: numbers that are needed for one unit at a time."""

    x: FloatArray
    chance: FloatArray
    new: FloatArray
    weight: FloatArray
    source: IndexArray


class Crowd(NamedTuple):
    """States of the hidden units, units by particles, and the chances of the units with hidden parents to be 1 or 0."""

    on: FloatArray
    p: FloatArray
    q: FloatArray


@vector
def _set(out: FloatArray, value: float) -> None:
    for m in range(np.uint64(len(out))):
        out[m] = value


@vector
def _copy(given: FloatArray, out: FloatArray) -> None:
    for m in range(np.uint64(len(out))):
        out[m] = given[m]


@vector
def _add(out: FloatArray, weight: float, on: FloatArray) -> None:
    for m in range(np.uint64(len(out))):
        out[m] += weight * on[m]


@vector
def _multiply(out: FloatArray, factor: FloatArray) -> None:
    for m in range(np.uint64(len(out))):
        out[m] *= factor[m]


@vector
def _scale(out: FloatArray, by: float) -> None:
    for m in range(np.uint64(len(out))):
        out[m] *= by


@vector
def _sum(values: FloatArray) -> float:
    total = 0.0
    for m in range(np.uint64(len(values))):
        total += values[m]
    return total


@vector
def _sum_of_squares(values: FloatArray) -> float:
    total = 0.0
    for m in range(np.uint64(len(values))):
        total += values[m] * values[m]
    return total


@vector
def _sigmoid(x: FloatArray, p: FloatArray) -> None:
    for m in range(np.uint64(len(x))):
        t = exp_minus(abs(x[m]))
        r = 1.0 / (1.0 + t)
        p[m] = r if x[m] >= 0.0 else t * r


@vector
def _draw(chance: FloatArray, seed: np.uint64, on: FloatArray) -> None:
    for m in range(np.uint64(len(on))):
        on[m] = 1.0 if uniform(seed + (m + np.uint64(1)) * GOLDEN) < chance[m] else 0.0


@bare
def _after(seed: np.uint64, room: Room) -> np.uint64:
    """The seed after a draw for each particle."""
    return seed + np.uint64(len(room.x)) * GOLDEN


@bare
def _input(problem: Problem, f: int, bias: FloatArray, on: FloatArray, x: FloatArray) -> None:
    _set(x, bias[problem.factor[f]])
    for s in range(problem.ptr[f], problem.ptr[f + 1]):
        _add(x, problem.weight[s], on[problem.parent[s]])


@bare
def _choose(on: FloatArray, n: int, total: float, room: Room, u: float) -> None:
    """Particles anew, each as often as its weight says: systematic resampling of the first n units."""
    number, k, above = len(room.weight), 0, room.weight[0]
    for m in range(number):
        while above < (m + u) * total / number and k < number - 1:
            k += 1
            above += room.weight[k]
        room.source[m] = k
    for j in range(n):
        row = on[j]
        for m in range(number):
            room.new[m] = row[np.uint64(room.source[m])]
        _copy(room.new, row)


@bare
def _filter(
    problem: Problem, states: States, bias: FloatArray, on: FloatArray, room: Room, seed: np.uint64
) -> tuple[float, np.uint64]:
    """Particles by the posterior, and an estimate of P(evidence), units with known inputs left out: its logarithm."""
    n, n_factors, number, log_p, j = len(problem.hidden), len(problem.factor), len(room.weight), 0.0, 0
    _set(room.weight, 1.0)
    for f in range(n_factors + 1):
        while j < n and problem.factor_of[j] < 0 and (f == n_factors or problem.hidden[j] < problem.factor[f]):
            _set(room.x, bias[problem.hidden[j]])  # no hidden parents
            _sigmoid(room.x, room.chance)
            _draw(room.chance, seed, on[j])
            seed, j = _after(seed, room), j + 1
        if f == n_factors:
            break
        _input(problem, f, bias, on, room.x)
        if problem.own[f] < 0 and states[problem.factor[f]] == 0:
            _scale(room.x, -1.0)
        _sigmoid(room.x, room.chance)
        if problem.own[f] >= 0:
            _draw(room.chance, seed, on[j])
            seed, j = _after(seed, room), j + 1
            continue
        _multiply(room.weight, room.chance)
        total = _sum(room.weight)
        if total < number * _LEAST:  # impossible for all of them: none is better than another
            log_p += math.log(_LEAST)
            _set(room.weight, 1.0)
        elif total * total < _FEW * number * _sum_of_squares(room.weight) or total < 1e-100:
            log_p += math.log(total / number)
            seed += GOLDEN
            _choose(on, j, total, room, uniform(seed))
            _set(room.weight, 1.0)
    total = _sum(room.weight)
    seed += GOLDEN
    _choose(on, n, total, room, uniform(seed))
    return log_p + math.log(total / number), seed


@vector
def _both(x: FloatArray, p: FloatArray, q: FloatArray) -> None:
    for m in range(np.uint64(len(x))):
        t = exp_minus(min(abs(x[m]), 690.0))
        r = 1.0 / (1.0 + t)
        p[m] = r if x[m] >= 0.0 else t * r
        q[m] = t * r if x[m] >= 0.0 else r


@vector
def _log_odds(p: FloatArray, q: FloatArray, x: FloatArray) -> None:
    for m in range(np.uint64(len(x))):
        x[m] = log(p[m] / q[m])


@vector
def _tell(p: FloatArray, q: FloatArray, on: FloatArray, tilt: float, back: float, out: FloatArray) -> None:
    """Times P(child = 1 | parent as it is) / P(child = 1 | parent the other way), with p the chance as it is."""
    for m in range(np.uint64(len(out))):
        out[m] *= p[m] + q[m] * (back + on[m] * (tilt - back))


@vector
def _tell_either(
    p: FloatArray, q: FloatArray, on: FloatArray, child: FloatArray, tilt: float, back: float, out: FloatArray
) -> None:
    """The same for a child that is 1 in some particles and 0 in others."""
    for m in range(np.uint64(len(out))):
        one = p[m] + q[m] * (back + on[m] * (tilt - back))
        zero = q[m] + p[m] * (tilt + on[m] * (back - tilt))
        out[m] *= one if child[m] > 0.5 else zero


@vector
def _gather(x: FloatArray, product: FloatArray, on: FloatArray) -> None:
    """What children have told goes into the log odds of their parent."""
    for m in range(np.uint64(len(x))):
        x[m] += (2.0 * on[m] - 1.0) * log(max(product[m], _LEAST))
        product[m] = 1.0


@vector
def _changes(on: FloatArray, new: FloatArray) -> float:
    total = 0.0
    for m in range(np.uint64(len(on))):
        total += abs(new[m] - on[m])
    return total


@vector
def _turn(p: FloatArray, q: FloatArray, on: FloatArray, new: FloatArray, tilt: float, back: float) -> None:
    """The chances of a child whose parent has changed in some particles."""
    for m in range(np.uint64(len(on))):
        change = new[m] - on[m]
        r = 1.0 + max(change, 0.0) * (tilt - 1.0) + max(-change, 0.0) * (back - 1.0)
        share = 1.0 / (q[m] + p[m] * r)
        p[m] = max(p[m] * r * share, _LEAST)
        q[m] = max(q[m] * share, _LEAST)


@bare
def _sweep(
    problem: Problem,
    states: States,
    bias: FloatArray,
    tilt: FloatArray,
    crowd: Crowd,
    room: Room,
    together: int,
    seed: np.uint64,
    chance: FloatArray,
) -> np.uint64:
    """Draw every hidden unit given all others, in all particles; the sums of the chances go to `chance`."""
    on, p, q = crowd
    for f in range(len(p)):
        _input(problem, f, bias, on, room.x)
        _both(room.x, p[f], q[f])
    product = room.weight
    for j in range(len(problem.hidden)):
        f = problem.factor_of[j]
        if f >= 0:
            _log_odds(p[f], q[f], room.x)
        else:
            _set(room.x, bias[problem.hidden[j]])
        _set(product, 1.0)
        begin, end = problem.child_ptr[j], problem.child_ptr[j + 1]
        for c in range(begin, end):
            f, s = problem.child[c], problem.child_slot[c]
            if problem.own[f] >= 0:
                _tell_either(p[f], q[f], on[j], on[problem.own[f]], tilt[s], 1.0 / tilt[s], product)
            elif states[problem.factor[f]] == 1:
                _tell(p[f], q[f], on[j], tilt[s], 1.0 / tilt[s], product)
            else:
                _tell(q[f], p[f], on[j], 1.0 / tilt[s], tilt[s], product)
            if (c + 1 - begin) % together == 0:
                _gather(room.x, product, on[j])
        _gather(room.x, product, on[j])
        _sigmoid(room.x, room.chance)
        chance[j] += _sum(room.chance)
        _draw(room.chance, seed, room.new)
        seed = _after(seed, room)
        if _changes(on[j], room.new) > 0.0:
            for c in range(begin, end):
                f, s = problem.child[c], problem.child_slot[c]
                _turn(p[f], q[f], on[j], room.new, tilt[s], 1.0 / tilt[s])
            _copy(room.new, on[j])
    return seed


@bare
def _predict(
    model: Model,
    states: States,
    bias: FloatArray,
    every: FloatArray,
    live: IndexArray,
    room: Room,
    seed: np.uint64,
    means: FloatArray,
) -> np.uint64:
    """Units without observed descendants follow from their parents, which come first."""
    for i in range(len(states)):
        if states[i] >= 0 or live[i]:
            continue
        certain = True
        _set(room.x, bias[i])
        for e in range(model.indptr[i], model.indptr[i + 1]):
            if states[model.parent[e]] < 0:
                _add(room.x, model.weight[e], every[model.parent[e]])
                certain = False
        _sigmoid(room.x, room.chance)
        means[i] = sigmoid(bias[i]) if certain else _sum(room.chance) / len(room.x)
        _draw(room.chance, seed, every[i])
        seed = _after(seed, room)
    return seed


@bare
def _pick(states: States, every: FloatArray, seed: np.uint64, drawn: States) -> None:
    """Some of the particles, far from one another: neighbours may be copies."""
    n_draws, number = len(drawn), every.shape[1]
    first = int(uniform(seed + GOLDEN) * number)
    for k in range(n_draws):
        m = (first + k * number // n_draws) % number
        for i in range(len(states)):
            drawn[k, i] = states[i] if states[i] >= 0 else np.int8(every[i, m])


def particle_rows(*given: Any) -> None:
    """As `crowd_rows`, with the kernel that poses problems."""
    crowd_rows(address(posed, allocates=True), *given)


@kernel
def crowd_rows(
    posed: int,
    model: Model,
    states: States,
    bias: FloatArray,
    seeds: Seeds,
    number: int,
    sweeps: int,
    answers: Answers,
) -> None:
    """So many particles of each row, moved by some sweeps, of which the first does not count for the means."""
    n_units = states.shape[1]
    room = Room(np.zeros(number), np.zeros(number), np.zeros(number), np.zeros(number), np.zeros(number, np.int64))
    for r in range(len(states)):
        problem = call_posed(posed, model, states[r])
        n, n_factors, means = len(problem.hidden), len(problem.factor), answers.means[r]
        crowd = Crowd(np.zeros((n, number)), np.zeros((n_factors, number)), np.zeros((n_factors, number)))
        steepest, chance = 1.0, np.zeros(n)
        tilt = np.empty(len(problem.weight))
        for s in range(len(tilt)):
            w = min(max(problem.weight[s], -_STEEP), _STEEP)
            tilt[s] = math.exp(w)
            steepest = max(steepest, abs(w))
        together = max(int(_STEEP / steepest), 1)  # factors whose product is an ordinary number
        answers.log_p[r], seed = _filter(problem, states[r], bias[r], crowd.on, room, seeds[r])
        answers.log_p[r] += known_units(problem, states[r], bias[r])
        for k in range(sweeps):
            if k == 1:
                chance[:] = 0.0
            seed = _sweep(problem, states[r], bias[r], tilt, crowd, room, together, seed, chance)
        every, live = np.zeros((n_units, number)), np.zeros(n_units, np.int64)
        for j in range(n):
            i = problem.hidden[j]
            live[i] = 1
            _copy(crowd.on[j], every[i])
            means[i] = chance[j] / (number * max(sweeps - 1, 1))
        seed = _predict(model, states[r], bias[r], every, live, room, seed, means)
        _pick(states[r], every, seed, answers.drawn[r])
        for i in range(n_units):
            if states[r, i] >= 0:
                means[i] = states[r, i]
