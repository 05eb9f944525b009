"""Where the variables of a drawn network stand, and how its edges run: rows, passages, curves.

The rows are those of a layered drawing, parents above children. networkx's ``multipartite_layout`` makes such rows too,
but in the order of the nodes and without places for edges that skip rows: drawn with it, edges run through circles of
other variables and cross where the order by barycentres below has few crossings or none.
"""

from __future__ import annotations

import textwrap
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.optimize import isotonic_regression

from sbnet._types import FloatArray, IndexArray, States
from sbnet.model.build import layer_of_units
from sbnet.model.components import connected
from sbnet.model.network import Network
from sbnet.plots.style import extent, signed, wrap
from sbnet.questions.by_state import state_value

MAX_NAMES, MAX_BIASES, MAX_ARROWS, RADIUS = 60, 20, 150, 0.45
MAX_PASSAGES = 4
"""Passages per variable for edges that skip levels; where more are needed, such edges become plain arcs."""


class Text(NamedTuple):
    """What is written at each unit, and the room it takes around the outline."""

    mode: str  # where names stand: "inside" the units, "beside" them, "upright" above or below, or "nowhere"
    size: float  # of names, in points before zooming
    names: list[str]
    values: list[str]  # a mean, or an observed state
    biases: list[str]
    right: FloatArray
    above: FloatArray
    below: FloatArray


def text_of(net: Network, state: States, mean: FloatArray) -> Text:
    n, level, none = net.n_units, layer_of_units(net), np.zeros(net.n_units)
    if n > MAX_NAMES:
        return Text("nowhere", 0.0, [""] * n, [""] * n, [""] * n, none, none, none)
    known = [state_value(net, i, s) for i, s in enumerate(state)]
    values = [
        f"= {s}" if s is not None else "" if np.isnan(m) else f"{m:.2f}" for s, m in zip(known, mean, strict=True)
    ]
    h_of = [net.bias[net.columns_of(i)].tolist() for i in range(n)]  # of several thresholds, none is written
    biases = [f"h {signed(h[0])}" if len(h) == 1 and h[0] and n <= MAX_BIASES else "" for h in h_of]
    bias_room = np.array([extent(bias, 7.5)[0] + 0.08 if bias else 0.0 for bias in biases])
    names = [wrap(name, 10, break_long_words=False) for name in net.names]
    diagonal = max(np.hypot(*extent(f"{a}\n{b}".strip(), 1.0)) for a, b in zip(names, values, strict=True))
    size, widest = min(10.0, 1.85 * RADIUS / diagonal), int(np.bincount(level).max())
    if size >= 7.0 and widest <= 16:
        return Text("inside", size, names, values, biases, bias_room, none, none)
    names = [wrap(name, 18, max_lines=3, placeholder="…") for name in net.names]
    room = np.array([extent(name, 9.0)[0] + 0.1 for name in names])
    if widest * (2 * RADIUS + 0.4 + float(room.max())) <= 18.0:
        return Text("beside", 9.0, names, values, biases, np.maximum(room, bias_room), none, none)
    names = [textwrap.shorten(name, 36, placeholder="…") for name in net.names]
    room = np.array([extent(name, 17.0)[0] + 0.15 for name in names])
    bottom = level == level.max()
    return Text("upright", 17.0, names, values, [""] * n, none, np.where(bottom, 0, room), np.where(bottom, room, 0))


def layout(net: Network, text: Text, ends: IndexArray) -> tuple[FloatArray, list[FloatArray]]:
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
    part = connected(net.n_units, net.graph.parent, net.graph.child_of_edge).tolist()  # separate parts do not mingle
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
            # The places nearest to their targets that keep the order and these distances: isotonic regression.
            offset, wanted = np.concatenate([[0.0], np.cumsum(apart)]), [target[k] for k in row]
            weight = [1.0 if k < net.n_units else 4.0 for k in row]
            x[row] = isotonic_regression(wanted - offset, weights=weight).x + offset
    return x, chains


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
