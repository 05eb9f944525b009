"""Pictures of answers and of weights: what is on them, read back from the artists."""

from __future__ import annotations

from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

matplotlib.use("Agg")

import matplotlib.pyplot as plt

import sbnet as sb
from sbnet import plots
from sbnet.errors import ParameterError, UnknownUnitError

LONG = "$a$ name that goes on, and on, and on until there is no room left for it"


@pytest.fixture(autouse=True)
def _no_figures_left():
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def garden():
    edges = {("winter", "rain"): 1.5, ("winter", "frost"): 2.0, ("rain", "wet"): 4.0, ("frost", LONG): -1.0}
    return sb.from_edges(edges, bias={"rain": -1.5, "wet": -3.0})


def rows(ax):
    """The names on the left, from top to bottom."""
    labels = sorted(zip(ax.get_yticks(), [tick.get_text() for tick in ax.get_yticklabels()], strict=True))
    assert ax.yaxis_inverted()
    return [name for _, name in labels]


def points(ax, gid):
    (found,) = [c for c in ax.collections if c.get_gid() == gid]
    return np.asarray(found.get_offsets())[:, 0]


def autoregressive(n):
    """Every unit is a parent of all later ones: n levels of one unit each."""
    return sb.from_weight_matrix(np.tril(np.random.default_rng(0).normal(size=(n, n)), -1))


EVERY = {
    "network": plots.network,
    "means": lambda net, **options: plots.means(sb.infer(net, {}), **options),
    "trace": lambda net, **options: plots.trace(sb.infer(net, {net.names[-1]: 1}), **options),
    "weights": plots.weights,
    "receptive_fields": lambda net, **options: plots.receptive_fields(net, (1, 1), units=[0], **options),
    "breakdown": lambda net, **options: plots.breakdown(sb.infer(net, {net.names[-1]: 1}), **options),
}


@pytest.mark.parametrize("draw", EVERY.values(), ids=EVERY)
def test_every_picture_stays_in_the_axes_given_and_returns_them(draw, garden):
    figure, (left, right) = plt.subplots(1, 2)
    assert draw(garden, ax=left) is left
    assert figure.axes == [left, right]
    assert plt.get_fignums() == [figure.number]
    assert not [*right.collections, *right.images, *right.texts, *right.lines, *right.patches]


@pytest.mark.parametrize("draw", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize(
    "net",
    [
        sb.from_edges({}, bias={LONG: -0.5}),
        sb.from_edges({(LONG, f"{LONG} still"): 1.0}),
        sb.layered((4, 496), rng=0),
    ],
    ids=["one variable", "long names", "500 variables"],
)
def test_every_picture_can_be_drawn_at_any_size(draw, net):
    ax = draw(net)
    ax.figure.canvas.draw()  # text that does not fit, or is no formula, warns here
    assert plt.get_fignums() == [ax.figure.number]
    width, height = ax.figure.get_size_inches()
    assert width <= 13.5
    assert height <= 24.5


@pytest.mark.parametrize("name", ["means", "weights", "breakdown"])
def test_a_name_on_a_tick_is_not_read_as_a_formula(name, garden):
    ax = EVERY[name](garden)
    ticks = [tick for tick in (*ax.get_xticklabels(), *ax.get_yticklabels()) if "$" in tick.get_text()]
    assert ticks
    assert not any(tick.get_parse_math() for tick in ticks)


def test_units_are_ranked_by_how_far_the_evidence_moved_them(garden):
    post, prior = sb.infer(garden, {"wet": 1}), sb.infer(garden, {})
    ax = plots.means(post)
    moved = {name: abs(post[name] - prior[name]) for name in garden.names if name != "wet"}
    assert rows(ax)[:3] == sorted(moved, key=moved.get, reverse=True)[:3]
    order = [garden.index(name) for name in sorted(moved, key=moved.get, reverse=True)]
    np.testing.assert_allclose(points(ax, "mean"), post.means[order])
    np.testing.assert_allclose(points(ax, "prior"), prior.means[order])


def test_units_are_ranked_by_mean_on_demand(garden):
    ax = plots.means(sb.infer(garden, {"wet": 1}), by="mean", n=2)
    assert len(rows(ax)) == 2
    assert np.all(np.diff(points(ax, "mean")) <= 0)
    assert "2 of 4 hidden variables" in ax.get_xlabel()


def test_intervals_are_whiskers_from_end_to_end(garden):
    evidence = {"wet": 1}
    intervals = {"rain": (0.25, 0.75), "frost": (0.5, 0.5)}
    ax = plots.means(sb.infer(garden, evidence), intervals)
    ((_, _, (bars,)),) = ax.containers
    drawn = {rows(ax)[round(y)]: (x0, x1) for (x0, y), (x1, _) in bars.get_segments()}
    assert drawn.keys() == intervals.keys()
    for name, ends in intervals.items():
        assert drawn[name] == pytest.approx(ends)
    whole = plots.means(sb.infer(garden, evidence), sb.posterior_intervals(garden, evidence))
    assert len(whole.containers[0][2][0].get_segments()) == 4


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda net: plots.means(sb.infer(net, {}), {"rane": (0, 1)}), UnknownUnitError, "did you mean 'rain'"),
        (lambda net: plots.means(sb.infer(net, {}), {"rain": (0.5, 0.2)}), ParameterError, "'rain' runs from 0.5 to"),
        (lambda net: plots.means(sb.infer(net, {}), n=0), ParameterError, "n is 0"),
        (lambda net: plots.means(sb.infer(net, {}), by="size"), ParameterError, "'size'"),
        (lambda net: plots.means(sb.infer_many(net, [[1, 0, 1, 0, 1]])), ParameterError, r"1 rows.*batch\[0\]"),
        (lambda net: plots.means(sb.infer(net, [1, 0, 1, 0, 1])), ParameterError, "all variables are observed"),
        (lambda net: plots.trace(sb.infer_many(net, [[1, 0, 1, 0, 1]])[0]), ParameterError, "no trace.*infer"),
        (lambda net: plots.weights(net, order=["rain", "rain"]), ParameterError, "'rain' is named twice"),
        (lambda net: plots.weights(net, order=[]), ParameterError, "no variables were named"),
        (lambda net: plots.receptive_fields(net), ParameterError, "64 pixels, but there are 5 variables"),
        (lambda net: plots.receptive_fields(net, (5, 1)), ParameterError, "no hidden variable is a parent of a pixel"),
        (lambda net: plots.receptive_fields(net, (0, 1)), ParameterError, "rows is 0"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_a_figure_is_made(draw, error, message, garden):
    with pytest.raises(error, match=message) as caught:
        draw(garden)
    assert len(str(caught.value)) <= 300
    assert plt.get_fignums() == []


def test_the_trace_is_drawn_as_it_is():
    post = sb.infer(sb.layered((4, 8), rng=0, scale=2.0), [0, 1] * 4)
    ax = plots.trace(post)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), post.trace)
    assert f"settled after {post.sweeps} sweep" in ax.get_title()


def test_a_trace_that_did_not_settle_says_so():
    with pytest.warns(sb.errors.ConvergenceWarning):
        post = sb.infer(sb.layered((4, 8), rng=0, scale=2.0), [0, 1] * 4, solver=sb.MeanField(max_sweeps=1))
    assert "before it settled" in plots.trace(post).get_title()


def test_a_breakdown_adds_up_to_the_bound():
    post = sb.infer(sb.layered((4, 8), rng=0, scale=2.0), [0, 1] * 4)
    for source in (post, post.breakdown()):
        ax = plots.breakdown(source)
        bars = [bar for container in ax.containers for bar in container]
        assert sum(bar.get_width() for bar in bars) == pytest.approx(post.bound)
        assert points(ax, "sum").sum() == pytest.approx(post.bound)
        shown = np.abs(points(ax, "sum"))
        assert np.all(np.diff(shown) <= 0)


def test_bars_of_a_unit_stand_beside_one_another_and_the_largest_come_first():
    parts = sb.bounds.Breakdown(("a", "b", "c"), *np.array([[1.0, 4.0, -1.0], [-3.0, -1.0, -1.0], [0.5, 0.5, 0.5]]))
    ax = plots.breakdown(parts)
    assert rows(ax) == ["b", "a", "c"]  # 3.5, -1.5 and -1.5 nats
    for k in range(3):
        spans = sorted((bar[k].get_x(), bar[k].get_x() + bar[k].get_width()) for bar in ax.containers)
        spans = sorted((min(span), max(span)) for span in spans)
        assert all(first[1] <= second[0] + 1e-12 for first, second in pairwise(spans))


def test_what_adds_nothing_to_a_breakdown_adds_no_rounding():
    post = sb.infer(sb.datasets.example_clinic(), {"fever": 1, "cough": 1})
    assert plots.breakdown(post).get_xlabel().endswith("the others add 0")  # they are barren


def test_a_breakdown_says_what_it_leaves_out():
    post = sb.infer(sb.layered((4, 8), rng=0, scale=2.0), [0, 1] * 4)
    ax = plots.breakdown(post, n=3)
    rest = post.bound - points(ax, "sum").sum()
    assert f"3 of 12 variables; the others add {rest:+.3g}".replace("-", "\N{MINUS SIGN}") in ax.get_xlabel()


def test_weights_are_drawn_where_there_are_edges_and_nowhere_else(garden):
    with_zero = garden.with_parameters(weight=[0.0, *garden.weight[1:]])
    table = plots.weights(with_zero).images[0].get_array()
    edges = np.zeros(table.shape, dtype=bool)
    edges[garden.graph.child_of_edge, garden.graph.parent] = True
    np.testing.assert_array_equal(~np.ma.getmaskarray(table), edges)
    np.testing.assert_array_equal(table.filled(0.0), with_zero.weight_matrix())
    assert plots.WEIGHTS(0.5) != (1.0, 1.0, 1.0, 1.0)  # a weight of zero is not blank


def test_weights_in_an_order_of_ones_own(garden):
    order = ["wet", "winter", 1]
    ax = plots.weights(garden, order=order)
    places = [garden.index(unit) for unit in order]
    table = ax.images[0].get_array().filled(0.0)
    np.testing.assert_array_equal(table, garden.weight_matrix()[np.ix_(places, places)])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == [garden.names[k] for k in places[1:]]


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3))
@settings(max_examples=12, deadline=None)
def test_the_scale_of_weights_is_symmetric(values):
    plt.close("all")
    net = sb.from_edges({(name, "child"): w for name, w in zip("abc", values, strict=True)})
    low, high = plots.weights(net).images[0].get_clim()
    assert low == -high < 0.0


def test_one_huge_weight_does_not_leave_all_others_grey():
    weight = np.full(200, 0.1)
    weight[0] = 100.0
    ax = plots.weights(sb.from_edges({(f"c{k}", "y"): w for k, w in enumerate(weight.tolist())}))
    assert ax.images[0].get_clim()[1] == pytest.approx(0.1)


def test_receptive_fields_are_the_weights_to_the_pixels():
    net = sb.layered((2, 3, 12), rng=0)
    ax = plots.receptive_fields(net, (3, 4))
    sheet = ax.images[0].get_array()
    assert [text.get_text() for text in ax.texts] == ["h2_0", "h2_1", "h2_2"]  # the top layer paints no pixel
    np.testing.assert_array_equal(sheet[1:4, :4], net.weight_matrix()[-12:, 2].reshape(3, 4))
    assert sheet[1:4, 4].mask.all()


def test_switches_are_neither_pixels_nor_painters():
    net = sb.add_column_mixtures(sb.layered((2, 4), rng=0), rng=0)
    ax = plots.receptive_fields(net, (2, 2))
    pixels = [net.index(f"x{k}") for k in range(4)]
    assert [text.get_text() for text in ax.texts] == ["h1_0", "h1_1"]
    np.testing.assert_array_equal(ax.images[0].get_array()[1:3, :2].ravel(), net.weight_matrix()[pixels, 0])
    same = plots.receptive_fields(net, (2, 2), pixels=["x0", "x1", "x2", "x3"], units=["h1_0", "h1_1"])
    np.testing.assert_array_equal(same.images[0].get_array().filled(9), ax.images[0].get_array().filled(9))


def test_a_network_of_many_levels_is_no_thin_strip():
    net = autoregressive(88)
    evidence = {net.names[0]: 1, net.names[1]: 0}
    ax = plots.network(net, evidence=evidence, means={net.names[2]: 0.5})
    width, height = ax.figure.get_size_inches()
    assert 0.5 < width / height < 2
    assert "88 levels are too many" in ax.get_title(loc="left")
    table, stripe = (image.get_array() for image in ax.images)
    assert table.shape == (88, 88)
    np.testing.assert_allclose(stripe[:4, 0, 3], [1, 1, 1, 0])  # observed, observed, with a mean, without
    np.testing.assert_allclose(stripe[:2, 0, :3], [[0x22 / 255] * 3, [1, 1, 1]], atol=1e-6)
    assert len(plots.network(net).images) == 1  # no stripe where there is nothing to show
