"""Drawings: what is on them, read back from the artists."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.colors import to_rgba

import sbnet as sb
from sbnet import plots
from sbnet.errors import EvidenceError, ParameterError, UnknownUnitError

EDGES = {("rain", "wet"): 2.0, ("sprinkler", "wet"): -1.5, ("wet", "slip"): 0.25}
GRAPHS = {
    "chain with skips": [("a", "b", 1), ("b", "c", 1), ("c", "d", 1), ("a", "c", 1), ("a", "d", -1), ("b", "d", 1)],
    "seven variables": [
        ("a", "c", 1.5),
        ("b", "c", -0.75),
        ("a", "d", 0.4),
        ("c", "e", 2.2),
        ("a", "e", -1.1),
        ("d", "f", 0.9),
        ("b", "g", 3),
        ("e", "g", -2),
        ("f", "g", 1),
        ("a", "g", 0.25),
        ("c", "f", -0.5),
    ],
    "two parts": [("a", "b", 1), ("a", "c", -1), ("d", "e", 2), ("f", "e", 1), ("e", "g", -0.5)],
    "wide": [(f"c{k}", "y", k - 6) for k in range(13)],
    "over a row": [("a", "g", 1), *((a, b, 1) for k in "bcdef" for a, b in (("a", k), (k, "g")))],
}


@pytest.fixture(autouse=True)
def _no_figures_left():
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture
def net():
    return sb.from_edges(EDGES, bias={"rain": -1.0, "slip": 0.5})


def texts(ax, gid):
    return [text for text in ax.texts if text.get_gid() == gid]


def numbers(ax, gid):
    return [float(text.get_text().replace("−", "-").removeprefix("h ")) for text in texts(ax, gid)]


def collection(ax, gid):
    return next(c for c in ax.collections if c.get_gid() == gid)


def centres(ax, gid):
    return np.array([path.get_extents().get_points().mean(axis=0) for path in collection(ax, gid).get_paths()])


def test_draws_in_the_axes_given_and_nowhere_else(net):
    figure, (left, right) = plt.subplots(1, 2)
    assert plots.network(net, means=[0.1, 0.2, 0.3, 0.4], ax=left) is left
    assert plt.get_fignums() == [figure.number]
    assert figure.axes == [left, right]  # the colour bar takes no room from the caller's layout
    assert not right.texts
    assert not right.collections


def test_without_axes_makes_one_figure(net):
    ax = plots.network(net)
    assert plt.get_fignums() == [ax.figure.number]


def test_weights_are_written_on_their_edges(net):
    ax = plots.network(net)
    assert sorted(numbers(ax, "weight")) == sorted(EDGES.values())


def test_the_sign_of_a_weight_is_a_colour_and_its_size_a_width(net):
    ax = plots.network(net)
    lines = ax.collections[0]
    order = np.argsort(np.abs(net.weight))  # heaviest on top
    expected = [to_rgba(plots.POSITIVE if w > 0 else plots.NEGATIVE)[:3] for w in net.weight[order]]
    np.testing.assert_allclose(lines.get_colors()[:, :3], expected)
    assert np.all(np.diff(lines.get_linewidths()) > 0)


def test_biases_other_than_zero_are_written(net):
    assert sorted(numbers(plots.network(net), "bias")) == [-1.0, 0.5]


def test_every_unit_has_its_name(net):
    assert {text.get_text() for text in texts(plots.network(net), "unit")} == set(net.names)


def test_only_noisy_or_variables_are_marked_as_such():
    tables = sb.from_edges({("a", "b"): None}, tables={"b": [[0.9, 0.1], [0.2, 0.8]]})
    assert texts(plots.network(tables), "gate") == []
    ax = plots.network(sb.noisy_or({("a", "b"): 0.5}, prior=0.1))
    mark, said = sorted(texts(ax, "gate"), key=lambda text: len(text.get_text()))
    assert (mark.get_text(), said.get_text()) == ("∨", "∨ a noisy-OR variable")


def test_a_name_is_not_read_as_a_formula():
    ax = plots.network(sb.from_edges({("$a_1$", "b\\frac"): 1.0}))
    ax.figure.canvas.draw()
    assert not any(text.get_parse_math() for text in texts(ax, "unit"))


def test_observed_units_are_squares_black_for_one_and_white_for_zero(net):
    ax = plots.network(net, evidence={"wet": 1, "rain": 0})
    observed, hidden = collection(ax, "observed"), collection(ax, "hidden")
    assert len(observed.get_paths()) == len(hidden.get_paths()) == 2
    assert {len(path.vertices) for path in observed.get_paths()} == {5}
    assert {len(path.vertices) for path in hidden.get_paths()} != {5}
    np.testing.assert_allclose(observed.get_facecolors(), [to_rgba("white"), to_rgba(plots.INK)])  # rain, wet
    assert {text.get_text() for text in texts(ax, "unit")} >= {"wet\n= 1", "rain\n= 0"}


def test_evidence_in_any_form(net):
    a, b = plots.network(net, evidence={"wet": 1}), plots.network(net, evidence=[np.nan, np.nan, 1, np.nan])
    np.testing.assert_array_equal(centres(a, "observed"), centres(b, "observed"))


def test_means_as_array_mapping_or_result_are_the_same(net):
    array = np.array([0.1, 0.25, 0.5, 0.9])
    forms = [array, dict(zip(net.names, array, strict=True)), SimpleNamespace(means=array)]
    drawn = [plots.network(net, means=form) for form in forms]
    for ax in drawn:
        np.testing.assert_array_equal(collection(ax, "hidden").get_facecolors(), plots.MEANS(array))
        assert [text.get_text().split("\n")[1] for text in texts(ax, "unit")] == ["0.10", "0.25", "0.50", "0.90"]


def test_larger_means_are_darker():
    shade = plots.MEANS(np.linspace(0.0, 1.0, 50))[:, :3].sum(axis=1)
    assert np.all(np.diff(shade) < 0)


def test_units_without_a_mean_stay_white(net):
    ax = plots.network(net, means={"rain": 0.7})
    colours = collection(ax, "hidden").get_facecolors()
    np.testing.assert_array_equal(colours[1:], np.ones((3, 4)))
    assert colours[0].sum() < 4.0


def test_the_mean_of_an_observed_unit_is_its_state(net):
    ax = plots.network(net, evidence={"wet": 1}, means=[0.1, 0.2, 1.0, 0.4])
    assert "wet\n= 1" in {text.get_text() for text in texts(ax, "unit")}


@pytest.mark.parametrize(
    ("means", "error", "message"),
    [
        ([0.1, 0.2], ParameterError, r"means have shape \(2,\); expected \(4,\), one for every variable"),
        (np.full((3, 4), 0.5), ParameterError, r"means have shape \(3, 4\)"),
        ([0.1, 0.2, 0.3, 1.5], ParameterError, "means must lie between 0 and 1; got 1.5"),
        ({"rane": 0.5}, UnknownUnitError, "did you mean 'rain'"),
    ],
)
def test_wrong_means_are_refused_before_a_figure_is_made(net, means, error, message):
    with pytest.raises(error, match=message):
        plots.network(net, means=means)
    assert plt.get_fignums() == []


def test_wrong_evidence_is_refused(net):
    with pytest.raises(EvidenceError, match="binary"):
        plots.network(net, evidence={"wet": 2})


def test_a_huge_network_is_refused_with_a_way_out():
    with pytest.raises(ParameterError, match=r"2,001 variables; a drawing shows at most 2,000.*subnetwork"):
        plots.network(sb.layered((1, 2000), rng=0))


def test_a_large_network_leaves_names_and_numbers_out():
    ax = plots.network(sb.layered((8, 24, 64), rng=0), evidence=np.zeros(64))
    assert not ax.texts
    assert len(collection(ax, "observed").get_paths()) == 64
    assert len(ax.collections[0].get_paths()) == 8 * 24 + 24 * 64


def test_layers_are_rows_in_the_order_of_the_units():
    net = sb.layered((2, 4, 6), rng=0)
    place = centres(plots.network(net), "hidden")
    rows = np.split(place, [2, 6])
    for row in rows:
        assert np.ptp(row[:, 1]) == pytest.approx(0.0)
        assert np.all(np.diff(row[:, 0]) > 2 * plots.RADIUS)
    assert rows[0][0, 1] > rows[1][0, 1] > rows[2][0, 1]


@pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS)
def test_parents_stand_above_children_and_nothing_overlaps(edges):
    net = sb.from_edges(edges)
    ax = plots.network(net)
    place = centres(ax, "hidden")
    for parent, child, _ in net.edges():
        assert place[net.index(parent), 1] > place[net.index(child), 1]
    for a, b in combinations(place, 2):
        assert np.hypot(*(a - b)) > 2 * plots.RADIUS
    for path in ax.collections[0].get_paths():  # no edge runs through a unit
        assert np.hypot(*(path.vertices[:, None] - place).T).min() >= plots.RADIUS
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in texts(ax, "weight")]
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_edges_within_a_layer_are_arcs_below_it():
    net = sb.layered((1, 4), rng=0, autoregressive=True)
    ax = plots.network(net)
    row = centres(ax, "hidden")[1:, 1].min()
    depths = [row - path.vertices[:, 1].min() for path in ax.collections[0].get_paths()]
    assert sum(depth > plots.RADIUS for depth in depths) == 6  # all pairs of the bottom layer


def test_long_names_stand_beside_their_units():
    net = sb.from_edges({("a_very_long_name_of_a_cause", "b"): 1.0})
    ax = plots.network(net, means=[0.5, 0.25])
    shown = [text.get_text() for text in texts(ax, "unit")]
    assert "0.50" in shown  # alone in its circle
    assert "a_very_long_name_of_a_cause" in [text.replace("\n", "") for text in shown]


def test_a_single_unit_and_a_network_without_edges():
    ax = plots.network(sb.from_edges({}, bias={"alone": -0.5}), means=[0.38])
    assert [text.get_text() for text in texts(ax, "unit")] == ["alone\n0.38"]
    ax.figure.canvas.draw()


def test_dense_networks_are_drawn_as_arcs():
    net = sb.from_weight_matrix(np.tril(np.ones((12, 12)), -1))
    ax = plots.network(net)
    place = centres(ax, "hidden")
    assert np.ptp(place[:, 0]) == pytest.approx(0.0)  # one column
    assert len(ax.collections[0].get_paths()) == 66


def test_importing_sbnet_does_not_import_matplotlib():
    code = "import sys, sbnet; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
