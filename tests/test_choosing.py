"""What a density chooses by itself on made tables: regressions with exact zeros, scales, hidden units, orders."""

from __future__ import annotations

import itertools
import pickle
import re
import time

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import sbnet as sb
from sbnet.estimators import SBNClassifier, SBNDensity, SBNImputer, SBNOutlier, _choosing, _search
from sbnet.files.own import MIXTURE
from sbnet.files.tensors import read_tensors, write_tensors
from sbnet.learning.regressions import Design, regress_columns
from tables import rows_of, with_holes


def chain(n, width=12, seed=0, flip=0.15):
    """Each column copies the one before it, but for a few: one parent is enough, whatever the number of columns."""
    rng = np.random.default_rng(seed)
    table = np.zeros((n, width), np.int8)
    table[:, 0] = rng.random(n) < 0.3
    for k in range(1, width):
        table[:, k] = np.where(rng.random(n) < flip, 1 - table[:, k - 1], table[:, k - 1])
    return table


def parity(n, seed=0):
    """The third column of each triple is the parity of the two before it: no regression can tell it."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, 2, (n, 2, 2), dtype=np.int8)
    return np.concatenate([pairs, pairs.sum(axis=2, keepdims=True) % 2], axis=2).reshape(n, 6).astype(np.int8)


# The budget


def test_the_same_seed_gives_the_same_network_whatever_the_clock_says(monkeypatch):
    table = chain(120, width=5)
    first = SBNDensity(random_state=0).fit(table)
    for clock in ("process_time", "monotonic", "perf_counter", "time"):  # a thousand seconds between any two looks
        monkeypatch.setattr(time, clock, itertools.count(1e9, 1000.0).__next__)
    slow = SBNDensity(random_state=0).fit(table)
    assert slow.network_ == first.network_
    assert [(t.what, t.bound) for t in slow.report_.trials] == [(t.what, t.bound) for t in first.report_.trials]


def test_nothing_new_is_tried_once_the_steps_are_spent(monkeypatch):
    table = chain(150, width=5)
    tried = {trial.what for trial in SBNDensity(random_state=0).fit(table).report_.trials}
    monkeypatch.setattr(_search, "_BUDGET", 0)
    late = {trial.what for trial in SBNDensity(random_state=0).fit(table).report_.trials}
    assert {"hidden units", "per-column mixtures"} <= tried
    assert "hidden units" in late
    assert "per-column mixtures" not in late


# Regressions


@pytest.mark.parametrize(("penalty", "ridge"), [(0.5, 0.0), (4.0, 0.0), (0.5, 3.0)])
def test_regressions_are_those_of_scikit_learn(penalty, ridge):
    table = chain(300, width=8)
    table[:, 5] |= table[:, 0]
    design = Design.of(table, np.ones(300))
    assert len(design.cells) < 300  # equal rows count once
    found = regress_columns(design, lambda k: np.full(k, penalty), ridge=lambda k: np.full(k, ridge))
    weights, bias = found.weights()
    assert found.n_edges == weights.nnz
    both = penalty + ridge
    for k in (1, 4, 7):
        turned = np.where(design.turned, 1 - table, table)
        peer = LogisticRegression(C=1 / both, l1_ratio=penalty / both, solver="saga", tol=1e-7, max_iter=50_000)
        peer.fit(turned[:, :k], turned[:, k])
        assert_allclose(found.coefficients[k][:-1], peer.coef_[0], atol=5e-3)
        z = table @ weights[[k], :].toarray()[0] + bias[k]  # as the table was given
        sign = np.where(design.turned[k], -1.0, 1.0)
        assert_allclose(sign * z, peer.decision_function(turned[:, :k]), atol=2e-2)


def test_regressions_satisfy_their_conditions_and_a_start_makes_no_difference():
    rng = np.random.default_rng(1)
    table = (rng.random((400, 20)) < 0.3).astype(np.int8)
    table[:, 10:] |= table[:, :10] & (rng.random((400, 10)) < 0.7)
    weight = rng.integers(1, 4, 400).astype(float)
    design = Design.of(table, weight)
    cold = regress_columns(design, lambda k: np.full(k, 2.0))
    strong = regress_columns(design, lambda k: np.full(k, 20.0))
    warm = regress_columns(design, lambda k: np.full(k, 2.0), start=strong.coefficients)
    assert strong.n_edges < cold.n_edges < 190
    for k, (a, b) in enumerate(zip(cold.coefficients, warm.coefficients, strict=True)):
        assert_allclose(a, b, atol=0.05)
        y, w = design.answer(k)
        ones = (design.cells[:, :k] == 1).astype(float)
        slope = ones.T @ (w * (y - 1 / (1 + np.exp(-(ones @ a[:-1] + a[-1])))))
        assert np.all(np.abs(slope) <= 2.0 * 1.02 + 0.1)
        assert_allclose(slope[a[:-1] != 0], 2.0 * np.sign(a[:-1][a[:-1] != 0]), atol=0.1)


def test_constant_columns_and_holes_do_not_stop_regressions():
    table = chain(200, width=6)
    table[:, 2] = 1
    table[:50, 3] = -1
    found = regress_columns(Design.of(table, np.ones(200)), lambda k: np.full(k, 1.0))
    assert not found.coefficients[2][:-1].any()
    assert all(np.isfinite(c).all() for c in found.coefficients)


def test_some_columns_alone_are_regressed_as_all_of_them_are():
    design = Design.of(chain(300, width=9), np.ones(300))
    whole, some = (regress_columns(design, lambda k: np.full(k, 1.0), every=every) for every in (1, 4))
    for k, (a, b, alone) in enumerate(zip(whole.coefficients, some.coefficients, design.alone(), strict=True)):
        assert_array_equal(b, a if k in (2, 6) else alone)


# Choices


def test_scales_of_wide_tables_are_compared_on_some_columns_and_all_are_learned(monkeypatch):
    table, test = chain(400, width=24), chain(400, width=24, seed=1)
    whole = SBNDensity(random_state=0, hidden=(), column_mixtures=0).fit(table)
    for name, value in {"_WIDE": 400 * 24 * 24 / 3, "_SOME": 4}.items():
        monkeypatch.setattr(_choosing, name, value)
    some = SBNDensity(random_state=0, hidden=(), column_mixtures=0).fit(table)
    tried = [trial.what for trial in some.report_.trials]
    assert sum("one column of 3" in what for what in tried) >= len(tried) - 2
    assert "one column of" not in tried[-1]  # latent variables would begin with all of them
    assert not any("columns backwards" in what for what in tried)
    assert 0.25 < some.report_.scales.autoregressive / whole.report_.scales.autoregressive < 4.0
    assert abs(some.score(test) - whole.score(test)) < 0.1


def test_a_chain_needs_one_parent_a_column():
    density = SBNDensity(random_state=0).fit(chain(600))
    report = density.report_
    assert report.hidden == report.column_mixtures == report.epochs == 0
    assert density.network_.n_edges == report.n_edges < 40  # of 66
    assert density.network_.weight.all()
    assert density.score(chain(500, seed=1)) > -6.0  # the truth: -5.3
    assert "held-out rows" in str(report)
    assert np.isinf(report.scales.spread)
    assert {t.what.split(",")[0] for t in report.trials} >= {
        "autoregressive edges",
        "hidden units",
        "per-column mixtures",
    }


def test_column_mixtures_are_added_where_they_improve_held_out_rows():
    density = SBNDensity(hidden=0, random_state=0).fit(parity(800))
    assert density.report_.column_mixtures == 1
    assert density.score(parity(300, seed=1)) > -6 * np.log(2) + 0.3  # what regressions have, and more


def test_what_is_given_is_not_chosen():
    table = chain(200)
    density = SBNDensity(hidden=(2, 3), column_mixtures=0, epochs=2, random_state=0).fit(table)
    assert density.network_.names[:5] == sb.layered((2, 3, 12)).names[:5]
    assert (density.report_.layers, density.n_iter_) == ((2, 3), 2)
    assert SBNDensity(prior=sb.Laplace(0.5), epochs=1, random_state=0).fit(table).report_ is None


def test_choices_are_told_if_asked(capsys):
    SBNDensity(hidden=0, column_mixtures=0, verbose=1, random_state=0).fit(chain(100, width=4))
    assert "chosen: Laplace prior, scale" in capsys.readouterr().err


@pytest.mark.parametrize("table", [chain(3), chain(30)[:, :1], np.ones((40, 3)), with_holes(rows_of(0, 60), 0.4)])
def test_any_table_can_be_chosen_for(table):
    density = SBNDensity(random_state=0).fit(table)
    assert np.all(np.isfinite(density.score_samples(table)))


def test_a_choice_is_the_same_each_time_and_on_any_number_of_threads():
    table = chain(150, width=6)
    one, two = (SBNDensity(random_state=0, n_jobs=n).fit(table).network_ for n in (1, 2))
    assert one == two


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("given", [{}, {"prior": {"hidden": 2.0, "autoregressive": 0.5}}])
def test_a_row_scored_afresh_is_not_below_the_same_row_while_learning(missing, given):
    rng = np.random.default_rng(0)
    taste = rng.integers(
        0, 2, (400, 3)
    )  # tastes that explain each other away: mean field posteriors have several optima
    noise = rng.random((400, 10)) < 0.1
    table = ((taste @ rng.choice([-2, 1, 2], (3, 10)) > 0.5) ^ noise).astype(float)
    table[rng.random(table.shape) < missing] = np.nan
    density = SBNDensity(hidden=4, column_mixtures=1, epochs=12, random_state=0, **given).fit(table)
    assert density.score(table) > density.bounds_[-1] - 0.05


def alarms(n, seed=0):
    """An alarm that any two of four causes set off, before its causes: only the other way round is it a regression."""
    rng = np.random.default_rng(seed)
    causes = rng.random((n, 4)) < 0.4
    alarm = (causes.sum(axis=1) > 1) ^ (rng.random(n) < 0.03)
    return np.column_stack([alarm, causes]).astype(np.int8)


def test_another_order_of_the_columns_is_taken_where_it_pays():
    table = alarms(3000)
    density = SBNDensity(hidden=0, column_mixtures=0, random_state=0).fit(table)
    names = density.network_.names
    assert names != density.mixture_.columns == ("x0", "x1", "x2", "x3", "x4")
    assert names.index("x0") > 1
    assert f"columns {density.report_.order}" in str(density.report_)
    states = alarms(50, seed=1)[:, [int(name[1:]) for name in names]]
    assert_allclose(density.score_samples(alarms(50, seed=1)), sb.log_likelihood(density.network_, states))
    assert_allclose(density.sample(5000).mean(axis=0), table.mean(axis=0), atol=0.05)
    filled = density.impute(np.array([[np.nan, 1, 1, 1, 1], [np.nan, 0, 0, 0, 0]]))
    assert filled[0, 0] > 0.9 > 0.1 > filled[1, 0]


def test_columns_keep_their_order_where_another_is_hardly_better():
    report = SBNDensity(hidden=0, column_mixtures=0, random_state=0).fit(chain(600)).report_
    bounds = {trial.what: trial.bound for trial in report.trials}
    assert max(bounds, key=bounds.get) == "autoregressive edges, columns undecided first"  # by chance
    assert report.order == "as given"


def topics(n, width=30, seed=0):
    """Every column is common in rows of one topic and rare in the others: all say the same."""
    rng = np.random.default_rng(seed)
    return (rng.random((n, width)) < np.where(rng.random((n, 1)) < 0.3, 0.45, 0.1)).astype(np.int8)


def test_strong_weights_are_held_more_where_many_columns_say_the_same():
    density, fresh = SBNDensity(hidden=0, column_mixtures=0, random_state=0).fit(topics(600)), topics(2000, seed=1)
    report = density.report_
    assert report.scales.spread <= 1.0
    assert f"elastic net, Gaussian scale {report.scales.spread:.3g}" in str(report)
    scale = report.scales.autoregressive
    lone = regress_columns(Design.of(topics(600), np.ones(600)), lambda k: np.full(k, 1 / scale))
    assert density.network_.weight.max() < max(c[:-1].max(initial=0.0) for c in lone.coefficients)
    once = clone(density).set_params(prior={"autoregressive": sb.Laplace(scale)}).fit(topics(600))
    assert density.score(fresh) > once.score(fresh)
    density.partial_fit(topics(600))  # under the same prior
    assert density.score(fresh) > once.score(fresh)


def test_the_scale_of_hidden_units_is_chosen_too():
    report = SBNDensity(autoregressive=False, column_mixtures=0, random_state=0).fit(topics(400, width=10)).report_
    tried = {trial.what: trial.bound for trial in report.trials if "stage 2" in trial.what}
    assert len(tried) == 2
    assert any("their scale 0.5" in what for what in tried)
    assert report.hidden == 8
    assert report.scales.hidden == (0.5 if "0.5" in max(tried, key=tried.get) else 2.0)


def test_tables_drawn_again_have_the_same_order():
    holes = with_holes(alarms(1500).astype(float), 0.1)
    imputer = SBNImputer(hidden=0, multiple=2, random_state=0).fit(holes)
    assert imputer.network_.names.index("x0") > 1
    assert {network.names for network in imputer.draw_networks_} == {imputer.network_.names}


def test_hidden_units_may_come_before_autoregressive_edges():
    density = SBNDensity(column_mixtures=0, random_state=0).fit(chain(200, width=5))
    tried = {trial.what.split(",")[0] for trial in density.report_.trials}
    assert "hidden units before autoregressive edges" in tried  # in narrow tables too


# Several orders


@pytest.fixture(scope="module")
def mixed():
    return SBNDensity(orders=3, hidden=0, column_mixtures=0, random_state=0).fit(chain(300, width=6))


def test_the_likelihood_of_a_mixture_is_the_mean_of_those_of_its_networks(mixed):
    states = np.array(np.meshgrid(*[[0, 1]] * 6)).reshape(6, -1).T.astype(float)
    assert len(mixed.networks_) == 3
    assert mixed.network_ == mixed.networks_[0]
    assert len({network.names for network in mixed.networks_}) > 1
    scores = mixed.score_samples(states)
    assert np.exp(scores).sum() == pytest.approx(1.0, abs=1e-9)
    by_name = [{f"x{k}": int(v) for k, v in enumerate(row)} for row in states]
    exact = np.array([[sb.log_likelihood(net, row) for net in mixed.networks_] for row in by_name])
    truth = np.log(np.exp(exact).mean(axis=1))
    assert_allclose(scores, truth, atol=1e-9)
    assert np.all(scores <= truth)


def test_mixtures_sample_impute_classify_and_travel(mixed):
    table = chain(300, width=6)
    drawn = mixed.sample(4000)
    assert_allclose(drawn.mean(axis=0), table.mean(axis=0), atol=0.06)
    holes = table[:40].astype(float)
    holes[:, 2] = np.nan
    filled = mixed.impute(holes)[:, 2]
    both = [np.where(np.isnan(holes), value, holes) for value in (0.0, 1.0)]
    logs = [mixed.score_samples(rows) for rows in both]
    assert_allclose(filled, 1 / (1 + np.exp(logs[0] - logs[1])), atol=0.05)
    copy = pickle.loads(pickle.dumps(mixed))
    assert_array_equal(copy.score_samples(table), mixed.score_samples(table))
    template = SBNDensity(orders=2, hidden=0, column_mixtures=0)
    y = table[:, 0]
    classifier = SBNClassifier(density=template, random_state=0).fit(table[:, 1:], y)
    assert [len(networks) for networks in classifier.mixtures_] == [2, 2]
    assert classifier.score(table[:, 1:], y) > 0.8
    for strategy in ("mean", "sample"):
        assert not np.isnan(SBNImputer(density=template, strategy=strategy, random_state=0).fit_transform(holes)).any()
    assert SBNOutlier(density=template, random_state=0).fit(table).explain(table[:1])[0].score < 0.0


def test_a_mixture_is_kept_in_a_file(mixed, tmp_path):
    table = chain(60, width=6).astype(float)
    sb.save(mixed.mixture_, tmp_path / "mixed.sbn")
    again = sb.load(tmp_path / "mixed.sbn")
    assert again == mixed.mixture_
    assert repr(again) == "NetworkMixture(3 networks of 6 columns)"
    density = SBNDensity.from_networks(again, random_state=0)
    assert_array_equal(density.score_samples(table), mixed.score_samples(table))
    assert_array_equal(density.sample(20), mixed.sample(20))
    table[:, 3] = np.nan
    assert_array_equal(density.impute(table), mixed.impute(table))
    frame = pd.DataFrame(table, columns=again.columns)
    assert_array_equal(again.log_mean([sb.infer_many(net, frame).bound for net in again]), density.score_samples(table))


def test_a_density_can_be_made_of_one_network():
    net = sb.from_edges({("rain", "wet"): 2.0}, bias={"rain": -1.0})
    density = SBNDensity.from_networks(net)
    frame = pd.DataFrame({"wet": [1, 0], "rain": [1, None]})
    truth = [sb.log_likelihood(net, {"wet": 1, "rain": 1}), sb.log_likelihood(net, {"wet": 0})]
    assert_allclose(density.score_samples(frame[["rain", "wet"]]), truth, atol=0.02)
    with pytest.raises(sb.errors.ParameterError, match="networks is 'net.sbn'; give a NetworkMixture, or a Network"):
        SBNDensity.from_networks("net.sbn")


@pytest.mark.parametrize(
    ("networks", "columns", "message"),
    [
        ((), ("a",), "a mixture needs networks, one or more"),
        ((sb.from_edges({("a", "b"): 1.0}),), (), "the columns of a mixture must be different variables"),
        ((sb.from_edges({("a", "b"): 1.0}),), ("a", "a"), "the columns of a mixture must be different variables"),
        ((sb.from_edges({("a", "b"): 1.0}),), ("a", "c"), "a mixture names variable 'c'"),
    ],
)
def test_mixtures_are_checked(networks, columns, message):
    with pytest.raises(ValueError, match=message):
        sb.NetworkMixture(networks, columns)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays, texts: texts.pop("columns"), "does not say how many networks there are, and of which columns"),
        (lambda arrays, texts: texts.update(networks="9" * 4000), "does not say how many networks there are"),
        (lambda arrays, texts: texts.update(columns='["x0", "nobody"]'), "does not describe a mixture"),
        (lambda arrays, texts: arrays.pop("1.bias"), "does not describe a network: it lacks 'bias'"),
        (
            lambda arrays, texts: arrays.update({"7.bias": np.zeros(1)}),
            "it has arrays that belong to none of its networks",
        ),
    ],
)
def test_damaged_mixtures_are_refused(mixed, tmp_path, change, message):
    sb.save(mixed.mixture_, tmp_path / "mixed.sbn")
    stored = read_tensors(tmp_path / "mixed.sbn", MIXTURE)
    arrays, texts = dict(stored.arrays), {k: v for k, v in stored.metadata.items() if not k.startswith("format")}
    change(arrays, texts)
    write_tensors(tmp_path / "bad.sbn", MIXTURE, arrays, texts)
    with pytest.raises(sb.errors.FileFormatError, match=message):
        sb.load(tmp_path / "bad.sbn")


def test_orders_are_whole_and_parts_have_one():
    with pytest.raises(sb.errors.ParameterError, match="orders is 0; it must be a whole number, one or more"):
        SBNDensity(orders=0).fit(chain(20))
    with pytest.raises(sb.errors.ParameterError, match=r"orders is 2; partial_fit\(\) learns one network"):
        SBNDensity(orders=2).partial_fit(chain(20))


# A column to be told from the others


def test_a_label_stays_behind_all_other_columns():
    table = pd.DataFrame(chain(200, width=4)[:, [3, 0, 1, 2]], columns=["ill", "a", "b", "c"])
    density = SBNDensity(label="ill", orders=3, hidden=0, column_mixtures=0, random_state=0).fit(table)
    assert [network.names[-1] for network in density.networks_] == ["ill"] * 3
    assert len({network.names for network in density.networks_}) > 1
    assert_array_equal(density.score_samples(table), density.score_samples(table[["ill", "a", "b", "c"]]))
    few = SBNDensity(label="x0", epochs=1, random_state=0).fit(table.to_numpy()[:20])
    assert few.network_.names[-1] == "x0"


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("il", "label: 'il' is not one of the columns of the table; did you mean 'ill'?"),
        (3, "label is 3; give the name of a column, such as 'x3', or None"),
    ],
)
def test_a_label_that_is_no_column_is_refused(label, message):
    table = pd.DataFrame(chain(60, width=2), columns=["ill", "a"])
    with pytest.raises(sb.errors.ParameterError, match=re.escape(message)):
        SBNDensity(label=label).fit(table)
