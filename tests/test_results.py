"""What answers look like: in a terminal, in a notebook, as tables, by name and by number."""

from __future__ import annotations

import html

import numpy as np
import pytest

import sbnet as sb
from sbnet.errors import KindError, RowError

pytestmark = pytest.mark.small


@pytest.fixture
def post(sprinkler):
    return sb.infer(sprinkler, {"wet": 1})


@pytest.fixture
def batch(sprinkler):
    return sb.infer_many(sprinkler, [{"wet": 1}, {"wet": 0, "rain": 1}, {}, {"slippery": 1}])


# --- one posterior --------------------------------------------------------------------------------------------------


def test_a_posterior_in_a_terminal_leads_with_what_the_evidence_moved_most(post, sprinkler):
    lines = repr(post).splitlines()
    assert lines[0] == f"Posterior given 1 of 4 variables: ln P ≥ {post.bound:.6g} nats"
    assert lines[1].split() == ["variable", "prior", "→", "posterior", "0", "to", "1"]
    move = {name: abs(post[name] - post.prior[sprinkler.index(name)]) for name in ("rain", "sprinkler", "slippery")}
    ranked = sorted(move, key=move.get, reverse=True)
    assert [line.split()[:4] for line in lines[2:-1]] == [
        [name, f"{post.prior[sprinkler.index(name)]:.4f}", "→", f"{post[name]:.4f}"] for name in ranked
    ]
    assert lines[-1] == "  (the bound rose by less than `tol` in the last sweep)"
    assert not any(line != line.rstrip() for line in lines)


def test_a_posterior_in_a_notebook(post, sprinkler):
    page = post._repr_html_()
    assert f"<b>Posterior given 1 of 4 variables: ln P ≥ {post.bound:.6g} nats</b>" in page
    assert "<small>the bound rose by less than `tol` in the last sweep</small>" in page
    for name in ("rain", "sprinkler", "slippery"):
        before = post.prior[sprinkler.index(name)]
        assert f">{name}</td><td style='text-align:left'>{before:.4f} → {post[name]:.4f}</td>" in page
    assert page.count("<tr>") == 1 + 3  # the header and the hidden units
    assert "wet" not in page


def test_names_are_no_markup():
    network = sb.from_edges({("<b>", "x & y"): 1.0})
    page = sb.infer(network, {})._repr_html_()
    assert "&lt;b&gt;</td>" in page
    assert "x &amp; y</td>" in page


def test_only_the_first_hidden_units_of_a_large_network_are_shown():
    post = sb.infer(sb.layered((20, 2), rng=0), [1, 0])
    lines = repr(post).splitlines()
    assert len(lines) == 1 + 1 + 12 + 1 + 1
    assert lines[-2] == "  ... 8 more"
    assert "... 8 more</td>" in post._repr_html_()


def test_a_posterior_without_hidden_units(sprinkler):
    assert len(repr(sb.infer(sprinkler, [0, 0, 0, 0])).splitlines()) == 2


def test_a_posterior_as_a_table(post, sprinkler):
    frame = post.to_frame()
    assert list(frame.columns) == ["observed", "mean"]
    assert tuple(frame.index) == sprinkler.names
    assert frame.index.name == "unit"
    assert frame.loc["wet", "observed"] == 1.0
    assert frame["observed"].isna().sum() == 3
    assert np.array_equal(frame["mean"], post.means)


# --- a batch --------------------------------------------------------------------------------------------------------


def test_a_batch_in_a_terminal_and_in_a_notebook(batch):
    b = batch.bound
    assert repr(batch).splitlines() == [
        "PosteriorBatch: 4 rows × 4 variables",
        f"  bound: mean {b.mean():.6g}, from {b.min():.6g} to {b.max():.6g} nats",
        f"  4 of 4 settled, {batch.sweeps.mean():.1f} sweeps on average",
    ]
    assert batch._repr_html_() == f"<pre>{batch!r}</pre>"


MASK = np.array([True, False, False, True])
KEYS = [(slice(1, 3), [1, 2]), (slice(None, None, -2), [3, 1]), ([2, 0, 2], [2, 0, 2]), (MASK, [0, 3]), ([], [])]


@pytest.mark.parametrize("ask", [sb.infer_many, sb.estimate, sb.upper_bound, sb.most_probable, sb.certify])
@pytest.mark.parametrize(("key", "rows"), KEYS)
def test_every_batch_gives_rows_in_one_way(sprinkler, ask, key, rows):
    whole = ask(sprinkler, [{"wet": 1}, {"wet": 0, "rain": 1}, {}, {"slippery": 1}])
    some = whole[key]
    assert type(some) is type(whole)
    assert list(map(repr, some)) == [repr(whole[r]) for r in rows]
    assert len(some.to_frame()) == len(some) == len(rows)
    with pytest.raises(RowError, match="there is no row 4 in this batch; it has rows 0 to 3"):
        whole[4]
    with pytest.raises(KindError, match="a row is given by its number, a variable by its name; got 1.5"):
        whole[1.5]


@pytest.mark.parametrize("ask", [sb.infer, sb.estimate, sb.most_probable])
def test_every_answer_is_shown_in_a_notebook_as_in_a_terminal(sprinkler, ask):
    found = ask(sprinkler, {"wet": 1})
    assert repr(found).splitlines()[0] in html.unescape(found._repr_html_())


def test_short_batches(sprinkler):
    assert repr(sb.infer_many(sprinkler, np.empty((0, 4)))) == "PosteriorBatch: 0 rows × 4 variables"
    assert repr(sb.infer_many(sprinkler, [{}])).startswith("PosteriorBatch: 1 row × 4 variables\n")


def test_a_batch_by_name_is_a_column_and_by_number_a_posterior(batch, post):
    assert np.array_equal(batch["rain"], batch.means[:, 0])
    assert isinstance(batch[0], sb.results.Posterior)
    assert np.array_equal(batch[0].means, post.means)
    assert np.array_equal(batch[0].evidence, post.evidence)
    assert np.array_equal(batch[0].xi, post.xi, equal_nan=True)
    assert batch[0].bound == post.bound
    assert batch[0].status is post.status
    assert abs(batch[0].breakdown().bound - post.bound) < 1e-6
    assert batch[-1].bound == batch[3].bound == batch.bound[3]
    assert len(batch[0].trace) == 0  # a batch keeps no traces
    assert batch[0].sweeps == 0 or batch[0].sweeps == batch.sweeps[0]
    with pytest.raises(IndexError):
        batch[4]


@pytest.mark.parametrize(
    ("key", "rows"),
    [
        (slice(1, 3), [1, 2]),
        (slice(None, None, -2), [3, 1]),
        ([2, 0, 2], [2, 0, 2]),
        (np.array([True, False, False, True]), [0, 3]),
        ([False, True, False, False], [1]),
        (np.array([-1]), [3]),
        ([], []),
    ],
)
def test_some_rows_of_a_batch_are_a_batch(batch, key, rows):
    some = batch[key]
    assert isinstance(some, sb.results.PosteriorBatch)
    assert len(some) == len(rows)
    assert np.array_equal(some.evidence, batch.evidence[rows])
    assert np.array_equal(some.means, batch.means[rows])
    assert np.array_equal(some.xi, batch.xi[rows], equal_nan=True)
    assert [post.bound for post in some] == batch.bound[rows].tolist()
    assert some.status == [batch.status[r] for r in rows]


def test_rows_of_a_batch_keep_their_labels_and_their_errors(sprinkler):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"wet": [1, 0, 1]}, index=["mon", "tue", "wed"])
    batch = sb.infer_many(sprinkler, table, solver=sb.Gibbs(samples=50))[1:]
    assert list(batch.to_frame().index) == ["tue", "wed"]
    assert batch.error.shape == batch.r_hat.shape == (2, 4)
    with pytest.raises(IndexError):
        batch[[0, 2]]


def test_a_batch_is_a_sequence_of_posteriors(batch):
    assert len(batch) == 4
    assert [p.bound for p in batch] == batch.bound.tolist()
    assert [p["wet"] for p in batch] == batch["wet"].tolist()


def test_a_batch_as_a_table(batch, sprinkler):
    frame = batch.to_frame()
    assert list(frame.columns) == ["bound", "converged", *sprinkler.names]
    assert list(frame.index) == [0, 1, 2, 3]
    assert np.array_equal(frame["bound"], batch.bound)
    assert np.array_equal(frame[list(sprinkler.names)], batch.means)
    assert frame["converged"].dtype == bool


def test_a_table_keeps_the_index_of_the_table_it_answers(sprinkler):
    pandas = pytest.importorskip("pandas")
    evidence = pandas.DataFrame({"wet": [1, 0], "rain": [np.nan, 1]}, index=pandas.Index(["mon", "tue"], name="day"))
    frame = sb.infer_many(sprinkler, evidence).to_frame()
    assert frame.index.equals(evidence.index)
    assert frame.index.name == "day"
    assert frame.loc["tue", "rain"] == 1.0
    twice = sb.infer_many(sprinkler, pandas.concat([evidence, evidence])).to_frame()  # labels need not differ
    assert list(twice.index) == ["mon", "tue", "mon", "tue"]
    assert np.array_equal(twice["bound"][:2], twice["bound"][2:])


# --- status ---------------------------------------------------------------------------------------------------------


def test_a_status_says_why_in_words():
    assert {status.name: status.value for status in sb.results.Status} == {
        "CONVERGED": "the bound rose by less than `tol` in the last sweep",
        "MAX_SWEEPS": "`max_sweeps` was reached before the bound settled; it is still valid",
        "MIXED": "the chains agree: R-hat is below 1.05 for every variable",
        "NOT_MIXED": "the chains disagree: R-hat is 1.05 or more for some variable; draw more samples",
        "IMPOSSIBLE": "the evidence is impossible: its probability is 0, and there is no posterior",
        "NO_STATE": "no state of positive probability was found to start from: the bound is minus infinity",
        "EXACT": "sums over all states: ln P and the means are exact",
    }


def test_a_status_has_a_code_for_arrays():
    assert [status.code for status in sb.results.Status] == [0, 1, 2, 3, 4, 5, 6]
    assert sb.results.Status.MIXED.code.dtype == np.int8
    assert [status.done for status in sb.results.Status] == [True, False, True, False, True, False, True]


@pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning")
def test_a_status_that_is_not_good_is_shown(sprinkler):
    post = sb.infer(sprinkler, {"slippery": 1}, solver=sb.MeanField(max_sweeps=1, tol=1e-9))
    assert repr(post).endswith("  (`max_sweeps` was reached before the bound settled; it is still valid)")
    assert "it is still valid" in post._repr_html_()
    batch = sb.infer_many(sprinkler, [{"slippery": 1}, {}], solver=sb.MeanField(max_sweeps=2, tol=1e-9))
    assert repr(batch).splitlines()[2].startswith("  1 of 2 settled")


def test_results_cannot_be_changed_by_assignment(post, batch):
    for answer in (post, batch):
        with pytest.raises(AttributeError):
            answer.bound = 0.0
