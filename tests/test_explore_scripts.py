"""The solver in the page against the library, on the same networks: the same bounds, means and rankings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sbnet as sb
from javascript import started
from sbnet.datasets import make_clinic
from sbnet.inference.solvers.enumeration import Sums
from strategies import cases, mixed_cases

FEWER = settings(max_examples=min(40, settings.default.max_examples))  # each is also solved by the library, four times
PAPER = sb.MeanField(log_term="xi", tol=1e-12, max_sweeps=5000)


@pytest.fixture(scope="module")
def node():
    with started() as process:
        yield process


def settled(network, row):
    """Has mean field theory one answer here, from wherever it starts? Else two solvers may climb two hills."""
    point = np.random.default_rng(0).random((2, network.n_units))
    found = [sb.infer(network, row, solver=PAPER, start=start) for start in point]
    ends = [sb.infer(network, row, solver=PAPER), *found]
    return all(end.converged for end in ends) and np.ptp([end.means for end in ends], axis=0).max() < 1e-6, ends[0]


def agree(found, posterior, atol):
    assert found["bound"] == pytest.approx(posterior.bound, abs=1e-6 * (1 + abs(posterior.bound)))
    np.testing.assert_allclose(found["means"], posterior.means, atol=atol)


@pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning")
@FEWER
@given(cases(max_weight=5.0, scales=("zero", "tame", "strong")))
def test_mean_field_ends_at_the_same_point_with_the_same_bound(node, case):
    network, row = case
    (found,) = node.ask("solve", network, [row])
    assert found["bound"] <= sb.log_likelihood(network, row) + 1e-9
    one_hill, posterior = settled(network, row)
    if one_hill:
        agree(found, posterior, 1e-4)


@pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning")
@FEWER
@given(mixed_cases(max_units=10, scales=("tame",)))
def test_mean_field_of_noisy_or_units_too(node, case):
    network, row = case
    (found,) = node.ask("solve", network, [row])
    assert found["bound"] <= sb.log_likelihood(network, row) + 1e-9
    one_hill, posterior = settled(network, row)
    if one_hill:
        agree(found, posterior, 1e-4)


@FEWER
@given(st.integers(0, 2**32))
def test_the_file_finds_the_same_evidence_impossible_as_the_library(node, seed):
    """Leaks of 0, links and priors of 0 and 1, in the order of the units; any evidence."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    causes = {
        (f"u{j}", f"u{i}"): float(rng.choice([1.0, 0.5])) for i in range(2, n) for j in range(i) if rng.random() < 0.5
    }
    assume(causes)
    effects = {effect for _, effect in causes}
    roots = {cause for cause, _ in causes} - effects
    leak = {name: float(rng.choice([0.0, 0.0, 0.3, 1.0])) for name in effects}
    network = sb.noisy_or(causes, leak=leak, prior={name: float(rng.choice([0.0, 0.5, 1.0])) for name in roots})
    rows = rng.choice([0.0, 1.0, np.nan], (300, network.n_units), p=[0.25, 0.25, 0.5])
    assert node.ask("impossible", network, rows) == (sb.infer_many(network, rows).bound == -np.inf).tolist()


@FEWER
@given(mixed_cases(max_units=10))
def test_sums_over_all_states_are_exact(node, case):
    network, row = case
    exact = sb.infer(network, row, solver=Sums())
    assume(not exact.impossible)  # the page says so before it sums
    (found,) = node.ask("exact", network, [row])
    assert found["exact"]
    assert found["bound"] == pytest.approx(exact.bound, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(found["means"], exact.means, atol=1e-6)


@FEWER
@given(cases())  # weights to 1000: nothing overflows, and every answer is a bound
def test_hostile_weights_give_finite_bounds(node, case):
    network, row = case
    (found,) = node.ask("solve", network, [row])
    assert found["bound"] <= sb.log_likelihood(network, row) + 1e-9 * (1 + np.abs(network.weight).sum())
    assert all(0.0 <= mean <= 1.0 for mean in found["means"])


def clinic_rows(net, n, present):
    """Patterns with findings of sampled patients, so many of them present, and twice as many that are not."""
    rows = np.full((n, net.n_units), np.nan)
    for row, states in zip(rows, sb.sample(net, n, rng=1), strict=True):
        finding = np.diff(net.graph.indptr) > 0
        there, absent = np.flatnonzero(finding & (states == 1)), np.flatnonzero(finding & (states == 0))
        row[there[:present]], row[absent[: 2 * present]] = 1, 0
    return rows


def test_many_parents_and_the_series_of_noisy_or_units(node):
    for net in (make_clinic(40, 120, rng=0), sb.layered((12, 30), rng=1, scale=0.7)):
        rows = clinic_rows(net, 4, 8)
        for row, found in zip(rows, node.ask("solve", net, rows), strict=True):
            agree(found, sb.infer(net, row, solver=PAPER), 1e-3)


def test_sums_over_findings(node):
    net = make_clinic(200, 600, rng=0)
    rows = clinic_rows(net, 5, 4)
    exact = sb.infer_many(net, rows, solver=Sums())
    for found, posterior in zip(node.ask("exact", net, rows), exact, strict=True):
        agree(found, posterior, 1e-5)


def unlikely(effect, leak):
    effects = {(f"cause {j}", f"finding {i}"): effect for j in range(18) for i in range(9)}
    net = sb.noisy_or(effects, leak=leak, prior=0.01)
    return net, [np.nan if name.startswith("cause") else 1.0 for name in net.names]


def test_findings_that_are_unlikely_together_are_summed_without_loss(node):
    net, row = unlikely(1e-6, 1e-9)  # all nine findings at once: one in 10^50
    (found,) = node.ask("exact", net, [row])
    exact = sb.infer(net, row, solver=Sums())
    assert found["bound"] == pytest.approx(exact.bound, abs=1e-9)
    np.testing.assert_allclose(found["means"], exact.means, rtol=1e-9)


def test_a_sum_that_is_too_small_for_its_digits_is_not_given(node):
    net, row = unlikely(1e-30, 1e-40)
    assert summed(net, row)  # by elimination, which loses no digit
    assert node.ask("exact", net, [row]) == [None]


def summed(net, row):
    """Does the library sum over all states here?"""
    try:
        sb.infer(net, row, solver=Sums())
    except sb.errors.TooManyHiddenError:
        return False
    return True


def patterns(net, present, absent):
    """Patterns with so many findings present, in every combination with so many that are not."""
    finding = np.flatnonzero(np.diff(net.graph.indptr) > 0)
    rows = np.full((len(present) * len(absent), net.n_units), np.nan)
    for row, (n, m) in zip(rows, [(n, m) for n in present for m in absent], strict=True):
        row[finding[:n]], row[finding[n : n + m]] = 1, 0
    return rows


@pytest.mark.parametrize(
    "net",
    [
        make_clinic(40, 60, rng=1),
        sb.layered((12, 20), rng=0),
        sb.layered((13, 20), rng=0),
        sb.layered((3, 10, 8), rng=2),
    ],
    ids=["clinic", "12 causes", "13 causes", "3 layers"],
)
def test_the_page_sums_where_the_library_does(node, net):
    rows = patterns(net, (0, 1, 4, 8, 11, 12, 13, 14), (0, 5))
    for found, row in zip(node.ask("exact", net, rows), rows, strict=True):
        assert found is None or summed(net, row)  # the library also eliminates variables


def test_absent_findings_couple_for_both_alike(node):
    """Two blocks of seven findings that are present, and one between them that is not."""
    effects = {(f"cause {b}{j}", f"finding {b}{i}"): 0.5 for b in "ab" for j in range(9) for i in range(7)}
    effects |= {("cause a0", "between"): 0.5, ("cause b0", "between"): 0.5}
    net = sb.noisy_or(effects, leak=0.01, prior=0.01)
    present = [1.0 if name.startswith("finding") else np.nan for name in net.names]
    absent = [0.0 if name == "between" else state for name, state in zip(net.names, present, strict=True)]
    assert [summed(net, row) for row in (present, absent)] == [True, True]  # the library eliminates variables
    assert [found is not None for found in node.ask("exact", net, [present, absent])] == [True, False]


def test_causes_without_observed_findings_are_exact_if_they_are_wanted(node):
    """Their parents depend on each other, given the finding: independent means give another number."""
    effects = {("a", "seen"): 0.9, ("b", "seen"): 0.9, ("a", "noisy"): 0.8, ("b", "noisy"): 0.8}
    net = sb.noisy_or(effects, leak=0.01, prior=0.2)
    edges = {("a", "seen"): 3.0, ("b", "seen"): 3.0, ("a", "sigmoid"): 4.0, ("b", "sigmoid"): 4.0}
    for one in (net, sb.from_edges(edges, bias=dict.fromkeys(("a", "b", "seen", "sigmoid"), -2.0))):
        row = [1.0 if name == "seen" else np.nan for name in one.names]
        cause = next(i for i, name in enumerate(one.names) if name in ("noisy", "sigmoid"))
        plain, wanted = (node.ask("exact", one, [row], wanted=units)[0]["means"][cause] for units in ([], [cause]))
        assert wanted == pytest.approx(sb.exact_posterior(one, {"seen": 1}).means[cause], abs=1e-12)
        assert abs(plain - wanted) > 1e-3


def ids(net):
    roots = np.diff(net.graph.indptr) == 0
    return {"causes": np.flatnonzero(roots).tolist(), "findings": np.flatnonzero(~roots).tolist()}


@pytest.mark.parametrize(("present", "solver"), [(2, Sums()), (30, PAPER)])
def test_questions_and_reasons_are_those_of_the_library(node, present, solver):
    net = make_clinic(30, 50, rng=3)
    row = np.full(net.n_units, np.nan)
    row[30 : 30 + present] = 1.0
    evidence = dict.fromkeys(net.names[30 : 30 + present], 1)
    (found,) = node.ask("questions", net, [row], ids=ids(net))
    expected = sb.next_question(net, evidence, tries=24, solver=None if present == 2 else solver)
    ours = {net.names[one["unit"]]: one for one in found}
    assert expected.exact == (present == 2)
    assert set(ours) == set(expected.names)
    for one in expected:
        assert ours[one.name]["information"] == pytest.approx(one.information, abs=1e-5)
        assert ours[one.name]["probability"] == pytest.approx(one.probability, abs=1e-5)
    (nats,) = node.ask("reasons", net, [row], ids=ids(net), units=[4])
    for name, value in sb.contributions(net, evidence, about=[4], solver=solver)[net.names[4]].items():
        assert nats["4"][str(net.index(name))] == pytest.approx(value, abs=1e-3)


def test_of_many_questions_the_best_are_worked_out(node):
    net = make_clinic(30, 120, rng=3)
    row = np.full(net.n_units, np.nan)
    row[40] = 1.0
    (found,) = node.ask("questions", net, [row], ids=ids(net))
    expected = sb.next_question(net, {net.names[40]: 1}, tries=120)
    assert len(found) == 24
    assert [net.names[one["unit"]] for one in found[:10]] == list(expected.names[:10])
