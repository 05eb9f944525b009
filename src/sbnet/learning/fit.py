"""Learning by climbing the bound: the paper's procedure (section 4), in single patterns or in mini-batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from sbnet._progress import Bar
from sbnet._types import BoolArray, FloatArray, RngLike, States
from sbnet.errors import ParameterError
from sbnet.evidence import EvidenceLike, coerce_many
from sbnet.inference import MeanField, infer_many
from sbnet.learning.gradients import gradient_of_states
from sbnet.learning.optimizers import SGD, Gaussian, Laplace, Optimizer
from sbnet.network import Network

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WARM_BYTES = 500_000_000
"""Means of all rows are kept between epochs, to start from, as long as they take no more than this."""


@dataclass(frozen=True, eq=False)
class FitResult:
    """What learning has come to.

    Attributes
    ----------
    network : Network
        The network of the best epoch: the last, or with held-out rows the one with the highest bound there.
    bounds : ndarray
        Mean bound per row over each epoch, in nats, measured while the weights were moving.
    held_out : ndarray or None
        Mean bound of the held-out rows after each epoch.
    best_epoch : int
        Counted from 1; 0 means the network that learning started from.
    interrupted : bool
        Was it stopped by Ctrl-C?
    seconds : float
    """

    network: Network
    bounds: FloatArray
    held_out: FloatArray | None
    best_epoch: int
    interrupted: bool
    seconds: float

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the bounds against the epochs."""
        import matplotlib.pyplot as plt

        ax = plt.subplots()[1] if ax is None else ax
        epochs = np.arange(1, len(self.bounds) + 1)
        ax.plot(epochs, self.bounds, marker="o", label="training rows")
        if self.held_out is not None:
            ax.plot(epochs, self.held_out, marker="o", label="held-out rows")
        ax.set_xlabel("epoch")
        ax.set_ylabel("mean bound, nats per row")
        ax.legend()
        return ax

    def __repr__(self) -> str:
        if not len(self.bounds):
            return "FitResult: no epoch was finished"
        text = f"FitResult: {len(self.bounds)} epochs in {self.seconds:.1f} s, mean bound {self.bounds[-1]:.6g} nats"
        if self.held_out is not None:
            text += f", held out {self.held_out[self.best_epoch - 1]:.6g} after epoch {self.best_epoch}"
        return text + (" (interrupted)" if self.interrupted else "")


def fit(
    network: Network,
    X: EvidenceLike,
    *,
    epochs: int = 5,
    optimizer: Optimizer | None = None,
    batch_size: int = 1,
    solver: MeanField | None = None,
    prior: Gaussian | Laplace | None = None,
    validation: float | EvidenceLike | None = None,
    patience: int | None = None,
    sample_weight: ArrayLike | None = None,
    frozen: Iterable[str | tuple[str, str]] = (),
    shuffle: bool = True,
    rng: RngLike = None,
    callbacks: Sequence[Callable[[int, Network, float], Any]] = (),
    threads: int | None = None,
    progress: bool | None = None,
) -> FitResult:
    """Learn weights and biases from a table, by climbing the bound on its log-likelihood.

    For each pattern, or batch of patterns, the mean field equations are solved, and the parameters take a step along
    the gradient of the mean bound, eqs. (25)-(26) and (34)-(35). Rows may have different holes: nothing is imputed.

    Parameters
    ----------
    network : Network
        Where to start; its graph stays as it is.
    X
        Rows by units; NaN (or -1, or a mask) where a unit is missing or hidden. Fewer columns than units mean the last
        units, the bottom layer.
    epochs : int
        How often to go through the table.
    optimizer
        :class:`SGD` with rate 0.05, as in the paper, or :class:`Adam`.
    batch_size : int
        Rows per step; 1 is the paper's procedure. Larger batches use all cores.
    solver : MeanField
        By default the paper's logarithm term, which is quick, and a tolerance of 0.001 nats.
    prior
        :class:`Gaussian` or :class:`Laplace`, for the posterior mode instead of the maximum of the bound.
    validation
        Rows to hold out, as a table or as a fraction of X. The network with the best held-out bound is returned.
    patience : int
        Stop when the held-out bound has not risen for that many epochs.
    sample_weight
        A weight for each row of X.
    frozen
        Units (whose bias stays) and edges, as (parent, child), that do not learn.
    shuffle : bool
        Go through the rows in a new random order in each epoch; otherwise in that of the table.
    rng
        Seed or generator. Equal seeds give equal weights, whatever the number of threads.
    callbacks
        Called after each epoch with its number, the network, and the mean bound.
    threads, progress
        As in :func:`sbnet.infer_many`.

    Returns
    -------
    FitResult
        Ctrl-C ends learning early and returns what has been reached.

    Examples
    --------
    >>> import sbnet as sb
    >>> truth = sb.layered((2, 8), rng=0, scale=3)
    >>> X = sb.sample(truth, 500, rng=1)[:, 2:]
    >>> result = sb.fit(sb.layered((2, 8), rng=2), X, epochs=5, rng=0)
    >>> bool(result.bounds[-1] > result.bounds[0])
    True
    """
    begin = time.monotonic()
    _check_counts(epochs, batch_size, patience, validation)
    optimizer = SGD(0.05) if optimizer is None else optimizer
    solver = MeanField(log_term="xi", tol=1e-3) if solver is None else solver
    generator = np.random.default_rng(rng)
    states = coerce_many(network, X)
    weights = _row_weights(states, sample_weight)
    states, weights, held_out = _hold_out(network, states, weights, validation, generator)
    moving = _moving(network, frozen)
    warm = np.full(states.shape, np.nan) if 8 * states.size <= _WARM_BYTES else None
    parameters = np.concatenate([network.weight, network.bias])
    state = optimizer.init(len(parameters))
    best, best_epoch, best_bound = network, 0, -np.inf
    bounds: list[float] = []
    scores: list[float] = []
    interrupted = False
    bar = Bar("learning", epochs * len(states), progress)
    try:
        for epoch in range(epochs):
            order = generator.permutation(len(states)) if shuffle else np.arange(len(states))
            total = 0.0
            for start in range(0, len(order), batch_size):
                rows = order[start : start + batch_size]
                share = weights[rows] / max(weights[rows].sum(), np.finfo(float).tiny)
                slope = gradient_of_states(
                    network, states[rows], solver, None if warm is None else warm[rows], share, threads
                )
                total += float(weights[rows] @ slope.bound)
                if warm is not None:
                    warm[rows] = slope.means
                direction = np.concatenate([slope.weight, slope.bias])
                if prior is not None:
                    direction += prior.slope(network.weight, network.bias) / weights.sum()
                move, state = optimizer.step(direction, state, epoch)
                parameters = parameters + move * moving
                network = network.with_parameters(
                    weight=parameters[: network.n_edges], bias=parameters[network.n_edges :]
                )
                bar.update(epoch * len(states) + start + len(rows))
            bounds.append(total / weights.sum())
            note = f"epoch {epoch + 1} of {epochs}, bound {bounds[-1]:.4g}"
            if held_out is not None:
                scores.append(float(infer_many(network, held_out, solver=solver, threads=threads).bound.mean()))
                note += f", held out {scores[-1]:.4g}"
            if held_out is None or scores[-1] > best_bound:
                best, best_epoch, best_bound = network, epoch + 1, scores[-1] if scores else bounds[-1]
            bar.describe(note)
            for callback in callbacks:
                callback(epoch + 1, network, bounds[-1])
            if patience is not None and epoch + 1 - best_epoch >= patience:
                break
    except KeyboardInterrupt:
        interrupted = True
        if held_out is None:
            best = network
    finally:
        bar.close()
    return FitResult(
        best,
        np.array(bounds),
        None if held_out is None else np.array(scores),
        best_epoch,
        interrupted,
        time.monotonic() - begin,
    )


def _check_counts(epochs: int, batch_size: int, patience: int | None, validation: Any) -> None:
    for name, value in (("epochs", epochs), ("batch_size", batch_size), ("patience", patience)):
        if name == "patience" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ParameterError(f"{name} is {value!r}; it must be a whole number, one or more")
    if patience is not None and validation is None:
        raise ParameterError("patience watches held-out rows; give some with validation=")


def _row_weights(states: States, sample_weight: ArrayLike | None) -> FloatArray:
    n = len(states)
    if n == 0:
        raise ParameterError("there are no rows to learn from")
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,) or not np.all(weights >= 0.0) or not np.isfinite(weights.sum()) or weights.sum() <= 0.0:
        raise ParameterError(f"sample_weight must hold {n} numbers, one per row, none negative and not all zero")
    return weights


def _hold_out(
    network: Network, states: States, weights: FloatArray, validation: Any, generator: np.random.Generator
) -> tuple[States, FloatArray, States | None]:
    if validation is None:
        return states, weights, None
    if not isinstance(validation, float | int):
        return states, weights, coerce_many(network, validation)
    if not 0.0 < validation < 1.0:
        raise ParameterError(f"validation is {validation!r}; a fraction lies between 0 and 1")
    n_out = min(max(1, round(validation * len(states))), len(states) - 1)
    if n_out < 1:
        raise ParameterError("one row cannot be divided into rows to learn from and rows to hold out")
    order = generator.permutation(len(states))
    out, kept = np.sort(order[:n_out]), np.sort(order[n_out:])
    return states[kept], weights[kept], states[out]


def _moving(network: Network, frozen: Iterable[str | tuple[str, str]]) -> FloatArray:
    """1 for parameters that learn, 0 for frozen ones; weights first."""
    free: BoolArray = np.ones(network.n_edges + network.n_units, dtype=np.bool_)
    for item in frozen:
        if isinstance(item, tuple):
            j, i = (network.index(unit) for unit in item)
            edges = np.arange(network.indptr[i], network.indptr[i + 1])
            found = edges[network.parent[edges] == j]
            if not len(found):
                raise ParameterError(f"there is no edge {item[0]!r} -> {item[1]!r} to freeze")
            free[found] = False
        else:
            free[network.n_edges + network.index(item)] = False
    return free.astype(np.float64)
