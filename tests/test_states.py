"""Variables with states: the model, evidence and answers by the names of states, files. Two states are as ever."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

import oracle
import sbnet as sb
from sbnet.errors import EvidenceError, FileFormatError, NetworkError, ParameterError, TableError
from sbnet.files import own, tensors
from sbnet.inference import Solution, Status
from sbnet.model.states import MOST_STATES, find
from sbnet.questions.evidence import coerce, observed_means
from sbnet.questions.question import ask
from strategies import INTERPRETED, state_networks, states_of

pytestmark = pytest.mark.small

FEVER = ("none", "mild", "high")
CAUSES = {("flu", "fever"): {"mild": 0.3, "high": 0.6}, ("cold", "fever"): {"mild": 0.2}}


@pytest.fixture
def clinic():
    return sb.noisy_or(
        CAUSES | {("fever", "sweat"): {"mild": 0.2, "high": 0.7}},
        leak={"fever": {"mild": 0.01}},
        prior={"flu": 0.05, "cold": 0.2},
        states={"fever": FEVER},
    )


@pytest.fixture
def mixed():
    """A sigmoid variable of three states, a table of it and of another, and grades that are called by numbers."""
    return sb.from_edges(
        [("flu", "fever", [[2.0], [1.0]]), ("fever", "ill", None), ("flu", "ill", None), ("grade", "ill", None)],
        bias={"flu": -1.0, "fever": [0.5, -0.5], "grade": [0.1, 0.2]},
        states={"fever": FEVER, "grade": ["1", "2", "3"]},
        tables={"ill": np.random.default_rng(0).dirichlet(np.ones(2), (3, 2, 3))},
        names=["grade", "flu", "fever", "ill"],
    )


def by_number(network):
    return {network.index(name): table for name, table in network.tables.items()}


def everything(network):
    return np.array(list(itertools.product(*map(range, network.n_states))), np.int8)


# --- the model --------------------------------------------------------------------------------------------------------


def test_two_states_are_what_they_were():
    net = sb.from_edges({("rain", "wet"): 2.0}, bias={"rain": -1.0})
    assert net.states == {"rain": ("no", "yes"), "wet": ("no", "yes")}
    assert net.is_binary
    assert net.n_states.tolist() == [2, 2]
    assert (net.weight.tolist(), net.bias.tolist()) == ([2.0], [-1.0, 0.0])
    assert net == sb.from_edges({("rain", "wet"): 2.0}, bias={"rain": -1.0}, states={"wet": ["dry", "wet"]})
    assert net == sb.from_edges({("rain", "wet"): [[2.0]]}, bias={"rain": [-1.0]})
    assert "states" not in repr(net)


def test_arrays_of_thresholds_blocks_and_columns(mixed):
    assert mixed.names == ("grade", "flu", "fever", "ill")
    assert mixed.n_states.tolist() == [3, 2, 3, 2]
    assert mixed.bias.tolist() == [0.1, 0.2, -1.0, 0.5, -0.5, 0.0]  # a table has zeros
    assert mixed.weight.tolist() == [2.0, 1.0]
    assert mixed.model.block.tolist() == [0, 2, 2, 2, 2]
    assert mixed.model.threshold.tolist() == [0, 2, 3, 5, 6]
    assert [array.tolist() for array in mixed.columns] == [[0, 0, 1, 2, 2, 3], [1, 2, 1, 1, 2, 1]]
    assert mixed.columns_of("fever") == slice(3, 5)
    assert mixed.tables["ill"].shape == (3, 2, 3, 2)  # grade, flu, fever, ill: the order of the graph
    assert mixed.gate.tolist() == [0, 0, 0, 2]
    assert "2 to 3 states" in repr(mixed)
    assert "1 table" in repr(mixed)
    assert "<th style='text-align:left'>states</th>" in mixed._repr_html_()


def test_copies_are_equal_and_other_names_or_numbers_are_not(mixed):
    for same in (copy.deepcopy(mixed), pickle.loads(pickle.dumps(mixed)), mixed.with_parameters()):
        assert same == mixed
        assert hash(same) == hash(mixed)
        assert same.states == mixed.states
    again = sb.from_edges(
        mixed.edges(),
        bias={name: mixed.bias[mixed.columns_of(name)] for name in mixed.names if name not in mixed.tables},
        states=mixed.states,
        tables=mixed.tables,
        names=mixed.names,
    )
    assert again == mixed
    assert mixed.with_parameters(tables={"ill": np.full((3, 2, 3, 2), 0.5)}) != mixed
    assert mixed.with_parameters(bias={"fever": [0.0, 0.0]}) != mixed
    other = sb.from_edges({}, bias={"a": [0.0, 0.0]}, states={"a": ["x", "y", "z"]})
    assert other != sb.from_edges({}, bias={"a": [0.0, 0.0]}, states={"a": ["x", "y", "w"]})


def test_parameters_by_name(mixed):
    changed = mixed.with_parameters(weight={("flu", "fever"): [[3.0], [4.0]]}, bias={"fever": [1.0, 2.0], "flu": 0.5})
    assert changed.weight.tolist() == [3.0, 4.0]
    assert changed.bias.tolist() == [0.1, 0.2, 0.5, 1.0, 2.0, 0.0]
    assert mixed.with_parameters(weight=[1.0, 1.0]).weight.tolist() == [1.0, 1.0]


def test_a_part_of_a_network_has_its_parents_left_out_in_their_first_state(mixed):
    part = mixed.subnetwork(["flu", "ill"])
    assert part.tables["ill"].tolist() == mixed.tables["ill"][0, :, 0].tolist()
    assert mixed.subnetwork(["fever"]).bias.tolist() == [0.5, -0.5]
    assert mixed.subnetwork(["fever"]).states == {"fever": FEVER}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"states": {"fevr": FEVER}}, "states are given for 'fevr', which is not a variable; did you mean 'fever'?"),
        ({"states": ["a", "b"]}, r"states is \['a', 'b'\]; give names of states by variable"),
        ({"states": {"fever": "abc"}}, "the states of 'fever' is 'abc'; give a list of names"),
        ({"states": {"fever": ["a"]}}, "'fever' has 1 state; .* Give at least two names"),
        ({"states": {"fever": ["a", "b", "a"]}}, "two states of 'fever' are called 'a'"),
        ({"states": {"fever": ["a", ""]}}, "named by texts; '' is empty"),
        ({"states": {"fever": ["a", 1]}}, "named by texts; 1 is of type int"),
        ({"states": {"fever": list(map(str, range(128)))}}, "'fever' has 128 states; 127 are the limit$"),
        ({"states": {"fever": FEVER}}, r"the weight 'flu' -> 'fever' is 1.0, one number; .* array of shape \(2, 1\)"),
        ({"bias": {"fever": [1.0, 2.0]}}, r"the bias of 'fever' is \[1.0, 2.0\]; two states ask for one number"),
        ({"bias": {"fever": [1.0, [2.0]]}}, "the bias of 'fever' must be numbers: rows differ in length"),
        ({"tables": {"fever": [[1, 0], [0, 1]]}}, "has the weight 1.0, and 'fever' has a table, which says all"),
        ({"tables": {"x": [0.5, 0.4]}}, "the probabilities of 'x' sum to 0.9; they must sum to 1"),
        ({"tables": {"x": [1.5, -0.5]}}, r"P\(x = no\) is 1.5 in the table of 'x'; a probability lies between 0 and 1"),
        ({"tables": {"x": [np.nan, 0.5]}}, r"P\(x = no\) is nan"),
        ({"tables": {"x": [[0.5, 0.5]]}}, r"the table of 'x' has shape \(1, 2\); expected \(2,\): 'x' itself"),
        ({"tables": {"x": {"no": 0.5}}}, "the table of 'x' has nothing for x = yes; give all of its states"),
        ({"tables": {"x": {"no": 0.5, "yess": 0.5}}}, "'yess' is not a state of 'x'; did you mean 'yes'?"),
        ({"parents": {"fever": ["flu"]}}, "parents are given for 'fever', which has no table"),
        ({"gate": "table"}, "the gate of 'fever' is 'table', and it has none"),
        ({"tables": {"x": 0.5}, "bias": {"x": 1.0}}, "'x' has a bias and a table"),
    ],
)
def test_what_cannot_be_is_refused_by_name(options, message):
    with pytest.raises(NetworkError, match=message):
        sb.from_edges({("flu", "fever"): 1.0}, **options)


def test_noisy_or_weights_of_states_are_not_negative():
    with pytest.raises(NetworkError, match="the weight 'flu' -> 'fever' is -1.0; a noisy-OR variable takes"):
        sb.from_edges({("flu", "fever"): [[1.0], [-1.0]]}, states={"fever": FEVER}, gate="noisy-or")
    with pytest.raises(NetworkError, match="the leak of noisy-OR variable 'fever' is -2.0"):
        sb.from_edges({("flu", "fever"): [[1], [1]]}, bias={"fever": [0, -2]}, states={"fever": FEVER}, gate="noisy-or")
    with pytest.raises(NetworkError, match="the bias of 'fever' is inf"):
        sb.from_edges({}, bias={"fever": [0, np.inf]}, states={"fever": FEVER})


def test_what_knows_two_states_says_so(clinic, mixed):
    for call in (clinic.weight_matrix, clinic.sparse_weights, lambda: sb.add_column_mixtures(clinic)):
        with pytest.raises(NetworkError, match="variable 'fever' has 3 states, and .* for two states"):
            call()
    with pytest.raises(
        NetworkError, match="variable 'a' has a table, and a matrix of weights is for two states without"
    ):
        sb.from_edges({}, tables={"a": [0.5, 0.5]}).weight_matrix()
    for solver in (sb.Structured(), sb.Conditioned(1), sb.Mixture(2)):
        with pytest.raises(NetworkError, match="variable 'fever' has 3 states"):
            sb.infer(clinic, {"sweat": 1}, solver=solver)


def test_rows_of_tables_are_divided_by_their_sum_once():
    net = sb.from_edges({}, tables={"a": [0.3, 0.7 + 4e-10]})
    assert net.tables["a"].sum() == pytest.approx(1.0, abs=1e-15)
    assert pickle.loads(pickle.dumps(net)).tables["a"].tolist() == net.tables["a"].tolist()
    assert not net.tables["a"].flags.writeable


def test_tables_in_nested_mappings_and_with_axes_in_any_order(mixed):
    nested = {"none": {"no": 0.1, "yes": 0.2}, "mild": {"no": 0.3, "yes": 0.4}, "high": {"no": 0.5, "yes": [0.4, 0.6]}}
    net = sb.from_edges({}, tables={"ill": nested}, parents={"ill": ["fever", "flu"]}, states={"fever": FEVER},
                        names=["flu", "fever", "ill"])  # fmt: skip
    assert net.parents("ill") == ("flu", "fever")
    assert net.tables["ill"][1, 2].tolist() == [0.4, 0.6]
    assert net.tables["ill"][0, 1].tolist() == [0.7, 0.3]
    by_edges = sb.from_edges([("fever", "ill", None), ("flu", "ill", None)], tables={"ill": nested},
                             states={"fever": FEVER}, names=["flu", "fever", "ill"])  # fmt: skip
    assert by_edges == net


def test_networkx_and_back(mixed, clinic):
    for net in (mixed, clinic):
        assert sb.convert.from_networkx(sb.convert.to_networkx(net)) == net


def test_layers_with_states():
    net = sb.layered((2, 3), rng=0, states=FEVER)
    assert net.n_states.tolist() == [2, 2, 3, 3, 3]
    assert (len(net.weight), len(net.bias)) == (12, 8)
    some = sb.layered((2, 3), rng=0, states={"x1": FEVER}, gate="noisy-or")
    assert some.n_states.tolist() == [2, 2, 2, 3, 2]
    assert (some.weight >= 0.0).all()
    assert (sb.layered((2, 3), rng=0).weight == sb.layered((2, 3), rng=0, states={}).weight).all()


@given(state_networks())
@settings(max_examples=60)
def test_the_distribution_sums_to_one_and_is_that_of_the_oracle(network):
    S = everything(network)
    log_p = sb.log_joint(network, S)
    assert np.exp(log_p).sum() == pytest.approx(1.0, abs=1e-9)
    for r in np.random.default_rng(0).permutation(len(S))[:20]:
        if oracle.cannot_be_of_states(network.model, network.bias, S[r], by_number(network)):
            assert log_p[r] == -np.inf
        else:
            expected = oracle.log_joint_of_states(network.model, network.bias, S[r], by_number(network))
            assert log_p[r] == pytest.approx(expected, rel=1e-12, abs=1e-9)


@given(state_networks(scales=("tame",)), st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_samples_have_the_probabilities_of_states(network, seed):
    drawn, (variable, state) = sb.sample(network, 4000, rng=seed), network.columns
    _, exact = oracle.exact_of_states(network.model, network.bias, [-1] * network.n_units, tables=by_number(network))
    assert np.abs((drawn[:, variable] == state).mean(axis=0) - exact).max() < 0.05
    held = {network.names[0]: network.states[network.names[0]][-1]}
    assert (sb.sample(network, 5, rng=0, do=held)[:, 0] == network.n_states[0] - 1).all()


# --- probabilities ----------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_noisy_max_is_the_largest_of_independent_contributions(seed):
    rng = np.random.default_rng(seed)
    sizes = dict(zip("aby", rng.integers(2, 5, 3).tolist(), strict=True))
    states = {name: [f"{name}{k}" for k in range(n)] for name, n in sizes.items()}
    p = {u: np.vstack([np.eye(sizes["y"])[0], rng.dirichlet(np.ones(sizes["y"]), sizes[u] - 1)]) for u in "ab"}
    leak = rng.dirichlet(np.ones(sizes["y"]))

    def told(row):
        return dict(zip(states["y"], row, strict=True)) if sizes["y"] > 2 else row[1]

    causes = {}
    for u in "ab":
        rows = [told(row) for row in p[u][1:]]
        causes[u, "y"] = rows[0] if sizes[u] == 2 else dict(zip(states[u][1:], rows, strict=True))
    prior = {u: rng.dirichlet(np.ones(sizes[u])).tolist() if sizes[u] > 2 else 0.3 for u in "ab"}
    family = sb.noisy_or(causes, leak={"y": told(leak)}, prior=prior, states=states).family("y")
    sigmoid = sb.from_probabilities(causes, leak={"y": told(leak)}, prior=prior, states=states).family("y")
    for a, b in itertools.product(range(sizes["a"]), range(sizes["b"])):
        expected = np.zeros(sizes["y"])
        for x, y, z in itertools.product(range(sizes["y"]), repeat=3):
            expected[max(x, y, z)] += p["a"][a, x] * p["b"][b, y] * leak[z]
        assert family.distribution(np.array([[a, b]]))[0] == pytest.approx(expected, abs=1e-14)
        if not b:  # one cause alone, or none
            alone = p["a"][a] if a else leak
            assert sigmoid.distribution(np.array([[a, b]]))[0] == pytest.approx(alone, abs=1e-13)


def test_lists_and_mappings_of_states_say_the_same(clinic):
    lists = sb.noisy_or(
        {("flu", "fever"): [0.3, 0.6], ("cold", "fever"): [0.8, 0.2, 0.0], ("fever", "sweat"): [0.2, 0.7]},
        leak={"fever": [0.01, 0.0]},
        prior={"flu": 0.05, "cold": [0.8, 0.2]},
        states={"fever": FEVER},
    )
    assert lists.weight == pytest.approx(clinic.weight, abs=1e-15)
    assert lists.bias == pytest.approx(clinic.bias, abs=1e-15)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"causes": {("flu", "fever"): 0.3}}, r"causes\['flu', 'fever'\] is 0.3; give probabilities by state"),
        (
            {"causes": {("flu", "fever"): {"hi": 0.3}}},
            "names 'hi', which is not one of the states; did you mean 'high'",
        ),
        ({"causes": {("flu", "fever"): {"mild": 0.7, "high": 0.6}}}, "sum to 1.3; what is left to 1 is that of 'none'"),
        ({"causes": {("flu", "fever"): {"none": 0.1, "high": 0.6}}}, "sum to 0.7; they must sum to 1"),
        ({"causes": {("flu", "fever"): [0.1]}}, "give one for each of its states, none, mild and high, or for all but"),
        ({"causes": {("flu", "fever"): [0.1, 0.2]}, "leak": 0.1}, "leak is 0.1, one number, and 'fever' has 3 states"),
        ({"causes": {("fever", "flu"): 0.3}}, "give probabilities by the states mild and high of the cause"),
        (
            {"causes": {("fever", "flu"): {"none": 0.3}}},
            "names 'none', the first state of the cause, which has no effect",
        ),
    ],
)
def test_probabilities_that_fit_no_state_are_refused(options, message):
    prior = {"fever": [0.1, 0.2]} if ("fever", "flu") in options["causes"] else 0.1
    with pytest.raises(NetworkError, match=message):
        sb.noisy_or(**options, prior=prior, states={"fever": FEVER})
    with pytest.raises(ParameterError, match=r"causes\['flu', 'fever'\]\['mild'\] is 2; it must be a probability"):
        sb.noisy_or({("flu", "fever"): {"mild": 2}}, prior=0.1, states={"fever": FEVER})


def test_conditional_shows_a_distribution_for_each_state_of_the_parents(clinic, mixed):
    table = clinic.conditional("fever")
    assert np.asarray(table) == pytest.approx(
        np.array([[0.99, 0.01, 0], [0.792, 0.208, 0], [0.099, 0.301, 0.6], [0.0792, 0.3208, 0.6]])
    )
    assert repr(table).splitlines()[1].split() == ["none", "mild", "high"]
    assert list(table.to_frame().columns) == ["flu", "cold", *(f"P(fever = {state})" for state in FEVER)]
    sweat = clinic.conditional("sweat", [{"fever": "high"}, {"fever": "none"}])
    assert sweat.p == pytest.approx([0.7, 0.0])
    assert "fever = high  0.7000" in repr(sweat)
    assert np.asarray(sweat).shape == (2, 2)
    assert np.asarray(mixed.conditional("ill")).reshape(3, 2, 3, 2) == pytest.approx(mixed.tables["ill"])
    with pytest.raises(NetworkError, match="parent 'fever' is given as 'hig'; its states are .*; did you mean 'high'"):
        clinic.conditional("sweat", {"fever": "hig"})
    assert "<th>P(fever = mild)</th>" in table._repr_html_()


# --- evidence ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        ({"fever": "high"}, [[-1, -1, 2, -1]]),
        ({"fever": " HIGH ", "flu": "yes", "ill": True, "grade": 3}, [[2, 1, 2, 1]]),
        ({"grade": "2", "flu": False, "fever": None}, [[1, 0, -1, -1]]),
        ({2: "mild"}, [[-1, -1, 1, -1]]),
        ([{"fever": "mild"}, {"fever": np.nan, "ill": "no"}], [[-1, -1, 1, -1], [-1, -1, -1, 0]]),
        (pd.DataFrame({"fever": ["none", None], "grade": [1, 2]}), [[0, -1, 0, -1], [1, -1, -1, -1]]),
        (pd.DataFrame({"fever": pd.Categorical(["none", "high"])}), [[-1, -1, 0, -1], [-1, -1, 2, -1]]),
        (pd.Series({"fever": "high", "grade": 1.0}), [[0, -1, 2, -1]]),
        (np.array([[0, 1, 2, 1], [2, -1, -1, 0]]), [[0, 1, 2, 1], [2, -1, -1, 0]]),
        (np.array([[0.0, np.nan, 2.0, 1.0]]), [[0, -1, 2, 1]]),
        ([2, 1], [[-1, -1, 2, 1]]),
        ([[0, 1, None, 1]], [[0, 1, -1, 1]]),
        (np.array([[0, None, "high", 1]], dtype=object), [[0, -1, 2, 1]]),
        (pd.DataFrame([[0, 1, 2, 1]]), [[0, 1, 2, 1]]),
    ],
)
def test_evidence_names_states_and_arrays_number_them(mixed, evidence, expected):
    states, _ = coerce(mixed, evidence)
    assert states.dtype == np.int8
    assert states.tolist() == expected


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ({"fever": "hig"}, "variable 'fever' holds 'hig'; its states are none, mild and high; did you mean 'high'?"),
        ({"fever": 1}, "variable 'fever' holds 1; its states are none, mild and high"),
        ({"fever": True}, "variable 'fever' holds True; its states are"),
        ({"grade": 0}, "variable 'grade' holds 0; its states are 1, 2 and 3"),
        (
            pd.DataFrame({"fever": ["none", "so so"]}),
            r"column 0 \('fever'\) holds 'so so' in row 1; its states are none",
        ),
        (np.array([[0, 1, 3, 1]]), r"column 2 \('fever'\) holds 3 in row 0; .* in an array their numbers, 0 to 2"),
        ([0, 1, 1.5, 1], r"column 2 \('fever'\) holds 1.5"),
        ({"flu": "high"}, "variable 'flu' holds 'high'; variables are binary"),
    ],
)
def test_states_that_are_none_are_refused_with_the_nearest(mixed, evidence, message):
    with pytest.raises(TableError, match=message):
        coerce(mixed, evidence)


def test_states_that_are_called_as_missing_cells_are():
    net = sb.from_edges({}, bias={"mood": [0.0, 0.0], "x": 0.0}, states={"mood": ["-1", "NA", "1"]})
    assert coerce(net, {"mood": "-1"})[0].tolist() == [[0, -1]]
    assert coerce(net, {"mood": -1, "x": -1})[0].tolist() == [[0, -1]]
    assert coerce(net, pd.DataFrame({"mood": ["NA", "1", None], "x": [0, 1, -1]}))[0].tolist() == [
        [1, 0],
        [2, 1],
        [-1, -1],
    ]


def test_many_states_fit_into_evidence():
    net = sb.from_edges({}, bias={"a": np.zeros(MOST_STATES - 1)}, states={"a": [f"s{k}" for k in range(MOST_STATES)]})
    assert coerce(net, {"a": f"s{MOST_STATES - 1}"})[0].tolist() == [[MOST_STATES - 1]]
    assert coerce(net, [[MOST_STATES - 1]])[0].tolist() == [[MOST_STATES - 1]]


def test_words_for_two_states():
    net = sb.from_edges({("a", "b"): 1.0}, states={"b": ["absent", "present"]})
    for value in ("present", "Present", 1, True, "yes"):
        assert coerce(net, {"b": value})[0].tolist() == [[-1, 1]]
    with pytest.raises(TableError, match="its states are absent and present, or 0 and 1"):
        coerce(net, {"b": "presnt"})


def test_find_reads_names_before_numbers():
    assert [find(("1", "2"), value) for value in (1, "2", 2.0, 0, True)] == [0, 1, 1, None, 0]
    assert [find(("no", "yes"), value) for value in (1, 0, True, "YES", "1", 2)] == [1, 0, 1, 1, 1, None]
    assert find(("a", "A", "b"), "a") == 0
    assert find(("aa", "AA", "b"), "Aa") is None


# --- questions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ((0.1, 0.2), "a likelihood of the report for each of its 3 states, in their order or by name"),
        ((0, 0, 0), "finite, not negative and not all zero"),
        ((0.1, -1, 0), "finite, not negative and not all zero"),
        ({"mild": 0.2, "high": 0.3}, "has a likelihood for each of its states, none, mild and high, zero for those"),
        ({"none": 0, "mild": 0.2, "hih": 0.3}, "did you mean 'high'"),
    ],
)
def test_soft_evidence_has_a_likelihood_for_each_state(clinic, report, message):
    with pytest.raises(EvidenceError, match=message):
        ask(clinic, {"fever": report}, None)


def test_a_report_with_one_likelihood_is_certain(clinic):
    question = ask(clinic, {"fever": {"none": 0, "mild": 0, "high": 2.0}}, None)
    assert question.states.tolist() == [[-1, -1, 2, -1]]
    assert question.conditions.constant.tolist() == [np.log(2.0)]


@given(state_networks(max_units=4), st.data())
@settings(max_examples=60, deadline=None)
def test_questions_are_answered_as_by_a_sum_over_all_joint_states(network, data):
    n, rng = network.n_units, np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    kind = rng.integers(0, 4, n)  # free, observed, reported on, held
    states = rng.integers(0, network.n_states)
    reports = {
        v: rng.choice([0.0, 0.1, 0.5, 1.0, 7.0], network.n_states[v]) for v in np.flatnonzero(kind == 2).tolist()
    }
    reports = {v: np.where(report.sum() == 0.0, 1.0, report) for v, report in reports.items()}
    do = {network.names[v]: network.states[network.names[v]][states[v]] for v in np.flatnonzero(kind == 3)}
    evidence = {network.names[v]: network.states[network.names[v]][states[v]] for v in np.flatnonzero(kind == 1)}
    evidence |= {network.names[v]: tuple(report) for v, report in reports.items()}
    seen, held = np.where(kind == 1, states, -1), np.where(kind == 3, states, -1)
    full = by_number(network) | {v: np.ones_like(t) for v, t in by_number(network).items() if held[v] >= 0}
    S, log_p = oracle.weights_of_states(network.model, network.bias, seen, held, reports, full)
    bias = np.where(_held(network, held), 1.0, network.bias)
    possible = np.array([not oracle.cannot_be_of_states(network.model, bias, s, full) for s in S])
    possible &= log_p > -np.inf
    assume(np.any(possible))
    exact = sb.exact_posterior(network, evidence, do=do)
    scale = 1e-11 * (1.0 + np.abs(network.bias).sum() + np.abs(network.weight).sum())
    assert exact.log_likelihood == pytest.approx(logsumexp(log_p[possible]), abs=scale)
    p = np.exp(log_p[possible] - logsumexp(log_p[possible]))
    for v, name in enumerate(network.names):
        expected = np.bincount(S[possible][:, v], p, network.n_states[v])
        answer = exact[name]
        found = [1.0 - answer, answer] if isinstance(answer, float) else list(answer.values())
        assert found == pytest.approx(expected, abs=1e-8)


@given(state_networks(max_units=4), st.data())
@settings(max_examples=40, deadline=None)
def test_the_most_probable_state_is_the_best_of_all(network, data):
    row, rng = data.draw(states_of(network)), np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    held = np.where((row < 0) & (rng.random(network.n_units) < 0.2), 0, -1)
    do = {name: network.states[name][0] for name, state in zip(network.names, held, strict=True) if state >= 0}
    full = by_number(network) | {v: np.ones_like(t) for v, t in by_number(network).items() if held[v] >= 0}
    S, log_p = oracle.weights_of_states(network.model, network.bias, row, held, tables=full)
    bias = np.where(_held(network, held), 1.0, network.bias)
    possible = np.array([not oracle.cannot_be_of_states(network.model, bias, s, full) for s in S])
    assume(possible.any())
    best = sb.most_probable(network, row, do=do)
    scale = 1e-11 * (1.0 + np.abs(network.bias).sum() + np.abs(network.weight).sum())
    assert best.log_p == pytest.approx(log_p[possible].max(), abs=scale)
    assert best.upper >= log_p[possible].max()
    assert ((best.state == row) | (row < 0)).all()
    found = sb.most_probable(network, row, do=do, limit=0)  # uphill, where something is left to choose
    assert found.log_p <= log_p[possible].max() + scale
    assert found.upper >= log_p[possible].max()
    assert ((found.state == row) | (row < 0)).all()


@pytest.mark.skipif(INTERPRETED, reason="hundreds of ascents")
@pytest.mark.parametrize("seed", range(4))
def test_where_elimination_is_too_large_a_good_state_is_found_uphill(seed):
    names = sb.layered((3, 5, 6)).names
    network = sb.layered((3, 5, 6), rng=seed, scale=2.0, states=dict.fromkeys(names, ("low", "mid", "high")))
    row = np.r_[np.full(8, -1), sb.sample(network, 1, rng=seed)[0, 8:]].astype(np.int8)
    best, found = sb.most_probable(network, row), sb.most_probable(network, row, limit=2)
    assert best.exact
    assert not found.exact
    assert found.log_p == pytest.approx(best.log_p, abs=1e-9)
    assert found.upper >= best.log_p
    assert repr(found).startswith("Best state found: ln P = ")
    again = sb.most_probable(network, row, limit=2)
    assert np.array_equal(found.state, again.state)


def _held(network, held):
    """Thresholds of variables that are held: what they say by themselves does not count."""
    return (held >= 0)[network.columns[0]] & (network.gate == 1)[network.columns[0]]


@given(state_networks(max_units=4), st.data())
@settings(max_examples=60, deadline=None)
def test_what_is_called_impossible_has_the_probability_zero(network, data):
    row = data.draw(states_of(network))
    S = oracle.joint_states(network.model, row)
    zero = all(oracle.cannot_be_of_states(network.model, network.bias, s, by_number(network)) for s in S)
    found = bool(ask(network, row, None).impossible[0])
    assert zero if found else True
    assert found == zero if (row >= 0).all() else True


def test_impossible_evidence_is_named(clinic, mixed):
    exact = sb.exact_posterior(clinic, {"fever": "high", "flu": 0})
    assert exact.log_likelihood == -np.inf
    assert np.isnan(exact["cold"])
    assert exact["fever"] == {"none": 0.0, "mild": 0.0, "high": 1.0}
    assert "'fever' cannot be high, given the rest of it" in repr(exact)
    assert sb.log_likelihood(clinic, {"fever": (0, 0, 1), "flu": "no"}) == -np.inf
    assert sb.log_likelihood(clinic, {"fever": {"none": 1, "mild": 0, "high": 1}, "sweat": 1, "flu": 0}) == -np.inf
    table = mixed.tables["ill"].copy()
    table[..., 2, :] = [0.0, 1.0]
    sure = mixed.with_parameters(tables={"ill": table})
    assert ask(sure, {"fever": "high", "ill": "no"}, None).impossible.all()
    assert sb.log_joint(sure, {"grade": 1, "flu": 0, "fever": "high", "ill": 0}) == -np.inf


def test_interventions_cut_tables_and_blocks(mixed):
    question = ask(mixed, {}, {"fever": "mild"})
    (part,) = question.parts
    assert part.network.tables["ill"].tolist() == mixed.tables["ill"][:, :, 1].tolist()
    assert part.network.n_edges == 2
    assert ", do(fever = mild)" in question.text()
    assert part.shown(np.full((1, 6), 0.5)).tolist() == [[0.5, 0.5, 0.5, 1.0, 0.0, 0.5]]
    with pytest.raises(EvidenceError, match="variable 'fever' is observed as high and held at mild by do"):
        ask(mixed, {"fever": "high"}, {"fever": "mild"})
    held = ask(mixed, {}, {"ill": "yes"}).parts[0].network
    assert not held.tables
    assert held.gate[mixed.index("ill")] == 0


# --- answers ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BySums:
    """A solver that knows states: sums over all joint states by the oracle."""

    knows_states = True

    def solve(self, network, states, *, start, trace):
        pairs = [oracle.exact_of_states(network.model, network.bias, row, tables=by_number(network)) for row in states]
        bound, means = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
        n = len(states)
        return Solution(bound, means.reshape(n, -1), np.full(n, Status.CONVERGED.code), np.zeros(n, np.int64))


def test_answers_by_name_of_one_pattern(mixed):
    post = sb.infer(mixed, {"ill": 1}, solver=BySums())
    assert isinstance(post["flu"], float)
    assert list(post["fever"]) == list(FEVER)
    assert sum(post["fever"].values()) == pytest.approx(1.0)
    assert post["fever"]["high"] == post.means[mixed.columns_of("fever")][1]
    assert post.means.shape == (6,)
    _, exact = oracle.exact_of_states(mixed.model, mixed.bias, [-1, -1, -1, 1], tables=by_number(mixed))
    assert post.means == pytest.approx(exact)
    lines = repr(post).splitlines()
    assert len(lines) == 2 + 3 + 1  # one row a variable
    assert any(line.split()[0] == "fever" and all(f"{state} 0." in line for state in FEVER) for line in lines)
    assert "mild" in post._repr_html_()
    frame = post.to_frame()
    assert list(frame.index) == list(mixed.names)
    assert frame.loc["ill", "observed"] == 1
    assert frame.loc["fever", "distribution"] == post["fever"]
    assert frame.loc["fever", "probability"] == max(post["fever"].values())
    held = sb.infer(mixed, {}, do={"fever": "high"}, solver=BySums())
    assert held["fever"] == {"none": 0.0, "mild": 0.0, "high": 1.0}
    soft = sb.infer(mixed, {"fever": (1.0, 2.0, 0.0)}, solver=BySums())
    _, expected = oracle.exact_of_states(
        mixed.model, mixed.bias, [-1] * 4, likelihoods={2: np.array([1.0, 2.0, 0.0])}, tables=by_number(mixed)
    )
    assert soft.means == pytest.approx(expected, abs=1e-12)


def test_answers_by_name_of_a_table(mixed):
    rows = [{"ill": 1}, {"fever": "high"}, {"grade": 2, "ill": 0}]
    many = sb.infer_many(mixed, rows, solver=BySums(), threads=1)
    for r, row in enumerate(rows):
        alone = sb.infer(mixed, row, solver=BySums())
        assert many[r]["fever"] == alone["fever"]
        assert many["fever"]["mild"][r] == pytest.approx(alone["fever"]["mild"])
        assert many["flu"][r] == alone["flu"]
    assert many.means.shape == (3, 6)
    frame = many.to_frame()
    assert list(frame.columns) == [
        "bound", "converged", "grade = 1", "grade = 2", "grade = 3", "flu", "fever = none", "fever = mild",
        "fever = high", "ill",
    ]  # fmt: skip
    assert frame["fever = high"].tolist() == many["fever"]["high"].tolist()
    assert "3 rows × 4 variables" in repr(many)


def test_comparisons_show_one_row_a_variable(mixed):
    before, after = (sb.infer(mixed, row, solver=BySums()) for row in ({}, {"fever": "high"}))
    change = before.compare(after)
    assert change.evidence_changes == {"fever": (None, "high")}
    assert "now fever = high" in repr(change)
    assert list(change["grade"]) == ["1", "2", "3"]
    assert sum(change["grade"].values()) == pytest.approx(0.0, abs=1e-12)
    assert isinstance(change["ill"], float)
    assert list(change.to_frame().columns) == ["before", "after", "change"]
    with pytest.raises(ParameterError, match="of the same variables"):
        before.compare(sb.infer(sb.from_edges({("a", "b"): 1.0}), {}, solver=BySums()))


def test_exact_posteriors_have_names_of_states(clinic):
    exact = sb.exact_posterior(clinic, {"sweat": 1})
    assert isinstance(exact["flu"], float)
    assert exact["fever"]["none"] == pytest.approx(0.0, abs=1e-15)
    assert exact.shape == (5,)
    some = sb.exact_posterior(clinic, {"sweat": 1}, units=["fever", "flu"])
    assert some.names == ("fever", "flu")
    assert some.shape == (3,)
    assert some["fever"] == exact["fever"]
    assert some["flu"] == exact["flu"]
    assert "fever" in repr(some)
    many = sb.exact_posterior(clinic, [{"sweat": 1}, {"fever": "high"}])
    assert many["fever"]["high"].tolist() == pytest.approx([exact["fever"]["high"], 1.0])
    assert many[0]["fever"] == pytest.approx(exact["fever"])
    assert list(many.to_frame().columns) == [
        "log_likelihood", "flu", "cold", *(f"fever = {state}" for state in FEVER), "sweat",
    ]  # fmt: skip
    frame = exact.to_frame()
    assert frame.loc["fever", "prior"]["none"] == pytest.approx(0.907632)
    assert pickle.loads(pickle.dumps(exact))["fever"] == exact["fever"]


def test_most_probable_states_are_told_by_name(mixed):
    given_ = np.array([-1, -1, -1, 1], np.int8)
    best = sb.results.MostProbable(mixed, given_, np.array([2, 1, 0, 1], np.int8), -1.0, -1.0, True)
    assert best["grade"] == "3"
    assert best["flu"] == 1
    assert best.states == {"grade": "3", "flu": 1, "fever": "none", "ill": 1}
    assert "grade = 3, fever = none" in repr(best)
    assert best.to_frame()["state"].tolist() == ["3", 1, "none", 1]


def test_observed_means_are_by_column(mixed):
    assert observed_means(mixed, np.array([[2, -1, 0, 1]], np.int8)).tolist()[0][:2] == [0.0, 1.0]
    assert np.isnan(observed_means(mixed, np.array([[2, -1, 0, 1]], np.int8))[0, 2])
    with pytest.raises(EvidenceError, match=r"start has shape \(4,\); expected \(1, 6\)"):
        sb.infer(mixed, {}, solver=BySums(), start=np.full(4, 0.5))


@given(state_networks(max_units=4), st.data())
@settings(max_examples=30, deadline=None)
def test_bounds_of_the_oracle_hold_for_states(network, data):  # the specification of the engine, eq. (16) and (20)
    row, rng = data.draw(states_of(network)), np.random.default_rng(0)
    Q = [np.eye(n)[s] if s >= 0 else rng.dirichlet(np.ones(n)) for n, s in zip(network.n_states, row, strict=True)]
    log_p, _ = oracle.exact_of_states(network.model, network.bias, row, tables=by_number(network))
    bound = oracle.bound_of_states(network.model, network.bias, Q, by_number(network))
    assert bound == -np.inf if log_p == -np.inf else bound <= log_p + 1e-9 * (1.0 + abs(log_p))
    for v in np.flatnonzero(network.gate == 0):
        parents = oracle.parents_of(network.model, v)
        for l in range(1, network.n_states[v]):  # noqa: E741
            mean = 0.0
            for s in itertools.product(*[range(network.n_states[u]) for u in parents]):
                S = np.full(network.n_units, -1)
                S[parents] = s
                x = oracle.absorbed(network.model, network.bias, S)[network.model.threshold[v] + l - 1]
                mean += np.prod([Q[u][k] for u, k in zip(parents, s, strict=True)]) * np.logaddexp(0, x)
            upper = oracle.xi_bound_of_states(network.model, network.bias, Q, v, l, rng.random())
            assert upper >= mean - 1e-9 * (1.0 + abs(mean))


# --- files ------------------------------------------------------------------------------------------------------------


@given(state_networks(max_units=4))
@settings(max_examples=40, deadline=None)
def test_files_give_back_what_was_written(tmp_path_factory, network):
    folder = tmp_path_factory.mktemp("states")
    for name in ("net.sbn", "net.toml"):
        sb.write(network, folder / name)
        back = sb.read(folder / name)
        assert back == network
        assert back.states == network.states


@pytest.fixture
def with_a_function():
    """c is a + b, two of ten states each; d depends on it."""
    total = np.add.outer(np.arange(10), np.arange(10))
    digits, sums = [*map(str, range(10))], [*map(str, range(19))]
    return sb.from_edges(
        [("a", "c", None), ("b", "c", None), ("c", "d", np.linspace(0.1, 1.0, 18)[None, :])],
        names=["a", "b", "c", "d"],
        states={"a": digits, "b": digits, "c": sums},
        tables={"c": np.eye(19)[total]},
    )


def test_a_function_takes_a_byte_for_each_joint_state_of_its_parents(with_a_function, tmp_path):
    net, total = with_a_function, np.add.outer(np.arange(10), np.arange(10))
    assert np.array_equal(net.tables["c"], np.eye(19)[total])
    assert np.array_equal(net.tables.function("c"), total)
    stored = pickle.dumps(net)
    assert pickle.loads(stored) == net
    assert len(stored) < 100 * 19
    for networks in (net, sb.NetworkMixture((net, net.with_parameters(bias={"d": 1.0})), ("a", "d"))):
        sb.write(networks, tmp_path / "net.sbn")
        assert sb.read(tmp_path / "net.sbn") == networks
        assert f'"format_version":"{4 if networks is net else 3}"'.encode() in (tmp_path / "net.sbn").read_bytes()
    nearly = np.eye(19)[total] * (1.0 - 1e-12) + 1e-12 / 19
    assert net.with_parameters(tables={"c": nearly}).tables.function("c") is None


def test_a_file_with_a_state_that_a_function_has_not_is_refused(with_a_function, tmp_path):
    sb.save(with_a_function, tmp_path / "net.sbn")
    stored = tensors.read_tensors(tmp_path / "net.sbn", own.NETWORK)
    for change, text in (
        ({"functions": stored.arrays["functions"] + 1}, "the function of 'c' has states that it has not: there are 19"),
        ({"functions": stored.arrays["functions"][1:]}, "its functions have 99 numbers"),
    ):
        tensors.write_tensors(tmp_path / "bad.sbn", own.NETWORK, {**stored.arrays, **change}, stored.metadata)
        with pytest.raises(FileFormatError, match=re.escape(text)):
            sb.load(tmp_path / "bad.sbn")


def test_own_files_have_a_version_for_states(mixed, clinic, tmp_path):
    path = tmp_path / "net.sbn"
    for net, version in ((mixed, 3), (clinic, 3), (sb.noisy_or({("a", "b"): 0.5}, prior=0.1), 2)):
        sb.save(net, path)
        assert f'"format_version":"{version}"'.encode() in path.read_bytes()
    named = sb.from_edges({("a", "b"): 1.0}, states={"b": ["off", "on"]})
    sb.save(named, path)
    assert b'"format_version":"1"' in path.read_bytes()  # an older sbnet passes over the names
    assert sb.load(path).states == named.states
    mixture = sb.NetworkMixture((mixed, mixed.with_parameters(bias={"flu": 1.0})), ("ill",))
    sb.save(mixture, path)
    assert list(sb.load(path)) == list(mixture)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tables": np.ones(5)}, "its tables have 5 numbers, and the states of its variables ask for others"),
        ({"tables": np.full(36, 0.4)}, "sum to 0.8; they must sum to 1"),
        ({"states": "[]"}, "are no states"),
        ({"states": '{"fever": ["a", "b", "c"], "grade": ["1", "2"]}'}, "ask for others|bias has shape"),
        ({"states": '{"fever": 3}'}, "are no states"),
        ({"states": '{"fever": ["a", 3, "c"], "grade": ["1", "2", "3"]}'}, "named by texts; 3 is of type int"),
        ({"states": '{"fver": ["a", "b"]}'}, "ask for others|'fver', which is not a variable"),
    ],
)
def test_own_files_that_describe_no_states_are_refused(mixed, tmp_path, change, message):
    from sbnet.files.own import NETWORK
    from sbnet.files.tensors import read_tensors, write_tensors

    path = tmp_path / "net.sbn"
    sb.save(mixed, path)
    stored = read_tensors(path, NETWORK)
    arrays = stored.arrays | {key: value for key, value in change.items() if isinstance(value, np.ndarray)}
    texts = {key: stored.metadata[key] for key in ("made_by", "names", "layers", "states")}
    texts |= {key: value for key, value in change.items() if isinstance(value, str)}
    write_tensors(path, NETWORK, arrays, texts)
    with pytest.raises(sb.errors.FileFormatError, match=message):
        sb.load(path)


CLINIC = """
[units.flu]
prior = 0.05

[units.pain]
states = ["none", "some", "much"]
prior = { some = 0.2, much = 0.1 }

[units.fever]
states = ["none", "mild", "high"]
gate = "noisy-or"
leak = { mild = 0.01 }
causes = { flu = { mild = 0.3, high = 0.6 }, pain = { some = { mild = 0.1 }, much = [0.2, 0.1] } }

[units.ill]
parents = ["fever", "flu"]
table = [
  [0.9, 0.1], [0.8, 0.2],  # none
  [0.5, 0.5], [0.4, 0.6],  # mild
  [0.1, 0.9], [0.0, 1.0],
]

[units.rest.table]
no = 0.3
yes = 0.7
"""


def test_text_files_name_states_and_have_tables_by_rows(tmp_path):
    path = tmp_path / "clinic.toml"
    path.write_text(CLINIC)
    net = sb.read(path)
    assert net.states["fever"] == FEVER
    assert net.names == ("flu", "pain", "fever", "ill", "rest")
    assert np.asarray(net.conditional("fever", {"flu": 1}))[0] == pytest.approx([0.99 * 0.1, 0.301, 0.6])
    assert np.asarray(net.conditional("pain"))[0] == pytest.approx([0.7, 0.2, 0.1])
    assert net.parents("ill") == ("flu", "fever")
    assert net.tables["ill"][1, 2].tolist() == [0.0, 1.0]
    assert net.tables["rest"].tolist() == [0.3, 0.7]
    sb.write(net, tmp_path / "again.toml")
    assert sb.read(tmp_path / "again.toml") == net


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"mild", "high"]', '"mild", "mild"]', r"line 10, column 1: two states of 'fever' are called 'mild'"),
        ('["none", "mild", "high"]', '["none"]', "line 10, column 1: 'fever' has 1 state; .* Give at least two names"),
        (
            '["none", "mild", "high"]',
            '"mild"',
            "line 10, column 1: the states of 'fever' is 'mild'; give a list of names",
        ),
        ("high = 0.6", "hi = 0.6", r"line 13, column 12: .* names 'hi', which is not one of the states; did you mean"),
        ("high = 0.6", "high = 0.8", r"column 12: the probabilities of 'flu' -> 'fever' sum to 1.1; what is left to 1"),
        ("high = 0.6", "high = 60", r"line 13, column 32: .* is 60; a probability lies between 0 and 1; write 60 % as"),
        ("high = 0.6", 'high = "x"', r"line 13, column 32: .* is 'x'; it is a probability, such as 0.05"),
        ("much = [0.2, 0.1]", "much = 0.2", r"line 13, column 78: .*\['much'\] is 0.2; give probabilities by state"),
        (
            "leak = { mild = 0.01 }",
            "leak = 0.01",
            "1: the leak of 'fever' is 0.01; give .* { mild = 0.3, high = 0.6 } ",
        ),
        ("leak = { mild = 0.01 }", "leak_theta = [1.0]", r"line 12, column 1: .* asks? for an array of shape \(2,\)"),
        ("leak = { mild = 0.01 }", "leak_theta = [1.0, -1.0]", "line 12, column 1: .* is -1.0; -ln"),
        ("prior = { some = 0.2, much = 0.1 }", "", r"line 5, column 8: 'pain' has no prior; add prior = { some"),
        ('["fever", "flu"]', '["fever", "flue"]', "line 16, column 1: 'flue' is not a variable; did you mean 'flu'"),
        ('["fever", "flu"]', '["fever", "ill"]', "line 16, column 1: 'ill' is its own parent"),
        ("[0.1, 0.9], ", "", r"line 17, column 1: the table of 'ill' has shape \(5, 2\); it has a row of 2"),
        ("[0.1, 0.9], ", "[0.1], ", "line 17, column 1: the table of 'ill' must be numbers: rows differ in length"),
        (
            '["fever", "flu"]',
            "[]",
            "line 17, column 1: the table of 'ill' has 6 rows, and 'ill' no parents; .* parents =",
        ),
        (
            "[0.1, 0.9]",
            "[0.1, 0.8]",
            r"line 17, column 1: the probabilities of 'ill' for fever = high, flu = no sum to",
        ),
        ("no = 0.3", "nope = 0.3", "line 23, column 13: in the table of 'rest', 'nope' is not a state of 'rest'"),
        ('["fever", "flu"]', '["fever", "flu"]\nbias = 1.0', "'bias' is for sigmoid variables, and 'ill' has a table"),
    ],
)
def test_errors_in_text_files_say_where(tmp_path, old, new, message):
    path = tmp_path / "clinic.toml"
    assert old in CLINIC
    path.write_text(CLINIC.replace(old, new))
    with pytest.raises(sb.errors.FileFormatError, match=message):
        sb.read(path)


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def told(tmp_path, capsys, clinic):
    """What a command prints about the clinic, and what it says on standard error."""
    from sbnet.cli import main

    path = tmp_path / "clinic.toml"
    sb.write(clinic, path)

    def run(command, *words):
        status = main([command, str(path), *words])
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_the_command_takes_and_tells_states_by_name(told, clinic, tmp_path):
    status, out, _ = told("infer", "fever=high", "--json")
    answer = json.loads(out)
    assert status == 0
    assert answer["evidence"] == {"fever": "high"}
    assert {one["name"]: one["mean"] for one in answer["units"]}["flu"] == pytest.approx(1.0)
    _, out, _ = told("infer", "sweat=yes", "--about", "fever", "--json")
    exact = sb.exact_posterior(clinic, {"sweat": 1})["fever"]
    assert json.loads(out)["units"][0]["mean"] == pytest.approx(exact)
    _, out, _ = told("infer", "sweat=yes")
    assert any(line.split()[:2] == ["fever", "none"] for line in out.splitlines())
    for word in ("fever=unknown", "fever=?"):
        assert told("infer", word)[0] == 0
    for words, message in (
        (["fever=hgh"], "variable 'fever' is given as 'hgh'; its states are none, mild and high; did you mean 'high'?"),
        (["fever=1"], "say none, mild or high, or unknown"),
        (["fever=high", "fever=mild"], "evidence names variable 'fever' twice"),
    ):
        status, _, err = told("infer", *words)
        assert status == 2
        assert message in err
    assert "none 0.9076, mild 0.0624, high 0.0300" in told("show")[1]
    assert json.loads(told("show", "fever", "--json")[1])["units"][0]["states"] == list(FEVER)
    assert told("sample", "2", "--seed", "1", "--do", "fever=mild")[1].splitlines()[1].split(",")[2] == "mild"
    table = tmp_path / "visits.csv"
    table.write_text("fever,sweat\nhigh,yes\n,no\n")
    lines = told("infer", "--table", str(table))[1].splitlines()
    assert lines[0] == "bound,converged,exact,flu,cold,fever = none,fever = mild,fever = high,sweat"
    assert lines[1].split(",")[5:8] == ["0", "0", "1"]
    table.write_text("fever\nvery high\n")
    assert "its states are none, mild and high" in told("infer", "--table", str(table))[2]


def test_tables_for_other_programs_have_the_states(mixed, clinic, tmp_path):
    from sbnet.files.tables_writing import as_variables

    for network in (mixed, clinic):
        for one in as_variables(network):
            assert one.states == (network.states[one.name] if len(network.states[one.name]) > 2 else ("no", "yes"))
            assert one.table == pytest.approx(
                network.family(one.name).distribution(network.family(one.name).every_row())
            )
    sb.write(mixed, tmp_path / "net.bif")
    assert "type discrete [ 3 ] { none, mild, high };" in (tmp_path / "net.bif").read_text()
