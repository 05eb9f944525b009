"""Learning by climbing the bound: the paper's procedure (section 4), in single patterns or in mini-batches."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sbnet import checks
from sbnet._types import BoolArray, FloatArray, IndexArray, RngLike, States
from sbnet.errors import ParameterError
from sbnet.evidence import EvidenceLike, Reading, read_many
from sbnet.exact import log_likelihood as exact_log_likelihood
from sbnet.execution import Bar
from sbnet.files.atomic import PathLike, as_name, check_target
from sbnet.files.tensors import Stored
from sbnet.inference import Climber, MeanField, check_climber, infer_many
from sbnet.learning.checkpoint import Run, describe, first_generator, read, restore, write
from sbnet.learning.coordinates import chances, moved, slope_in
from sbnet.learning.generators import check_known
from sbnet.learning.gradients import gradient_of_rows
from sbnet.learning.optimizers import SGD, Gaussian, Laplace, Optimizer, Shrinking, Sized
from sbnet.learning.results import FitResult
from sbnet.network import MAX_PARAMETER, Network

_WARM_BYTES = 500_000_000
"""Means of all rows are kept between epochs, to start from, as long as they take no more than this."""


def fit(
    network: Network,
    X: EvidenceLike,
    *,
    epochs: int = 5,
    optimizer: Optimizer | None = None,
    batch_size: int = 1,
    solver: Climber | None = None,
    prior: Gaussian | Laplace | None = None,
    validation: float | EvidenceLike | None = None,
    patience: int | None = None,
    sample_weight: ArrayLike | None = None,
    frozen: Iterable[str | tuple[str, str]] | BoolArray = (),
    shuffle: bool = True,
    rng: RngLike = None,
    callbacks: Sequence[Callable[[int, Network, float], Any]] = (),
    log_likelihood: bool = False,
    checkpoint: PathLike | None = None,
    resume: bool | PathLike = False,
    threads: int | None = None,
    progress: bool | None = None,
    missing: Any = (),
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
        units, the bottom layer. Tables are read as by :func:`sbnet.infer_many`.
    epochs : int
        How often to go through the table.
    optimizer
        :class:`SGD` with rate 0.05, as in the paper, or :class:`Adam`.
    batch_size : int
        Rows per step; 1 is the paper's procedure. Larger batches use all cores.
    solver : Climber
        By default a :class:`MeanField` with the paper's logarithm term, which is quick, and a tolerance of 0.001 nats.
    prior
        :class:`Gaussian` or :class:`Laplace`, for the posterior mode instead of the maximum of the bound.
    validation
        Rows to hold out, as a table or as a fraction of X. The network with the best held-out bound is returned.
    patience : int
        Stop when the held-out bound has not risen for that many epochs.
    sample_weight
        A weight for each row of X.
    frozen
        Units (whose bias stays) and edges, as (parent, child), that do not learn; or a mask, weights first.
    shuffle : bool
        Go through the rows in a new random order in each epoch; otherwise in that of the table.
    rng
        Seed or generator. Equal seeds give equal weights, whatever the number of threads.
    callbacks
        Called after each epoch with its number, the network, and the mean bound.
    log_likelihood : bool
        Also sum the exact log-likelihood of the rows after each epoch. Only for networks small enough to enumerate.
    checkpoint : path
        A file to write after each epoch: whatever happens, it holds the last finished epoch, whole.
    resume : path or bool
        A checkpoint to go on from, until `epochs` epochs are done in all. The network, the table and the settings must
        be those of that run, and the weights will be the same, to the last bit, as if it had never stopped. True means
        the file given as `checkpoint` if it is there, and a new run if not. The random state is the one in the file.
    threads, progress, missing
        As in :func:`sbnet.infer_many`; `missing` also for the table of `validation`.

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
    _check_helpers(optimizer, solver, prior, callbacks)
    source = _source(checkpoint, resume)
    # A resumed run holds out what it held out when it began.
    generator = checks.generator(rng) if source is None else first_generator(source)
    if checkpoint is not None:
        check_known(generator)
    first = generator.bit_generator.state
    reading = read_many(network, X, missing=missing)
    weights = _row_weights(reading.states, sample_weight)
    states, weights, held_out = _hold_out(network, reading, weights, validation, missing, generator)
    if log_likelihood:  # refuse now, not after an epoch
        exact_log_likelihood(network, states[[np.argmax((states < 0).sum(axis=1))]])
    moving, warm = _moving(network, frozen), 8 * states.size <= _WARM_BYTES
    lesson = _Lesson(states, weights, optimizer, batch_size, solver, prior, moving, threads, warm)
    settings = describe(
        network=network,
        table=states,
        sample_weight=weights,
        optimizer=optimizer,
        batch_size=batch_size,
        solver=_without_rng(solver),
        prior=prior,
        validation=held_out,
        frozen=lesson.moving,
        shuffle=shuffle,
        log_likelihood=log_likelihood,
    )
    state = optimizer.init(network.n_edges + network.n_units)
    run = Run(network, state, None, generator.bit_generator.state, best=network)
    if source is not None:
        run = restore(source, run, states, settings, optimizer, warm=lesson.warm)
        generator.bit_generator.state = run.rng
    before, latest, interrupted = run.seconds, _parameters(run.network), False
    bar = Bar(_note(run, epochs), epochs * len(states), progress, run.epoch * len(states))
    try:
        while run.epoch < epochs and (patience is None or run.epoch - run.best_epoch < patience):
            order = generator.permutation(len(states)) if shuffle else np.arange(len(states))
            for step in _steps(lesson, run, order):
                latest = step.parameters
                bar.update(run.epoch * len(states) + step.finished)
            run = _close_epoch(run, step, lesson, held_out, log_likelihood)
            run = replace(run, rng=generator.bit_generator.state, seconds=before + time.monotonic() - begin)
            if checkpoint is not None:
                write(checkpoint, run, states, settings, first)
            bar.describe(_note(run, epochs))
            for callback in callbacks:
                callback(run.epoch, run.network, run.bounds[-1])
    except KeyboardInterrupt:
        interrupted = True
    finally:
        bar.close()
    return FitResult(
        _network(network, latest) if held_out is None else run.best,
        np.array(run.bounds),
        None if held_out is None else np.array(run.held_out),
        np.array(run.exact) if log_likelihood else None,
        run.best_epoch,
        interrupted,
        before + time.monotonic() - begin,
    )


class _Lesson(NamedTuple):
    """What stays the same from step to step."""

    states: States
    weights: FloatArray
    optimizer: Optimizer
    batch_size: int
    solver: Climber
    prior: Gaussian | Laplace | None
    moving: FloatArray
    threads: int | None
    warm: bool  # are the means of an epoch kept, to start the next one from?


class _Step(NamedTuple):
    """Where an epoch stands: the rows it has gone through, the mean of their bounds, what it has learned."""

    finished: int
    bound: float
    parameters: FloatArray
    optimizer: tuple[FloatArray, ...]
    means: FloatArray | None


def _steps(lesson: _Lesson, run: Run, order: IndexArray) -> Iterator[_Step]:
    """Go through the rows once, in batches, from the means of the last epoch, which are replaced on the way."""
    state, total, everything = run.optimizer, 0.0, lesson.weights.sum()
    parameters, n_edges = _parameters(run.network), run.network.n_edges
    means = np.empty(lesson.states.shape) if lesson.warm and run.warm is None else run.warm
    chance = chances(run.network)
    shrink = None if chance is not None else _shrink(lesson)
    for start in range(0, len(order), lesson.batch_size):
        rows = order[start : start + lesson.batch_size]
        weights = lesson.weights[rows]
        share = weights / max(weights.sum(), np.finfo(float).tiny)
        weight, bias = parameters[:n_edges], parameters[n_edges:]
        slope = gradient_of_rows(
            run.network.model._replace(weight=weight),
            bias,
            lesson.states[rows],
            lesson.solver,
            None if run.warm is None else run.warm[rows],
            share,
            lesson.threads,
        )
        total += float(weights @ slope.bound)
        if means is not None:
            means[rows] = slope.means
        direction = np.concatenate([slope.weight, slope.bias])
        if lesson.prior is not None:
            pull = lesson.prior.slope if shrink is None else shrink.prior.smooth
            direction += pull(weight, bias) / everything
        move, state = lesson.optimizer.step(slope_in(parameters, direction, chance), state, run.epoch)
        parameters = moved(parameters, move * lesson.moving, chance)
        if shrink is not None:
            size = shrink.optimizer.size(state, run.epoch) * lesson.moving / everything
            parameters = shrink.prior.shrunk(parameters[:n_edges], parameters[n_edges:], size)
        if not np.abs(parameters).max() <= MAX_PARAMETER:
            _network(run.network, parameters)  # says which of them went astray
        parameters.setflags(write=False)  # as the arrays of a network are: one kind of array, one compiled kernel
        yield _Step(start + len(rows), total / everything, parameters, state, means)


class _Shrink(NamedTuple):
    """A prior that shrinks weights to zero, and an optimiser that says how far."""

    prior: Shrinking
    optimizer: Sized


def _shrink(lesson: _Lesson) -> _Shrink | None:
    """Both, if that is what they are; otherwise the slope of the prior is added to that of the bound."""
    prior, optimizer = lesson.prior, lesson.optimizer
    if isinstance(prior, Shrinking) and isinstance(optimizer, Sized):
        return _Shrink(prior, optimizer)
    return None


def _parameters(network: Network) -> FloatArray:
    """Weights and biases in one array; learning moves it, and makes a network of it after an epoch."""
    together = np.concatenate([network.weight, network.bias])
    together.setflags(write=False)
    return together


def _network(network: Network, parameters: FloatArray) -> Network:
    return network.with_parameters(weight=parameters[: network.n_edges], bias=parameters[network.n_edges :])


def _close_epoch(run: Run, step: _Step, lesson: _Lesson, held_out: States | None, log_likelihood: bool) -> Run:
    """Enter the epoch in the history, and see whether it is the best."""
    network, bound, exact, scores = _network(run.network, step.parameters), step.bound, run.exact, run.held_out
    infer = partial(infer_many, network, solver=lesson.solver, threads=lesson.threads)
    if log_likelihood:  # both of the same weights, so that one is below the other
        bound = float(infer(lesson.states).bound.mean())
        truth = exact_log_likelihood(network, lesson.states, threads=lesson.threads, progress=False)
        exact = (*exact, float(np.mean(truth)))
    if held_out is not None:
        scores = (*scores, float(infer(held_out).bound.mean()))
    run = replace(
        run,
        network=network,
        optimizer=step.optimizer,
        warm=step.means,
        bounds=(*run.bounds, bound),
        held_out=scores,
        exact=exact,
    )
    if held_out is None or scores[-1] > run.best_bound:
        run = replace(run, best=run.network, best_epoch=run.epoch, best_bound=scores[-1] if scores else bound)
    return run


def _note(run: Run, epochs: int) -> str:
    """What the progress bar says."""
    if not run.epoch:
        return f"learning, {epochs} epochs"
    note = f"epoch {run.epoch} of {epochs}, bound {run.bounds[-1]:.4g}"
    return note + (f", held out {run.held_out[-1]:.4g}" if run.held_out else "")


def _source(checkpoint: PathLike | None, resume: bool | PathLike) -> Stored | None:
    """The run to go on from, if any, after a look at where checkpoints shall be written: now, not after an epoch."""
    if checkpoint is not None:
        name = as_name(checkpoint)
        if not os.path.isdir(os.path.dirname(os.path.abspath(name))):
            raise ParameterError(f"checkpoint is {name!r}, but there is no such folder; make it first")
        check_target(name)
    if not isinstance(resume, bool):
        return read(resume)
    if resume and checkpoint is None:
        raise ParameterError("resume=True goes on from the file given as checkpoint=; give one, or resume=path")
    return read(checkpoint) if resume and checkpoint is not None and os.path.exists(checkpoint) else None


def _without_rng(solver: Climber) -> Climber:
    """Learning uses one starting point, so that two runs may differ in the seed of the others."""
    return replace(solver, rng=None) if isinstance(solver, MeanField) else solver


def _check_helpers(optimizer: Any, solver: Any, prior: Any, callbacks: Any) -> None:
    checks.no_class("optimizer", optimizer)
    checks.no_class("prior", prior)
    if not (hasattr(optimizer, "init") and hasattr(optimizer, "step")):
        raise ParameterError(f"optimizer is {optimizer!r}; give an optimiser, such as sbnet.SGD(0.05) or sbnet.Adam()")
    check_climber(solver)
    if prior is not None and not hasattr(prior, "slope"):
        raise ParameterError(f"prior is {prior!r}; give a prior, such as sbnet.Gaussian(1.0)")
    if callable(callbacks):
        raise ParameterError("callbacks is a function; give a list of them")


def _check_counts(epochs: int, batch_size: int, patience: int | None, validation: Any) -> None:
    checks.whole("epochs", epochs, 1)
    checks.whole("batch_size", batch_size, 1)
    if patience is not None:
        checks.whole("patience", patience, 1)
        if validation is None:
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
    network: Network, X: Reading, weights: FloatArray, validation: Any, missing: Any, generator: np.random.Generator
) -> tuple[States, FloatArray, States | None]:
    states = X.states
    if validation is None:
        return states, weights, None
    if not isinstance(validation, float | int):  # in the codings of the table to learn from
        return states, weights, read_many(network, validation, missing=missing, known=X.codings).states
    checks.chance("validation", validation)
    n_out = min(max(1, round(validation * len(states))), len(states) - 1)
    if n_out < 1:
        raise ParameterError("one row cannot be divided into rows to learn from and rows to hold out")
    order = generator.permutation(len(states))
    out, kept = np.sort(order[:n_out]), np.sort(order[n_out:])
    return states[kept], weights[kept], states[out]


def _moving(network: Network, frozen: Iterable[str | tuple[str, str]] | BoolArray) -> FloatArray:
    """1 for parameters that learn, 0 for frozen ones; weights first."""
    free: BoolArray = np.ones(network.n_edges + network.n_units, dtype=np.bool_)
    if isinstance(frozen, np.ndarray) and frozen.dtype == np.bool_:
        if frozen.shape != free.shape:
            raise ParameterError(f"the mask of frozen has shape {frozen.shape}; expected {free.shape}, weights first")
        return (~frozen).astype(np.float64)
    for item in frozen:
        if isinstance(item, tuple):
            j, i = (network.index(unit) for unit in item)
            edges = np.arange(network.graph.indptr[i], network.graph.indptr[i + 1])
            found = edges[network.graph.parent[edges] == j]
            if not len(found):
                raise ParameterError(f"there is no edge {item[0]!r} -> {item[1]!r} to freeze")
            free[found] = False
        else:
            free[network.n_edges + network.index(item)] = False
    return free.astype(np.float64)
