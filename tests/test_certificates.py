"""Certificates: both bounds hold, more effort never widens them, and ball arithmetic agrees."""

from __future__ import annotations

import builtins
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import sbnet as sb
from sbnet.bounds.proven import softplus
from sbnet.bounds.proven.gates import highest_hidden, highest_observed
from sbnet.bounds.proven.lower import Piece
from sbnet.bounds.proven.lower import lower as proven_lower
from sbnet.certificates import Certificate, Certificates, certify, enclosure, posterior_intervals
from sbnet.exact import enumeration
from sbnet.exact.enumeration import Reduced
from sbnet.kernels.codes import SIGMOID
from strategies import cases

flint = pytest.importorskip("flint")
EFFORTS = ("fast", "normal", "high")
few = settings(max_examples=50)
EXACT_TERM = 2e-7
"""Nats for each unit: the exact term may be e^-15 / 2 above the mean itself, and by how much depends on the number of
frequencies, which a solver chooses for blocks of units and ball arithmetic for each unit. Both give valid bounds."""


def hostile(seed, sizes=None):
    """A network with weights to ±1000, evidence on its last layer, and how far apart two right answers may lie."""
    rng = np.random.default_rng([96, seed])
    sizes = (rng.integers(1, 4), rng.integers(1, 6), rng.integers(1, 6)) if sizes is None else sizes
    scale = float(rng.choice([0.5, 2.0, 10.0, 100.0, 1000.0]))
    net = sb.layered(sizes, rng=rng, scale=scale, autoregressive=bool(rng.integers(2)))
    net = net.with_parameters(weight=net.weight * (rng.random(net.n_edges) < 0.8))
    row = np.full(net.n_units, np.nan)
    row[-int(sizes[-1]) :] = rng.integers(0, 2, sizes[-1])
    if rng.random() < 0.3:
        row[rng.integers(net.n_units)] = rng.integers(2)
    return net, row, oracle.rounding(net.weight_matrix(), net.bias)


# --- the bounds hold --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(("effort", "n"), [("fast", 40), ("normal", 40), ("high", 8)])
def test_the_ends_enclose_the_truth_and_a_higher_effort_is_never_wider(effort, n):
    for seed in range(n):
        net, row, rounding = hostile(seed)
        exact = sb.log_likelihood(net, row)
        widest = (-math.inf, math.inf)
        for name in EFFORTS[: EFFORTS.index(effort) + 1]:
            found = enclosure.enclose(net, sb.questions.evidence.coerce(net, row)[0][0], enclosure.How(name, False))
            assert found.lower - rounding <= exact <= found.upper + rounding, (seed, name)
            assert widest[0] <= found.lower + rounding, (seed, name)
            assert found.upper <= widest[1] + rounding, (seed, name)
            assert found.lower <= found.upper <= 0.0
            widest = found.lower, found.upper


@few
@given(case=cases(max_units=10))
def test_any_network_and_any_evidence(case):
    network, row = case
    rounding = oracle.rounding(network.weight_matrix(), network.bias)
    exact = sb.log_likelihood(network, row)
    certificate = certify(network, row)
    assert certificate.exact
    assert certificate.lower == pytest.approx(exact, abs=rounding)
    proven = certify(network, row, proven=True)
    assert proven.lower - rounding <= exact <= proven.upper + rounding
    assert proven.gap <= 1e-9 + rounding


def test_large_networks_whose_truth_can_just_be_known():
    for seed in range(6):
        net, row, rounding = hostile(seed, (4, 13, 6))
        exact = sb.log_likelihood(net, row)
        certificate = certify(net, row)
        assert certificate.lower - rounding <= exact <= certificate.upper + rounding
        assert certificate.lower <= certificate.estimate <= certificate.upper
        low, high = certificate.factorisation
        kl = exact - certificate.mean_field
        assert low - rounding <= kl <= high + rounding
        assert certify(net, row, effort="high").exact


def test_the_guess_does_not_move_the_ends():
    net = sb.layered((4, 12, 8), rng=0, scale=1.0)
    one, other = (certify(net, [0] * 8, rng=seed) for seed in (0, 1))
    assert (one.lower, one.upper) == (other.lower, other.upper)
    assert one.estimate != other.estimate
    assert certify(net, [0] * 8, rng=0) == one
    assert abs(one.estimate - sb.log_likelihood(net, [0] * 8)) < 6 * one.error


def test_the_logarithm_part_is_what_the_papers_terms_cost():
    net = sb.layered((4, 12, 8), rng=0, scale=1.0)
    post = sb.infer(net, [0] * 8)
    paper = sb.bounds.lower_bound(net, [0] * 8, post.means)
    certificate = certify(net, [0] * 8)
    assert certificate.mean_field == post.bound
    assert certificate.logarithm == pytest.approx(post.bound - paper, abs=1e-12)
    assert certificate.logarithm > 0.001


# --- ball arithmetic ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(("effort", "n"), [("fast", 40), ("normal", 6), ("high", 2)])
def test_proven_ends_agree_with_those_in_floating_point(effort, n):
    for seed in range(n):
        sizes = (6, 4, 6) if seed % 5 == 4 else (2, 4, 6)  # with six parents, lines stand for two of them
        net, row = sb.layered(sizes, rng=seed, scale=[0.5, 1.0, 3.0][seed % 3]), [seed % 2] * 6
        plain, proven = (certify(net, row, effort=effort, proven=p) for p in (False, True))
        assert proven.proven
        assert proven.lower == pytest.approx(plain.lower, abs=EXACT_TERM * net.n_units)
        assert proven.upper == pytest.approx(plain.upper, abs=1e-9)
        ball = sb.bounds.proven.upper.exact(net, sb.questions.evidence.coerce(net, row)[0][0])
        assert proven.lower <= float(ball) <= proven.upper
        assert float(ball) == pytest.approx(sb.log_likelihood(net, row), abs=1e-12)


@pytest.mark.usefixtures("bounded")
def test_proven_ends_enclose_the_exact_ball_on_hostile_networks():
    for seed in range(60):
        net, row, _ = hostile(seed)
        states = sb.questions.evidence.coerce(net, row)[0][0]
        found = enclosure.enclose(net, states, enclosure.How("fast", True))
        ball = sb.bounds.proven.upper.exact(net, states)
        assert not ball < found.lower, seed
        assert not ball > found.upper, seed


def test_many_parents_are_averaged_by_the_trapezoid_rule_in_balls_too():
    net = sb.layered((40, 10), rng=0, scale=0.5)
    plain, proven = (certify(net, [0] * 10, proven=p) for p in (False, True))
    assert proven.lower == pytest.approx(plain.lower, abs=EXACT_TERM * net.n_units)
    assert proven.upper == pytest.approx(plain.upper, abs=1e-9)


def test_a_mixture_is_a_sum_over_larger_networks():
    net = sb.layered((2, 4, 6), rng=3, scale=3.0)
    row = sb.questions.evidence.coerce(net, [0] * 6)[0][0]
    first = sb.MeanField().solve(net, row[None, :], start=None, trace=False)
    ((total, how, pieces),) = enclosure._tighter(Reduced(net, row), first, np.empty(0, np.int64), 3)
    assert how == "mixture of 3 factorial components"
    assert total == pytest.approx(sb.infer(net, [0] * 6, solver=sb.Mixture(3)).bound, abs=1e-12)
    assert proven_lower(pieces, sb.MeanField().bound) == pytest.approx(total, abs=EXACT_TERM * net.n_units)
    whole = np.logaddexp.reduce([sb.log_likelihood(p.network, p.states) for p in pieces])
    assert total <= whole == pytest.approx(sb.log_likelihood(net, [0] * 6), abs=1e-9)


def test_means_of_zero_and_one_are_taken_as_they_are():
    net = sb.layered((3, 6, 4), rng=0, scale=2.0)
    row = sb.questions.evidence.coerce(net, [1] * 4)[0][0]
    for mean in (0.0, 1.0, 1e-300, 1 - 1e-16):
        means = np.where(np.arange(13) < 5, mean, 0.5)
        plain = sb.bounds.lower_bound(net, [1] * 4, means, log_term="exact", enumerate_up_to=4)
        assert proven_lower([Piece(net, row, means)], sb.MeanField().bound) == pytest.approx(plain, abs=EXACT_TERM)


@few
@given(
    c=st.floats(-40, 40), eta=st.floats(-60, 60), lam=st.floats(-1.5, 1.5), low=st.floats(-30, 0), high=st.floats(0, 30)
)
def test_proven_maxima_are_above_the_function_and_touch_it(c, eta, lam, low, high):
    arb = flint.arb
    with flint.ctx.workprec(128):
        balls = [arb(x) for x in (c, eta, lam, low, high)]
        t = np.union1d(np.linspace(low, high, 2001), [low, high])
        hidden = np.logaddexp(0, c + t + eta) - np.logaddexp(0, c + t) - lam * t
        observed = lam * t - np.logaddexp(0, c + t)
        step = (high - low) / 2000 * (1 + abs(lam))
        for best, seen in (
            (highest_hidden(SIGMOID, *balls), hidden),
            (highest_observed(SIGMOID, 0, balls[0], -balls[2], *balls[3:]), observed),
        ):
            assert float(best) >= seen.max() - 1e-12
            assert float(best) <= seen.max() + step + 1e-9
        cancelled = arb("0 +/- 1e-30")  # a sum of slopes that cancel, known only that well
        assert float(highest_hidden(SIGMOID, balls[0], cancelled, *balls[2:])) >= (-lam * t).max() - 1e-12
        assert float(softplus(arb(c))) == pytest.approx(np.logaddexp(0, c), rel=1e-14)


def test_without_python_flint_an_error_names_the_extra(monkeypatch, sprinkler):
    real = builtins.__import__

    def missing(name, *rest):
        if name == "flint":
            raise ImportError
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(sb.errors.ParameterError, match=r'python-flint; install it with: .* pip install "\.\[proven\]"'):
        certify(sprinkler, {"wet": 1}, proven=True)
    assert certify(sprinkler, {"wet": 1}).exact


# --- posterior intervals --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(("effort", "n", "proven"), [("fast", 100, False), ("normal", 10, False), ("fast", 10, True)])
def test_intervals_hold_the_posterior_means(effort, n, proven):
    for seed in range(n):
        net, row, rounding = hostile(seed)
        exact = sb.exact_posterior(net, row)
        hidden = [name for name, value in zip(net.names, row, strict=True) if np.isnan(value)]
        asked = None if seed % 10 == 0 else hidden[seed % 3 :: 3]
        intervals = posterior_intervals(
            net, row, units=asked, effort=effort, proven=proven, settings=sb.solvers.CertifySettings(threads=1)
        )
        assert list(intervals) == (hidden if asked is None else asked)
        for name, (low, high) in intervals.items():
            assert 0.0 <= low <= high <= 1.0
            assert low - 4 * rounding <= exact[net.index(name)] <= high + 4 * rounding, (seed, name)


def test_intervals_close_where_everything_can_be_summed(sprinkler):
    exact = sb.exact_posterior(sprinkler, {"wet": 1})
    intervals = posterior_intervals(sprinkler, {"wet": 1}, units=["rain", 3, "wet"])
    assert list(intervals) == ["rain", "slippery", "wet"]
    assert intervals["rain"] == pytest.approx((exact[0], exact[0]), abs=1e-12)
    assert intervals["slippery"] == pytest.approx((exact[3], exact[3]), abs=1e-12)
    assert intervals["wet"] == (1.0, 1.0)
    with pytest.raises(sb.errors.EvidenceError, match="takes one pattern, but the evidence is a table"):
        posterior_intervals(sprinkler, [{"wet": 1}])


# --- tables and texts -----------------------------------------------------------------------------------------------


def test_a_table_has_a_certificate_for_each_row():
    net = sb.layered((4, 12, 8), rng=0, scale=1.0)
    rows = np.vstack([sb.sample(net, 3, rng=0)[:, -8:], np.zeros((1, 8))])
    table = certify(net, rows, settings=sb.solvers.CertifySettings(threads=2))
    assert isinstance(table, Certificates)
    assert len(table) == 4
    assert [table[r] for r in range(4)] == list(table) == [certify(net, row) for row in rows]
    assert isinstance(table[1:3], Certificates)
    assert list(table[1:3]) == [table[1], table[2]]
    assert np.array_equal(table.gap, table.upper - table.lower)
    assert table.estimate[1] == table[1].estimate
    assert "4 rows" in repr(table)
    assert "0 exact" in table._repr_html_()
    frame = pytest.importorskip("pandas") and table.to_frame()
    assert frame["lower"].tolist() == table.lower.tolist()
    assert not frame["exact"].any()
    empty = certify(net, np.empty((0, 8)))
    assert repr(empty) == "Certificates: 0 rows"


def made(lower, upper, **changes):
    parts = {
        "estimate": lower,
        "error": 0.001,
        "exact": False,
        "lower_from": "mean field",
        "upper_from": "Hölder's inequality, 1 subproblem",
        "mean_field": lower - 0.5,
        "logarithm": 0.25,
        "effort": "fast",
        "proven": False,
        "interval": (lower, upper),
    }
    return Certificate(lower, upper, **(parts | changes))


def test_a_certificate_reads_as_a_sentence_that_is_true_to_the_last_digit():
    text = str(made(-1.03214, -1.02146))
    assert text == repr(made(-1.03214, -1.02146))
    assert text.splitlines()[0] == (
        "ln P(evidence) lies between -1.033 and -1.021 (gap 0.011 nats, so P is known within 1.1 %)"
    )
    assert "that is:     P(evidence) between 0.356 and 0.361" in text
    assert "that is" not in str(made(-2000.0, -1000.0))
    assert "costs 0.5 to 0.511 nats, about 0.5" in text
    assert "would cost 0.25 more" in text
    assert "rounding:    covered, by a margin for the worst; proven=True counts it in ball arithmetic" in text
    assert "between -7.001 and 0.000 (gap 7 nats, so P is known within a factor of 1.1e+03)" in str(
        made(-7.0004, -1e-9)
    )
    assert "covered, by ball arithmetic" in str(made(-2.0, -1.0, proven=True))
    assert "lower bound:" in made(-2.0, -1.0)._repr_html_()
    assert "Hölder&#x27;s" in made(-2.0, -1.0)._repr_html_()


def test_an_exact_certificate_says_so(sprinkler):
    text = str(certify(sprinkler, {"wet": 1}))
    assert text.startswith(f"ln P(evidence) = {sb.log_likelihood(sprinkler, {'wet': 1}):.4f} (sum over all states, 2 h")
    assert "lower bound" not in text
    everything = {"rain": 1, "sprinkler": 0, "wet": 1, "slippery": 1}
    assert "product of known factors" in str(certify(sprinkler, everything))


def test_an_unknown_effort_is_refused(sprinkler):
    with pytest.raises(sb.errors.ParameterError, match="effort is 'max'; choose one of 'fast', 'normal', 'high'"):
        certify(sprinkler, {"wet": 1}, effort="max")


@pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning")  # such bounds crawl for ever, and are valid
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("effort", "n"), [("normal", 24), ("high", 20)])
def test_enormous_weights_are_no_reason_to_stumble(
    effort, n, seed
):  # gates past the limit, gains past the range of exp
    rng = np.random.default_rng(seed)
    edges = np.tril(rng.random((n, n)) < 3.6 / n, -1)
    edges[-1, :-2] = True
    weights = rng.choice([-1e8, -1e4, -5.0, 1e-3, 7.0, 300.0, 1e8], (n, n))
    network = sb.from_weight_matrix(np.where(edges, weights, 0.0), bias=rng.choice([-1e8, -30.0, 0.0, 1e4], n))
    row = np.full(n, -1)
    row[-2:] = rng.integers(0, 2, 2)
    certificate = sb.certify(network, row, effort=effort)
    assert certificate.lower <= certificate.upper <= 0.0
    found = sb.infer(network, row, solver=sb.Mixture(2)).bound
    assert found <= certificate.upper + 1e-9 * abs(certificate.upper)


def test_one_unit_may_be_asked_for_by_its_name():
    network = sb.from_edges({("rain", "wet"): 2.0})
    assert sb.posterior_intervals(network, {"wet": 1}, units="rain").keys() == {"rain"}
    with pytest.raises(sb.errors.NetworkError, match="a variable is given by its name or its number; got 1.5"):
        sb.posterior_intervals(network, {"wet": 1}, units=[1.5])


# --- one row is reduced and solved once -------------------------------------------------------------------------------


def counted(monkeypatch):
    """Counters of the reductions of a pattern, of exact sums over its groups, and of mean field solutions."""
    calls = {"reduce": [], "sum_groups": [], "solve": []}

    def count(name, real, states):
        def counting(*args, **options):
            calls[name].append(np.asarray(states(args)).tobytes())
            return real(*args, **options)

        return counting

    monkeypatch.setattr(enumeration, "reduce", count("reduce", enumeration.reduce, lambda args: args[1]))
    sum_groups = count("sum_groups", enumeration._sum_groups, lambda args: args[0].states)
    monkeypatch.setattr(enumeration, "_sum_groups", sum_groups)
    monkeypatch.setattr(sb.MeanField, "solve", count("solve", sb.MeanField.solve, lambda args: args[2]))
    return calls


@pytest.mark.parametrize("options", [{"confidence": 0.9}, {}, {"gap": 1.0}])
def test_a_row_is_reduced_and_solved_once_and_the_solution_passed_on(monkeypatch, options):
    net = sb.layered((8, 16, 20), rng=1, scale=1.0)
    row = np.full(44, -1, np.int8)
    row[-20:] = sb.sample(net, 1, rng=0)[0, -20:]
    calls = counted(monkeypatch)
    assert not sb.certify(net, row[-20:], **options).exact
    assert {name: made.count(row.tobytes()) for name, made in calls.items()} == {
        "reduce": 1,
        "sum_groups": 1,
        "solve": 1,
    }


def test_causes_and_their_findings_are_reduced_and_solved_once(monkeypatch):
    edges = [(f"d{k}", f"f{i}") for k in range(16) for i in range(9)]
    net = sb.noisy_or(causes=dict.fromkeys(edges, 0.5), prior={f"d{k}": 0.1 for k in range(16)})
    calls = counted(monkeypatch)
    assert not sb.certify(
        net, {f"f{i}": 1 for i in range(9)}, confidence=0.9, settings=sb.solvers.CertifySettings(exact_up_to=0)
    ).exact
    assert {name: len(made) for name, made in calls.items()} == {"reduce": 1, "sum_groups": 1, "solve": 1}
