"""How a network is made and learned from the rows of a table, as settings say."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state

from sbnet._types import BoolArray, FloatArray
from sbnet.errors import NetworkError, ParameterError
from sbnet.estimators._rows import Rows, columns, place
from sbnet.estimators.settings import Settings, is_auto, prior_for
from sbnet.inference import MeanField
from sbnet.inference.solvers.column_sums import marginalising
from sbnet.learning import FitResult, fit
from sbnet.learning.priors import as_penalty
from sbnet.learning.regressions import without_edges
from sbnet.model.build import add_column_mixtures, layered
from sbnet.model.graph import Graph
from sbnet.model.network import Network

if TYPE_CHECKING:
    from sbnet.estimators._autoregressive import Autoregressive

COLUMN_MIXTURES = 1
FEW = 3_000
"""Up to that many autoregressive edges are all learned: a mixture may need a parent that one regression does not."""
MANY = 100_000
"""Weights beyond which a small table is learned in fewer steps, and without mixtures that nobody asked for."""
MOST_WEIGHTS, _BYTES = 20_000_000, 200
"""Weights that are learned at most, and what one takes while it is."""
SOLVER = MeanField(log_term="xi", tol=1e-3)


class Resumed:
    """An optimiser that begins in a given state and epoch, and keeps the last state."""

    def __init__(self, optimizer: Any, state: Any, epoch: int) -> None:
        self.optimizer, self.state, self.epoch = optimizer, state, epoch

    def init(self, n: int) -> Any:
        return self.optimizer.init(n) if self.state is None else self.state

    def step(self, gradient: FloatArray, state: Any, epoch: int) -> Any:
        move, self.state = self.optimizer.step(gradient, state, self.epoch + epoch)
        return move, self.state

    @property
    def size(self) -> Any:
        """The size of steps, if the optimiser tells it."""
        size = self.optimizer.size
        return lambda state, epoch: size(state, self.epoch + epoch)


def start(
    settings: Settings,
    rows: Rows,
    generator: np.random.Generator,
    *,
    hidden: tuple[int, ...] | None = None,
    column_mixtures: int | None = None,
    autoregressive: Autoregressive | None = None,
    edges: bool = True,
) -> Network:
    """Random weights, and biases of the visible units at the logits of the columns' means; or what regressions found.

    A column without a single observed cell is cut off: nothing is known about it, and with its edges in place it
    would be learned as one more hidden unit, whose states have nothing to do with the column.
    """
    check_size(settings, len(rows.names))
    sizes = settings.layers if hidden is None else hidden
    count = column_mixtures_of(settings, len(rows.names)) if column_mixtures is None else column_mixtures
    network = _fully_connected(settings, rows, generator, sizes, bool(settings.autoregressive) and edges)
    taken = {f"{name}.switch{k + 1}" for name in rows.names for k in range(count)} & set(network.names)
    if taken:
        raise NetworkError(f"column {min(taken)!r} has the name of a hidden variable; rename the column")
    if autoregressive is not None:
        network = _with_autoregressive(network, rows, autoregressive)
    if count:
        network = with_mixtures(settings, rows, generator, network, count)
    return without_unseen(network, rows)


def without_unseen(network: Network, rows: Rows) -> Network:
    """Without what columns that have no observed cell would say."""
    edges, units = _unseen(network, rows)
    weight, bias = np.where(edges, 0.0, network.weight), np.where(units, 0.0, network.bias)
    return network.with_parameters(weight=weight, bias=bias)


def with_mixtures(
    settings: Settings, rows: Rows, generator: np.random.Generator, network: Network, count: int
) -> Network:
    """With mixtures for the columns that have parents: only those have regressions to mix."""
    fan_in = np.diff(network.graph.indptr)
    units = [name for name in rows.names if fan_in[network.index(name)]]
    return add_column_mixtures(network, units=units, count=count, rng=generator, scale=settings.start_scale)


def with_hidden(
    settings: Settings, rows: Rows, generator: np.random.Generator, network: Network, count: int
) -> Network:
    """With hidden units above all columns, beside what has been learned; columns keep their means."""
    graph, scale, own = network.graph, settings.start_scale, np.sort(columns(network, rows.names))
    fresh, n = generator.uniform(-scale, scale, (network.n_units, count))[own], network.n_units + count
    child = np.concatenate([np.repeat(own, count), graph.child_of_edge]) + count
    parent = np.concatenate([np.tile(np.arange(count), len(own)), graph.parent + count])
    order = np.argsort(child, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(child, minlength=n))])
    bias = np.concatenate([np.zeros(count), network.bias])
    bias[own + count] -= 0.5 * fresh.sum(axis=1)
    names = (*layered((count, 1)).names[:count], *network.names)
    return Network(names, Graph(indptr, parent[order]), np.concatenate([fresh.ravel(), network.weight])[order], bias)


def _fully_connected(
    settings: Settings, rows: Rows, generator: np.random.Generator, sizes: tuple[int, ...], autoregressive: bool
) -> Network:
    """Layers with all their edges; weights between columns are zero, biases of columns those of their means."""
    width = len(rows.names)
    network = layered((*sizes, width), rng=generator, scale=settings.start_scale, autoregressive=autoregressive)
    hidden = network.names[:-width]
    ones, zeros = rows.weights @ (rows.cells == 1), rows.weights @ (rows.cells == 0)
    bias = network.bias.copy()
    bias[-width:] = np.log((ones + 0.5) / (zeros + 0.5))
    # Weights between columns need no noise to part them from each other, and would have to unlearn it.
    beside = network.graph.parent >= network.n_units - width
    if set(hidden) & set(rows.names):
        raise NetworkError(
            f"column {min(set(hidden) & set(rows.names))!r} has the name of a hidden variable; rename the column"
        )
    return replace(network, names=(*hidden, *rows.names), weight=np.where(beside, 0.0, network.weight), bias=bias)


def _with_autoregressive(network: Network, rows: Rows, autoregressive: Autoregressive) -> Network:
    """The weights between columns that regressions found; where edges are many, without those that are zero."""
    weights, bias = autoregressive.weights()
    first, graph = network.n_units - len(rows.names), network.graph
    beside = graph.parent >= first
    child, parent = graph.child_of_edge[beside] - first, graph.parent[beside] - first
    weight, h = network.weight.copy(), network.bias.copy()
    weight[beside] = np.asarray(weights[child, parent], dtype=np.float64).ravel() if len(child) else 0.0
    # Half of what hidden units add on average is taken off, so that columns keep their means.
    hidden = np.bincount(graph.child_of_edge[~beside], weights=weight[~beside], minlength=network.n_units)
    h[first:] = bias - 0.5 * hidden[first:]
    network = network.with_parameters(weight=weight, bias=h)
    if beside.sum() <= FEW:
        return network
    return without_edges(network, beside & (weight == 0.0))


def learn(
    settings: Settings,
    network: Network,
    rows: Rows,
    generator: np.random.Generator,
    *,
    prior_share: float = 1.0,
    epochs: int | None = None,
    prior: Any = None,
    stepping: Any = None,
    quiet: bool = False,
    source: tuple[Any, dict[str, Any]] | None = None,
) -> FitResult:
    """Maximise the bound (ELBO) from `network`; columns without an observed cell stay as they are.

    Epochs, a prior and an optimiser may be given in the place of those of the settings; and in the place of the rows
    states that lie elsewhere, with what :func:`sbnet.fit` has to know of them.
    """
    fraction = None if quiet or len(rows.cells) < 2 else settings.validation_fraction  # one row cannot be divided
    if epochs is None:
        epochs = settings.epochs
        if is_auto(epochs):
            epochs = _epochs(len(rows.cells), settings.batch_size, network.n_edges)
    stepping = settings.optimizer_until(max(epochs, 1)) if stepping is None else stepping
    penalty = as_penalty(prior or prior_for(settings.prior, network, rows.names))
    options = {
        "batch_size": settings.batch_size,
        "solver": solver_for(settings, network, rows.names),
        "prior": None if penalty is None else penalty.times(prior_share),
        "frozen": frozen(network, rows) if rows.unseen.any() else (),
        "rng": generator,
        "progress": bool(settings.verbose) and not quiet,
    }
    patience = settings.patience if fraction is not None else None
    here = {"validation": fraction, "patience": patience, "sample_weight": rows.weights}
    here |= {"threads": threads(settings), "executor": settings.executor}
    states, how = source or (place(network, rows.cells, rows.names), here)
    result = fit(network, states, epochs=epochs, optimizer=stepping, **options, **how)
    if result.interrupted:  # an estimator is fitted or it is not, and a search over settings must stop
        raise KeyboardInterrupt
    return result


def solver_for(settings: Settings, network: Network, names: tuple[str, ...], other: Any = None) -> Any:
    """The solver for one network: the one that is given; or `other`, or mean field theory with the paper's logarithm
    term, but latent variables are marginalised exactly where they are few.
    """
    if settings.solver is not None:
        return settings.solver
    return marginalising(network, columns(network, names), SOLVER if other is None else other)


def threads(settings: Settings) -> int | None:
    """None: as many as there are cores."""
    return None if settings.n_jobs is None else int(effective_n_jobs(settings.n_jobs))


def make_seed(random_state: Any) -> int:
    """A seed from scikit-learn's `random_state`: a whole number is the seed itself."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def check_size(settings: Settings, width: int) -> None:
    """Refuse a network that would not fit into memory before anything of it is made."""
    sizes = (*settings.layers, width)
    autoregressive = width * (width - 1) // 2 if settings.autoregressive else 0
    count = column_mixtures_of(settings, width)
    above = sizes[-2] * width if len(sizes) > 1 else 0
    # each mixture variable of a column has the parents of the column, and the column has all of them
    weights = (
        sum(one * other for one, other in pairwise(sizes)) + autoregressive + count * (above + autoregressive + width)
    )
    units = sum(sizes) + count * width
    if max(weights, units) > MOST_WEIGHTS:
        needed = _BYTES * max(weights, units) / 2**30
        raise ParameterError(
            f"{width:,} columns, hidden={settings.hidden!r:.40}, autoregressive={settings.autoregressive!r} and "
            f"column_mixtures={settings.column_mixtures!r:.20} make {weights:,} weights, which take about "
            f"{needed:,.0f} GB; at most {MOST_WEIGHTS:,} are learned. Take fewer columns or hidden units, "
            "autoregressive=False, or column_mixtures=0"
        )


def column_mixtures_of(settings: Settings, width: int = 0) -> int:
    """Mixture variables of each column; none are taken unasked where columns are many."""
    automatic = COLUMN_MIXTURES if width * (width - 1) // 2 <= MANY else 0
    return automatic if is_auto(settings.column_mixtures) else int(settings.column_mixtures)


def _epochs(n_rows: int, batch_size: int, weights: int) -> int:
    """Twenty, or more for small tables: at least 250 steps, or as many as take no longer if weights are many."""
    steps = 250 if weights <= MANY else max(25, 250 * MANY // weights)
    return max(20, -(-steps // -(-n_rows // max(batch_size, 1))))


def frozen(network: Network, rows: Rows) -> BoolArray:
    """What is not learned, weights first: columns without an observed cell."""
    return np.concatenate(_unseen(network, rows))


def _unseen(network: Network, rows: Rows) -> tuple[BoolArray, BoolArray]:
    """Edges and units of columns without an observed cell."""
    units: BoolArray = np.zeros(network.n_units, dtype=np.bool_)
    units[columns(network, rows.names)] = rows.unseen
    return units[network.graph.parent] | units[network.graph.child_of_edge], units
