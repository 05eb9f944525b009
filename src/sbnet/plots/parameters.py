"""The parameters of a network: its weights as a heat map, and as the images that hidden units stand for."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from sbnet import checks
from sbnet._types import FloatArray
from sbnet.errors import ParameterError, cut
from sbnet.model.network import Network
from sbnet.model.strengths import edge_strengths
from sbnet.model.suggestions import check_network
from sbnet.plots.style import FAINT, INK, WEIGHTS, axes_of, plain

MAX_UNITS, MAX_TICKS, MAX_TITLES = 2_000, 40, 100


def weights(network: Network, *, order: Sequence[str | int] | None = None, ax: Axes | None = None) -> Axes:
    """Draw the weights as a heat map: a row for each child, a column for each parent.

    Parameters
    ----------
    network : Network
        At most 2,000 variables; :meth:`sbnet.Network.subnetwork` takes a part of a larger one.
    order : sequence of str or int, optional
        The variables to show, by name or number, in the order of rows and columns; by default all of them, parents
        first.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure of a fitting size.

    Returns
    -------
    matplotlib.axes.Axes

    Notes
    -----
    Positive weights are blue, negative ones orange, the darker the larger, and a weight of zero is grey. Of an edge
    with several weights the largest is shown, and of one into a table four times the largest difference that the
    parent makes to a probability. Where there is
    no edge the picture is blank; rows without parents and columns without children, at the ends, are left out. If a few
    weights are far larger than all others they share the darkest colour. Of many variables only some have their names
    beside them.

    Examples
    --------
    >>> import sbnet as sb
    >>> import sbnet.plots
    >>> net = sb.layered((2, 4), rng=0, autoregressive=True)
    >>> ax = sb.plots.weights(net, order=["x3", "x2", "x1", "x0", "h1_1", "h1_0"])
    """
    check_size(network)
    units = list(range(network.n_units)) if order is None else _distinct(network, "order", order)
    table = np.full((network.n_units, network.n_units), np.nan)  # no edge is another thing than a weight of zero
    table[network.graph.child_of_edge, network.graph.parent] = edge_strengths(network)
    table = table[np.ix_(units, units)]
    names = [cut(network.names[unit], 20) for unit in units]
    children, parents = _span(table.T), _span(table)
    ax = axes_of(ax, min(3.0 + 0.24 * len(parents), 9.8), min(2.2 + 0.24 * len(children), 9.0))
    _heat(ax, table)
    ax.set(xlim=(parents[0] - 0.5, parents[-1] + 0.5), ylim=(children[-1] + 0.5, children[0] - 0.5))
    ax.set_aspect("equal" if 1 / 3 <= len(children) / len(parents) <= 3 else "auto")
    for units_shown, set_ticks, rotation in ((children, ax.set_yticks, 0), (parents, ax.set_xticks, 90)):
        some = units_shown[:: math.ceil(len(units_shown) / MAX_TICKS)]  # not more names than can be read
        size = 9 if len(units_shown) <= 20 else 7
        set_ticks(some, [names[k] for k in some], size=size, rotation=rotation)
    plain(ax)
    ax.set(xlabel="parent", ylabel="child")
    ax.tick_params(length=2)
    ax.spines[:].set_color("#bbbbbb")
    return ax


def receptive_fields(
    network: Network,
    shape: tuple[int, int] = (8, 8),
    *,
    units: Sequence[str | int] | None = None,
    pixels: Sequence[str | int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what hidden variables paint: the weights from each to the pixels, as an image.

    Parameters
    ----------
    network : Network
        Its pixels are children of the variables drawn.
    shape : (int, int)
        Rows and columns of an image.
    units : sequence of str or int, optional
        The variables to draw, by name or number; by default all that are parents of pixels without being pixels, or
        latent variables of column mixtures, themselves.
    pixels : sequence of str or int, optional
        The variables that are pixels, row by row; by default the last of the network, without such latent variables.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure of a fitting size.

    Returns
    -------
    matplotlib.axes.Axes

    Notes
    -----
    All images share one scale of colours, that of :func:`weights`: a blue pixel is likelier where the variable is on,
    an orange one less likely. Pixels that are no children of a variable are blank.

    Examples
    --------
    >>> import sbnet as sb
    >>> import sbnet.plots
    >>> ax = sb.plots.receptive_fields(sb.layered((5, 12), rng=0), shape=(3, 4))
    """
    check_network(network)
    wanted = "give the rows and the columns of an image, such as (8, 8)"
    sides = checks.listed("shape", shape, wanted)
    if len(sides) != 2:
        raise ParameterError(f"shape is {checks.shown(shape)}; {wanted}")
    rows, columns = checks.whole("rows", sides[0], 1), checks.whole("columns", sides[1], 1)
    painted = _pixels(network, rows * columns, pixels)
    graph, strength = network.graph, edge_strengths(network)
    drawn = _painters(network, painted) if units is None else _distinct(network, "units", units)
    fields = np.full((len(drawn), network.n_units), np.nan)
    for k, unit in enumerate(drawn):
        edges = np.flatnonzero(graph.parent == unit)
        fields[k, graph.child_of_edge[edges]] = strength[edges]
    across = min(math.ceil(math.sqrt(1.6 * len(drawn) * rows / columns)), len(drawn))
    # Images beside and below one another, a pixel apart, with two above each for its name.
    sheet = np.full((math.ceil(len(drawn) / across) * (rows + 2), across * (columns + 1) - 1), np.nan)
    wide = min(max(0.9 * across, 2.4), 11.0)
    ax = axes_of(ax, wide + 0.8, min(max(wide * sheet.shape[0] / sheet.shape[1], 1.6) + 0.2, 20.0))
    size = 8 if across <= 12 else 6
    for k, (unit, field) in enumerate(zip(drawn, fields[:, painted], strict=True)):
        top, left = (k // across) * (rows + 2) + 1, (k % across) * (columns + 1)
        sheet[top : top + rows, left : left + columns] = field.reshape(rows, columns)
        outline = Rectangle((left - 0.5, top - 0.5), columns, rows, fill=False, edgecolor="#bbbbbb", linewidth=0.6)
        ax.add_patch(outline)
        if len(drawn) <= MAX_TITLES:
            name = cut(network.names[unit], max(columns + 2, 6))
            ax.text(left + (columns - 1) / 2, top - 0.7, name, size=size, color=INK, ha="center", va="bottom",
                    gid="unit", parse_math=False)  # fmt: skip
    _heat(ax, sheet)
    ax.axis("off")
    return ax


def check_size(network: Network) -> None:
    """Refuse what no screen can show, and what is no network."""
    check_network(network)
    if network.n_units > MAX_UNITS:
        raise ParameterError(
            f"the network has {network.n_units:,} variables; a drawing shows at most {MAX_UNITS:,}. "
            "Draw a part of it: network.subnetwork(variables)"
        )


def _distinct(network: Network, name: str, units: Sequence[str | int]) -> list[int]:
    """Units by number; each once."""
    places = [network.index(unit) for unit in checks.units(name, units)]
    if not places:
        raise ParameterError("no variables were named; leave the argument out to draw all of them")
    for k, place in enumerate(places):
        if place in places[:k]:
            raise ParameterError(f"variable {network.names[place]!r} is named twice")
    return places


def _is_latent(network: Network, name: str) -> bool:
    """Is it a latent variable that :func:`sbnet.add_column_mixtures` puts before a unit?"""
    unit, dot, _ = name.rpartition(".switch")
    return bool(dot) and unit in network.names


def _pixels(network: Network, count: int, pixels: Sequence[str | int] | None) -> list[int]:
    if pixels is not None:
        found = _distinct(network, "pixels", pixels)
    else:
        found = [i for i, name in enumerate(network.names) if not _is_latent(network, name)][-count:]
    if len(found) != count:
        raise ParameterError(
            f"an image of this shape has {count} pixels, but there are {len(found)} variables for them; "
            "give shape=(rows, columns), or pixels= with their names"
        )
    return found


def _painters(network: Network, pixels: Sequence[int]) -> list[int]:
    graph, painted = network.graph, set(pixels)
    onto = np.isin(graph.child_of_edge, list(painted))
    found = [i for i in np.unique(graph.parent[onto]).tolist() if i not in painted]
    found = [i for i in found if not _is_latent(network, network.names[i])]
    if not found:
        raise ParameterError(
            "no hidden variable is a parent of a pixel, so there is nothing to draw; name the variables: units=[...]"
        )
    return found


def _span(table: FloatArray) -> range:
    """The columns from the first that holds an edge to the last; all of them if none does."""
    held = np.flatnonzero(~np.isnan(table).all(axis=0))
    return range(int(held[0]), int(held[-1]) + 1) if held.size else range(table.shape[1])


def _heat(ax: Axes, table: FloatArray) -> None:
    """An image with a symmetric scale, blank where the table has NaN, and a colour bar."""
    size = np.abs(table[~np.isnan(table)])
    largest = float(size.max(initial=0.0)) or 1.0
    usual = float(np.quantile(size, 0.98)) if size.size else 0.0
    many = 0.0 < usual < largest / 2  # a few large weights would leave all others grey: they share the darkest colour
    most = usual if many else largest
    image = ax.imshow(np.ma.masked_invalid(table), cmap=WEIGHTS, vmin=-most, vmax=most, interpolation="nearest")
    # Inside the room of the axes, so that a layout of the caller's stays as it is.
    inset = ax.inset_axes((1.02, 0.0, 0.03 * max(1.0, table.shape[0] / table.shape[1]), 1.0))
    bar = ax.figure.colorbar(image, cax=inset, extend="both" if many else "neither")
    bar.set_label("weight", size=8, color=FAINT)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_linewidth(0.5)
