"""Rounding: no end that is called certain is on the wrong side of ln P(evidence), not even by its last bit.

The truth comes from 80 bits and, where they cannot tell, from sixty decimals. Nothing here has a tolerance.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exact_arithmetic
import hostile
import sbnet as sb
from sbnet.bounds import margins, proven
from strategies import LOG_TERMS, cases

pytestmark = [
    pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning"),  # huge weights crawl; bounds hold all along
    pytest.mark.skipif(exact_arithmetic.EPS > 1e-18, reason="no 80-bit numbers on this machine"),
]
some = settings(max_examples=60)
CASES = 100_000


def lower_bounds(network, rows) -> Iterator[tuple[str, np.ndarray]]:
    """Mean field bounds with all logarithm terms, sums over states among them in every other network."""
    for name in LOG_TERMS:
        solver = sb.MeanField(log_term=name, enumerate_up_to=4 * (network.n_edges % 2))
        yield f"mean field, {name}", sb.infer_many(network, rows, solver=solver).bound


def more_lower_bounds(network, rows) -> Iterator[tuple[str, np.ndarray]]:
    paper, few = sb.MeanField(log_term="xi"), sb.MeanField(enumerate_up_to=4 * (network.n_edges % 2))
    for solver in (sb.Conditioned(2), sb.Conditioned("roots", paper), sb.Mixture(2), sb.Structured(solver=few)):
        yield type(solver).__name__, sb.infer_many(network, rows, solver=solver).bound


def upper_bounds(network, rows) -> Iterator[tuple[str, np.ndarray]]:
    yield "upper bound, lines", sb.upper_bound(network, rows, exact_up_to=0, table_up_to=0).bound
    yield "upper bound, tables", sb.upper_bound(network, rows, exact_up_to=0, condition=1).bound


def certificates(network, rows, **options) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    found = sb.certify(network, rows, **options)
    assert np.all(found.lower <= found.upper)
    assert np.all((found.lower <= found.estimate) & (found.estimate <= found.upper))
    yield "certify", found.lower, found.upper


@dataclass
class Count:
    """How many bounds were looked at, and by how much the worst of each kind was on the wrong side."""

    bounds: dict[str, int] = field(default_factory=dict)
    worst: dict[str, float] = field(default_factory=dict)

    def add(self, kind: str, excess: float) -> None:
        assert not math.isnan(excess), kind
        self.bounds[kind] = self.bounds.get(kind, 0) + 1
        self.worst[kind] = max(self.worst.get(kind, -math.inf), excess)

    def __str__(self) -> str:
        return "; ".join(
            f"{kind}: {n:,} bounds, worst excess {self.worst[kind] + 0.0:.2g}" for kind, n in self.bounds.items()
        )


def check(count: Count, network, rows, lower=(), upper=(), both=()) -> None:
    """Hold bounds against the truth."""
    joint = exact_arithmetic.Joint(network)
    truths = [joint.truth(row) for row in rows]
    for kind, bounds in lower:
        for truth, bound in zip(truths, bounds, strict=True):
            count.add(kind, truth.excess(bound))
    for kind, bounds in upper:
        for truth, bound in zip(truths, bounds, strict=True):
            count.add(kind, truth.shortfall(bound))
    for kind, low, high in both:
        for truth, one, other in zip(truths, low, high, strict=True):
            count.add(kind, max(truth.excess(one), truth.shortfall(other)))


def check_intervals(count: Count, network, row, **options) -> None:
    J, h = network.weight_matrix(), network.bias
    kind = "intervals, proven" if options.get("proven") else "intervals"
    for name, (low, high) in sb.posterior_intervals(network, row, **options).items():
        assert 0.0 <= low <= high <= 1.0
        assert low < 1.0 or not np.isnan(row[network.index(name)])
        p = exact_arithmetic.posterior(J, h, row, network.index(name), network.gate)
        count.add(kind, exact_arithmetic.outside(low, p, high))


# --- every end ------------------------------------------------------------------------------------------------------


def test_large_weights_move_the_sums_and_not_the_logarithm():
    network = sb.from_edges(
        {("a", "b"): 91761.0, ("a", "y"): -58131.5, ("b", "y"): 68165.7}, bias={"a": -0.2, "b": -0.1, "y": -1.7}
    )
    count, row = Count(), [np.nan, np.nan, 1.0]
    check_intervals(count, network, row)
    check(
        count, network, [row], lower_bounds(network, [row]), upper_bounds(network, [row]), certificates(network, [row])
    )
    assert max(count.worst.values()) <= 0.0, count


@some
@given(seed=st.integers(0, 2**32))
def test_no_end_is_on_the_wrong_side(seed):
    network = hostile.network(seed)
    rows, count = hostile.rows(network, seed, 2), Count()
    check(count, network, rows, lower_bounds(network, rows), upper_bounds(network, rows), certificates(network, rows))
    check(count, network, rows[:1], more_lower_bounds(network, rows[:1]))
    check_intervals(count, network, rows[0])
    assert max(count.worst.values()) <= 0.0, count


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32))
def test_nor_with_noisy_or_units(seed):
    network = hostile.mixed(seed)
    rows, count = hostile.rows(network, seed, 2), Count()
    check(count, network, rows, lower_bounds(network, rows), upper_bounds(network, rows), certificates(network, rows))
    check(count, network, rows[:1], more_lower_bounds(network, rows[:1]))
    check(count, network, rows[:1], both=[("certify, proven", *np.transpose(proven_ends(network, rows[:1])))])
    check_intervals(count, network, rows[0])
    assert max(count.worst.values()) <= 0.0, count


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32))
@pytest.mark.usefixtures("bounded")
def test_nor_where_nothing_is_summed(seed):
    network = hostile.network(seed, most=6)
    rows, count = hostile.rows(network, seed, 1), Count()
    check(count, network, rows, both=certificates(network, rows, effort="normal"))
    check_intervals(count, network, rows[0])
    assert max(count.worst.values()) <= 0.0, count


@pytest.mark.parametrize("scale", [0.5, 30.0, 1e4, 1e8])
def test_nor_with_more_parents_than_are_enumerated(scale):
    """Too many states for decimals: the truth is between the bounds of a ball."""
    network = sb.layered((6, 2, 6), rng=0, scale=scale, autoregressive=True)
    rows = np.where(np.arange(14) < 8, np.nan, sb.sample(network, 2, rng=0))
    rows[1, 8:] = 1 - rows[0, 8:]
    truths = [proven.upper.enclosed(network, row) for row in sb.questions.evidence.coerce(network, rows)[0]]
    low, high = np.transpose(truths)
    for kind, bounds in [*lower_bounds(network, rows), *more_lower_bounds(network, rows)]:
        assert np.all(bounds <= low), kind
    for kind, bounds in upper_bounds(network, rows):
        assert np.all(bounds >= high), kind
    certificate = sb.certify(network, rows)
    assert np.all((certificate.lower < low) & (high < certificate.upper) | (certificate.upper == 0.0))


@some
@given(case=cases(max_weight=3.0, scales=("zero", "tame", "strong")))
def test_ordinary_networks_keep_twelve_digits(case):
    network, row = case
    exact = sb.log_likelihood(network, row)
    certificate = sb.certify(network, row)
    size = 2 * network.n_units + np.abs(network.weight).sum() + np.abs(network.bias).sum()
    assert certificate.upper - certificate.lower <= 5e-13 * size
    assert certificate.lower <= exact <= certificate.upper
    everything, paper = np.zeros((1, network.n_units), np.int8), sb.MeanField("xi").bound
    margin = margins.of_mean_field(network, paper, everything)
    assert 0.0 < margin[0] <= 2e-14 * size


def test_units_that_are_not_involved_do_not_count():
    """A weight of 1e8 elsewhere must not cost seven digits here."""
    edges = {("a", "b"): 1.0, ("far", "away"): 1e8, ("a", "barren"): 1e8}
    network = sb.from_edges(edges, bias={"a": 0.5})
    exact = sb.log_likelihood(network, {"b": 1})
    for end in (
        sb.infer(network, {"b": 1}).bound,
        sb.infer(network, {"b": 1}, solver=sb.Mixture(2)).bound,
        sb.upper_bound(network, {"b": 1}).bound,
        sb.certify(network, {"b": 1}).lower,
    ):
        assert end == pytest.approx(exact, abs=0.05 if end < exact - 1e-9 else 1e-12)
    low, high = sb.posterior_intervals(network, {"b": 1}, units=["a"])["a"]
    assert high - low < 1e-12
    wide = sb.certify(network, {"b": 1, "away": 1})
    assert 1e-9 < wide.gap < 1e-5


@pytest.mark.small
def test_without_evidence_nothing_is_taken_off(sprinkler):
    certificate = sb.certify(sprinkler, {})
    assert certificate.lower == certificate.upper == certificate.estimate == 0.0
    assert sb.infer(sprinkler, {}).bound == sb.upper_bound(sprinkler, {}).bound == 0.0


@pytest.mark.small
def test_sums_of_many_bounds_are_rounded_outwards():
    values = np.random.default_rng(0).uniform(-1e8, -1e8 + 30, 1000)
    exact = sum((Decimal(v) - Decimal(values.max())).exp() for v in values.tolist()).ln() + Decimal(values.max())
    assert Decimal(margins.log_sum_below(values)) < exact < Decimal(margins.log_sum_above(values))


# --- tails and balls ------------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("proven", [False, True])
@pytest.mark.parametrize("bias", [-700.0, -720.0, -744.0, -745.2, -800.0, -1e8, 40.0, 800.0])
def test_tails_are_rounded_outwards_through_denormal_numbers(bias, proven):
    network = sb.from_edges({("a", "b"): 0.5}, bias={"a": bias})
    low, high = sb.posterior_intervals(network, {"b": 1}, units="a", proven=proven)["a"]
    p = exact_arithmetic.posterior(network.weight_matrix(), network.bias, [np.nan, 1.0], 0)
    assert Decimal(low) < p < Decimal(high) or (high == 1.0 and Decimal(low) < p)
    assert high > 0.0
    assert low < 1.0
    if bias < -745.2:
        assert (low, high) == (0.0, 5e-324)


@pytest.fixture
def often():
    """Threads take turns every ten microseconds, so that they meet inside one another's sums."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def proven_ends(network, rows):
    return [(one.lower, one.upper) for one in sb.certify(network, rows, proven=True)]


@pytest.mark.usefixtures("often")
def test_threads_share_the_context_of_flint_in_turn():
    flint = pytest.importorskip("flint")
    network = sb.layered((3, 5, 6), rng=0, scale=2.0)
    rows = sb.sample(network, 4, rng=0)[:, -6:]
    alone, found, seen = proven_ends(network, rows), [None] * 4, []

    def work(k):
        found[k] = proven_ends(network, rows)

    with flint.ctx.workprec(77):
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seen.append(flint.ctx.prec)
    assert found == [alone] * 4
    assert seen == [77]


@pytest.mark.parametrize("precision", [10, 300])
def test_a_users_precision_neither_matters_nor_changes(precision):
    flint = pytest.importorskip("flint")
    network = sb.layered((2, 4, 6), rng=0, scale=2.0)
    rows = sb.sample(network, 2, rng=0)[:, -6:]
    expected = proven_ends(network, rows)
    with flint.ctx.workprec(precision):
        assert proven_ends(network, rows) == expected
        assert flint.ctx.prec == precision
        with pytest.raises(ZeroDivisionError), proven.balls():
            raise ZeroDivisionError
        assert flint.ctx.prec == precision
        with proven.balls():
            flint.ctx.prec = 200  # somebody else, in another thread
        assert flint.ctx.prec == 200


# --- a release ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_hundred_thousand_hostile_cases():
    """A case is a network and a pattern; all have the four mean field bounds, and some all other bounds as well."""
    count, each, n_cases = Count(), 50, 0
    for seed in range(CASES // each):
        network = hostile.network(seed)
        rows = hostile.rows(network, seed, each)
        check(count, network, rows, lower_bounds(network, rows))
        check(count, network, rows[:10], both=certificates(network, rows[:10]))
        few = rows[:2]
        check(count, network, few, more_lower_bounds(network, few), upper_bounds(network, few))
        check_intervals(count, network, rows[seed % each])
        if seed % 20 == 0:
            check(count, network, few, both=[("certify, proven", *np.transpose(proven_ends(network, few)))])
            check_intervals(count, network, rows[0], proven=True)
        n_cases += len(rows)
    print(f"\nrounding: {n_cases:,} hostile cases; {count}")
    assert n_cases >= CASES
    assert max(count.worst.values()) <= 0.0


@pytest.mark.slow
def test_ten_thousand_hostile_cases_with_noisy_or_units():
    count, each, n_cases = Count(), 20, 0
    for seed in range(500):
        network = hostile.mixed(seed)
        rows = hostile.rows(network, seed, each)
        check(count, network, rows, lower_bounds(network, rows), both=certificates(network, rows))
        few = rows[:2]
        check(count, network, few, more_lower_bounds(network, few), upper_bounds(network, few))
        check_intervals(count, network, rows[seed % each])
        if seed % 10 == 0:
            check(count, network, few, both=[("certify, proven", *np.transpose(proven_ends(network, few)))])
        n_cases += len(rows)
    print(f"\nrounding, noisy-OR variables: {n_cases:,} hostile cases; {count}")
    assert max(count.worst.values()) <= 0.0


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 40))
@settings(max_examples=40)
def test_no_bit_of_a_row_depends_on_the_rows_beside_it(seed, n):
    """Where ln P is near zero a bound is as small as its margin, and shows the last bit of that."""
    rng = np.random.default_rng(seed)
    likely = rng.integers(0, 2, n)
    weight = np.tril(rng.normal(0, 1, (n, n)) * (rng.random((n, n)) < 0.5), -1)
    network = sb.from_weight_matrix(weight, bias=(2 * likely - 1) * rng.uniform(30.0, 90.0, n))
    rows = np.where(rng.random((12, n)) < rng.uniform(0.2, 0.9, (12, 1)), likely, np.nan)
    batch = sb.infer_many(network, rows, threads=1)
    alone = [sb.infer(network, row) for row in rows]
    assert np.array([one.bound for one in alone]).tobytes() == batch.bound.tobytes()
    assert np.array([one.means for one in alone]).tobytes() == batch.means.tobytes()
    some_rows = rng.choice(12, rng.integers(1, 9), replace=False)
    part = sb.infer_many(network, rows[some_rows], threads=1)
    assert part.bound.tobytes() == batch.bound[some_rows].tobytes()
    assert part.means.tobytes() == batch.means[some_rows].tobytes()
