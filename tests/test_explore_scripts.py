"""The solver in the page against the library, on the same networks: the same probabilities, reasons and questions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sbnet as sb
from javascript import started
from sbnet.datasets import make_clinic
from sbnet.explore import answers
from strategies import mixed_cases, state_networks, states_of

FEWER = settings(max_examples=min(40, settings.default.max_examples))


@pytest.fixture(scope="module")
def node():
    with started() as process:
        yield process


def known(network, row):
    """A row of numbers of states as the page has it, and as the library has it."""
    seen = {i: int(s) for i, s in enumerate(row) if s == s and s >= 0}
    return seen, {network.names[i]: network.states[network.names[i]][s] for i, s in seen.items()}


def agree(network, found, exact, atol=1e-9):
    assert found["logP"] == pytest.approx(exact.log_likelihood, rel=1e-9, abs=1e-9)
    for i in range(network.n_units):
        own = found["beliefs"][str(i)]
        assert math.fsum(own) == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(own[1:], exact.means[network.columns_of(i)], atol=atol)


@st.composite
def state_cases(draw):
    network = draw(state_networks())
    return network, draw(states_of(network))


@FEWER
@given(st.one_of(state_cases(), mixed_cases(max_units=10)))
def test_probabilities_are_exact_whatever_the_gates_and_the_states(node, case):
    network, row = case
    numbers, named = known(network, row)
    (found,) = node.ask("answer", network, [numbers], list(range(network.n_units)))
    exact = sb.exact_posterior(network, named)
    if exact.impossible:
        assert found["error"] == "Impossible"
    elif exact.log_likelihood < -590:
        assert found.get("error") in (None, "TooLarge", "Impossible")  # it may lack the digits, and says so
    else:
        agree(network, found, exact)


@FEWER
@given(st.integers(0, 2**32))
def test_the_file_finds_the_same_evidence_impossible_as_the_library(node, seed):
    """Leaks of 0, links and priors of 0 and 1, in the order of the variables; any evidence."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 8))
    causes = {
        (f"u{j}", f"u{i}"): float(rng.choice([1.0, 0.5]))
        for i in range(2, n)
        for j in range(i)
        if j == 0 or rng.random() < 0.5
    }
    effects = {effect for _, effect in causes}
    roots = {cause for cause, _ in causes} - effects
    leak = {name: float(rng.choice([0.0, 0.0, 0.3, 1.0])) for name in effects}
    network = sb.noisy_or(causes, leak=leak, prior={name: float(rng.choice([0.0, 0.5, 1.0])) for name in roots})
    rows = rng.choice([0.0, 1.0, np.nan], (100, network.n_units), p=[0.25, 0.25, 0.5])
    found = node.ask("answer", network, [known(network, row)[0] for row in rows], [])
    impossible = (sb.infer_many(network, rows).bound == -np.inf).tolist()
    assert [one.get("error") == "Impossible" for one in found] == impossible


def chain_of_max(rng):
    """Two levels of three-state noisy-MAX variables, and a table below."""
    states = {f"c{j}": ["none", "mild", "high"] for j in range(5)} | {
        f"f{i}": ["none", "mild", "high"] for i in range(4)
    }
    edges = {(f"c{j}", f"f{i}"): rng.uniform(0, 1.5, (2, 2)) for j in range(5) for i in range(4)}
    edges |= {("f0", "t"): None, ("f3", "t"): None}
    bias = {f"c{j}": [-1.0, -0.5] for j in range(5)} | {f"f{i}": [0.05, 0.02] for i in range(4)}
    tables = {"t": rng.dirichlet([1, 1, 1], (3, 3))}
    gate = {f"f{i}": "noisy-or" for i in range(4)}
    return sb.from_edges(edges, bias=bias, states=states | {"t": ["x", "y", "z"]}, gate=gate, tables=tables)


def test_accumulators_of_several_states_and_soft_evidence(node):
    rng = np.random.default_rng(0)
    network = chain_of_max(rng)
    i = {name: network.index(name) for name in network.names}
    rows = [
        ({}, {}),
        ({i["f0"]: 2, i["f1"]: 0}, {"f0": "high", "f1": "none"}),
        ({i["f0"]: 1, i["f1"]: 2, i["f2"]: 2, i["t"]: 2}, {"f0": "mild", "f1": "high", "f2": "high", "t": "z"}),
        ({i["f1"]: 2, i["t"]: [0.1, 0.0, 2.0]}, {"f1": "high", "t": [0.1, 0.0, 2.0]}),
        ({i["c0"]: [1.0, 0.3, 0.2], i["f3"]: 1}, {"c0": [1.0, 0.3, 0.2], "f3": "mild"}),
    ]
    found = node.ask("answer", network, [numbers for numbers, _ in rows], list(range(network.n_units)))
    for one, (_, named) in zip(found, rows, strict=True):
        agree(network, one, sb.exact_posterior(network, named))


def clinic_rows(net, n, present):
    """Findings of sampled patients, so many of them present, and twice as many that are not."""
    rows = []
    for states in sb.sample(net, n, rng=1):
        finding = np.diff(net.graph.indptr) > 0
        there, absent = np.flatnonzero(finding & (states == 1)), np.flatnonzero(finding & (states == 0))
        row = {int(i): 1 for i in there[:present]} | {int(i): 0 for i in absent[: 2 * present]}
        rows.append(row)
    return rows


@pytest.mark.parametrize("present", [1, 5, 12])
def test_many_causes_of_findings_that_are_present(node, present):
    net = make_clinic(200, 600, rng=0)
    rows, causes = clinic_rows(net, 3, present), list(range(200))
    exact = sb.exact_posterior(net, rows, units=causes)
    for k, found in enumerate(node.ask("answer", net, rows, causes)):
        assert found["logP"] == pytest.approx(exact.log_likelihood[k], abs=1e-9)
        np.testing.assert_allclose([found["beliefs"][str(i)][1] for i in causes], exact.means[k], atol=1e-12)


def unlikely(effect, leak):
    effects = {(f"cause {j}", f"finding {i}"): effect for j in range(18) for i in range(9)}
    net = sb.noisy_or(effects, leak=leak, prior=0.01)
    return net, {i: 1 for i, name in enumerate(net.names) if name.startswith("finding")}


@pytest.mark.parametrize(("effect", "leak"), [(1e-6, 1e-9), (1e-27, 1e-36)])
def test_findings_that_are_unlikely_together_are_summed_without_loss(node, effect, leak):
    net, row = unlikely(effect, leak)  # all nine findings at once: one in 10^50, or in 10^250
    causes = [i for i in range(net.n_units) if i not in row]
    (found,) = node.ask("answer", net, [row], causes)
    exact = sb.exact_posterior(net, row, units=causes)
    assert found["logP"] == pytest.approx(exact.log_likelihood, abs=1e-9)
    np.testing.assert_allclose([found["beliefs"][str(i)][1] for i in causes], exact.means, rtol=1e-9)


def test_a_sum_that_is_too_small_for_its_digits_is_not_given(node):
    net, row = unlikely(1e-30, 1e-40)
    (found,) = node.ask("answer", net, [row], [0])
    assert found["error"] == "TooLarge"
    assert "so unlikely together that the digits of an exact sum do not suffice" in found["message"]


def test_what_is_too_large_is_refused_with_a_way_out(node):
    net = sb.layered((30, 20), rng=0)
    (found,) = node.ask("answer", net, [{40: 1}], [0])
    assert found["error"] == "TooLarge"
    assert "an exact answer needs a table of 2^30 numbers" in found["message"]
    assert "sbnet explore, with a server, answers by bounds and estimates" in found["message"]


def test_variables_that_are_too_large_together_are_asked_one_by_one(node):
    net = make_clinic(60, 200, rng=0)
    units = list(range(60, 200))
    (found,) = node.ask("answer", net, [{60: 1, 61: 1}], units)
    exact = sb.exact_posterior(net, {60: 1, 61: 1}, units=units)
    np.testing.assert_allclose([found["beliefs"][str(i)][1] for i in units], exact.means, atol=1e-12)


CASES = {
    "states": (chain_of_max(np.random.default_rng(1)), {6: 2, 8: 1}),
    "soft": (chain_of_max(np.random.default_rng(1)), {6: 2, 9: [0.5, 0.2, 1.0]}),
    "clinic": (make_clinic(30, 50, rng=3), {30: 1, 31: 1, 35: 0}),
    "many": (make_clinic(30, 130, rng=3), {40: 1, 41: 0}),
}


@pytest.mark.parametrize(("network", "row"), CASES.values(), ids=CASES)
def test_questions_and_reasons_are_those_of_the_server(node, network, row):
    asked = {"evidence": {str(i): s for i, s in row.items()}}
    (found,) = node.ask("questions", network, [row])
    expected = answers.questions(network, asked)
    assert [one["unit"] for one in found[:8]] == [one["unit"] for one in expected[:8]]
    for one, ours in zip(expected, found, strict=True):
        assert ours["information"] == pytest.approx(one["information"], abs=1e-9)
        np.testing.assert_allclose(ours["chances"], one["chances"], atol=1e-9)
    about = [i for i in range(4) if i not in row]
    (nats,) = node.ask("reasons", network, [row], about)
    wanted = answers.reasons(network, asked | {"units": about})
    assert nats.keys() == wanted.keys()
    for unit, by_finding in wanted.items():
        for finding, values in by_finding.items():
            np.testing.assert_allclose(nats[unit][finding], values, atol=1e-9)


SINGLE = {
    "clinic": (make_clinic(30, 50, rng=3), {30: 1, 31: 1, 35: 0, 2: 0}),
    "one is known": (make_clinic(30, 50, rng=3), {30: 1, 4: 1}),
    "states": (chain_of_max(np.random.default_rng(1)), {6: 2, 8: 1}),
    "reports": (chain_of_max(np.random.default_rng(1)), {1: [1.0, 0.5, 0.2], 6: 2, 9: [0.5, 0.2, 1.0]}),
    "hidden between": (sb.layered((4, 3, 5), rng=2), {8: 1, 9: 0, 10: 1}),
    "no leak": (sb.noisy_or({("a", "x"): 0.5, ("b", "x"): 0.2, ("b", "y"): 0.3}, leak=0.0, prior=0.1), {2: 1, 3: 0}),
}


@pytest.mark.parametrize(("network", "row"), SINGLE.values(), ids=SINGLE)
def test_exactly_one_cause_is_that_of_the_library(node, network, row):
    (found,) = node.ask("single", network, [row])
    expected = answers.single(network, {"evidence": {str(i): s for i, s in row.items()}})
    for key in ("beliefs", "prior"):
        assert found[key].keys() == expected[key].keys()
        for cause, own in expected[key].items():
            np.testing.assert_allclose(found[key][cause], own, atol=1e-12)


def test_no_single_cause_or_two_are_said(node):
    network = sb.noisy_or({("a", "x"): 0.5, ("b", "y"): 0.3}, leak=0.0, prior=0.1)
    i = {name: network.index(name) for name in network.names}
    none, two = node.ask("single", network, [{i["x"]: 1, i["y"]: 1}, {i["a"]: 1, i["b"]: 1}])
    assert "no single cause explains these findings" in none["message"]
    assert "a and b are both known as present" in two["message"]
