"""An outlier detector: scores are bounds, the threshold follows from them, and cells explain a row in nats."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sbnet as sb
from sbnet.estimators import SBNDensity, SBNOutlier
from tables import quick, rows_of, with_holes


@pytest.fixture(scope="module")
def holes():
    return with_holes(rows_of(0, 120))


@pytest.fixture(scope="module")
def outlier(holes):
    return SBNOutlier(density=quick()).fit(holes)


def test_scores_are_those_of_a_density(outlier, holes):
    assert_array_equal(outlier.score_samples(holes), quick().fit(holes).score_samples(holes))
    assert_array_equal(outlier.decision_function(holes), outlier.score_samples(holes) - outlier.offset_)
    assert_array_equal(outlier.predict(holes), np.where(outlier.decision_function(holes) < 0, -1, 1))


def test_contamination_sets_the_share_of_outliers(holes):
    for share in (0.05, 0.2, np.float32(0.5)):
        found = SBNOutlier(density=quick(), contamination=share).fit_predict(holes)
        assert np.mean(found == -1) <= share
        assert np.mean(found == -1) >= share - 0.05  # several rows may be equal


@pytest.mark.parametrize("contamination", [0.0, 0.6, "some", True, None])
def test_another_contamination_is_refused(holes, contamination):
    with pytest.raises(sb.errors.ParameterError, match="give 'auto', or a share above 0 and up to 0.5"):
        SBNOutlier(contamination=contamination).fit(holes)


def test_rows_against_the_grain_are_found():
    X = np.repeat([[1.0, 1, 1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1]], 60, axis=0)
    X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    strange = np.array([[1.0, 1, 0, 0, 1, 0, 0, 1], [np.nan, 1, 1, 1, 1, 1, 1, 1]])
    outlier = SBNOutlier(random_state=0).fit(X)
    assert outlier.predict(strange).tolist() == [-1, -1]
    assert np.sum(outlier.predict(X) == -1) <= 2  # nothing stands apart here: the lowest hundredth at most


def test_the_nats_of_a_cell_are_its_conditional_probability(holes):
    """Without hidden units and holes a bound is the log-likelihood, so enumeration has the last word."""
    outlier = SBNOutlier(density=SBNDensity(hidden=(), column_mixtures=0, epochs=8, random_state=73)).fit(holes)
    names = [f"x{k}" for k in range(6)]
    assert list(outlier.network_.names) != names  # another order of the columns was better: evidence goes by name
    row = np.array([[1.0, 0, 1, 1, 0, np.nan]])
    one = outlier.explain(row)[0]
    assert len(one.names) == 5
    assert one.score == outlier.score_samples(row)[0]
    for name, value, nats, usual, p in zip(one.names, one.values, one.nats, one.usual, one.probability, strict=True):
        k = int(name[1:])
        other, without = row.copy(), row.copy()
        other[0, k], without[0, k] = 1 - row[0, k], np.nan
        assert value == str(int(row[0, k]))
        tables = (pd.DataFrame(table, columns=names) for table in (without, row, other))
        exact = [sb.log_likelihood(outlier.network_, table)[0] for table in tables]
        assert_allclose(nats, exact[0] - exact[1], atol=1e-9)
        assert_allclose(p, np.exp(max(exact[1:]) - exact[0]), atol=1e-9)
        assert (usual == value) == (exact[1] >= exact[2])
    assert np.all(np.diff(one.nats) <= 0)


def test_nats_are_never_negative_with_hidden_units(outlier, holes):
    for one in outlier.explain(holes[:20]):
        assert np.all(one.nats >= 0)
        assert np.all((one.probability >= 0.5) & (one.probability <= 1))


def test_an_explanation_is_a_table(holes):
    frame = pd.DataFrame(holes, columns=list("abcdef"), index=[f"p{k}" for k in range(120)])
    outlier = SBNOutlier(density=quick()).fit(frame)
    found = outlier.explain(frame.iloc[3:5])
    assert [one.row for one in found] == ["p3", "p4"]
    table = found[0].to_frame()
    assert list(table.columns) == ["value", "nats", "usual", "probability"]
    assert list(table.index) == list(found[0].names)
    both = found.to_frame()
    assert len(both) == len(found[0].names) + len(found[1].names)
    assert both.loc["p3"].equals(table)
    assert len(found[:1]) == 1
    text = repr(found)
    assert text.startswith("Row p3: ln P ≥ -")
    assert "more usual" in text
    assert found[0]._repr_html_().count("<tr>") == 1 + len(found[0].names)
    assert found._repr_html_().count("<table>") == 2


def test_an_explanation_of_nothing(outlier):
    one = outlier.explain(np.full((1, 6), np.nan))[0]
    assert one.names == ()
    assert one.score == 0.0
    assert len(one.to_frame()) == 0


def test_an_explanation_is_a_picture(outlier, holes):
    found = outlier.explain(holes[:2])
    with pytest.raises(sb.errors.ParameterError, match=r"2 explanations; draw one of them: explanations\[0\].plot()"):
        found.plot()
    ax = outlier.explain(holes[:1]).plot()
    assert_allclose([bar.get_width() for bar in ax.patches], found[0].nats)
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == [f"{name} = {value}" for name, value in zip(found[0].names, found[0].values, strict=True)]
    _, mine = plt.subplots()
    assert found[0].plot(ax=mine) is mine
    plt.close("all")


def test_a_share_of_different_scores_is_met():
    rng = np.random.default_rng(0)
    X = (rng.random((100, 12)) < rng.uniform(0.2, 0.8, 12)).astype(float)
    outlier = SBNOutlier(density=quick(autoregressive=False), contamination=0.1).fit(X)
    assert len(np.unique(outlier.score_samples(X))) > 90
    assert np.sum(outlier.predict(X) == -1) == 10
