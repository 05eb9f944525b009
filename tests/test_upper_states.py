"""The upper bound over variables with two to four states: never below enumeration, and what it is drawn from."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from sbnet.bounds.upper.proposal import Proposal, _joint
from sbnet.bounds.upper.regions import Parameters, divide, evaluate, free_places, keep, start
from sbnet.inference.importance import seeds_of
from sbnet.kernels.codes import NOISY_OR
from sbnet.kernels.compiling import INTERPRETED
from sbnet.kernels.descent import descend
from sbnet.questions.reduction import reduce
from strategies import model_of

pytestmark = pytest.mark.small
ROOMS = [0, 1, 2, 3, 8]


class Case:
    """A random network, parents first, and evidence on some of its variables."""

    def __init__(self, seed, n=6):
        rng = np.random.default_rng([27, seed])
        n_states, gate = rng.integers(2, 5, n), (rng.random(n) < 0.4).astype(np.int8)
        scale = float(rng.choice([0.3, 1.5, 6.0, 300.0]))
        parents = [np.flatnonzero(rng.random(v) < 0.6) for v in range(n)]
        parent = np.concatenate(parents).astype(np.int64)
        indptr = np.cumsum([0, *map(len, parents)])
        child = np.repeat(np.arange(n), np.diff(indptr))
        block = np.cumsum([0, *((n_states[child] - 1) * (n_states[parent] - 1))])
        order = np.argsort(parent, kind="stable")
        threshold = np.cumsum([0, *(n_states - 1)])
        self.bias, weight = rng.uniform(-scale, scale, threshold[-1]), rng.uniform(-scale, scale, block[-1])
        for v in np.flatnonzero(gate == NOISY_OR):
            mine = slice(threshold[v], threshold[v + 1])
            self.bias[mine] = np.abs(self.bias[mine]) + 1e-3
            edges = slice(block[indptr[v]], block[indptr[v + 1]])
            weight[edges] = np.abs(weight[edges])
        by_parent = np.searchsorted(parent[order], np.arange(n + 1)), child[order], order
        self.model = model_of(indptr, parent, *by_parent, weight, gate, n_states, threshold, block)
        self.states = np.where(rng.random(n) < 0.4, rng.integers(0, n_states), -1).astype(np.int8)
        self.states[-1] = rng.integers(0, n_states[-1])

    def inputs(self, v, state):
        """x_l = h_l + sum over parents of J_l[u, s_u], for the parents whose states are known."""
        m = self.model
        x = self.bias[m.threshold[v] : m.threshold[v + 1]].copy()
        for e in range(m.indptr[v], m.indptr[v + 1]):
            J = m.weight[m.block[e] : m.block[e + 1]].reshape(len(x), -1)
            s = state[m.parent[e]]
            x += J[:, s - 1] if s > 0 else 0.0
        return x

    def log_p(self, v, state):
        """Sequential logits, and noisy-MAX, from their definitions."""
        k, x = state[v], self.inputs(v, state)
        if self.model.gate[v] == NOISY_OR:
            at_most = np.append(-np.cumsum(x[::-1])[::-1], 0.0)  # ln P(v <= k) = -sum of x_l over l > k
            return at_most[k] + (0.0 if k == 0 else np.log(-np.expm1(at_most[k - 1] - at_most[k])))
        return -np.logaddexp(0.0, -x[:k]).sum() - (np.logaddexp(0.0, x[k]) if k < len(x) else 0.0)

    def completions(self):
        m = self.model
        return list(itertools.product(*[[s] if s >= 0 else range(m.n_states[v]) for v, s in enumerate(self.states)]))

    def exact(self):
        return logsumexp([sum(self.log_p(v, s) for v in range(len(s))) for s in self.completions()])

    def known(self, problem):
        """ln P of the observed variables without hidden parents, which no bound needs."""
        return sum(self.log_p(v, self.states) for v in problem.known if self.states[v] >= 0)

    def regions(self, room):
        problem = reduce(self.model, self.states)
        bias = np.concatenate([self.inputs(v, self.states) for v in range(len(self.states))])
        large = np.ones(len(problem.hidden), bool)
        return problem, divide(problem, self.model, self.states, bias, large, room)

    def nothing(self):
        return Parameters(np.full(len(self.model.weight), np.nan), np.full((len(self.bias), 2), np.nan))


@pytest.mark.parametrize("room", ROOMS)
def test_the_bound_is_never_below_enumeration_and_falls(room):
    for seed in range(8 if INTERPRETED else 120):
        case = Case(seed)
        problem, regions = case.regions(room)
        free, positive = free_places(regions)
        x = start(regions, case.nothing())
        first = evaluate(regions, x)[0]
        with np.errstate(all="ignore"):
            value, _ = descend(regions, x, free, positive, 10 if INTERPRETED else 100, 1e-6)
        size = np.abs(case.bias).sum() + np.abs(case.model.weight).sum() + 700.0 * len(case.states)
        assert value <= first + 1e-12 * size, seed
        assert case.exact() <= value + case.known(problem) + 1e-12 * size, seed


@pytest.mark.parametrize("room", ROOMS)
def test_the_gradient_is_that_of_the_bound(room):
    for seed in range(2 if INTERPRETED else 12):
        case = Case(4 * seed)
        _, regions = case.regions(room)
        x = start(regions, case.nothing())
        free, positive = free_places(regions)
        noise = np.random.default_rng(seed).uniform(0.05, 0.3, len(free))  # away from the corners of maxima
        x[free] = np.where(positive, x[free] * np.exp(noise), x[free] + noise)
        gradient = evaluate(regions, x)[1]
        for k in free:
            step = 1e-6 * min(max(abs(x[k]), 1e-6), 1.0)
            up, down = (evaluate(regions, x + sign * step * (np.arange(len(x)) == k))[0] for sign in (1, -1))
            assert_allclose(gradient[k], (up - down) / (2.0 * step), rtol=1e-4, atol=1e-3, err_msg=f"{seed} {k}")


@pytest.mark.parametrize("room", ROOMS)
def test_tables_are_no_larger_than_their_room_and_parameters_come_back(room):
    for seed in range(20):
        case = Case(seed)
        _, regions = case.regions(room)
        assert regions.families["table"].max(initial=1) <= 2**room
        x, (free, _) = start(regions, case.nothing()), free_places(regions)
        x[free] += 0.5
        given = case.nothing()
        keep(regions, x, given)
        assert_allclose(start(regions, given)[free], x[free])


@pytest.mark.parametrize("room", [0, 2, 8])
def test_what_is_drawn_is_a_distribution_that_the_bound_keeps_above_p(room):
    """P(H, V) <= U q(H) for each joint state, and q adds up to one."""
    for seed in range(2 if INTERPRETED else 25):
        case = Case(seed, n=5)
        problem, regions = case.regions(room)
        if not len(problem.hidden):
            continue
        x = start(regions, case.nothing())
        log_bound = evaluate(regions, x)[0]
        states = problem.hidden["states"]
        mu = np.repeat(1.0 / states, states - 1)
        joint = _joint(regions, x, mu)
        n = 300 if INTERPRETED else 60_000
        seeds = seeds_of(np.uint64(seed), case.states, n, 0)
        out = Proposal(joint, log_bound, 0.0, 0.0, 0.0).draw(seeds, np.ones(n, bool))
        log_p, log_q, log_factorial = np.unique(out.round(9), axis=1)
        assert np.all(log_p <= log_bound + log_q + 1e-6 * (1.0 + np.abs(log_p))), seed
        if not INTERPRETED and len(np.unique(log_factorial)) == 1 and len(log_p) == np.prod(states):
            assert np.exp(log_q).sum() == pytest.approx(1.0, abs=1e-6), seed
            whole = logsumexp(log_p) + case.known(problem)
            assert whole == pytest.approx(case.exact(), rel=1e-6, abs=1e-6), seed
