"""A network as units and edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection, PatchCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.patches import Circle, Rectangle
from matplotlib.patheffects import withStroke

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, States
from sbnet.errors import ParameterError
from sbnet.kernels.codes import NOISY_OR
from sbnet.model.build import layer_of_units
from sbnet.model.network import Network
from sbnet.model.strengths import edge_strengths
from sbnet.plots.layout import MAX_ARROWS, RADIUS, Text, layout, text_of
from sbnet.plots.parameters import check_size, weights
from sbnet.plots.style import FAINT, INK, MEANS, NEGATIVE, POINTS, POSITIVE, ZERO, extent, signed
from sbnet.questions.evidence import EvidenceLike, coerce_one

MAX_EDGES, MAX_WEIGHTS = 20_000, 20
_LEGEND = "∨ a noisy-OR variable"
MAX_LEVELS = 20
"""More rows than that, none of them wide, make a strip in which nothing can be told apart: a heat map shows more."""


def network(net: Network, *, evidence: EvidenceLike | None = None, means: Any = None, ax: Axes | None = None) -> Axes:
    """Draw a network: parents above children, the sign of a weight as colour, its size as width.

    Parameters
    ----------
    net : Network
        At most 2,000 variables; :meth:`sbnet.Network.subnetwork` takes a part of a larger one.
    evidence : mapping or sequence, optional
        One pattern. Observed variables become squares, black for 1 and white for 0.
    means : array_like or Posterior, optional
        Fill hidden variables by their mean, from 0 to 1: one number per variable, a mapping from names (variables left
        out stay white), or anything with an attribute ``means``. Of a variable with more than two states it is the
        probability that it is not in the first, and observed ones are black in all others.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure of a fitting size.

    Returns
    -------
    matplotlib.axes.Axes

    Notes
    -----
    Positive weights are blue, negative ones orange. Small networks show their numbers too: weights on up to 20 edges,
    and biases other than zero, marked h, beside up to 20 variables. Beyond 60 variables the names are left out; beyond
    20,000 edges only the heaviest are drawn.

    A noisy-OR variable has the mark ∨, and the picture a line that says so; its weights are -ln(1 - p) of its causes.

    A network of many levels with few variables in each, such as a density whose columns are parents of one another,
    would be a thin strip. It is shown as the heat map of :func:`weights`, with states and means in a stripe at its
    left.

    Examples
    --------
    >>> import sbnet as sb
    >>> import sbnet.plots
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> ax = sb.plots.network(net, evidence={"wet": 1}, means=sb.exact_posterior(net, {"wet": 1}))
    """
    check_size(net)
    state = coerce_one(net, {} if evidence is None else evidence)[0]
    mean = np.where(state == HIDDEN, _means(net, means), np.nan)
    level = layer_of_units(net)
    levels = int(level.max()) + 1
    if levels > MAX_LEVELS and int(np.bincount(level).max()) < levels / 2:
        return _as_heat_map(net, state, mean, ax)
    text = text_of(net, state, mean)
    strength = edge_strengths(net)
    edges = np.argsort(np.abs(strength), kind="stable")[-MAX_EDGES:]  # the heaviest last, on top
    weight, ends = strength[edges], np.column_stack([net.graph.parent[edges], net.graph.child_of_edge[edges]])
    place, routes = layout(net, text, ends)
    lines = [_clip(route, state[j], state[i]) for route, (j, i) in zip(routes, ends, strict=True)]
    boxes = np.column_stack([place - RADIUS, place + RADIUS])
    boxes[:, 2] += text.right
    boxes[:, 3] += text.above
    boxes[:, 1] -= text.below
    corners = np.concatenate([boxes.reshape(-1, 2), *lines])
    low, high = corners.min(axis=0) - 0.25, corners.max(axis=0) + 0.25
    grow = max(1.0, (high[0] - low[0]) / 15.0)  # wide pictures are shrunk to the page; what must stay legible grows
    if means is not None:  # room for the colour bar
        high[0] += grow
        low[1] = min(low[1], high[1] - 2.2 * grow)
    noisy = net.gate == NOISY_OR
    if noisy.any():  # room for what the marks mean
        low[1] -= 0.4 * grow
        high[0] = max(high[0], low[0] + grow * (extent(_LEGEND, 8.0)[0] + 0.2))
    ax, zoom = _framed(ax, low, high)
    if lines:
        _draw_edges(ax, weight, lines, zoom)
    _draw_units(ax, place, state, mean, zoom)
    if text.mode != "nowhere":
        _write_names(ax, place, text, MEANS(np.where(state == 1, 1.0, np.nan_to_num(mean))), zoom)
    if len(lines) <= MAX_WEIGHTS:
        _write_weights(ax, weight, lines, boxes, zoom)
    if noisy.any():
        _mark_gates(ax, place[noisy], low + 0.15 * grow, zoom, zoom * grow)
    if means is not None:
        _draw_bar(ax, high[0] - 0.8 * grow, (low[1] + high[1]) / 2, grow, zoom * grow)
    return ax


def _as_heat_map(net: Network, state: States, mean: FloatArray, ax: Axes | None) -> Axes:
    """The weights instead, with states and means in a stripe at the left: green means, black or white if observed."""
    ax = weights(net, ax=ax)
    note = f"{int(layer_of_units(net).max()) + 1} levels are too many to draw as rows: the weights instead"
    known = (state != HIDDEN) | ~np.isnan(mean)
    if known.any():
        note += "\nat the left: means in green, observed variables filled for 1 and empty for 0"
        colours = MEANS(np.nan_to_num(mean))
        colours[state != HIDDEN] = [to_rgba(INK if s else "white") for s in state[state != HIDDEN]]
        colours[~known] = 0.0
        n = net.n_units
        ax.imshow(colours[:, None], extent=(-0.06 * n - 0.5, -0.02 * n - 0.5, n - 0.5, -0.5), gid="states")
        ax.set(xlim=(-0.06 * n - 0.5, n - 0.5), ylim=(n - 0.5, -0.5), aspect="equal")
    ax.set_title(note, size=9, loc="left")
    return ax


def _means(net: Network, means: Any) -> FloatArray:
    """One mean per unit; NaN where none is given."""
    means = getattr(means, "means", means)
    full = np.full(net.n_units, np.nan)
    if isinstance(means, Mapping):
        for name, value in means.items():
            full[net.index(name)] = checks.probability(f"means[{name!r}]", value)
    elif means is not None:
        full = checks.numbers("means", means)
        _check_means(full)
        if full.shape == net.bias.shape:
            full = np.minimum(np.bincount(net.columns[0], full, net.n_units), 1.0)
        if full.shape != (net.n_units,):
            raise ParameterError(f"means have shape {full.shape}; expected ({net.n_units},), one for every variable")
    return full


def _check_means(means: FloatArray) -> None:
    bad = means[(means < 0.0) | (means > 1.0)]
    if bad.size:
        raise ParameterError(f"means must lie between 0 and 1; got {bad[0]}")


def _clip(route: FloatArray, first: int, last: int) -> FloatArray:
    """The part of a curve outside the outlines of its two units: circles, or squares if observed."""
    if len(route) == 2:  # one of very many, which may end under its units
        return route
    outside = np.ones(len(route), dtype=bool)
    for centre, state in ((route[0], first), (route[-1], last)):
        offset = np.abs(route - centre)
        outside &= (np.hypot(*offset.T) if state == HIDDEN else offset.max(axis=1) / 0.9) > RADIUS + 0.03
    return route[outside]


def _framed(ax: Axes | None, low: FloatArray, high: FloatArray) -> tuple[Axes, float]:
    """Axes that fit the picture, new ones if there are none, and how much larger than composed it will come out."""
    if ax is None:
        inches = (high - low) * POINTS / 72
        inches *= min(1.0, 13.0 / inches[0], 24.0 / inches[1])
        title = 0.35  # kept free above
        figure = plt.figure(figsize=(max(float(inches[0]), 2.0), float(inches[1]) + title))
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0 - title / figure.get_figheight()))
    ax = checks.axes(ax)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    ax.axis("off")
    box, page = ax.get_position(original=True), ax.figure.bbox
    points = np.array([box.width * page.width, box.height * page.height]) * 72 / ax.figure.dpi
    return ax, float(np.min(points / (high - low))) / POINTS


def _draw_edges(ax: Axes, weight: FloatArray, lines: list[FloatArray], zoom: float) -> None:
    size = np.abs(weight) / max(float(np.abs(weight).max(initial=0.0)), 1e-300)
    colours = np.select([weight > 0, weight < 0], [POSITIVE, NEGATIVE], ZERO).tolist()
    thin = min(1.0, MAX_ARROWS / len(lines)) ** 0.5  # the more edges, the thinner and fainter the light ones
    width = thin * (0.8 + 2.2 * size) * min(zoom, 1.5) + (1 - thin) * (0.15 + 0.85 * size)
    alpha = 0.9 * max(thin, 0.6) * (thin**2 + (1 - thin**2) * size**2)
    ax.add_collection(LineCollection(lines, colors=colours, linewidths=width, alpha=alpha, zorder=1))
    if len(lines) <= MAX_ARROWS:
        heads = []
        for line, s in zip(lines, size, strict=True):
            tip, back = line[-1], line[max(len(line) - 5, 0)]
            along = (0.12 + 0.1 * s) * (tip - back) / np.hypot(*(tip - back))
            across = np.array([-along[1], along[0]]) / 2
            heads.append([tip, tip - along + across, tip - along - across])
        ax.add_collection(PolyCollection(heads, facecolors=colours, zorder=2))


def _draw_units(ax: Axes, place: FloatArray, state: States, mean: FloatArray, zoom: float) -> None:
    hidden, observed = state == HIDDEN, state != HIDDEN
    side, line = 1.8 * RADIUS, max(1.1 * zoom, 0.4)
    circles = [Circle((x, y), RADIUS) for x, y in place[hidden]]
    squares = [Rectangle((x - side / 2, y - side / 2), side, side) for x, y in place[observed]]
    green, black = MEANS(np.nan_to_num(mean[hidden])), [INK if s else "white" for s in state[observed]]
    style: dict[str, Any] = {"edgecolors": INK, "zorder": 3}
    ax.add_collection(PatchCollection(circles, facecolors=green, linewidths=line, gid="hidden", **style))
    ax.add_collection(PatchCollection(squares, facecolors=black, linewidths=2 * line, gid="observed", **style))


def _write_names(ax: Axes, place: FloatArray, text: Text, fill: FloatArray, zoom: float) -> None:
    """Names with values below them, or values inside the units and names outside; biases to the right."""
    inside: dict[str, Any] = {"ha": "center", "va": "center", "gid": "unit", "zorder": 5, "parse_math": False}
    outside = {**inside, "color": INK, "path_effects": [withStroke(linewidth=2.5 * zoom, foreground="white")]}
    for (x, y), paper, name, value, bias, up in zip(
        place, fill, text.names, text.values, text.biases, text.above, strict=True
    ):
        size, ink, right = text.size * zoom, "white" if paper[:3] @ [0.3, 0.6, 0.1] < 0.5 else INK, x + RADIUS + 0.08
        shown = f"{name}\n{value}".strip() if text.mode == "inside" else value
        ax.text(x, y, shown, size=min(text.size, 15.0) * zoom, color=ink, **inside)
        if text.mode == "beside":
            ax.text(right, y, name, size=size, **{**outside, "ha": "left"})
            y -= extent(name, text.size)[1] / 2 + 0.1
        elif text.mode == "upright":
            end = y + (RADIUS + 0.12) * (1 if up else -1)
            ax.text(x, end, name, size=size, rotation=90, **{**outside, "va": "bottom" if up else "top"})
        if bias:
            ax.text(right, y, bias, size=7.5 * zoom, **{**outside, "ha": "left", "color": FAINT, "gid": "bias"})


def _mark_gates(ax: Axes, place: FloatArray, corner: FloatArray, zoom: float, legend_zoom: float) -> None:
    """A mark at the lower left of each noisy-OR unit, where edges seldom pass, and what it means in a corner."""
    style: dict[str, Any] = {"color": INK, "gid": "gate", "zorder": 6, "parse_math": False}
    style["path_effects"] = [withStroke(linewidth=2.0 * zoom, foreground="white")]
    for x, y in place:
        ax.text(x - 1.1 * RADIUS, y - 1.1 * RADIUS, "∨", size=9.0 * zoom, ha="center", va="center", **style)
    ax.text(corner[0], corner[1], _LEGEND, size=8.0 * legend_zoom, ha="left", va="bottom", **style)


def _write_weights(ax: Axes, weight: FloatArray, lines: list[FloatArray], boxes: FloatArray, zoom: float) -> None:
    """The weight on each edge, near its middle, where it hides least of units, numbers and other edges."""
    style: dict[str, Any] = {"ha": "center", "va": "center", "gid": "weight", "zorder": 4, "size": 8.5 * zoom}
    style["bbox"] = {"boxstyle": "square,pad=0.12", "facecolor": "white", "edgecolor": "none"}
    taken = boxes
    for e, (line, w) in enumerate(zip(lines, weight.tolist(), strict=True)):
        half = np.array(extent(signed(w), 8.5)) / 2 + 0.04
        others = np.concatenate([boxes[:0, :2], *lines[:e], *lines[e + 1 :]])
        costs = {}
        for k in range(len(line) // 7, len(line) - len(line) // 7):
            low, high = line[k] - half, line[k] + half
            overlaps = np.all((low < taken[:, 2:]) & (high > taken[:, :2]), axis=1).sum()
            covered = np.all((low < others) & (others < high), axis=1).sum()
            costs[k] = 100 * overlaps + covered + 4 * abs(k / len(line) - 0.5)
        x, y = line[min(costs, key=costs.__getitem__)]
        taken = np.vstack([taken, [x - half[0], y - half[1], x + half[0], y + half[1]]])
        ax.text(x, y, signed(w), color=POSITIVE if w > 0 else NEGATIVE if w < 0 else FAINT, **style)


def _draw_bar(ax: Axes, x: float, y: float, grow: float, zoom: float) -> None:
    inset = ax.inset_axes((x, y - 0.7 * grow, 0.13 * grow, 1.4 * grow), transform=ax.transData)
    bar = ax.figure.colorbar(ScalarMappable(cmap=MEANS), cax=inset, ticks=[0, 0.5, 1])
    bar.ax.tick_params(labelsize=7.5 * zoom, length=2 * zoom, width=0.6, pad=1.5 * zoom)
    bar.outline.set_linewidth(0.6)
    inset.set_title("mean", size=7.5 * zoom, pad=7 * zoom)
