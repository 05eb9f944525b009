"""How answers move with the numbers of a network: against sums over all states, and differences of them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
import sbnet as sb
from sbnet import plots
from sbnet.cli import main
from sbnet.decisions.curves import with_family
from sbnet.decisions.numbers import numbers_of
from sbnet.errors import EvidenceError, ParameterError, SBNetError
from strategies import seeds, state_networks, states_of

EFFECTS = {("flu", "fever"): 0.9, ("cold", "fever"): 0.2, ("cold", "sneezing"): 0.8, ("flu", "aches"): 0.5}
PRIOR = {"flu": 0.05, "cold": 0.1}


def visit(effects=EFFECTS, leak=0.01, prior=PRIOR):
    return sb.noisy_or(effects, leak=leak, prior=prior)


def exact(network, row):
    """The probability of each column, by a sum over all joint states."""
    tables = {network.index(name): table for name, table in network.tables.items()}
    return oracle.exact_of_states(network.model, network.bias, row, tables=tables)[1]


@st.composite
def cases(draw):
    network = draw(state_networks(max_units=4, scales=("tame",), max_states=3))
    row, rng = draw(states_of(network)), np.random.default_rng(draw(seeds))
    roots = [i for i in range(network.n_units) if not network.parents(i) and row[i] < 0]
    if not roots or np.isnan(exact(network, row)).any():
        row[np.flatnonzero(np.diff(network.graph.indptr) == 0)[0]] = -1
        roots = [i for i in range(network.n_units) if not network.parents(i) and row[i] < 0]
    return network, row, int(rng.choice(roots)), rng


@given(cases())
def test_derivatives_and_ranges_are_those_of_sums_over_all_states(case):
    network, row, v, rng = case
    k = int(rng.integers(network.n_states[v] - 1))
    about = network.names[v], network.states[network.names[v]][k + 1]
    found = sb.sensitivity(network, row, about=about)
    target = network.columns_of(v).start + k
    assert found.answer == pytest.approx(exact(network, row)[target], abs=1e-9)
    columns = [c for i in range(network.n_units) if not network.parents(i) and row[i] < 0
               for c in range(network.columns_of(i).start, network.columns_of(i).stop)]  # fmt: skip
    numbers = {
        number.title: _Moved(network, number) for name in network.names for number in numbers_of(network.family(name))
    }
    assert set(found.numbers) <= set(numbers)
    for title in rng.permutation(found.numbers)[:4].tolist():
        number, said = numbers[title], found[title]
        weight = np.isnan(number.top)
        step = 1e-4 if weight else 1e-5 * min(number.value, number.top - number.value)
        if step <= 1e-9:
            continue
        low, high = (exact(number.changed(number.value + sign * step), row)[target] for sign in (-1, 1))
        assert said.derivative == pytest.approx((high - low) / (2 * step), abs=1e-4, rel=1e-4)
        _check_range(number, said, row, columns)


class _Moved:
    """A number, and the network at another value of it."""

    def __init__(self, network, number):
        self.network, self.value, self.top, self._changed = network, number.value, number.top, number.changed

    def changed(self, value):
        return with_family(self.network, self._changed(value))


def _check_range(number, said, row, columns):
    """Inside it the leader leads; beyond it, another one does."""

    def leads(theta):
        means = exact(number.changed(float(theta)), row)[columns]
        return means[leader] >= means.max() - 1e-9

    now = exact(number.changed(number.value), row)[columns]
    leader = int(np.argmax(now))
    low, high = (number.value - 30.0, number.value + 30.0) if np.isnan(number.top) else (0.0, number.top + 1e-12)
    least, most = max(said.least, low), min(said.most, high)  # weights go to infinity
    assert said.least <= number.value <= said.most
    assert np.isnan(number.top) or (said.least >= low and said.most <= high)
    for inside in (0.01, 0.5, 0.99):
        assert leads(least + inside * (most - least))
    for end, step in ((said.least, -1e-3), (said.most, 1e-3)):
        if low < end + step < high and low + 1e-6 < end < high - 1e-6:
            means = exact(number.changed(end + step), row)[columns]
            assert means[leader] <= means.max() + 1e-9
            if np.ptp(now) > 1e-6:
                assert not leads(end + step) or np.abs(np.delete(means, leader) - means[leader]).min() < 1e-5


def test_it_is_what_a_network_with_that_number_says():
    found = sb.sensitivity(visit(), {"fever": 1}, about="flu")
    odds = 0.9 / 0.1 / 2.0
    other = visit({**EFFECTS, ("flu", "fever"): odds / (1.0 + odds)})
    assert found["flu → fever"].halved == pytest.approx(sb.exact_posterior(other, {"fever": 1})["flu"])
    odds = 2.0 * 0.01 / 0.99
    other = visit(leak={"fever": odds / (1.0 + odds), "sneezing": 0.01, "aches": 0.01})
    assert found["leak of fever"].doubled == pytest.approx(sb.exact_posterior(other, {"fever": 1})["flu"])
    edge = found["prior of cold"].most
    even = sb.exact_posterior(visit(prior={"flu": 0.05, "cold": edge}), {"fever": 1})
    assert even["flu"] == pytest.approx(even["cold"], abs=1e-12)
    assert set(found.numbers) == {"prior of flu", "prior of cold", "leak of fever", "flu → fever", "cold → fever"}


def test_states_tables_and_weights_have_names_of_their_own():
    net = sb.noisy_or(
        {
            ("asthma", "wheeze"): {"mild": {"some": 0.3}, "severe": {"some": 0.2, "much": 0.6}},
            ("cold", "wheeze"): {"some": 0.1},
        },
        leak={"wheeze": {"some": 0.02}},
        prior={"asthma": {"mild": 0.1, "severe": 0.02}, "cold": 0.2},
        states={"asthma": ["none", "mild", "severe"], "wheeze": ["none", "some", "much"]},
    )
    found = sb.sensitivity(net, {"wheeze": "much"}, about=("asthma", "severe"))
    assert found.about == found.leader == "asthma = severe"
    assert found["asthma = severe → wheeze = much"].value == pytest.approx(0.6)
    assert found["leak of wheeze = some"].value == pytest.approx(0.02)
    assert found["prior of asthma = mild"].value == pytest.approx(0.1)
    lawn = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    found = sb.sensitivity(lawn, {"wet": 1}, about="rain", of="wet")
    assert set(found.numbers) == {"bias of wet", "weight rain → wet", "weight sprinkler → wet"}
    moved = sb.from_edges({("rain", "wet"): 2.0 + np.log(2.0), ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    assert found["weight rain → wet"].doubled == pytest.approx(sb.exact_posterior(moved, {"wet": 1})["rain"])
    assert "-∞ to ∞" in repr(found)  # the sprinkler leads whatever this weight is


def test_at_the_end_of_the_range_of_a_weight_two_causes_are_even():
    def lawn(weight):
        return sb.from_edges({("rain", "wet"): weight, ("sprinkler", "wet"): 1.5}, bias={"rain": -0.1, "wet": -1.0})

    found = sb.sensitivity(lawn(2.0), {"wet": 1})
    assert found.leader == "rain"
    least = found["weight rain → wet"].least
    assert 1.5 < least < 2.0
    even = sb.exact_posterior(lawn(least), {"wet": 1})
    assert even["rain"] == pytest.approx(even["sprinkler"], abs=1e-9)
    assert found["weight rain → wet"].most == np.inf


@pytest.mark.parametrize("state", ["dry", "damp", "wet"])
def test_derivatives_by_weights_are_those_of_differences(state):
    """Every weight and bias of a unit with three states, whatever it is observed as."""
    net = sb.from_edges(
        {("rain", "lawn"): np.array([[2.0], [0.5]]), ("sprinkler", "lawn"): np.array([[1.5], [-1.0]])},
        bias={"rain": -1.0, "lawn": np.array([0.3, -0.7])},
        states={"lawn": ["dry", "damp", "wet"]},
    )
    found = sb.sensitivity(net, {"lawn": state}, about="rain", of="lawn")
    assert len(found) == 6
    for number in numbers_of(net.family("lawn")):
        low, high = (
            sb.exact_posterior(with_family(net, number.changed(number.value + step)), {"lawn": state})["rain"]
            for step in (-1e-5, 1e-5)
        )
        assert found[number.title].derivative == pytest.approx((high - low) / 2e-5, abs=1e-8)


def test_many_parents_take_a_sum_for_each_link():
    """Beyond so many joint states of its parents a finding is not taken as a whole; the lines are the same."""
    links, prior = (
        {(f"c{k}", "finding"): 0.1 + 0.08 * k for k in range(9)},
        {f"c{k}": 0.05 + 0.01 * k for k in range(9)},
    )
    found = sb.sensitivity(visit(links, prior=prior), {"finding": 1}, of="finding")
    assert len(found) == 10
    odds = 2.0 * 0.26 / 0.74
    moved = {**links, ("c2", "finding"): odds / (1.0 + odds)}
    expected = sb.exact_posterior(visit(moved, prior=prior), {"finding": 1})[found.about]
    assert found["c2 → finding"].doubled == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("report", [(0.3, 0.9), {"no": 0.3, "yes": 0.9}])
def test_reports_of_a_cause_and_of_a_finding_count_in_their_families(report):
    evidence = {"flu": report, "fever": (0.2, 0.6), "sneezing": 1}
    found = sb.sensitivity(visit(), evidence, about="cold")
    for step, said in ((0.5, "halved"), (2.0, "doubled")):
        odds = step * 0.9 / 0.1
        moved = visit({**EFFECTS, ("flu", "fever"): odds / (1.0 + odds)})
        expected = sb.exact_posterior(moved, evidence)["cold"]
        assert getattr(found["flu → fever"], said) == pytest.approx(expected, abs=1e-12)
        odds = step * 0.05 / 0.95
        expected = sb.exact_posterior(visit(prior={"flu": odds / (1.0 + odds), "cold": 0.1}), evidence)["cold"]
        assert getattr(found["prior of flu"], said) == pytest.approx(expected, abs=1e-12)


def test_soft_evidence_counts():
    found = sb.sensitivity(visit(), {"fever": (0.2, 0.8)}, about="flu")
    assert found.answer == pytest.approx(sb.exact_posterior(visit(), {"fever": (0.2, 0.8)})["flu"])
    assert "flu → fever" in found.numbers


def test_what_it_refuses():
    with pytest.raises(EvidenceError, match="the cause is observed"):
        sb.sensitivity(visit(), {"flu": 1}, about="flu")
    with pytest.raises(SBNetError, match="'flu → fevre' is not one of the numbers; did you mean 'flu → fever'"):
        sb.sensitivity(visit(), {"fever": 1})["flu → fevre"]
    graded = sb.from_edges({("a", "b"): np.ones((1, 2))}, states={"a": ["x", "y", "z"]})
    with pytest.raises(ParameterError, match="'a' has 3 states; say which, as in about=\\('a', 'y'\\)"):
        sb.sensitivity(graded, {"b": 1}, about="a")


def test_the_command_and_the_picture_say_the_same(tmp_path, capsys):
    sb.write(visit(), tmp_path / "visit.toml")
    found = sb.sensitivity(visit(), {"fever": 1}, about="cold")
    words = ["sensitivity", str(tmp_path / "visit.toml"), "fever=yes", "--about", "cold"]
    assert main(words) == 0
    assert capsys.readouterr().out == f"{found}\n"
    assert main([*words, "--json", "--top", "1", "--of", "cold"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["numbers"]
    assert told["number"] == "prior of cold"
    assert told["derivative"] == pytest.approx(found["prior of cold"].derivative)
    assert main([*words[:-1], "fever=high"]) == 2
    ax = plots.tornado(found, n=2)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == list(found.numbers[:2])
    assert {round(bar.get_x() + bar.get_width(), 9) for bar in ax.patches} == {
        round(float(value), 9) for value in (*found.halved[:2], *found.doubled[:2])
    }
    with pytest.raises(ParameterError, match="draws what sensitivity"):
        plots.tornado(3)


def test_a_state_that_has_nothing_to_take_from_is_no_number():
    """A cause that always brings the second state: the probability of the third has nothing to grow at the cost of."""
    fever = {"fever": ["none", "mild", "high"]}
    causes = {("flu", "fever"): {"mild": 1.0}, ("cold", "fever"): {"mild": 0.3, "high": 0.7}}
    net = sb.noisy_or(causes, prior={"flu": 0.3, "cold": 0.2}, states=fever)
    found = sb.sensitivity(net, {"fever": "mild"}, about="flu")
    assert "flu → fever = mild" in found.numbers
    assert not {"flu → fever = high", "cold → fever = none"} & set(found.numbers)
    assert np.isfinite(found.derivative).all()


def test_a_cause_that_is_only_reported_may_be_asked_about():
    edges = {("flu", "fever"): 0.9, ("cold", "fever"): 0.2}
    evidence = {"flu": (1.0, 4.0), "fever": 1}
    net = sb.noisy_or(edges, leak=0.01, prior={"flu": 0.05, "cold": 0.1})
    found = sb.sensitivity(net, evidence, about="flu")
    assert found.answer == pytest.approx(sb.exact_posterior(net, evidence)["flu"])
    other = sb.noisy_or(edges, leak=0.01, prior={"flu": 0.05 + 1e-6, "cold": 0.1})
    slope = (sb.exact_posterior(other, evidence)["flu"] - found.answer) / 1e-6
    assert found["prior of flu"].derivative == pytest.approx(slope, rel=1e-4)
