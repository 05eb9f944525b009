"""The terms, verb by verb, against means over all joint states of the parents: two to four states each."""

from __future__ import annotations

from functools import cache
from itertools import product

import numba
import numpy as np
import pytest
from numpy.testing import assert_allclose

from sbnet._types import Model
from sbnet.kernels import layout, mean_field, newterms, reduction
from sbnet.kernels.gates import NOISY_OR, SIGMOID
from sbnet.kernels.kinds import ENUMERATED, EXACT, KINDS, LINEAR, QUADRATIC, SERIES
from sbnet.kernels.newterms import frequencies
from sbnet.kernels.structs import child_t, factor_t, hidden_t, slot_t

pytestmark = pytest.mark.small
GATES = {
    EXACT: (SIGMOID,),
    ENUMERATED: (SIGMOID, NOISY_OR),
    QUADRATIC: (SIGMOID,),
    SERIES: (NOISY_OR,),
    LINEAR: (NOISY_OR,),
}
CASES = [(kind, gate) for kind, gates in GATES.items() for gate in gates]
NAMES = [f"{KINDS[kind].file}-{('sigmoid', 'noisy-or')[gate]}" for kind, gate in CASES]


# --- the terms, slowly ----------------------------------------------------------------------------------------------


def t(gate, x):
    return np.logaddexp(0.0, x) if gate == SIGMOID else -np.log(-np.expm1(-np.maximum(x, 1e-300)))


class Factor:
    """One factor of a problem: `weights[u][s]` for its parents u, whose columns of Q begin at `columns[u]`."""

    def __init__(self, problem, f, bias):
        self.record, self.weights, self.columns = problem.factors[f], [], []
        self.gate, self.h, self.slots, s = self.record.gate, bias[self.record.threshold], [], self.record.slot
        while s < self.record.slot_end:
            n = problem.hidden[problem.slots[s].parent].states - 1
            self.weights.append(np.r_[0.0, problem.slots["weight"][s : s + n]])
            self.columns.append(problem.slots[s].column)
            self.slots.append(s)
            s += n

    def distributions(self, q):
        parts = [q[c : c + len(w) - 1] for c, w in zip(self.columns, self.weights, strict=True)]
        return [np.r_[1.0 - p.sum(), p] for p in parts]

    def states(self, distributions):
        """The inputs of all joint states, and their probabilities."""
        x = self.h + np.array([sum(ws) for ws in product(*self.weights)])
        return x, np.array([np.prod(ps) for ps in product(*distributions)])

    def moments(self, distributions):
        x, p = self.states(distributions)
        return p @ x, p @ x**2

    def parameter(self, kind, q, numbers):
        """What is held while Q moves."""
        if kind == QUADRATIC:
            return np.sqrt(self.moments(self.distributions(q))[1])
        first = self.record.table
        return numbers[first : first + len(self.weights)].copy() if kind == LINEAR else None

    def term(self, kind, distributions, parameter):
        if kind == QUADRATIC:
            mean, second = self.moments(distributions)
            curve = np.tanh(0.5 * parameter) / (4.0 * parameter)
            return curve * (second - parameter**2) + 0.5 * (mean - parameter) + t(SIGMOID, parameter)
        if kind == LINEAR:
            parts = zip(distributions, self.weights, parameter, strict=True)
            return (1.0 - sum(parameter)) * t(NOISY_OR, self.h) + sum(
                r * (p @ t(NOISY_OR, self.h + w / r)) for p, w, r in parts
            )
        return self.truth(distributions)

    def truth(self, distributions):
        x, p = self.states(distributions)
        return p @ t(self.gate, x)


def random_model(rng, gate, n_states, parents, scale):
    """Parents come first; weights of noisy-OR variables are positive."""
    n_states, indptr = np.array(n_states), np.cumsum([0, *map(len, parents)])
    parent = np.array([u for us in parents for u in us], dtype=np.int64)
    child = np.repeat(np.arange(len(n_states)), np.diff(indptr))
    block = np.cumsum([0, *((n_states[child] - 1) * (n_states[parent] - 1))])
    order = np.argsort(parent, kind="stable")
    child_indptr = np.searchsorted(parent[order], np.arange(len(n_states) + 1))
    threshold = np.cumsum([0, *(n_states - 1)])
    weight, bias = scale * rng.normal(size=block[-1]), scale * rng.normal(size=threshold[-1])
    if gate == NOISY_OR:
        weight, bias = np.abs(weight), 0.1 * np.abs(bias) + 1e-3
    gates = np.full(len(n_states), gate, np.int8)
    model = Model(indptr, parent, child_indptr, child[order], order, weight, gates, n_states, threshold, block)
    return model, bias


def random_q(rng, problem):
    q = np.zeros(problem.n_columns)
    for one in problem.hidden:
        q[one.column : one.column_end] = rng.dirichlet(np.ones(one.states))[1:]
    return q


def pose(kind, gate, seed, scale=1.0):
    """Five hidden roots of two to four states, a hidden child of three, observed ones of two and three."""
    rng = np.random.default_rng(seed)
    n_states = [2, 3, 2, 4, 2, 3, *rng.integers(2, 4, size=20)]
    some = [tuple(np.sort(rng.choice(6, size=rng.integers(1, 6), replace=False))) for _ in range(20)]
    model, bias = random_model(rng, gate, n_states, [()] * 5 + [(0, 1, 3, 4), *some], scale)
    states = np.r_[np.full(6, -1), rng.integers(0, model.n_states[6:])].astype(np.int8)
    problem = reduction.reduce(model, states)
    dtypes = {"hidden": hidden_t, "factors": factor_t, "slots": slot_t, "children": child_t}  # fields by attribute
    problem = problem._replace(**{name: getattr(problem, name).view(dtype) for name, dtype in dtypes.items()})
    problem.factors["kind"] = kind
    factors = [Factor(problem, f, bias) for f in range(len(problem.factors))]
    return model, problem, states, bias, random_q(rng, problem), random_q(rng, problem), factors


# --- the terms, as a sweep calls them -------------------------------------------------------------------------------


@cache
def examine(kind):
    """Begin at Q; move each variable to the other Q, asking before what children say; look; find values and slopes."""
    file = newterms.file_of(kind)
    room, prepare, value, look = file.room, file.prepare, file.value, file.look
    pull, push, gradient = file.pull, file.push, file.gradient

    @numba.njit(error_model="numpy")
    def run(problem, model, states, bias, q, to, out, fields, by_slot, by_factor):
        hidden, factors = problem.hidden, problem.factors
        n = 0
        for f in range(len(factors)):
            factors[f].table = n
            n += room(problem, factors[f])
        numbers = np.zeros(n)
        blocks, tiles = layout.lay_out(problem)
        prepare(problem, blocks, tiles, numbers)
        means = np.zeros(len(bias))
        for j in range(len(hidden)):
            for k in range(hidden[j].column, hidden[j].column_end):
                means[model.threshold[hidden[j].variable] + k - hidden[j].column] = q[k]
        mean_field.begin(problem, blocks, model, states, bias, means, q, np.zeros(len(q)))
        if kind == EXACT:
            numbers = frequencies.attune(problem, blocks, tiles, numbers, q, False, True)[0]
            frequencies.attend(problem, blocks, numbers, True)
        value(problem, blocks, tiles, numbers, q, 0.0, True)
        before = numbers.copy()
        for f in range(len(factors)):
            out[0, f], out[1, f] = (
                blocks[factors[f].block].x[factors[f].lane],
                blocks[factors[f].block].t[factors[f].lane],
            )
        old = np.zeros(10)
        for j in range(len(hidden)):
            one = hidden[j]
            for f in range(one.own, one.own + one.states - 1 if one.own >= 0 else one.own):
                out[2, f] = look(f, problem, blocks, tiles, numbers, q)
            pull(one, problem, blocks, tiles, numbers, q, fields[j])
            for k in range(one.column, one.column_end):
                old[k - one.column], q[k] = q[k], to[k]
            mean_field.set_loads(one, factors, blocks, q)
            push(one, problem, blocks, tiles, numbers, old, q)
        for f in range(len(factors)):
            out[3, f] = blocks[factors[f].block].x[factors[f].lane]
        value(problem, blocks, tiles, numbers, q, 0.0, False)
        for f in range(len(factors)):
            out[4, f], out[5, f] = (
                blocks[factors[f].block].x[factors[f].lane],
                blocks[factors[f].block].t[factors[f].lane],
            )
        gradient(problem, blocks, tiles, numbers, q, by_slot, by_factor)
        return before, numbers

    return run


def loads(factor, states, problem, q):
    """<a> and <c>, by the definition."""
    record = factor.record
    if record.hidden < 0:
        p = np.eye(10)[states[record.variable]]
    else:
        one = problem.hidden[record.hidden]
        p = np.r_[1.0 - q[one.column : one.column_end].sum(), q[one.column : one.column_end]]
    k, level = np.arange(len(p)), record.level
    if factor.gate == SIGMOID:
        return p @ (k >= level), p @ (k >= level - 1)
    return -(p @ (k < level)), p @ (k == level)


def rounding(kind):
    return 3e-7 if kind in (SERIES, EXACT) else 1e-10


@pytest.mark.parametrize(("kind", "gate"), CASES, ids=NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_verbs_are_means_over_joint_states(kind, gate, seed):
    model, problem, states, bias, q, to, factors = pose(kind, gate, seed)
    out, fields = np.full((6, len(factors)), np.nan), np.zeros((len(problem.hidden), 3))
    by_slot, by_factor, atol = np.full(len(problem.slots), np.nan), np.full(len(factors), np.nan), rounding(kind)
    start = q.copy()
    before, after = examine(kind)(problem, model, states, bias, q, to, out, fields, by_slot, by_factor)
    assert_allclose(q, to)
    held = [factor.parameter(kind, start, before) for factor in factors]
    for f, factor in enumerate(factors):
        near, far = factor.distributions(start), factor.distributions(to)
        assert_allclose(out[:2, f], [factor.moments(near)[0], factor.term(kind, near, held[f])], atol=atol)
        assert_allclose(out[3, f], factor.moments(far)[0], atol=atol)
        if factor.record.hidden >= 0:  # a sweep looks when it has come to its variable
            assert_allclose(out[2, f], factor.term(kind, far, held[f]), atol=atol)
        found = factor.parameter(kind, to, after)
        assert_allclose(out[4:6, f], [factor.moments(far)[0], factor.term(kind, far, found)], atol=atol)
        assert out[1, f] >= factor.truth(near) - 1e-12
        assert out[5, f] >= factor.truth(far) - 1e-12
    q = start.copy()
    for j, one in enumerate(problem.hidden):
        expected = np.zeros(3)
        for f, factor in enumerate(factors):
            if one.column in factor.columns:
                u, d = factor.columns.index(one.column), factor.distributions(q)
                a, c = loads(factor, states, problem, q)
                ends = [factor.term(kind, [*d[:u], e, *d[u + 1 :]], held[f]) for e in np.eye(one.states)]
                expected[: one.states - 1] += a * factor.weights[u][1:] - c * (np.array(ends[1:]) - ends[0])
        assert_allclose(fields[j], expected, atol=10 * atol)
        q[one.column : one.column_end] = to[one.column : one.column_end]


@pytest.mark.parametrize(("kind", "gate"), CASES, ids=NAMES)
def test_gradients_are_derivatives_of_the_terms(kind, gate):
    model, problem, states, bias, q, to, factors = pose(kind, gate, 7)
    out, fields = np.zeros((6, len(factors))), np.zeros((len(problem.hidden), 3))
    by_slot, by_factor = np.full(len(problem.slots), np.nan), np.full(len(factors), np.nan)
    _, after = examine(kind)(problem, model, states, bias, q, to, out, fields, by_slot, by_factor)
    step, atol = 1e-5, 1e-6 if kind != SERIES else 1e-4

    def slope(factor, array, at):
        """The change of the term with one number of a factor; its bias stands in an array of one."""
        held, middle, found = factor.parameter(kind, to, after), array[at], []
        for moved in (middle - step, middle + step):
            array[at] = moved
            found.append(factor.term(kind, factor.distributions(to), held))
            array[at] = middle
        return (found[1] - found[0]) / (2 * step)

    for f, factor in enumerate(factors):
        factor.h = np.array([factor.h])
        assert_allclose(by_factor[f], slope(factor, factor.h, 0), atol=atol, rtol=1e-4)
        for s, w in zip(factor.slots, factor.weights, strict=True):
            numeric = np.ravel([slope(factor, w, c) for c in range(1, len(w))])
            assert_allclose(by_slot[s : s + len(w) - 1], numeric, atol=atol, rtol=1e-4)


@pytest.mark.parametrize(("kind", "gate"), CASES, ids=NAMES)
@pytest.mark.parametrize("scale", [0.01, 10.0, 100.0])
def test_no_term_lies_below_the_mean(kind, gate, scale):
    for seed in range(3):
        model, problem, states, bias, q, to, factors = pose(kind, gate, seed, scale)
        out, fields = np.zeros((6, len(factors))), np.zeros((len(problem.hidden), 3))
        by_slot, by_factor = np.zeros(len(problem.slots)), np.zeros(len(factors))
        start = q.copy()
        examine(kind)(problem, model, states, bias, q, to, out, fields, by_slot, by_factor)
        near = np.array([factor.truth(factor.distributions(start)) for factor in factors])
        far = np.array([factor.truth(factor.distributions(to)) for factor in factors])
        assert np.all(out[1] >= near - 1e-13 * (10.0 + 30.0 * scale))
        assert np.all(out[5] >= far - 1e-13 * (10.0 + 30.0 * scale))
        assert np.all(np.isfinite(by_slot) & np.isfinite(by_slot))
