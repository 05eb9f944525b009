"""Branch and bound: subproblems enclose the truth at any time, bounds come nearer, and gap= looks at no clock."""

from __future__ import annotations

import time
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

import oracle
import sbnet as sb
from sbnet.bounds import margins
from sbnet.bounds.branch_and_bound import branch_and_bound, upper
from sbnet.bounds.upper.descent import OneThread
from sbnet.bounds.upper.descent import descend as by_scipy
from sbnet.bounds.upper.regions import Parameters, divide, evaluate, free_places, start
from sbnet.bounds.upper.subproblems import Limits, solve
from sbnet.certificates import branching
from sbnet.certificates.enclosure import Bounded, MeanFields
from sbnet.exact.enumeration import Reduced
from sbnet.kernels.descent import descend
from sbnet.questions.reduction import absorb, reduce


def small(seed):
    """A network of few units, evidence on its last layer, ln P, and how far apart two right answers may lie."""
    rng = np.random.default_rng([16, seed])
    scale = float(rng.choice([0.5, 2.0, 10.0, 1000.0]))
    net = sb.layered((3, 4, 5), rng=rng, scale=scale, autoregressive=bool(rng.integers(2)))
    row = np.full(12, -1, np.int8)
    row[-5:] = rng.integers(0, 2, 5)
    exact = sb.log_likelihood(net, row[-5:])
    return net, row, exact, oracle.rounding(net.weight_matrix(), net.bias)


def root(network, row, table_up_to):
    limits = Limits(0, table_up_to, 200, 1e-5)
    return bounded(network, row, limits)


def bounded(network, row, limits):
    solution = sb.MeanField().solve(network, row[None, :], start=None, trace=False)
    subproblems = solve(network, limits, row[None, :])
    return Bounded(Reduced(network, row), limits, subproblems, MeanFields(solution.bound, solution.means))


@pytest.mark.parametrize("table_up_to", [0, 2])
def test_subproblems_enclose_the_truth_after_every_round_until_all_states_are_apart(table_up_to):
    for seed in range(6):
        net, row, exact, rounding = small(seed)
        for partition in branching.branch(root(net, row, table_up_to)):
            leaves = partition.subproblems()
            low = margins.log_sum_below(np.array([leaf.lower for leaf in leaves]))
            high = margins.log_sum_above(np.array([leaf.upper for leaf in leaves]))
            assert low - rounding <= exact <= high + rounding, seed
        assert high - low < 0.05 + 2.0 * rounding, seed
        assert len(leaves) <= 2**7


def test_subproblems_are_parts_of_the_whole_without_a_state_in_common():
    net, row, _, _ = small(1)
    *_, partition = islice(branching.branch(root(net, row, 0)), 6)
    states = np.concatenate([leaf.subproblem.states for leaf in partition.subproblems()])
    every = np.array(np.meshgrid(*[[0, 1]] * 7)).reshape(7, -1)
    inside = ((states[:, :7, None] == -1) | (states[:, :7, None] == every)).all(axis=1)
    assert np.all(inside.sum(axis=0) == 1)


def test_a_cell_next_to_nothing_is_not_split():
    net = sb.from_edges({("a", "x"): 40.0, ("b", "x"): 1.0, ("c", "x"): 1.0}, bias={"a": 0.0, "x": -40.0})
    row = sb.questions.evidence.coerce(net, {"x": 1})[0][0]
    limits = Limits(0, 0, 200, 1e-5)
    nothing = set()
    for partition in branching.branch(bounded(net, row, limits)):
        states = {leaf.subproblem.states.tobytes(): leaf.upper for leaf in partition.subproblems()}
        assert nothing <= set(states)
        nothing |= {subproblem for subproblem, upper in states.items() if upper < -30.0}
    assert nothing


# --- the search itself ----------------------------------------------------------------------------------------------


class Interval:
    """Whole numbers from `first` to `last`, a stand-in for states; the bound is too high by ln 2 while it is long."""

    def __init__(self, first, last):
        self.first, self.last = first, last
        self.upper = np.log(last - first) + (np.log(2.0) if last - first > 4 else 0.0)

    @property
    def priority(self):
        return self.upper if self.last - self.first > 1 else -np.inf

    def halves(self):
        middle = (self.first + self.last) // 2
        return Interval(self.first, middle), Interval(middle, self.last)


def halves(problems):
    return [problem.halves() for problem in problems]


@pytest.mark.small
@given(most=st.integers(1, 40), n=st.integers(1, 40), at_once=st.integers(1, 4))
def test_subproblems_make_up_the_whole_and_never_bound_it_worse(most, n, at_once):
    before, whole = np.inf, Interval(0, n)
    for partition in branch_and_bound([whole], halves, most=most, at_once=at_once):
        problems = partition.subproblems()
        assert sorted(k for problem in problems for k in range(problem.first, problem.last)) == list(range(n))
        assert np.log(n) - 1e-12 <= upper(problems) <= min(before, whole.upper) + 1e-12
        before = upper(problems)
    assert min(most, n) <= len(partition) < most + at_once  # a round may go a little beyond


@pytest.mark.small
def test_the_highest_priorities_are_split_first():
    asked = []

    def divide(problems):
        asked.append([(problem.first, problem.last) for problem in problems])
        return halves(problems)

    list(branch_and_bound([Interval(0, 100), Interval(100, 102)], divide, most=6, at_once=3))
    assert asked == [[(0, 100)], [(0, 50)], [(50, 100), (0, 25)]]


@pytest.mark.small
def test_what_is_negligible_beside_the_largest_bound_is_not_split():
    asked = []

    def divide(problems):
        asked.extend((problem.first, problem.last) for problem in problems)
        return [() if problem.first == 0 else problem.halves() for problem in problems]

    list(branch_and_bound([Interval(0, 100), Interval(100, 116)], divide, most=50, negligible=0.09))
    assert asked == [(0, 100), (100, 116)]  # bounds of 200 and 32; the halves have 16


@pytest.mark.small
def test_a_subproblem_without_parts_stays_and_is_not_asked_again():
    asked = []

    def divide(problems):
        asked.extend(problem.first for problem in problems)
        return [() if problem.first == 0 and problem.last < 8 else problem.halves() for problem in problems]

    *_, last = branch_and_bound([Interval(0, 16)], divide, most=100)
    assert (0, 4) in [(problem.first, problem.last) for problem in last.subproblems()]
    assert asked.count(0) == 3  # (0, 16), (0, 8) and (0, 4), once each
    assert len(last) == 13


# --- certify() ------------------------------------------------------------------------------------------------------


def dense():
    return sb.layered((8, 16, 20), rng=1, scale=1.0), sb.sample(sb.layered((8, 16, 20), rng=1, scale=1.0), 1, rng=0)[
        0, -20:
    ]


def test_gap_is_reached_and_does_not_depend_on_the_clock():
    net, row = dense()
    wide = sb.certify(net, row)
    first, again = (sb.certify(net, row, gap=0.6 * wide.gap) for _ in range(2))
    assert first.gap <= 0.6 * wide.gap
    assert (first.lower, first.upper) == (again.lower, again.upper)
    assert wide.lower <= first.lower <= first.upper <= wide.upper
    assert "subproblems" in first.upper_from
    assert first.interval == (first.lower, first.upper)
    table = sb.certify(net, np.array([row, 1 - row]), gap=0.6 * wide.gap)
    assert (table[0].lower, table[0].upper) == (first.lower, first.upper)


def test_seconds_are_kept_and_bring_the_ends_nearer():
    net, row = dense()
    wide = sb.certify(net, row)
    begin = time.monotonic()
    found = sb.certify(net, row, seconds=0.5)
    assert time.monotonic() - begin < 5.0  # a machine may be busy
    assert wide.lower <= found.lower <= found.upper <= wide.upper
    assert found.gap < wide.gap
    assert sb.certify(net, row, seconds=1e-6).gap <= wide.gap


def test_subproblems_serve_the_samples_too():
    net, row = dense()
    gap = 0.7 * sb.certify(net, row).gap
    found = sb.certify(net, row, confidence=0.999, seconds=30.0, gap=gap)
    assert found.gap <= gap
    assert found.interval[1] - found.interval[0] <= gap
    assert found.lower <= found.interval[0] < found.interval[1] <= found.upper
    narrow = sb.certify(net, row, confidence=0.999, gap=0.02)
    assert narrow.interval[1] - narrow.interval[0] <= 0.02
    assert narrow.gap == sb.certify(net, row).gap  # no branch and bound without seconds


def test_the_certain_ends_hold_where_all_states_can_be_summed():
    for seed in range(8):
        net, row, exact, rounding = small(seed)
        found = sb.certify(net, row[-5:], gap=0.3, settings=sb.solvers.CertifySettings(exact_up_to=0))
        assert found.lower - rounding <= exact <= found.upper + rounding
        assert found.gap <= 0.3 + 2.0 * rounding
        assert sb.certify(net, row[-5:], gap=0.3).exact


def test_causes_with_findings_have_subproblems_of_their_own():
    rng = np.random.default_rng(0)
    causes = {(f"d{k}", f"f{i}"): float(rng.uniform(0.1, 0.9)) for k in range(20) for i in range(13)}
    leak = {f"f{i}": 0.01 for i in range(13)}
    net = sb.noisy_or(causes=causes, leak=leak, prior={f"d{k}": 0.05 for k in range(20)})
    present = {f"f{i}": 1 for i in range(13)}
    wide, exact = (
        sb.certify(net, present, settings=sb.solvers.CertifySettings(exact_up_to=0)),
        sb.log_likelihood(net, present, limit=20),
    )
    found = sb.certify(net, present, gap=0.5 * wide.gap, settings=sb.solvers.CertifySettings(exact_up_to=0))
    assert found.gap <= 0.5 * wide.gap
    assert found.lower <= exact <= found.upper


@pytest.mark.small
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seconds": 0.0}, "seconds is 0.0; it must be positive and finite"),
        ({"gap": -1.0}, "gap is -1.0; it must be positive and finite"),
        ({"seconds": 1.0, "proven": True}, "proven=True evaluates subproblem by subproblem .* choose an effort"),
        ({"gap": 1.0, "proven": True}, "proven=True evaluates subproblem by subproblem"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, message):
    pytest.importorskip("flint")
    with pytest.raises(sb.errors.ParameterError, match=message):
        sb.certify(sb.layered((2, 3), rng=0), [0, 1, 0], **options)


# --- the descent that is compiled -----------------------------------------------------------------------------------


@pytest.mark.parametrize("table_up_to", [0, 3])
def test_the_compiled_descent_finds_the_minimum_that_scipy_finds(table_up_to):
    net, row = dense()
    states = sb.questions.evidence.coerce(net, row)[0][0]
    problem, bias = reduce(net.model, states), absorb(net, states[None, :])[0]
    regions = divide(problem, net.model, states, bias, np.ones(len(problem.hidden), np.bool_), table_up_to)
    x = start(regions, Parameters(np.full(net.n_edges, np.nan), np.full((net.n_units, 2), np.nan)))
    free, positive = free_places(regions)
    trial, some = x.copy(), x[free]

    def value(numbers, slopes):
        trial[free] = numbers
        found, gradient = evaluate(regions, trial)
        slopes[:] = gradient[free]
        return found

    with OneThread():
        lowest = by_scipy(value, some, 1000, 1e-12)
    values = [descend(regions, x.copy(), free, positive, steps, 1e-9)[0] for steps in (0, 1, 25, 1000)]
    assert np.all(np.diff(values) <= 0.0)
    assert values[-1] == pytest.approx(lowest, abs=0.02)


def test_linear_algebra_has_its_threads_again_when_the_last_has_left():
    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before, inner = threads(), OneThread()
    with OneThread():
        assert set(threads()) == {1}
        inner.__enter__()
    assert set(threads()) == {1}
    inner.__exit__()
    assert threads() == before
