"""Noisy-OR units, the paper's appendix A: building them from probabilities, exact answers, files and pictures."""

from __future__ import annotations

import itertools
import json
import pickle

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle
import sbnet as sb
import sbnet.plots
from sbnet.errors import FileFormatError, NetworkError, ParameterError, UnknownUnitError
from sbnet.exact import quickscore
from sbnet.files import tensors
from sbnet.files.own import NETWORK
from sbnet.kernels import codes as gates
from sbnet.questions.reduction import absorb, reduce
from strategies import mixed_cases, mixed_networks

some = settings(max_examples=40)
NOISY = {("flu", "fever"): 0.9, ("cold", "fever"): 0.2, ("cold", "cough"): 0.6}


def numbers(network):
    return network.weight_matrix(), network.bias


def same(a, b):
    """Equal to the last bit, gates included."""
    return (a.names, a.graph, a.weight.tolist(), a.bias.tolist(), a.gate.tolist(), a.layers) == (
        b.names, b.graph, b.weight.tolist(), b.bias.tolist(), b.gate.tolist(), b.layers
    )  # fmt: skip


# --- building -------------------------------------------------------------------------------------------------------


@pytest.mark.small
def test_an_effect_is_off_if_every_cause_that_is_present_fails():
    net = sb.noisy_or(NOISY, leak={"fever": 0.01, "cough": 0.05}, prior={"flu": 0.05, "cold": 0.2})
    for flu, cold in itertools.product((0, 1), repeat=2):
        p = 1 - 0.99 * 0.1**flu * 0.8**cold
        on = sb.log_joint(net, {"flu": flu, "cold": cold, "fever": 1, "cough": 0})
        off = sb.log_joint(net, {"flu": flu, "cold": cold, "fever": 0, "cough": 0})
        assert np.exp(on) / (np.exp(on) + np.exp(off)) == pytest.approx(p)
        assert net.conditional("fever", {"flu": flu, "cold": cold}).p.tolist() == pytest.approx([p])
    assert [gates.NAMES[code] for code in net.gate] == ["sigmoid", "sigmoid", "noisy-or", "noisy-or"]
    assert "2 sigmoid, 2 noisy-or, " in repr(net)


@pytest.mark.small
def test_causes_that_never_work_and_causes_that_never_fail():
    net = sb.noisy_or({("a", "x"): 0.0, ("b", "x"): 1.0}, prior={"a": 0.0, "b": 1.0})
    assert net.conditional("x").p.tolist() == [0.0, 1.0, 0.0, 1.0]
    assert sb.log_likelihood(net, {"x": 1}) == pytest.approx(0.0, abs=1e-12)
    assert sb.log_likelihood(net, {"x": 0}) == -np.inf
    assert sb.exact_posterior(net, {"x": 1}).tolist() == pytest.approx([0.0, 1.0, 1.0])


@pytest.mark.small
def test_probabilities_of_sigmoid_effects_are_those_of_each_cause_alone():
    net = sb.from_probabilities({("a", "x"): 0.9, ("b", "x"): 0.01}, leak={"x": 0.05}, prior=0.2)
    assert net.conditional("x", [[], "a", "b"]).p.tolist() == pytest.approx([0.05, 0.9, 0.01])
    assert not net.gate.any()
    both = sb.from_probabilities({("a", "x"): 0.9, ("a", "y"): 0.5}, leak=0.1, prior=0.2, gate={"y": "noisy-or"})
    assert both.gate.tolist() == [0, 0, 1]
    assert both.conditional("y", ["a"]).p.tolist() == pytest.approx([1 - 0.9 * 0.5])


@pytest.mark.small
@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: sb.noisy_or(NOISY), "'flu' has no prior; give prior={'flu': 0.05, …}, or one number for all"),
        (lambda: sb.noisy_or(NOISY, prior={"flu": 0.1}), "'cold' has no prior"),
        (
            lambda: sb.noisy_or(NOISY, prior={"flu": 0.1, "cod": 0.1}),
            "'cod' is not one of the variables without causes, which prior is for; did you mean 'cold'?",
        ),
        (lambda: sb.noisy_or(NOISY, prior=1.5), "prior is 1.5; it must be a probability, from 0 to 1"),
        (lambda: sb.noisy_or({("a", "x"): -0.1}, prior=0.1), "causes['a', 'x'] is -0.1; it must be a probability"),
        (lambda: sb.noisy_or({("a", "x"): 0.1}, leak={"x": np.nan}, prior=0.1), "leak['x'] is nan"),
        (
            lambda: sb.noisy_or({("a", "x"): 0.1}, leak={"a": 0.1}, prior=0.1),
            "'a' is not one of the effects, which leak is for; these are 'x'",
        ),
        (
            lambda: sb.noisy_or([("a", "x", 0.1)], prior=0.1),
            "causes is a mapping from (cause, effect) to a probability",
        ),
        (lambda: sb.noisy_or({"ax": 0.1}, prior=0.1), "the keys of causes are (cause, effect); got 'ax'"),
        (lambda: sb.noisy_or({("a", "x"): 0.1, ("x", "a"): 0.1}), "cycle"),
        (lambda: sb.from_edges({("a", "x"): -1.0}, gate="noisy-or"), "the weight 'a' -> 'x' is -1.0; a noisy-OR"),
        (lambda: sb.from_edges({("a", "x"): 1.0}, bias={"x": -2.0}, gate="noisy-or"), "the leak of noisy-OR variable"),
        (lambda: sb.from_edges({("a", "x"): 1.0}, gate={"x": "or"}), "the gate of 'x' is 'or'; it is 'sigmoid' or"),
        (lambda: sb.from_edges({("a", "x"): 1.0}, gate="and"), "the gate of all variables is 'and'"),
        (
            lambda: sb.from_edges({("a", "x"): 1.0}, gate={"y": "noisy-or"}),
            "gate names variable 'y', which is not in the network",
        ),
        (lambda: sb.from_edges({("a", "x"): 1.0}, gate=1), "gate is a word or a mapping from names to words; got int"),
        (lambda: sb.from_probabilities({("a", "x"): 0.5}, prior=0.5, gate="nor"), "'nor'"),
    ],
)
def test_errors_name_the_value_and_the_way_out(make, text):
    with pytest.raises((NetworkError, ParameterError, UnknownUnitError)) as caught:
        make()
    assert text in str(caught.value)
    assert len(str(caught.value)) <= 300


@pytest.mark.small
def test_parameters_of_noisy_or_units_may_not_become_negative():
    net = sb.noisy_or(NOISY, prior=0.1)
    with pytest.raises(NetworkError, match="A cause that prevents needs a sigmoid variable"):
        net.with_parameters(weight=-net.weight)


@pytest.mark.small
@some
@given(mixed_networks())
def test_networkx_and_pickles_keep_gates(network):
    assert same(sb.convert.from_networkx(sb.convert.to_networkx(network)), sb.from_edges(
        list(network.edges()), bias=dict(zip(network.names, network.bias.tolist(), strict=True)),
        gate={name: gates.NAMES[code] for name, code in zip(network.names, network.gate, strict=True)},
        names=network.names,
    ))  # fmt: skip
    again = pickle.loads(pickle.dumps(network))
    assert again == network
    assert hash(again) == hash(network)
    assert again.gate.tolist() == network.gate.tolist()


@pytest.mark.small
def test_layers_of_noisy_or_units():
    net = sb.layered((3, 4), rng=0, scale=2.0, gate="noisy-or")
    assert net.gate.tolist() == [0] * 3 + [1] * 4
    assert net.weight.min() >= 0.0
    assert net.bias[:3].min() < 0.0 <= net.bias[3:].min()
    plain = sb.layered((3, 4), rng=0, scale=2.0)
    assert np.array_equal(np.abs(plain.weight), net.weight)
    assert plain != net


@pytest.mark.small
def test_tables_of_conditional_chances():
    net = sb.noisy_or({(f"c{k}", "x"): 0.1 * k for k in range(1, 8)}, leak=0.01, prior=0.1)
    short = net.conditional("x")
    assert len(short) == 9
    assert short.p[1:-1] == pytest.approx([1 - 0.99 * (1 - 0.1 * k) for k in range(1, 8)])
    assert short.to_frame()["P(x = 1)"].tolist() == short.p.tolist()
    assert net.conditional("c1").p.tolist() == pytest.approx([0.1])
    assert "noisy-or" in short._repr_html_()
    with pytest.raises(UnknownUnitError, match="'c9' is not one of the parents of 'x'; did you mean 'c"):
        net.conditional("x", ["c9"])
    with pytest.raises(NetworkError, match="parent 'c1' is given as 2"):
        net.conditional("x", {"c1": 2})


@pytest.mark.small
@pytest.mark.parametrize(("gate", "other"), [("noisy-or", "sigmoid"), ("sigmoid", "noisy-or")])
def test_the_nearest_unit_of_the_other_gate_and_its_error(gate, other):
    net = sb.from_probabilities({("a", "x"): 0.7, ("b", "x"): 0.4}, leak=0.05, prior=0.3, gate=gate)
    found = sb.convert.nearest(net, "x", gate=other)
    p, q = net.conditional("x").p, found.network.conditional("x").p
    assert found.largest == pytest.approx(np.abs(p - q).max())
    assert found.mean == pytest.approx(np.abs(p - q).mean())
    assert 0.0 < found.mean <= found.largest < 0.2
    for shift in (0.99, 1.01):  # no other weights lose fewer nats
        moved = found.network.with_parameters(weight=found.network.weight * shift).conditional("x").p
        loss = p * np.log(p / moved) + (1 - p) * np.log((1 - p) / (1 - moved))
        assert found.nats <= loss.mean()
    assert sb.convert.nearest(net, "x", gate=gate).network is net
    with pytest.raises(ParameterError, match="gate"):
        sb.convert.nearest(net, "x", gate="and")


@pytest.mark.small
def test_a_cause_that_prevents_has_no_near_noisy_or():
    net = sb.from_probabilities({("rain", "wet"): 0.9, ("roof", "wet"): 0.01}, leak=0.3, prior=0.2)
    found = sb.convert.nearest(net, "wet", gate="noisy-or")
    assert found.network.weight.min() >= 0.0
    assert found.largest > 0.2


# --- exact answers --------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(mixed_cases())
def test_exact_answers_are_those_of_the_equations(case):
    network, row = case
    (J, h), gate = numbers(network), network.gate
    S, tolerance = oracle.all_states(row), oracle.rounding(J, h, gate)
    joint = np.where(oracle.cannot_be(J, h, S, gate), -np.inf, oracle.log_joint(J, h, S, gate))
    assert sb.log_joint(network, S) == pytest.approx(joint, abs=tolerance)
    assert (sb.log_likelihood(network, row) == -np.inf) == oracle.is_impossible(J, h, row, gate)
    assume(not oracle.is_impossible(J, h, row, gate))
    assert sb.log_likelihood(network, row) == pytest.approx(
        oracle.log_likelihood(J, h, row, gate), abs=tolerance, rel=1e-13
    )
    assert sb.exact_posterior(network, row) == pytest.approx(oracle.posterior(J, h, row, gate), abs=tolerance)
    assert sb.exact_pairs(network, row) == pytest.approx(oracle.posterior_pairs(J, h, row, gate), abs=tolerance)
    mu = np.random.default_rng(0).uniform(0.05, 0.95, network.n_units)
    assert sb.kl(network, row, mu) == pytest.approx(oracle.kl(J, h, row, mu, gate), abs=10 * tolerance, rel=1e-9)


@pytest.mark.parametrize("large", [1e3, 1e6, 3e7])
def test_small_leaks_survive_large_weights_that_come_and_go(large):
    edges = {(c, "x"): large * k for k, c in enumerate("abc", 1)}
    net = sb.from_edges(edges, bias={"x": 1e-9, "a": -20.0, "b": -20.0, "c": -20.0}, gate={"x": "noisy-or"})
    none = 3 * -np.logaddexp(0, -20.0) + np.log(1e-9)
    one = np.log(-np.expm1(3 * -np.logaddexp(0, -20.0)))
    assert sb.log_likelihood(net, {"x": 1}) == pytest.approx(np.logaddexp(none, one), abs=1e-9)


def sums(network, evidence):
    """ln P and means by the sum over findings."""
    states = sb.questions.evidence.coerce_one(network, evidence)
    problem, bias = reduce(network.model, states[0]), absorb(network, states)[0]
    every = np.arange(len(problem.hidden)), np.arange(len(problem.factors))
    levels = quickscore.two_levels(network.model, problem, states[0], bias, *every)
    assert levels is not None
    return problem, levels, quickscore.total(levels)


def two_level(rng, n, positive, negative, fan, chance, prior, leak):
    causes = {}
    for i in range(positive + negative):
        for j in rng.choice(n, fan, replace=False):
            causes[f"d{j}", f"f{i}"] = chance()
    net = sb.noisy_or(causes, leak=leak, prior=prior)
    return net, {f"f{i}": int(i < positive) for i in range(positive + negative)}


@some
@given(seed=st.integers(0, 2**32), n=st.integers(1, 8), positive=st.integers(0, 9), negative=st.integers(1, 3))
def test_a_sum_over_findings_is_the_sum_over_causes(seed, n, positive, negative):
    rng = np.random.default_rng(seed)
    net, evidence = two_level(
        rng, n, positive, negative, int(rng.integers(1, n + 1)), lambda: -np.expm1(-(10.0 ** rng.uniform(-6, 3))),
        float(rng.choice([0.001, 0.1, 0.9])), float(rng.choice([0.0, 1e-9, 0.1])),
    )  # fmt: skip
    assume(np.isfinite(sb.infer(net, evidence).bound))  # a leakless finding that no cause can turn on
    problem, _, (value, means, error) = sums(net, evidence)
    (J, h), row = numbers(net), sb.questions.evidence.coerce_one(net, evidence)[0].astype(float)
    row[row < 0] = np.nan
    exact = oracle.log_likelihood(J, h, row, net.gate)
    if error <= 1e-12:  # what the sum itself says of its digits
        assert value == pytest.approx(exact, abs=1e-10)
        assert means == pytest.approx(oracle.posterior(J, h, row, net.gate)[problem.hidden["variable"]], abs=1e-10)
    assert sb.log_likelihood(net, evidence) == pytest.approx(exact, abs=1e-9, rel=1e-12)


@pytest.mark.small
def test_causes_of_one_finding_count_as_one():
    """Two shared causes, and thirty of its own for each of ten findings: as many sums as there are without those."""
    rng, k, own = np.random.default_rng(0), 10, 30
    causes = {(f"s{j}", f"f{i}"): rng.uniform(0.1, 0.9) for j in (0, 1) for i in range(k)}
    causes |= {(f"d{i}_{j}", f"f{i}"): rng.choice([1e-9, 0.3, 1.0]) for i in range(k) for j in range(own)}
    prior = {cause: 0.2 if cause[0] == "s" else float(rng.choice([1e-6, 0.01, 0.6])) for cause, _ in causes}
    net = sb.noisy_or(causes, leak=1e-4, prior=prior)
    problem, levels, (value, means, _) = sums(net, {f"f{i}": 1 for i in range(k)})
    assert len(quickscore._in_order(levels, levels.log_odds[None]).top) == k + 2

    silent = {pair: 1 - prior[pair[0]] * p for pair, p in causes.items()}
    total, on = 0.0, dict.fromkeys(prior, 0.0)
    for shared in itertools.product((0, 1), repeat=2):
        weight = np.prod([0.2 if one else 0.8 for one in shared])
        left, fails = np.full(k, 1 - 1e-4), np.array([[1 - causes[f"s{j}", f"f{i}"] for j in (0, 1)] for i in range(k)])
        left = left * np.prod(fails ** np.array(shared), axis=1)
        alone = np.array([np.prod([silent[f"d{i}_{j}", f"f{i}"] for j in range(own)]) for i in range(k)])
        each = 1 - left * alone
        total += weight * each.prod()
        for j in np.flatnonzero(shared):
            on[f"s{j}"] += weight * each.prod()
        for i, j in itertools.product(range(k), range(own)):
            pair = f"d{i}_{j}", f"f{i}"
            others = left[i] * np.prod([silent[f"d{i}_{m}", f"f{i}"] for m in range(own) if m != j])
            with_it = prior[pair[0]] * (1 - others * (1 - causes[pair]))
            on[pair[0]] += weight * each.prod() / each[i] * with_it
    assert value == pytest.approx(np.log(total), rel=1e-12)
    found = dict(zip([net.names[v] for v in problem.hidden["variable"]], means, strict=True))
    assert found == pytest.approx({cause: p / total for cause, p in on.items()}, rel=1e-9)


@pytest.mark.parametrize(("positive", "leak"), [(12, 1e-6), (13, 1e-3)])
def test_a_sum_over_findings_against_ball_arithmetic(positive, leak):
    """P is the alternating sum over sets of findings; at 300 bits it may cancel as it likes."""
    flint = pytest.importorskip("flint")
    rng = np.random.default_rng(positive)
    net, evidence = two_level(rng, 40, positive, 3, 8, lambda: rng.uniform(0.05, 0.95), 0.01, leak)
    value = sb.log_likelihood(net, evidence)
    causes = [net.index(name) for name in net.names if name.startswith("d")]
    findings = [net.index(f"f{i}") for i in range(positive + 3)]
    J = net.weight_matrix()
    with flint.ctx.workprec(300):
        arb = flint.arb
        fails = {(i, j): (-arb(float(J[i, j]))).exp() for i in findings for j in causes if J[i, j]}
        open_ = [(-arb(float(net.bias[i]))).exp() for i in findings]
        prior = {j: 1 / (1 + (-arb(float(net.bias[j]))).exp()) for j in causes}
        first = arb(1)
        left = dict.fromkeys(causes, arb(1))
        for k in range(positive, positive + 3):
            first *= open_[k]
            for j in causes:
                left[j] *= fails.get((findings[k], j), 1)
        total = arb(0)

        def add(k, sign, product, left):
            nonlocal total
            if k == positive:
                for j in causes:
                    product *= 1 - prior[j] + prior[j] * left[j]
                total += sign * product
                return
            add(k + 1, sign, product, left)
            i = findings[k]
            add(k + 1, -sign, product * open_[k], {j: x * fails.get((i, j), 1) for j, x in left.items()})

        add(0, 1, first, left)
        exact = float(total.log())
    assert exact < -15.0
    assert value == pytest.approx(exact, rel=1e-12)


# --- files and pictures ---------------------------------------------------------------------------------------------


@pytest.mark.small
@some
@given(mixed_networks())
def test_files_keep_gates(tmp_path_factory, network):
    path = tmp_path_factory.mktemp("gates") / "net.sbn"
    sb.save(network, path)
    assert same(sb.load(path), network)


@pytest.mark.small
def test_only_files_with_noisy_or_units_need_a_new_reader(tmp_path):
    sb.save(sb.layered((2, 3), rng=0), tmp_path / "old.sbn")
    sb.save(sb.layered((2, 3), rng=0, gate="noisy-or"), tmp_path / "new.sbn")
    net, kind = sb.layered((2, 3), rng=0), NETWORK._replace(version=1)
    arrays = {"indptr": net.graph.indptr, "parent": net.graph.parent, "weight": net.weight, "bias": net.bias}
    metadata = {"made_by": f"sbnet {sb.__version__}", "names": json.dumps(net.names), "layers": json.dumps(net.layers)}
    tensors.write_tensors(tmp_path / "same.sbn", kind, arrays, metadata)  # what the first version wrote
    assert (tmp_path / "same.sbn").read_bytes() == (tmp_path / "old.sbn").read_bytes()
    old, new = (tmp_path / "old.sbn").read_bytes(), (tmp_path / "new.sbn").read_bytes()
    assert b'"format_version":"1"' in old
    assert b"gate" not in old
    assert b'"format_version":"2"' in new


@pytest.mark.small
@pytest.mark.parametrize(
    ("gate", "text"),
    [
        (np.array([0, 0, 4]), "the gate of 'c' is 4"),
        (np.array([0, 0, -1]), "the gate of 'c' is -1"),
        (np.array([0, 0, 257]), "the gate of 'c' is 257"),
        (np.array([0, 1]), "gate has shape (2,)"),
        (np.array([[0, 0, 1]]), "gate has shape (1, 3)"),
        (np.array([0.0, 0.0, 1.0]), "arrays of unexpected types"),
        (np.array([0, 0, 1]), "the weight 'a' -> 'c' is -1.0"),
    ],
)
def test_gates_in_files_that_cannot_be_are_refused(tmp_path, gate, text):
    arrays = {"indptr": np.array([0, 0, 0, 2]), "parent": np.array([0, 1]), "weight": np.array([-1.0, 2.0])}
    arrays |= {"bias": np.zeros(3), "gate": gate.astype(np.float64 if gate.dtype.kind == "f" else np.int64)}
    metadata = {"made_by": "x", "names": '["a", "b", "c"]', "layers": "null"}
    tensors.write_tensors(tmp_path / "x.sbn", NETWORK, arrays, metadata)
    with pytest.raises(FileFormatError) as caught:
        sb.load(tmp_path / "x.sbn")
    assert text in str(caught.value)


def test_pictures_tell_noisy_or_units_from_sigmoid_units():
    net = sb.noisy_or(NOISY, leak=0.01, prior=0.1)
    for options in ({}, {"evidence": {"fever": 1}}, {"means": sb.exact_posterior(net, {"fever": 1})}):
        ax = sb.plots.network(net, **options)
        marks = [text for text in ax.texts if text.get_gid() == "gate"]
        assert [text.get_text() for text in marks].count("∨") == 2
        assert any("noisy-OR" in text.get_text() for text in marks)
        ax.figure.canvas.draw()
        plt.close(ax.figure)
    ax = sb.plots.network(sb.layered((2, 3), rng=0))
    assert not [text for text in ax.texts if text.get_gid() == "gate"]
    plt.close(ax.figure)


class Counted(str):
    """A name that counts how often it is looked at."""

    looks = 0

    def __hash__(self):
        Counted.looks += 1
        return super().__hash__()

    def __eq__(self, other):
        Counted.looks += 1
        return super().__eq__(other)


@pytest.mark.small
@pytest.mark.parametrize("build", [sb.noisy_or, sb.from_probabilities])
def test_the_work_of_building_grows_with_the_edges(build):
    Counted.looks, n = 0, 60
    causes = {(Counted(f"cause {j}"), Counted(f"effect {i}")): 0.5 for j in range(n) for i in range(n)}
    leak = {Counted(f"effect {i}"): 0.1 for i in range(n)}
    prior = {Counted(f"cause {j}"): 0.1 for j in range(n)}
    network = build(causes, leak=leak, prior=prior)
    assert network.n_edges == n * n
    assert Counted.looks <= 30 * n * n
