"""The picture of a density's edges: which pairs, which sign, how strong, how stable."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.colors import to_hex

import sbnet as sb
from sbnet import plots
from sbnet.estimators import SBNDensity
from sbnet.plots.associations import pairs_of


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def table():
    """Rain makes wet, wet excludes dust; noise has to do with nothing."""
    rng = np.random.default_rng(0)
    rain, noise = rng.random(300) < 0.4, rng.random(300) < 0.5
    wet = np.where(rng.random(300) < 0.05, ~rain, rain)
    dust = np.where(rng.random(300) < 0.2, wet, ~wet)
    return pd.DataFrame({"rain": rain, "noise": noise, "wet": wet, "dust": dust}).astype(int)


@pytest.fixture(scope="module")
def density(table):
    return SBNDensity(hidden=0, column_mixtures=0, random_state=0).fit(table)


def test_edges_are_named_signed_and_sorted(density):
    ax = plots.associations(density)
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert names[:2] == ["rain – wet", "wet – dust"]
    widths = [bar.get_width() for bar in ax.patches]
    net = density.network_
    assert widths[0] == net.weight_matrix()[net.index("wet"), net.index("rain")] > 2
    assert widths[1] < 0
    assert [to_hex(bar.get_facecolor()) for bar in ax.patches[:2]] == [plots.POSITIVE.lower(), plots.NEGATIVE.lower()]
    assert widths == sorted(widths, key=abs, reverse=True)
    assert len(plots.associations(density, most=1).patches) == 1


def test_stability_is_told_if_asked(density, table):
    ax = plots.associations(density, bootstrap=3, X=table, most=2)
    assert [text.get_text().split()[1] for text in ax.texts] == ["100%", "100%"]
    assert plots.associations(density, bootstrap=1, X=table, most=1, ax=plt.figure().subplots()).texts


def test_of_several_orders_the_mean_is_drawn(table):
    mixed = SBNDensity(hidden=0, column_mixtures=0, orders=2, random_state=0).fit(table)
    parts = [
        pairs_of(SBNDensity.from_networks(sb.NetworkMixture((net,), mixed.mixture_.columns))) for net in mixed.networks_
    ]
    both = pairs_of(mixed)
    assert both["rain", "wet"] == pytest.approx(np.mean([part["rain", "wet"] for part in parts]))


def test_a_table_without_edges_gives_an_empty_picture():
    ax = plots.associations(SBNDensity.from_networks(sb.from_edges({}, bias={"a": 0.0, "b": 1.0})))
    assert not ax.patches
    assert ax.get_title(loc="left") == "0 edges between columns"


def test_what_is_missing_is_named(density):
    with pytest.raises(sb.errors.ParameterError, match="bootstrap is 5, but X is not there; give the table"):
        plots.associations(density, bootstrap=5)
    with pytest.raises(sb.errors.ParameterError, match="density is SBNDensity, which has learned no table"):
        plots.associations(SBNDensity())
    with pytest.raises(sb.errors.ParameterError, match="most is 0"):
        plots.associations(density, most=0)
