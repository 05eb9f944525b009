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
from sbnet.decisions.sensitivity import _numbers
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
    numbers = {number.title: number for number in _numbers(network, list(network.names))}
    assert set(found.numbers) <= set(numbers)
    for title in rng.permutation(found.numbers)[:4].tolist():
        number, said = numbers[title], found[title]
        step = 1e-5 * min(number.value, number.top - number.value) if said.least == said.least else 1e-4
        if step <= 1e-9:
            continue
        low, high = (exact(number.changed(number.value + sign * step), row)[target] for sign in (-1, 1))
        assert said.derivative == pytest.approx((high - low) / (2 * step), abs=1e-4, rel=1e-4)
        if said.least == said.least:
            _check_range(number, said, row, columns)


def _check_range(number, said, row, columns):
    """Inside it the leader leads; beyond it, another one does."""

    def leads(theta):
        means = exact(number.changed(float(theta)), row)[columns]
        return means[leader] >= means.max() - 1e-9

    now = exact(number.changed(number.value), row)[columns]
    leader = int(np.argmax(now))
    assert 0.0 <= said.least <= number.value <= said.most <= number.top + 1e-12
    for inside in (0.01, 0.5, 0.99):
        assert leads(said.least + inside * (said.most - said.least))
    for end, step in ((said.least, -1e-3), (said.most, 1e-3)):
        if 0.0 < end + step < number.top and 1e-6 < end < number.top - 1e-6:
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
    assert "–" in repr(found)


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
