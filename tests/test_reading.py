"""Answers read well: what matters first, prior beside posterior, named records, batches whose slices are batches."""

from __future__ import annotations

import copy
import csv
import io
import itertools
import json
import pickle
import re
import sys

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import sbnet as sb
from sbnet.cli import main
from sbnet.errors import MissingExtraError, ParameterError, SBNetError, UnknownUnitError
from sbnet.exact import prior
from sbnet.questions import printing
from sbnet.questions.printing import Move, Span, Terms
from strategies import cases

pytestmark = pytest.mark.small

ROWS = [{"wet": 1}, {"slippery": 0}, {}, {"wet": 1, "rain": 0}]


# --- bars and tables ------------------------------------------------------------------------------------------------

chances = st.floats(0.0, 1.0)


@given(chances, chances, st.sampled_from([1.0, 0.5, 0.2]))
def test_a_bar_shows_what_was_before_and_what_is_now(before, after, top):
    before, after = before * top, after * top
    text = Move(before, after, top).text()
    cells = round(20 * before / top), round(20 * after / top)
    assert text.count("█") == min(cells)
    assert text.count("+") == max(cells[1] - cells[0], 0)
    assert text.count("-") == max(cells[0] - cells[1], 0)


@given(chances, chances)
def test_the_bar_of_an_interval_covers_it(one, other):
    low, high = sorted((one, other))
    text = Span(low, high).text()
    assert len(text) == 20
    filled = [k for k, cell in enumerate(text) if cell == "█"]
    assert filled == list(range(filled[0], filled[-1] + 1))
    assert filled[0] / 20 <= low
    assert high <= (filled[-1] + 1) / 20 + 1e-12


@given(st.lists(chances, min_size=1, max_size=5))
def test_the_end_of_the_bars_has_room_for_all_and_is_not_far(values):
    top = printing.scale(np.array(values))
    assert max(values) <= top <= max(2.5 * max(values), 1e-6)
    assert f"{top:e}"[0] in "125"


def test_rare_units_are_not_printed_as_zeros():
    net = sb.from_edges({("rare", "sign"): 8.0}, bias={"rare": -12.0, "sign": -6.0})
    assert "6.1e-06 →" in repr(sb.infer(net, {"sign": 1}))
    assert [printing.probability(p) for p in (0.0, 1e-5, 0.001, 0.5, 1.0)] == [
        "0.0000",
        "1.0e-05",
        "0.0010",
        "0.5000",
        "1.0000",
    ]


# --- prior beside posterior -----------------------------------------------------------------------------------------


@given(cases(max_weight=5.0))
def test_units_are_ranked_by_how_far_the_evidence_moved_them(case):
    network, evidence = case
    for post in (sb.infer(network, evidence), sb.exact_posterior(network, evidence)):
        lines = [line.rpartition("→")[0].split() for line in repr(post).splitlines()[2:] if "→" in line]
        named = [" ".join(words[:-1]) for words in lines]
        moves = [abs(post[name] - post.prior[network.index(name)]) for name in named]
        hidden = np.flatnonzero(post.evidence < 0)
        assert all(one >= two - 1e-9 for one, two in itertools.pairwise(moves))
        assert len(named) == min(len(hidden), 12)
        most = np.abs(post.means - post.prior)[hidden].max(initial=0.0)
        assert max(moves, default=0.0) == pytest.approx(most, abs=1e-9)


@given(cases(max_weight=5.0))
def test_the_prior_of_a_posterior_is_the_answer_without_evidence(case):
    network, evidence = case
    post = sb.infer(network, evidence)
    assert np.array_equal(post.prior, sb.infer(network, {}).means)
    untouched = ~np.isin(np.arange(network.n_units), _connected(network, evidence))
    assert np.array_equal(post.means[untouched], post.prior[untouched])


def _connected(network, evidence):
    """Units in a component of the undirected graph that has observed units."""
    linked = np.eye(network.n_units, dtype=bool) | (network.weight_matrix() != 0) | (network.weight_matrix() != 0).T
    reached = ~np.isnan(evidence)
    for _ in range(network.n_units):
        reached = (linked & reached[None, :]).any(axis=1) | reached
    return np.flatnonzero(reached)


@given(cases(max_weight=5.0))
def test_the_prior_of_an_exact_posterior_is_exact(case):
    network, evidence = case
    assume(network.n_units <= 12)  # with more, it is a prediction
    assert_allclose(
        sb.exact_posterior(network, evidence).prior, sb.exact_posterior(network, {}), rtol=1e-9, atol=1e-300
    )


def test_a_sampler_is_read_beside_the_exact_prior(sprinkler):
    post = sb.infer(sprinkler, {"wet": 1}, solver=sb.Gibbs(samples=50))
    assert_allclose(post.prior, sb.exact_posterior(sprinkler, {}), rtol=1e-12)
    assert f"→ {post['rain']:.4f} ± {post.error[0]:.3f}" in repr(post)


def test_where_an_exact_prior_would_take_long_predictions_do():
    wide = sb.layered((20, 3), rng=0)
    row = [1.0] * 20 + [np.nan] * 3
    assert_allclose(sb.exact_posterior(wide, row).prior, sb.infer(wide, {}).means, rtol=1e-12)
    many = sb.from_edges({}, bias={f"u{k}": 0.1 for k in range(201)})
    assert_allclose(prior.best_prior(many), 1 / (1 + np.exp(-0.1)))


def test_a_prior_is_computed_once_for_equal_networks_and_cannot_be_changed(sprinkler, monkeypatch):
    post = sb.infer(sprinkler, {"wet": 1})
    first = post.prior
    monkeypatch.setattr(prior, "predict_rows", None)
    assert sb.infer(sprinkler, {"rain": 1}).prior is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 0.5


def test_very_large_networks_are_printed_without_their_prior(sprinkler, monkeypatch):
    for module in ("sbnet.exact.means", "sbnet.certificates.records"):
        monkeypatch.setattr(f"{module}.MOST_EDGES", 2)
    post = sb.infer(sprinkler, {"wet": 1})
    monkeypatch.setattr(prior, "predict_rows", None)  # it would fail
    lines = repr(post).splitlines()
    assert "no prior: over a million edges" in lines[1]
    assert [line.split() for line in lines[2:-1]] == [
        [name, f"{post[name]:.4f}"] for name in ("rain", "sprinkler", "slippery")
    ]
    assert "0.2" not in repr(sb.posterior_intervals(sprinkler, {"wet": 1})).splitlines()[2][:14]


# --- what changed ---------------------------------------------------------------------------------------------------


@given(cases(max_weight=5.0), cases(max_weight=5.0))
def test_a_comparison_is_the_difference(case, other):
    network, evidence = case
    before, after = sb.infer(network, evidence), sb.infer(network, {})
    change = before.compare(after)
    assert np.array_equal(change.change, after.means - before.means)
    assert change.bound_change == after.bound - before.bound
    assert set(change.evidence_changes) == {network.names[i] for i in np.flatnonzero(before.evidence >= 0)}
    assert repr(change)


def test_a_comparison_in_a_terminal(sprinkler):
    before, after = sb.infer(sprinkler, {"wet": 1, "rain": 0}), sb.infer(sprinkler, {"wet": 0, "slippery": 1})
    change = before.compare(after)
    lines = repr(change).splitlines()
    gain = after.bound - before.bound
    assert lines[0] == (
        f"Comparison: the bound {'rises' if gain > 0 else 'falls'} by {abs(gain):.4g} nats (×{np.exp(gain):.2f}), "
        f"{before.bound:.6g} → {after.bound:.6g}"
    )
    assert lines[1] == "  evidence: no longer rain = 0, wet = 1 → 0, now slippery = 1"
    assert lines[2].split()[:6] == ["hidden", "in", "both", "before", "→", "after"]
    assert lines[3].split()[:4] == ["sprinkler", f"{before['sprinkler']:.4f}", "→", f"{after['sprinkler']:.4f}"]
    assert len(lines) == 4
    assert change.evidence_changes == {"rain": (0, None), "wet": (1, 0), "slippery": (None, 1)}
    assert change["sprinkler"] == after["sprinkler"] - before["sprinkler"]
    assert "no longer rain = 0" in change._repr_html_()
    frame = change.to_frame()
    assert frame.loc["sprinkler", "change"] == change["sprinkler"]


def test_comparisons_with_other_solvers_networks_and_the_truth(sprinkler):
    post = sb.infer(sprinkler, {"wet": 1})
    truth = sb.exact_posterior(sprinkler, {"wet": 1})
    assert post.compare(truth).bound_change == truth.log_likelihood - post.bound > 0
    assert repr(post.compare(post)).splitlines()[:2] == [
        f"Comparison: the bound stays, {post.bound:.6g} → {post.bound:.6g}",
        "  the evidence is the same",
    ]
    sampled = sb.infer(sprinkler, {"wet": 1}, solver=sb.Gibbs(samples=50))
    assert repr(post.compare(sampled)).startswith("Comparison: one of the two has no bound\n")
    assert repr(sampled.compare(sampled)).startswith("Comparison: no bounds\n")
    stronger = sb.infer(sprinkler.with_parameters(bias={"rain": 1.0}), {"wet": 1})
    told = repr(post.compare(stronger))
    assert told.endswith("(the two networks have the same variables, but other edges or numbers)")


def test_what_cannot_be_compared_is_refused(sprinkler):
    post = sb.infer(sprinkler, {"wet": 1})
    with pytest.raises(ParameterError, match=r"^compare\(\) takes another posterior; got PosteriorBatch$"):
        post.compare(sb.infer_many(sprinkler, ROWS))
    with pytest.raises(ParameterError, match="of the same variables"):
        post.compare(sb.infer(sb.from_edges({("a", "b"): 1.0}), {}))
    with pytest.raises(UnknownUnitError, match="did you mean 'rain'"):
        post.compare(post)["rian"]


# --- exact posteriors -----------------------------------------------------------------------------------------------


def test_an_exact_posterior_is_the_array_of_means_it_always_was(sprinkler):
    exact = sb.exact_posterior(sprinkler, {"wet": 1})
    plain = np.array(exact)
    assert type(plain) is type(np.asarray(exact)) is type(exact.means) is np.ndarray
    assert exact.shape == (4,)
    assert len(exact) == exact.size == 4
    assert exact.ndim == 1
    assert exact[1] == plain[1]
    assert type(exact[1]) is np.float64
    assert exact[-1] == plain[-1]
    assert np.array_equal(exact[1:3], plain[1:3])
    assert np.array_equal(exact[plain > 0.5], plain[plain > 0.5])
    assert list(zip(sprinkler.names, exact, strict=True)) == list(zip(sprinkler.names, plain, strict=True))
    for computed in (
        exact - plain,
        np.abs(plain - exact),
        2 * exact,
        exact.round(2),
        np.stack([exact, exact]),
        exact > 0,
    ):
        assert type(computed) is np.ndarray
    assert exact.max() == plain.max()
    assert type(exact.max()) is type(exact.sum()) is np.float64
    assert exact.mean() == plain.mean()
    assert exact.tolist() == plain.tolist()
    assert repr(exact.T) == repr(plain)  # nothing is claimed of a view
    assert_allclose(exact, plain, rtol=0)


def test_an_exact_posterior_by_name(sprinkler):
    exact = sb.exact_posterior(sprinkler, {"wet": 1})
    assert exact["rain"] == exact[0]
    assert type(exact["rain"]) is float
    assert exact.names == sprinkler.names
    assert exact.log_likelihood == sb.log_likelihood(sprinkler, {"wet": 1})
    with pytest.raises(UnknownUnitError, match="did you mean 'rain'"):
        exact["rian"]
    frame = exact.to_frame()
    assert frame.loc["rain", "mean"] == exact["rain"]
    assert frame.loc["wet", "observed"] == 1.0
    for again in (pickle.loads(pickle.dumps(exact)), copy.deepcopy(exact), exact.copy()):
        assert repr(again) == repr(exact)
        assert again["rain"] == exact["rain"]


def test_an_exact_posterior_prints_what_moved_most(sprinkler):
    exact = sb.exact_posterior(sprinkler, {"wet": 1})
    lines = str(exact).splitlines()
    assert lines[0] == f"Exact posterior given 1 of 4 variables: ln P = {exact.log_likelihood:.6g} nats"
    moves = np.abs(exact - sb.exact_posterior(sprinkler, {}))
    ranked = [sprinkler.names[i] for i in np.argsort(-moves) if sprinkler.names[i] != "wet"]
    assert [line.split()[0] for line in lines[2:]] == ranked
    assert "<td" in exact._repr_html_()


def test_exact_posteriors_of_a_table(sprinkler):
    exact = sb.exact_posterior(sprinkler, ROWS)
    plain = exact.means
    assert exact.shape == (4, 4)
    assert np.array_equal(exact["rain"], plain[:, 0])
    assert np.array_equal(exact.log_likelihood, sb.log_likelihood(sprinkler, ROWS))
    assert isinstance(exact[1], sb.results.ExactPosterior)
    assert repr(exact[1]) == repr(sb.exact_posterior(sprinkler, ROWS[1]))
    assert [type(row) for row in exact] == [sb.results.ExactPosterior] * 4
    for key in (slice(1, 3), [2, 0], np.array([True, False, False, True]), np.array([3])):
        some = exact[key]
        assert isinstance(some, sb.results.ExactPosteriors)
        assert np.array_equal(some, plain[key])
        assert np.array_equal(some.log_likelihood, exact.log_likelihood[key])
        assert np.array_equal(some.evidence, exact.evidence[key])
    for key in ((slice(None), 1), (0, 1), plain > 0.5, None, ..., (..., 0)):
        assert np.array_equal(exact[key], plain[key])
        assert not isinstance(exact[key], sb.results.ExactPosteriors)
    assert repr(exact).splitlines()[0] == "Exact posteriors: 4 rows × 4 variables"
    assert repr(sb.exact_posterior(sprinkler, np.empty((0, 4)))) == "Exact posteriors: 0 rows × 4 variables"
    assert list(exact.to_frame().columns) == ["log_likelihood", *sprinkler.names]
    assert repr(pickle.loads(pickle.dumps(exact))) == repr(exact)
    with pytest.raises(IndexError, match="there is no row 4 in this batch; it has rows 0 to 3"):
        exact[4]


# --- posterior intervals --------------------------------------------------------------------------------------------


def test_posterior_intervals_are_the_mapping_they_always_were(sprinkler):
    intervals = sb.posterior_intervals(sprinkler, {"slippery": 1})
    plain = dict(intervals)
    assert intervals == plain
    assert json.loads(json.dumps(intervals)) == {name: list(ends) for name, ends in plain.items()}
    low, high = intervals["rain"]
    assert 0.0 <= low <= sb.exact_posterior(sprinkler, {"slippery": 1})["rain"] <= high <= 1.0
    assert intervals.names == ("rain", "sprinkler", "wet")
    assert np.array_equal(intervals.lower, [ends[0] for ends in plain.values()])
    assert np.array_equal(intervals.upper, [ends[1] for ends in plain.values()])
    again = pickle.loads(pickle.dumps(intervals))
    assert again == intervals
    assert repr(again) == repr(intervals)
    assert sb.posterior_intervals(sprinkler, {"slippery": 1}, units=0).keys() == {"rain"}


def test_posterior_intervals_in_a_terminal_and_as_a_table(sprinkler):
    intervals = sb.posterior_intervals(sprinkler, {"slippery": 1})
    lines = repr(intervals).splitlines()
    assert lines[0] == "Posterior intervals given 1 of 4 variables: the probability lies between"
    exact = sb.exact_posterior(sprinkler, {"slippery": 1})
    moved = {name: abs(exact[name] - exact.prior[sprinkler.index(name)]) for name in intervals}
    assert [line.split()[0] for line in lines[2:-1]] == sorted(moved, key=moved.get, reverse=True)
    for line in lines[2:-1]:
        name, before, low, high, _ = line.split()
        assert before == f"{exact.prior[sprinkler.index(name)]:.4f}"
        assert float(low) <= exact[name] <= float(high)  # what is printed holds too
    assert lines[-1] == "  (effort 'fast'; rounding is covered by a margin; proven=True proves it)"
    assert "<td" in intervals._repr_html_()
    frame = intervals.to_frame()
    assert list(frame.columns) == ["prior", "lower", "upper"]
    assert tuple(frame.loc["rain", ["lower", "upper"]]) == intervals["rain"]


def test_an_interval_that_was_not_asked_for_is_missed_with_advice(sprinkler):
    intervals = sb.posterior_intervals(sprinkler, {"wet": 1}, units="rain")
    with pytest.raises(KeyError) as caught:
        intervals["sprinkler"]
    told = "there is no interval for variable 'sprinkler'; ask for it with units=['sprinkler', ...]"
    assert str(caught.value) == told
    with pytest.raises(UnknownUnitError, match="did you mean 'rain'"):
        intervals["rian"]


# --- batches --------------------------------------------------------------------------------------------------------

KEYS = [slice(1, 3), slice(None, None, -1), [2, 0], np.array([False, True, False, True]), np.array([-1]), []]
BATCHES = {
    "posteriors": (sb.infer_many, "bound"),
    "estimates": (sb.estimate, "log_probability"),
    "certificates": (sb.certify, "lower"),
    "upper bounds": (sb.upper_bound, "bound"),
    "exact posteriors": (sb.exact_posterior, "log_likelihood"),
}


@pytest.mark.parametrize("kind", BATCHES)
def test_slices_of_batches_are_batches(sprinkler, kind):
    call, column = BATCHES[kind]
    batch = call(sprinkler, ROWS)
    assert len(batch) == 4
    for key in KEYS:
        some = batch[key]
        assert type(some) is type(batch)
        rows = np.arange(4)[key if len(np.arange(4)[key]) else slice(0)] if not isinstance(key, list) or key else []
        assert np.array_equal(getattr(some, column), [getattr(batch, column)[r] for r in rows])
        assert len(some) == len(rows)
        assert repr(some)
    assert [getattr(row, column) for row in batch] == list(getattr(batch, column))
    assert getattr(batch[-1], column) == getattr(batch, column)[3]
    assert type(batch[0]) is type((sb.infer if call is sb.infer_many else call)(sprinkler, ROWS[0]))
    with pytest.raises(IndexError, match="there is no row 7 in this batch; it has rows 0 to 3"):
        batch[7]
    with pytest.raises(IndexError, match="it is empty"):
        batch[:0][0]


@pytest.mark.parametrize("kind", ["posteriors", "estimates", "certificates", "upper bounds"])
@pytest.mark.parametrize("key", [1.5, None, ("rain", 0), [0.5], np.zeros((2, 2))])
def test_keys_that_are_no_rows_are_refused(sprinkler, kind, key):
    batch = BATCHES[kind][0](sprinkler, ROWS)
    with pytest.raises(TypeError, match="number"):
        batch[key]
    with pytest.raises(IndexError, match="the batch has 4 rows"):
        batch[[9]]


def test_estimates_of_a_table_print_their_numbers(sprinkler):
    found = sb.estimate(sprinkler, ROWS, samples=100)
    lines = repr(found).splitlines()
    assert f"mean {found.log_probability.mean():.6g}" in lines[1]
    assert [line.split()[:2] for line in lines[4:]] == [
        [f"{r}", f"{value:.6g}"] for r, value in enumerate(found.log_probability)
    ]
    assert "<td" in found._repr_html_()
    assert np.array_equal(found.to_frame()["lower"], found.lower)
    assert repr(sb.estimate(sprinkler, ROWS * 3, samples=10)).endswith("... 7 more")


# --- how many terms were enumerated ---------------------------------------------------------------------------------


@given(cases(max_weight=3.0), st.integers(0, 5))
def test_terms_that_were_enumerated_are_those_without_a_parameter(case, most):
    network, evidence = case
    post = sb.infer(network, evidence, solver=sb.MeanField(log_term="xi", enumerate_up_to=most, tol=1e-2))
    states, parents = post.evidence, network.weight_matrix() != 0
    edges = np.zeros_like(parents)
    edges[network.graph.child_of_edge, network.graph.parent] = True
    live = states >= 0
    for _ in range(network.n_units):
        live = live | (edges & live[:, None]).any(axis=0)
    hidden = (edges & (states < 0)[None, :]).sum(axis=1)
    terms = live & (hidden > 0)
    assert post.enumerated == int((terms & (hidden <= most)).sum())
    assert int((~np.isnan(post.xi)).sum()) == int(terms.sum()) - post.enumerated
    text = f"(logarithm terms enumerated exactly, in place of 'xi': {post.enumerated} of {int(terms.sum())}; "
    assert (text in repr(post)) == (post.enumerated > 0)
    table = sb.infer_many(network, [evidence] * 3, solver=sb.MeanField(log_term="xi", enumerate_up_to=most, tol=1e-2))
    assert table.enumerated.tolist() == [post.enumerated] * 3
    assert table[0].enumerated == post.enumerated


def test_a_result_says_how_many_terms_were_enumerated(sprinkler):
    solver = sb.MeanField(log_term="xi")
    post = sb.infer(sprinkler, {"slippery": 1}, solver=solver)
    remark = "logarithm terms enumerated exactly, in place of 'xi': 2 of 2; enumerate_up_to=0 switches that off"
    assert f"  ({remark})" in repr(post).splitlines()
    assert "in place of &#x27;xi&#x27;: 2 of 2" in post._repr_html_()
    many = sb.infer_many(sprinkler, ROWS, solver=solver)
    assert many.enumerated.tolist() == [1, 2, 0, 1]
    assert "in place of 'xi': 4 of 4 in all rows; enumerate_up_to=0" in repr(many)
    long = sb.infer_many(sprinkler, [{"wet": 1}] * 1001, solver=solver)
    assert "1,000 of 1,000 in the first 1,000 rows" in repr(long)
    for other in (sb.MeanField(log_term="xi", enumerate_up_to=0), sb.MeanField(), sb.Gibbs(samples=50)):
        assert "enumerated" not in repr(sb.infer(sprinkler, {"slippery": 1}, solver=other))
    assert sb.infer(sprinkler, {"slippery": 1}).enumerated == 2
    assert sb.infer(sprinkler, {"slippery": 1}, solver=sb.Gibbs(samples=50)).enumerated == 0
    assert "enumerated" in sb.MeanField.__doc__


# --- without pandas -------------------------------------------------------------------------------------------------


def test_tables_without_pandas_say_how_to_get_it(sprinkler, monkeypatch):
    post = sb.infer(sprinkler, {"wet": 1})
    answers = [
        post,
        sb.infer_many(sprinkler, ROWS),
        post.compare(post),
        post.breakdown(),
        sb.exact_posterior(sprinkler, {"wet": 1}),
        sb.exact_posterior(sprinkler, ROWS),
        sb.posterior_intervals(sprinkler, {"wet": 1}),
        sb.certify(sprinkler, ROWS),
        sb.estimate(sprinkler, ROWS),
    ]
    monkeypatch.setitem(sys.modules, "pandas", None)
    for answer in answers:
        with pytest.raises(MissingExtraError) as caught:
            answer.to_frame()
        assert isinstance(caught.value, ImportError)
        assert str(caught.value) == (
            'to_frame() needs pandas; install it with: pip install "sbnet[pandas]", or, in a checkout: '
            'pip install ".[pandas]"'
        )


# --- on a terminal ----------------------------------------------------------------------------------------------------

HOSTILE = "\x1b]0;owned\x07 \x1b[31mred\x9b2J \x1b]8;;http://x\x1b\\link \u202etxt \u2066a\u2029b\x7f\nc"
UNSEEN = [
    chr(k) for k in (*range(10), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
]


def assert_harmless(text):
    assert not [c for c in (*UNSEEN, "\u2028", "\u2029") if c in text]


def hostile():
    """A network whose names and notes hold what a terminal would obey."""
    network = sb.from_edges({(HOSTILE + "cause", HOSTILE + "finding"): 2.0, ("b", HOSTILE + "finding"): 1.0})
    note = sb.Note(about=HOSTILE, group="causes", source=HOSTILE, note=HOSTILE)
    return network.with_notes({HOSTILE + "cause": note})


def test_no_text_on_a_terminal_holds_control_characters():
    network = hostile()
    finding = {HOSTILE + "finding": 1}
    answer = sb.infer(network, finding)
    records = [
        network, answer, network.conditional(HOSTILE + "finding"), answer.breakdown(), sb.next_question(network, {}),
        sb.contributions(network, finding), sb.most_probable(network, finding), sb.exact_posterior(network, finding),
        sb.posterior_intervals(network, finding),
        *list(sb.steps(network, finding))[:3],
    ]  # fmt: skip
    for record in records:
        assert_harmless(repr(record))
        assert_harmless(str(record))
    assert "\\x1b]0;owned\\x07" in repr(answer)
    assert repr(answer).count("\n") == str(answer).count("\n") == 4  # names do not end lines
    for mistake in (lambda: sb.infer(network, {HOSTILE: 1}), lambda: sb.read(HOSTILE.replace("/", "") + ".csv")):
        with pytest.raises((SBNetError, OSError)) as caught:
            mistake()
        assert_harmless(str(caught.value))
    assert_harmless(str(SBNetError(f"raw {HOSTILE}")))


def test_commands_print_no_control_characters_and_data_stay_letter_for_letter(tmp_path, capsys):
    sb.save(hostile(), tmp_path / "m.sbn")
    model, finding = str(tmp_path / "m.sbn"), HOSTILE + "finding"
    for words in (
        ["show", model],
        ["show", model, finding, HOSTILE + "cause"],
        ["infer", model, f"{finding}=1"],
        ["infer", model, f"{HOSTILE}=1"],  # what a unit is about names it too
        ["next", model],
        ["certify", model, f"{finding}=1", "--about", "b"],
    ):
        assert main(words) == 0
        assert_harmless(capsys.readouterr().out)
    for words in (
        ["infer", model, f"{HOSTILE}nobody=1"],
        ["show", HOSTILE.replace("/", "")],
        ["infer", model, "b=" + HOSTILE],
    ):
        assert main(words) == 2
        assert_harmless(capsys.readouterr().err)
    with pytest.raises(SystemExit):
        main([HOSTILE])
    assert_harmless(capsys.readouterr().err)
    assert main(["sample", model, "2"]) == 0
    assert HOSTILE + "cause" in next(csv.reader(io.StringIO(capsys.readouterr().out, newline="")))
    assert main(["show", model, "--json"]) == 0
    assert HOSTILE + "cause" in [unit["name"] for unit in json.loads(capsys.readouterr().out)["units"]]


LONG = "how often in the last twelve months did you feel that {} was more than you could bear? ({})"


@pytest.mark.parametrize("width", [60, 80, 100, 200, 500])
def test_names_are_cut_to_the_screen_and_numbers_are_not(width, tmp_path, capsys, monkeypatch):
    names = [LONG.format("work " * 40, k) for k in range(3)]
    findings = [LONG.format("noise", k) for k in range(3, 6)]
    network = sb.from_edges({(a, b): 1.0 + k for k, a in enumerate(names) for b in findings})
    sb.save(network, tmp_path / "m.sbn")
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    evidence = [f"{name}=1" for name in findings]
    for words in (["infer", *evidence], ["show"], ["next"]):
        assert main([words[0], str(tmp_path / "m.sbn"), *words[1:]]) == 0
        lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
        assert max(map(len, lines)) <= width
        assert all(re.search(r"0\.\d{4}", line) for line in lines if "?" in line)
        for k in range(3):  # names that differ at their ends are still told apart
            assert any(f"({k})" in line or f"({k + 3})" in line for line in lines)
    means = sb.infer(network, dict.fromkeys(findings, 1))
    assert max(map(len, repr(means).splitlines()[1:])) <= max(width, 70)


def test_in_a_file_nothing_is_cut_and_one_long_name_widens_no_other_line(tmp_path, capsys):
    long = "x" * 395
    sb.save(sb.from_edges({(long, "b"): 1.0, ("a", "b"): 1.0}), tmp_path / "m.sbn")
    assert main(["show", str(tmp_path / "m.sbn")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(long in line for line in lines)
    assert len(next(line for line in lines if line.startswith("  a "))) < 100


def test_contributions_lose_letters_of_names_before_numbers():
    terms = Terms((("fever", "+1.11"), ("headache of the worst kind", "+0.62"), ("cough", "-0.30"), ("b", "-0.10")))
    assert terms.text() == "fever +1.11, headache of the worst kind +0.62, cough -0.30, … 1 more"
    assert terms.text(54) == "fever +1.11, headache…ind +0.62, cough -0.30, … 1 more"
    assert terms.text(35) == "fever +1.11, … 3 more"
    assert terms.text(16) == "fever +1.11, …"
