"""Pictures of networks, with matplotlib. Imported on its own: sbnet itself never draws."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection, PatchCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Circle, Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.textpath import text_to_path
from scipy.interpolate import PchipInterpolator
from scipy.sparse.csgraph import connected_components

from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.build import layer_of_units
from sbnet.errors import ParameterError
from sbnet.evidence import EvidenceLike, coerce_one
from sbnet.network import Network

MAX_UNITS, MAX_EDGES = 2_000, 20_000
MAX_NAMES, MAX_BIASES, MAX_WEIGHTS, MAX_ARROWS = 60, 20, 20, 150
MAX_PASSAGES = 4
"""Passages between units, per unit, for edges that skip levels; where more are needed, such edges become plain arcs."""

POSITIVE, NEGATIVE, ZERO, INK, FAINT = "#0072B2", "#D55E00", "#999999", "#222222", "#5a5a5a"
MEANS = LinearSegmentedColormap.from_list("means", ["white", "#74c476", "#006d2c"])
RADIUS, POINTS, FONT = 0.45, 60.0, FontProperties(size=100)
"""A picture is composed at 60 points to the unit of length, then grown or shrunk as a whole to fit its axes."""


def network(net: Network, *, evidence: EvidenceLike | None = None, means: Any = None, ax: Axes | None = None) -> Axes:
    """Draw a network: parents above children, the sign of a weight as colour, its size as width.

    Parameters
    ----------
    net : Network
        At most 2,000 units; :meth:`sbnet.Network.subnetwork` takes a part of a larger one.
    evidence
        One pattern. Observed units become squares, black for 1 and white for 0.
    means
        Fill hidden units by their mean, from 0 to 1: one number per unit, a mapping from names (units left out stay
        white), or anything with an attribute ``means``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure of a fitting size.

    Returns
    -------
    matplotlib.axes.Axes

    Notes
    -----
    Positive weights are blue, negative ones orange. Small networks show their numbers too: weights on up to 20 edges,
    and biases other than zero, marked h, beside up to 20 units. Beyond 60 units the names are left out; beyond 20,000
    edges only the heaviest are drawn.

    Examples
    --------
    >>> import sbnet as sb
    >>> import sbnet.plots
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> ax = sb.plots.network(net, evidence={"wet": 1}, means=sb.exact_posterior(net, {"wet": 1}))
    """
    if net.n_units > MAX_UNITS:
        raise ParameterError(
            f"the network has {net.n_units:,} units; a drawing shows at most {MAX_UNITS:,}. "
            "Draw a part of it: network(net.subnetwork(units))"
        )
    state = coerce_one(net, {} if evidence is None else evidence)[0]
    mean = np.where(state == HIDDEN, _means(net, means), np.nan)
    text = _text(net, state, mean)
    edges = np.argsort(np.abs(net.weight), kind="stable")[-MAX_EDGES:]  # the heaviest last, on top
    weight, ends = net.weight[edges], np.column_stack([net.graph.parent[edges], net.graph.child_of_edge[edges]])
    place, routes = _layout(net, text, ends)
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
    ax = _new_axes(high - low) if ax is None else ax
    zoom = _frame(ax, low, high)
    if lines:
        _draw_edges(ax, weight, lines, zoom)
    _draw_units(ax, place, state, mean, zoom)
    if text.mode != "nowhere":
        _write_names(ax, place, text, MEANS(np.where(state == 1, 1.0, np.nan_to_num(mean))), zoom)
    if len(lines) <= MAX_WEIGHTS:
        _write_weights(ax, weight, lines, boxes, zoom)
    if means is not None:
        _draw_bar(ax, high[0] - 0.8 * grow, (low[1] + high[1]) / 2, grow, zoom * grow)
    return ax


def _means(net: Network, means: Any) -> FloatArray:
    """One mean per unit; NaN where none is given."""
    means = getattr(means, "means", means)
    full = np.full(net.n_units, np.nan)
    if isinstance(means, Mapping):
        for name, value in means.items():
            full[net.index(name)] = value
    elif means is not None:
        full = np.asarray(means, dtype=np.float64)
        if full.shape != (net.n_units,):
            raise ParameterError(f"means have shape {full.shape}; expected ({net.n_units},), one for every unit")
    bad = full[(full < 0.0) | (full > 1.0)]
    if bad.size:
        raise ParameterError(f"means must lie between 0 and 1; got {bad[0]}")
    return full


class _Text(NamedTuple):
    """What is written at each unit, and the room it takes around the outline."""

    mode: str  # where names stand: "inside" the units, "beside" them, "upright" above or below, or "nowhere"
    size: float  # of names, in points before zooming
    names: list[str]
    values: list[str]  # a mean, or an observed state
    biases: list[str]
    right: FloatArray
    above: FloatArray
    below: FloatArray


def _text(net: Network, state: States, mean: FloatArray) -> _Text:
    n, level, none = net.n_units, layer_of_units(net), np.zeros(net.n_units)
    if n > MAX_NAMES:
        return _Text("nowhere", 0.0, [""] * n, [""] * n, [""] * n, none, none, none)
    values = [f"= {s}" if s != HIDDEN else "" if np.isnan(m) else f"{m:.2f}" for s, m in zip(state, mean, strict=True)]
    biases = [f"h {_signed(h)}" if h and n <= MAX_BIASES else "" for h in net.bias.tolist()]
    bias_room = np.array([_extent(bias, 7.5)[0] + 0.08 if bias else 0.0 for bias in biases])
    names = [_wrap(name, 10, break_long_words=False) for name in net.names]
    diagonal = max(np.hypot(*_extent(f"{a}\n{b}".strip(), 1.0)) for a, b in zip(names, values, strict=True))
    size, widest = min(10.0, 1.85 * RADIUS / diagonal), int(np.bincount(level).max())
    if size >= 7.0 and widest <= 16:
        return _Text("inside", size, names, values, biases, bias_room, none, none)
    names = [_wrap(name, 18, max_lines=3, placeholder="…") for name in net.names]
    room = np.array([_extent(name, 9.0)[0] + 0.1 for name in names])
    if widest * (2 * RADIUS + 0.4 + float(room.max())) <= 18.0:
        return _Text("beside", 9.0, names, values, biases, np.maximum(room, bias_room), none, none)
    names = [textwrap.shorten(name, 36, placeholder="…") for name in net.names]
    room = np.array([_extent(name, 17.0)[0] + 0.15 for name in names])
    bottom = level == level.max()
    return _Text("upright", 17.0, names, values, [""] * n, none, np.where(bottom, 0, room), np.where(bottom, room, 0))


def _wrap(name: str, width: int, **options: Any) -> str:
    """The name in lines that end at a space or after an underscore."""
    return textwrap.fill(name.replace("_", "_\0 "), width, **options).replace("\0 ", "").replace("\0", "")


def _signed(number: float) -> str:
    return f"{number:+.3g}".replace("-", "\N{MINUS SIGN}") if number else "0"


def _extent(text: str, points: float) -> tuple[float, float]:
    """Width and height of a text, in units of length."""
    lines = text.split("\n")
    width = max(text_to_path.get_text_width_height_descent(line, FONT, False)[0] if line else 0.0 for line in lines)
    return width / FONT.get_size_in_points() * points / POINTS, 1.2 * len(lines) * points / POINTS


def _layout(net: Network, text: _Text, ends: IndexArray) -> tuple[FloatArray, list[FloatArray]]:
    """A place for every unit and a curve for every edge."""
    level = layer_of_units(net)
    half = np.maximum(0.5 if text.mode in ("nowhere", "upright") else 0.7, RADIUS + 0.12 + text.right / 2)
    passages = int(np.maximum(np.diff(level[ends]) - 1, 0).sum())
    if net.layers is not None and not passages:  # in the order as built, short rows spread out a little
        chains = ends.tolist()
        steps = [(2 * half.max() * (max(net.layers) / n) ** 0.7, n) for n in net.layers]
        x = np.concatenate([step * (np.arange(n) - (n - 1) / 2) for step, n in steps])
    else:
        detour = passages <= MAX_PASSAGES * net.n_units
        x, chains = _by_barycentre(net, ends, half - text.right / 2, half + text.right / 2, detour)
    width = float(np.ptp(x)) + 1.0
    gap = max(1.9, min(0.22, 0.6 / max(int(level.max()), 1)) * width)
    routes = []
    for chain in chains:
        y = -gap * np.linspace(level[chain[0]], level[chain[-1]], len(chain))
        routes.append(_curve(np.column_stack([x[chain], y]), gap, width, plain=len(chains) > 2 * MAX_ARROWS))
    return np.column_stack([x[: net.n_units], -gap * level]), routes


def _by_barycentre(
    net: Network, ends: IndexArray, left: FloatArray, right: FloatArray, detour: bool
) -> tuple[FloatArray, list[list[int]]]:
    """Places along rows with few crossings; an edge that skips levels gets a passage in each row it crosses."""
    level = layer_of_units(net)
    part = connected_components(net.sparse_weights(), directed=False)[1].tolist()  # separate parts do not mingle
    rows: list[list[int]] = [np.flatnonzero(level == d).tolist() for d in range(int(level.max()) + 1)]
    before, after, chains = left.tolist(), right.tolist(), []
    for j, i in ends.tolist():
        crossed = range(level[j] + 1, level[i]) if detour else range(0)
        chains.append([j, *range(len(part), len(part) + len(crossed)), i])
        for d in crossed:
            rows[d].append(len(part))
            part.append(part[j])
            before.append(0.3)
            after.append(0.3)
    near: list[list[int]] = [[] for _ in part]
    for a, b in (pair for chain in chains for pair in pairwise(chain)):
        near[a].append(b)
        near[b].append(a)
    x = np.zeros(len(part))
    for sweep in range(24):
        for row in rows[:: 1 if sweep % 2 else -1]:
            target = {k: float(x[near[k]].mean()) if near[k] else float(x[k]) for k in row}
            if sweep < 16:
                row.sort(key=lambda k: (part[k], target[k]))
            apart = [after[a] + before[b] for a, b in pairwise(row)]
            x[row] = _spread([target[k] for k in row], apart, [1.0 if k < net.n_units else 4.0 for k in row])
    return x, chains


def _spread(target: list[float], apart: list[float], weight: list[float]) -> FloatArray:
    """The places nearest to `target` that keep the order and these distances: isotonic regression."""
    offset = np.concatenate([[0.0], np.cumsum(apart)])
    blocks: list[tuple[float, float, int]] = []
    for centre, mass in zip((target - offset).tolist(), weight, strict=True):
        block = (centre, mass, 1)
        while blocks and blocks[-1][0] > block[0]:
            c, m, count = blocks.pop()
            block = ((c * m + block[0] * block[1]) / (m + block[1]), m + block[1], count + block[2])
        blocks.append(block)
    places: FloatArray = np.repeat([b[0] for b in blocks], [b[2] for b in blocks]) + offset
    return places


def _curve(points: FloatArray, gap: float, width: float, plain: bool) -> FloatArray:
    """A smooth line through the points, upright where it passes a row."""
    span, rise = abs(points[-1, 0] - points[0, 0]), points[0, 1] - points[-1, 1]
    if rise == 0.0:  # within a row: an arc below it, the deeper the longer
        bend = np.array([0.0, 1.6 * RADIUS + 0.9 * gap * span / width])
        return _bezier(points[0], points[0] - bend, points[1] - bend, points[1])
    if len(points) == 2 and rise > 1.5 * gap:  # past many rows at once: an arc beside them
        bend = np.array([(1 if round(points[0, 1] / gap) % 2 else -1) * (1.6 * RADIUS + 0.2 * rise), 0.0])
        return _bezier(points[0], points[0] + bend, points[1] + bend, points[1])
    if plain:
        return points
    if len(points) > 2:
        y = np.linspace(0.0, rise, 40 * len(points))
        return np.column_stack([PchipInterpolator(points[0, 1] - points[:, 1], points[:, 0])(y), points[0, 1] - y])
    lean = np.array([0.0, min(0.5 * gap, 0.25 * span)])
    return _bezier(points[0], points[0] - lean, points[1] + lean, points[1])


def _bezier(a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray) -> FloatArray:
    t = np.linspace(0.0, 1.0, 61)[:, None]
    curve: FloatArray = (1 - t) ** 3 * a + 3 * t * (1 - t) ** 2 * b + 3 * t**2 * (1 - t) * c + t**3 * d
    return curve


def _clip(route: FloatArray, first: int, last: int) -> FloatArray:
    """The part of a curve outside the outlines of its two units: circles, or squares if observed."""
    if len(route) == 2:  # one of very many, which may end under its units
        return route
    outside = np.ones(len(route), dtype=bool)
    for centre, state in ((route[0], first), (route[-1], last)):
        offset = np.abs(route - centre)
        outside &= (np.hypot(*offset.T) if state == HIDDEN else offset.max(axis=1) / 0.9) > RADIUS + 0.03
    return route[outside]


def _new_axes(size: FloatArray) -> Axes:
    inches = size * POINTS / 72
    inches *= min(1.0, 13.0 / inches[0], 24.0 / inches[1])
    title = 0.35  # kept free above
    figure = plt.figure(figsize=(max(float(inches[0]), 2.0), float(inches[1]) + title))
    return figure.add_axes((0.0, 0.0, 1.0, 1.0 - title / figure.get_figheight()))


def _frame(ax: Axes, low: FloatArray, high: FloatArray) -> float:
    """Fit the axes around the picture, and tell how much larger than composed it will come out."""
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    ax.axis("off")
    box, page = ax.get_position(original=True), ax.figure.bbox
    points = np.array([box.width * page.width, box.height * page.height]) * 72 / ax.figure.dpi
    return float(np.min(points / (high - low))) / POINTS


def _draw_edges(ax: Axes, weight: FloatArray, lines: list[FloatArray], zoom: float) -> None:
    size = np.abs(weight) / max(float(np.abs(weight).max(initial=0.0)), 1e-300)
    colours = np.select([weight > 0, weight < 0], [POSITIVE, NEGATIVE], ZERO).tolist()
    thin = min(1.0, MAX_ARROWS / len(lines)) ** 0.5  # the more edges, the thinner and fainter the light ones
    width = thin * (0.8 + 2.2 * size) * min(zoom, 1.5) + (1 - thin) * (0.15 + 0.85 * size)
    alpha = 0.9 * max(thin, 0.6) * (thin**2 + (1 - thin**2) * size**2)
    ax.add_collection(LineCollection(lines, colors=colours, linewidths=width, alpha=alpha, zorder=1))
    if len(lines) <= MAX_ARROWS:
        heads = [_arrow_head(line, 0.06 + 0.05 * s) for line, s in zip(lines, size, strict=True)]
        ax.add_collection(PolyCollection(heads, facecolors=colours, zorder=2))


def _arrow_head(line: FloatArray, size: float) -> FloatArray:
    tip, back = line[-1], line[max(len(line) - 5, 0)]
    along = 2 * size * (tip - back) / np.hypot(*(tip - back))
    across = np.array([-along[1], along[0]]) / 2
    return np.array([tip, tip - along + across, tip - along - across])


def _draw_units(ax: Axes, place: FloatArray, state: States, mean: FloatArray, zoom: float) -> None:
    hidden, observed = state == HIDDEN, state != HIDDEN
    side, line = 1.8 * RADIUS, max(1.1 * zoom, 0.4)
    circles = [Circle((x, y), RADIUS) for x, y in place[hidden]]
    squares = [Rectangle((x - side / 2, y - side / 2), side, side) for x, y in place[observed]]
    green, black = MEANS(np.nan_to_num(mean[hidden])), [INK if s else "white" for s in state[observed]]
    style: dict[str, Any] = {"edgecolors": INK, "zorder": 3}
    ax.add_collection(PatchCollection(circles, facecolors=green, linewidths=line, gid="hidden", **style))
    ax.add_collection(PatchCollection(squares, facecolors=black, linewidths=2 * line, gid="observed", **style))


def _write_names(ax: Axes, place: FloatArray, text: _Text, fill: FloatArray, zoom: float) -> None:
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
            y -= _extent(name, text.size)[1] / 2 + 0.1
        elif text.mode == "upright":
            end = y + (RADIUS + 0.12) * (1 if up else -1)
            ax.text(x, end, name, size=size, rotation=90, **{**outside, "va": "bottom" if up else "top"})
        if bias:
            ax.text(right, y, bias, size=7.5 * zoom, **{**outside, "ha": "left", "color": FAINT, "gid": "bias"})


def _write_weights(ax: Axes, weight: FloatArray, lines: list[FloatArray], boxes: FloatArray, zoom: float) -> None:
    """The weight on each edge, near its middle, where it hides least of units, numbers and other edges."""
    style: dict[str, Any] = {"ha": "center", "va": "center", "gid": "weight", "zorder": 4, "size": 8.5 * zoom}
    style["bbox"] = {"boxstyle": "square,pad=0.12", "facecolor": "white", "edgecolor": "none"}
    taken = boxes
    for e, (line, w) in enumerate(zip(lines, weight.tolist(), strict=True)):
        half = np.array(_extent(_signed(w), 8.5)) / 2 + 0.04
        others = np.concatenate([boxes[:0, :2], *lines[:e], *lines[e + 1 :]])
        costs = {}
        for k in range(len(line) // 7, len(line) - len(line) // 7):
            low, high = line[k] - half, line[k] + half
            overlaps = np.all((low < taken[:, 2:]) & (high > taken[:, :2]), axis=1).sum()
            covered = np.all((low < others) & (others < high), axis=1).sum()
            costs[k] = 100 * overlaps + covered + 4 * abs(k / len(line) - 0.5)
        x, y = line[min(costs, key=costs.__getitem__)]
        taken = np.vstack([taken, [x - half[0], y - half[1], x + half[0], y + half[1]]])
        ax.text(x, y, _signed(w), color=POSITIVE if w > 0 else NEGATIVE if w < 0 else FAINT, **style)


def _draw_bar(ax: Axes, x: float, y: float, grow: float, zoom: float) -> None:
    inset = ax.inset_axes((x, y - 0.7 * grow, 0.13 * grow, 1.4 * grow), transform=ax.transData)
    bar = ax.figure.colorbar(ScalarMappable(cmap=MEANS), cax=inset, ticks=[0, 0.5, 1])
    bar.ax.tick_params(labelsize=7.5 * zoom, length=2 * zoom, width=0.6, pad=1.5 * zoom)
    bar.outline.set_linewidth(0.6)
    inset.set_title("mean", size=7.5 * zoom, pad=7 * zoom)
