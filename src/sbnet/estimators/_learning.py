"""How a network is made and learned from the rows of a table, as the arguments of an SBNDensity say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state

from sbnet import checks
from sbnet._types import BoolArray, FloatArray, States
from sbnet.errors import NetworkError, ParameterError
from sbnet.estimators import _priors
from sbnet.estimators._completing import is_needed, learn_completing
from sbnet.estimators._rows import Rows, columns, place
from sbnet.estimators._structure import enforce, free, inside
from sbnet.estimators.mixture_sums import switching
from sbnet.estimators.root_sums import summing
from sbnet.inference import MeanField
from sbnet.learning import SGD, Adam, FitResult, fit
from sbnet.learning.priors import shared
from sbnet.learning.regressions import without_edges
from sbnet.model.build import add_column_mixtures, layered
from sbnet.model.graph import Graph
from sbnet.model.network import Network

if TYPE_CHECKING:
    from sbnet.estimators._autoregressive import Autoregressive
    from sbnet.estimators._report import Report
    from sbnet.estimators.density import SBNDensity

HIDDEN_LAYERS = (8,)
COLUMN_MIXTURES = 1
RATE, WEIGHT_SCALE = 0.03, 0.2
FEWEST = 50
"""Below so many rows nothing is chosen: too few of them could be held out."""
FEW = 3_000
"""So many autoregressive edges are all learned: a mixture may need a parent that one regression does not."""
MANY = 100_000
"""Weights beyond which a small table is learned in fewer steps, and without mixtures that nobody asked for."""
MOST_WEIGHTS, _BYTES = 20_000_000, 200
"""Weights that are learned at most, and what one takes while it is."""
SOLVER = MeanField(log_term="xi", tol=1e-3)
_NAMED: dict[Any, type[Adam | SGD]] = {"adam": Adam, "sgd": SGD}


def learn_from_scratch(
    density: SBNDensity, rows: Rows, generator: np.random.Generator
) -> tuple[FitResult, Report | None]:
    """A start and all epochs, from one generator; and what was chosen, if the prior was left to be.

    A function, so that it can travel to worker processes.
    """
    check_size(density, len(rows.names))
    free = not rows.groups  # units that stand for one column are not free to be regressed
    if _priors.chooses(density) and free and len(rows.cells) >= FEWEST:
        from sbnet.estimators import _choosing

        return _choosing.learn(density, rows, generator)
    return learn(density, start(density, rows, generator), rows, generator), None


def start(
    density: SBNDensity,
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
    check_size(density, len(rows.names))
    sizes = layers(density.hidden) if hidden is None else hidden
    count = column_mixtures_of(density, len(rows.names)) if column_mixtures is None else column_mixtures
    network = _fully_connected(density, rows, generator, sizes, bool(density.autoregressive) and edges)
    _check_names(network, rows, count)
    if autoregressive is not None:
        network = _with_autoregressive(network, rows, autoregressive)
    if count:
        network = switched(density, rows, generator, network, count)
    return enforce(cut_off(network, rows), rows.groups)


def cut_off(network: Network, rows: Rows) -> Network:
    """Without what columns that have no observed cell would say."""
    edges, units = _cut_off(network, rows)
    weight, bias = np.where(edges, 0.0, network.weight), np.where(units, 0.0, network.bias)
    return network.with_parameters(weight=weight, bias=bias)


def switched(density: SBNDensity, rows: Rows, generator: np.random.Generator, network: Network, count: int) -> Network:
    """With mixtures for the columns that have parents: only those have regressions to mix."""
    fan_in = np.diff(network.graph.indptr)
    units = [name for name in rows.names if fan_in[network.index(name)]]
    return add_column_mixtures(network, units=units, count=count, rng=generator, scale=_scale(density))


def crowned(density: SBNDensity, rows: Rows, generator: np.random.Generator, network: Network, count: int) -> Network:
    """With hidden units above all columns, beside what has been learned; columns keep their means."""
    graph, scale = network.graph, _scale(density)
    column: BoolArray = np.zeros(network.n_units, dtype=np.bool_)
    column[columns(network, rows.names)] = True
    more = np.where(column, count, 0)
    fresh = generator.uniform(-scale, scale, (network.n_units, count))
    place = np.repeat(np.cumsum(more), np.diff(graph.indptr)) + np.arange(graph.n_edges)
    n_edges = graph.n_edges + int(more.sum())
    weight, parent = np.empty(n_edges), np.empty(n_edges, dtype=np.int64)
    new: BoolArray = np.ones(n_edges, dtype=np.bool_)
    new[place] = False
    weight[place], parent[place] = network.weight, graph.parent + count
    weight[new], parent[new] = fresh[column].ravel(), np.tile(np.arange(count), int(column.sum()))
    indptr = np.concatenate([np.zeros(count, np.int64), graph.indptr + np.concatenate([[0], np.cumsum(more)])])
    bias = np.concatenate([np.zeros(count), network.bias - 0.5 * np.where(column, fresh.sum(axis=1), 0.0)])
    names = (*layered((count, 1)).names[:count], *network.names)
    return Network(names, Graph(indptr, parent), weight, bias)


def _fully_connected(
    density: SBNDensity, rows: Rows, generator: np.random.Generator, sizes: tuple[int, ...], autoregressive: bool
) -> Network:
    """Layers with all their edges; weights between columns are zero, biases of columns those of their means."""
    width = len(rows.names)
    network = layered(
        (*sizes, width), rng=generator, scale=_scale(density), autoregressive=autoregressive or bool(rows.groups)
    )
    hidden = network.names[:-width]
    open_ = open_cells(rows)
    ones, zeros = rows.weights @ (open_ & (rows.cells == 1)), rows.weights @ (open_ & (rows.cells == 0))
    bias = network.bias.copy()
    bias[-width:] = np.log((ones + 0.5) / (zeros + 0.5))
    # Weights between columns need no noise to part them from each other, and would have to unlearn it.
    beside = network.graph.parent >= network.n_units - width
    if set(hidden) & set(rows.names):
        raise NetworkError(
            f"column {min(set(hidden) & set(rows.names))!r} has the name of a hidden unit; rename the column"
        )
    network = replace(network, names=(*hidden, *rows.names), weight=np.where(beside, 0.0, network.weight), bias=bias)
    if rows.groups and not autoregressive:
        network = without_edges(network, beside & ~inside(network, rows.groups))
    return network


def _scale(density: SBNDensity) -> float:
    """How large weights are at first."""
    scale: float = WEIGHT_SCALE if _priors.is_auto(density.weight_scale) else density.weight_scale
    return scale


def _check_names(network: Network, rows: Rows, column_mixtures: int) -> None:
    taken = {f"{name}.switch{k + 1}" for name in rows.names for k in range(column_mixtures)} & set(network.names)
    if taken:
        raise NetworkError(f"column {min(taken)!r} has the name of a hidden unit; rename the column")


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
    return without_edges(network, beside & (weight == 0.0) & ~inside(network, rows.groups))


def assembled(rows: Rows, weights: Any, bias: FloatArray, hidden_bias: FloatArray) -> Network:
    """Hidden units without parents, and columns whose parents are those that have a weight."""
    n = len(hidden_bias)
    graph = Graph(np.concatenate([np.zeros(n, np.int64), weights.indptr]), weights.indices)
    names = (*layered((n, 1)).names[:n], *rows.names)
    return Network(names, graph, weights.data, np.concatenate([hidden_bias, bias]))


def open_cells(rows: Rows) -> BoolArray:
    """Cells that could be either 0 or 1, after the other units of their column."""
    found: BoolArray = np.ones(rows.cells.shape, dtype=np.bool_)
    for group in rows.groups:
        own = np.array([rows.names.index(unit) for unit in group.units])
        found[:, own] = free(rows.cells, own, group.is_thermometer)
    return found


def learn(
    density: SBNDensity,
    network: Network,
    rows: Rows,
    generator: np.random.Generator,
    *,
    prior_share: float = 1.0,
    epochs: int | None = None,
    prior: Any = None,
    stepping: Any = None,
    quiet: bool = False,
) -> FitResult:
    """Climb the bound from `network`; columns without an observed cell stay as they are.

    Epochs, a prior and an optimiser may be given that the density does not name itself.
    """
    fraction = None if quiet else density.validation_fraction
    if density.patience is not None and density.validation_fraction is None:
        raise ParameterError("patience watches held-out rows; give their share with validation_fraction=")
    if fraction is not None and not 0.0 < fraction < 1.0:
        raise ParameterError(f"validation_fraction is {fraction!r}; a fraction lies between 0 and 1")
    hold_out = fraction is not None and len(rows.cells) > 1  # one row cannot be divided
    if epochs is None:
        epochs = density.epochs
        if _priors.is_auto(epochs):
            epochs = _epochs(len(rows.cells), density.batch_size, network.n_edges)
    stepping = optimizer(density, until=max(epochs, 1)) if stepping is None else stepping
    settings = {
        "batch_size": density.batch_size,
        "solver": solver_for(density, network, rows.names),
        "prior": shared(prior or _priors.for_network(density, network, rows.names), prior_share),
        "frozen": frozen(network, rows),
        "rng": generator,
        "threads": threads(density),
        "executor": density.executor,
        "progress": bool(density.verbose) and not quiet,
    }
    if rows.groups and is_needed(rows):
        settings["stepping"] = stepping
        result = _learn_completing(density, network, rows, epochs, fraction if hold_out else None, settings)
    else:
        result = fit(
            network,
            place(network, rows.cells, rows.names),
            epochs=epochs,
            optimizer=stepping,
            validation=fraction if hold_out else None,
            patience=density.patience if hold_out and fraction is not None else None,
            sample_weight=rows.weights,
            **settings,
        )
    if result.interrupted:  # an estimator is fitted or it is not, and a search over settings must stop
        raise KeyboardInterrupt
    return replace(result, network=enforce(result.network, rows.groups))


def _learn_completing(
    density: SBNDensity, network: Network, rows: Rows, epochs: int, fraction: float | None, settings: dict[str, Any]
) -> FitResult:
    """Epochs from rows whose missing cells are drawn anew before each, with one optimiser for all."""
    epochs, held_out, patience = checks.whole("epochs", epochs, 1), None, None
    if fraction is not None:
        rows, out = rows.divide(fraction, settings["rng"])
        held_out, patience = place(network, out.cells, out.names), density.patience
    stepping = Resumed(settings.pop("stepping"), None, 0)

    def learn_epoch(now: Network, states: States, epoch: int) -> FitResult:
        stepping.epoch = epoch
        weights = rows.weights
        return fit(now, states, epochs=1, optimizer=stepping, validation=held_out, sample_weight=weights, **settings)

    return learn_completing(network, rows, settings["rng"], epochs, patience, learn_epoch)


def layers(hidden: Any) -> tuple[int, ...]:
    """Sizes of the hidden layers."""
    if isinstance(hidden, str):
        return HIDDEN_LAYERS if hidden == "auto" else (hidden,)  # type: ignore[return-value]  # refused by layered()
    if checks.is_whole(hidden) and hidden == 0:
        return ()
    return tuple(hidden) if isinstance(hidden, Iterable) else (hidden,)


def optimizer(density: SBNDensity, until: int | None = None) -> Any:
    """What steps; given by name, at a rate that falls to nothing over `until` epochs, or stays if there is no end."""
    given = density.optimizer
    if isinstance(given, str) and given in _NAMED:
        rate = RATE if _priors.is_auto(density.learning_rate) else density.learning_rate
        return _NAMED[given](rate, until=until)
    if hasattr(given, "init") and hasattr(given, "step"):
        return given
    raise ParameterError(f"optimizer is {given!r}; give 'adam', 'sgd', or an object such as sbnet.SGD(0.05)")


def solver(density: SBNDensity) -> Any:
    """The solver for learning and for scores."""
    return SOLVER if density.solver is None else density.solver


def solver_for(density: SBNDensity, network: Network, names: tuple[str, ...], other: Any = None) -> Any:
    """The solver for one network: unless one is given, sums over hidden units where there are few of them."""
    other = solver(density) if other is None else other
    if density.solver is not None:
        return other
    units = columns(network, names)
    return summing(network, units, switching(network, units, other))


def threads(density: SBNDensity) -> int | None:
    """None: as many as there are cores."""
    return None if density.n_jobs is None else int(effective_n_jobs(density.n_jobs))


def make_seed(random_state: Any) -> int:
    """A seed from scikit-learn's `random_state`: a whole number is the seed itself."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


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


def check_size(density: SBNDensity, width: int) -> None:
    """Refuse a network that would not fit into memory before anything of it is made."""
    sizes = (*layers(density.hidden), width)
    autoregressive = width * (width - 1) // 2 if density.autoregressive else 0
    count = column_mixtures_of(density, width)
    above = sizes[-2] * width if len(sizes) > 1 else 0
    # each mixture variable of a column has the parents of the column, and the column has all of them
    weights = (
        sum(one * other for one, other in pairwise(sizes)) + autoregressive + count * (above + autoregressive + width)
    )
    units = sum(sizes) + count * width
    if max(weights, units) > MOST_WEIGHTS:
        needed = _BYTES * max(weights, units) / 2**30
        raise ParameterError(
            f"{width:,} columns, hidden={density.hidden!r:.40}, autoregressive={density.autoregressive!r} and "
            f"column_mixtures={density.column_mixtures!r:.20} make {weights:,} weights, which take about {needed:,.0f} "
            f"GB; at most {MOST_WEIGHTS:,} are learned. Take fewer columns or hidden units, autoregressive=False, or "
            "column_mixtures=0"
        )


def column_mixtures_of(density: SBNDensity, width: int = 0) -> int:
    """Mixture variables of each column; none are taken unasked where columns are many."""
    automatic = COLUMN_MIXTURES if width * (width - 1) // 2 <= MANY else 0
    count = automatic if _priors.is_auto(density.column_mixtures) else density.column_mixtures
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
        raise ParameterError(f"column_mixtures is {count!r}; it must be a whole number, zero or more, or 'auto'")
    return int(count)


def _epochs(n_rows: int, batch_size: int, weights: int) -> int:
    """Twenty, or more for small tables: at least 250 steps, or as many as take no longer if weights are many."""
    steps = 250 if weights <= MANY else max(25, 250 * MANY // weights)
    return max(20, -(-steps // -(-n_rows // max(batch_size, 1))))


def frozen(network: Network, rows: Rows) -> BoolArray:
    """What is not learned, weights first: columns without an observed cell, and weights inside a column."""
    edges, units = _cut_off(network, rows)
    return np.concatenate([edges | inside(network, rows.groups), units])


def _cut_off(network: Network, rows: Rows) -> tuple[BoolArray, BoolArray]:
    """Edges and units of columns without an observed cell."""
    units: BoolArray = np.zeros(network.n_units, dtype=np.bool_)
    units[columns(network, rows.names)] = rows.unseen
    return units[network.graph.parent] | units[network.graph.child_of_edge], units
