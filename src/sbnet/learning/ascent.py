"""Gradient ascent on the bound: the paper's procedure (section 4), in single patterns or in mini-batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from sbnet import checks
from sbnet._types import BoolArray, FloatArray, RngLike
from sbnet.errors import ParameterError
from sbnet.exact.answers import log_likelihood as exact_log_likelihood
from sbnet.files.atomic import PathLike
from sbnet.inference import DifferentiableSolver, MeanField, check_differentiable
from sbnet.kernels.codes import NOISY_OR
from sbnet.learning.checkpoint import Run, opened
from sbnet.learning.gradients import Objective, check_learns_tables, parameters_of, tables_from
from sbnet.learning.optimizers import SGD, Optimizer
from sbnet.learning.partitions import distributed
from sbnet.learning.priors import Gaussian, Laplace, Penalty, as_penalty
from sbnet.learning.results import FitResult
from sbnet.learning.sources import Source, Task, table
from sbnet.learning.streams import Stream, is_once, is_stream
from sbnet.model.gates import softplus
from sbnet.model.network import MAX_PARAMETER, Network
from sbnet.model.suggestions import check_kinds, check_network
from sbnet.parallel.blocks import Bar
from sbnet.parallel.lazy import LazyTable, is_lazy
from sbnet.questions.evidence import EvidenceLike

Streamed: TypeAlias = "Iterable[Any] | Callable[[], Iterable[Any]] | PathLike"
"""Blocks of rows, one after the other."""


def fit(
    network: Network,
    X: EvidenceLike | LazyTable | Streamed,
    *,
    epochs: int | None = None,
    optimizer: Optimizer | None = None,
    batch_size: int = 1,
    solver: DifferentiableSolver | None = None,
    prior: Gaussian | Laplace | Penalty | None = None,
    validation: float | EvidenceLike | None = None,
    patience: int | None = None,
    sample_weight: ArrayLike | None = None,
    pseudo_count: float = 1.0,
    frozen: Iterable[str | tuple[str, str]] | BoolArray = (),
    shuffle: bool = True,
    rng: RngLike = None,
    callbacks: Sequence[Callable[[int, Network, float], Any]] = (),
    log_likelihood: bool = False,
    checkpoint: PathLike | None = None,
    resume: bool | PathLike = False,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: bool | None = None,
    missing: Any = (),
) -> FitResult:
    """Learn weights and biases from a table, by gradient ascent on the bound on its log-likelihood.

    For each pattern, or batch of patterns, the mean field equations are solved, and the parameters take a step along
    the gradient of the mean bound, eqs. (25)-(26) and (34)-(35). Rows may miss different values: nothing is imputed.

    Parameters
    ----------
    network : Network
        Where to start; its graph stays as it is.
    X : table, Dask collection, stream or folder
        Rows by variables; NaN (or -1, or a mask) where a variable is missing or hidden. Fewer columns than variables
        mean the last variables, the bottom layer. Tables are read as by :func:`sbnet.infer_many`. Or a Dask array or
        data frame, whose partitions are learned from where they lie. Or rows that do not fit in memory: an iterator of
        tables, a function that makes one for each epoch, or a folder of Parquet files; they are shuffled within a
        buffer of 64 MB.
    epochs : int
        How often to go through the table: 5 times by default, and an iterator once.
    optimizer : Optimizer, optional
        :class:`SGD` with rate 0.05, as in the paper, or :class:`Adam`.
    batch_size : int
        Rows per step; 1 is the paper's procedure. Larger batches use all cores.
    solver : DifferentiableSolver
        By default a :class:`MeanField` with the paper's logarithm term, which is quick, and a tolerance of 0.001 nats.
    prior : Gaussian, Laplace or Penalty, optional
        :class:`Gaussian` or :class:`Laplace`, for the posterior mode instead of the maximum of the bound.
    validation : float or table, optional
        Rows to hold out, as a table or as a fraction of X. The network with the best held-out bound is returned.
    patience : int
        Stop when the held-out bound has not risen for that many epochs.
    sample_weight : array_like, optional
        A weight for each row of X.
    pseudo_count : float
        What each entry of a table counts beside the rows, a Dirichlet prior. Tables are learned once in each epoch,
        from how often mean field theory expects each entry to be used; what is zero stays zero.
    frozen : iterable of str and tuples, or bool array
        Variables (whose bias or table stays) and edges, as (parent, child), that do not learn; or a mask, weights
        first.
    shuffle : bool
        Go through the rows in a new random order in each epoch; otherwise in that of the table.
    rng : int or numpy.random.Generator, optional
        Seed or generator. Equal seeds give equal weights, wherever the work is done.
    callbacks : sequence of callables
        Called after each epoch with its number, the network, and the mean bound.
    log_likelihood : bool
        Also sum the exact log-likelihood of the rows after each epoch. Only for networks small enough to enumerate.
    checkpoint : path
        A file to write after each epoch: whatever happens, it holds the last finished epoch, whole.
    resume : path or bool
        A checkpoint to go on from, until `epochs` epochs are done in all. The network, the table and the settings must
        be those of that run, and the weights will be the same, to the last bit, as if it had never stopped. True means
        the file given as `checkpoint` if it is there, and a new run if not. The random state is the one in the file.
    threads, executor, progress, missing : as in :func:`sbnet.infer_many`
        `missing` is also for the table of `validation`. To an executor each step sends its rows and the parameters, so
        batches should be large; the weights are the same with any.

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
    if is_stream(X) or is_lazy(X):
        check_network(network)
    else:
        check_kinds(network, X)
    epochs = _epochs(epochs, X)
    optimizer = SGD(0.05) if optimizer is None else optimizer
    solver = MeanField(log_term="xi", tol=1e-3) if solver is None else solver
    _check(optimizer, solver, batch_size, patience, validation)
    check_learns_tables(network, solver)
    penalty, moving = as_penalty(prior), _moving(network, frozen)
    tables = Tables(checks.not_negative("pseudo_count", pseudo_count), _kept_tables(network, frozen))
    callbacks, shuffle = checks.callbacks(callbacks), checks.flag("shuffle", shuffle)
    log_likelihood = checks.flag("log_likelihood", log_likelihood)
    with opened(checkpoint, resume) as saved:
        generator = saved.generator(rng)
        objective = Objective.of(network, solver, executor, threads)
        task = Task(network, X, sample_weight, validation, missing, objective, batch_size, shuffle, saved.used)
        source: Source
        if is_lazy(X):
            source = distributed(task, generator)
        else:
            source = Stream(task) if is_stream(X) else table(task, generator)
        if log_likelihood:  # refuse now, not after an epoch
            exact_log_likelihood(network, source.most_hidden())
        run = Run(network, optimizer.init(len(moving)), warm=None, rng=generator.bit_generator.state, best=network)
        if saved.used:
            run = saved.begin(
                run,
                source.n_warm,
                network=network,
                **source.fingerprints(),
                optimizer=optimizer,
                batch_size=batch_size,
                solver=replace(solver, rng=None) if isinstance(solver, MeanField) else solver,  # one start: no seed
                prior=prior,
                frozen=moving,
                **({"tables": tables} if network.tables else {}),
                shuffle=shuffle,
                log_likelihood=log_likelihood,
            )
        if saved.stored is not None:
            generator.bit_generator.state = run.rng
            source.resume(run.warm, run.n_rows)
        before, interrupted, n = run.seconds, False, source.n_rows
        latest = _together(run.network.weight, run.network.bias)
        bar = Bar(_note(run, epochs), epochs * n, progress if n else False, run.epoch * n)
        try:
            while run.epoch < epochs and (patience is None or run.epoch - run.best_epoch < patience):
                for step in _steps(source, optimizer, penalty, moving, run, generator):
                    latest = step.parameters
                    bar.update(run.epoch * source.n_rows + step.finished)
                run = _close_epoch(run, step, source, tables, log_likelihood)
                run = replace(run, rng=generator.bit_generator.state, seconds=before + time.monotonic() - begin)
                if checkpoint is not None:
                    saved.write(replace(run, warm=source.warm(), n_rows=source.n_rows))
                bar.describe(_note(run, epochs))
                for callback in callbacks:
                    callback(run.epoch, run.network, run.bounds[-1])
        except KeyboardInterrupt:
            interrupted = True
        finally:
            bar.close()
    holds_out = source.out is not None
    return FitResult(
        run.best if holds_out else _network(run.network, latest),
        np.array(run.bounds),
        np.array(run.held_out) if holds_out else None,
        np.array(run.exact) if log_likelihood else None,
        run.best_epoch,
        interrupted,
        before + time.monotonic() - begin,
    )


class _Step(NamedTuple):
    """Where an epoch stands: the rows it has gone through, the mean of their bounds, what it has learned."""

    finished: int
    bound: float
    parameters: FloatArray
    optimizer: tuple[FloatArray, ...]
    counts: FloatArray  # how often each entry of a table was used


def _steps(
    source: Source,
    optimizer: Optimizer,
    penalty: Penalty | None,
    moving: FloatArray,
    run: Run,
    generator: np.random.Generator,
) -> Iterator[_Step]:
    """Go through the rows once, in batches.

    An L1 penalty takes a proximal step of its own after that of the bound, if the optimiser can tell the size of its
    steps; so weights become exactly zero. Otherwise its gradient is added to that of the bound.
    """
    state, total, seen, finished = run.optimizer, 0.0, 0.0, 0
    n_weights, model = len(run.network.weight), run.network.model
    parameters, entries = np.split(parameters_of(run.network), [n_weights + len(run.network.bias)])
    counts = np.zeros(len(entries))
    noisy = None
    if (model.gate == NOISY_OR).any():
        of_edge = np.repeat(model.gate[run.network.graph.child_of_edge], np.diff(model.block))
        noisy = np.concatenate([of_edge, np.repeat(model.gate, model.n_states - 1)]) == NOISY_OR
    size_of: Any = getattr(optimizer, "size", None)
    proximal = penalty is not None and penalty.is_sparse and noisy is None and size_of is not None
    for batch in source.batches(generator):
        found = batch(_together(parameters, entries) if len(entries) else parameters)
        total, seen, finished = total + found.bound, seen + found.weight, finished + found.rows
        everything, gradient = source.weight or seen, found.gradient[: len(parameters)]
        counts += found.gradient[len(parameters) :] * found.weight
        if penalty is not None:
            pull = penalty.gradient(parameters[:n_weights], parameters[n_weights:], smooth=proximal)
            gradient = gradient + pull / everything
        if noisy is not None:  # in the coordinates of `_moved`
            gradient = np.where(noisy, -np.expm1(-parameters) * gradient, gradient)
        move, state = optimizer.step(gradient, state, run.epoch)
        parameters = parameters + move * moving if noisy is None else _moved(parameters, move * moving, noisy)
        if penalty is not None and proximal:
            size = size_of(state, run.epoch) * moving / everything
            parameters = penalty.shrunk(parameters[:n_weights], parameters[n_weights:], size)
        if not np.abs(parameters).max() <= MAX_PARAMETER:
            _network(run.network, parameters)  # says which of them went astray
        parameters.setflags(write=False)  # as the arrays of a network are: one kind of array, one compiled kernel
        yield _Step(finished, total / everything, parameters, state, counts)


def _together(*parts: FloatArray) -> FloatArray:
    together = np.concatenate(parts)
    together.setflags(write=False)  # as the arrays of a network are: one kind of array, one compiled kernel
    return together


@dataclass(frozen=True)
class Tables:
    """How tables learn: the mode under a Dirichlet prior, whose parameters are one more than `pseudo_count`."""

    pseudo_count: float
    frozen: tuple[str, ...]

    def learned(self, network: Network, counts: FloatArray) -> Network:
        """From how often each entry was used; an entry of zero, and a row that nobody has asked for, stay."""
        new = {}
        for name, used in tables_from(network, counts).items():
            old = network.tables[name]
            weight = np.where(old > 0.0, used + self.pseudo_count, 0.0)
            total = weight.sum(axis=-1, keepdims=True)
            if name not in self.frozen:
                new[name] = np.where(total > 0.0, weight / np.maximum(total, np.finfo(float).tiny), old)
        return network.with_parameters(tables=new)


def _network(network: Network, parameters: FloatArray) -> Network:
    n_weights = len(network.weight)
    return network.with_parameters(weight=parameters[:n_weights], bias=parameters[n_weights:])


def _close_epoch(run: Run, step: _Step, source: Source, tables: Tables, log_likelihood: bool) -> Run:
    """Enter the epoch in the history, and see whether it is the best."""
    network, bound, exact, scores = _network(run.network, step.parameters), step.bound, run.exact, run.held_out
    network = tables.learned(network, step.counts) if network.tables else network
    if log_likelihood:  # both of the same weights, so that one is below the other
        bound, truth = source.exact(network)
        exact = (*exact, truth)
    if source.out is not None:
        scores = (*scores, source.held_out(network))
    run = replace(
        run, network=network, optimizer=step.optimizer, bounds=(*run.bounds, bound), held_out=scores, exact=exact
    )
    if source.out is None or scores[-1] > run.best_bound:
        run = replace(run, best=run.network, best_epoch=run.epoch, best_bound=scores[-1] if scores else bound)
    return run


def _note(run: Run, epochs: int) -> str:
    """What the progress bar says."""
    if not run.epoch:
        return f"learning, {epochs} epochs"
    note = f"epoch {run.epoch} of {epochs}, bound {run.bounds[-1]:.4g}"
    return note + (f", held out {run.held_out[-1]:.4g}" if run.held_out else "")


def _check(optimizer: Any, solver: Any, batch_size: int, patience: int | None, validation: Any) -> None:
    checks.whole("batch_size", batch_size, 1)
    if patience is not None:
        checks.whole("patience", patience, 1)
        if validation is None:
            raise ParameterError("patience watches held-out rows; give some with validation=")
    checks.no_class("optimizer", optimizer)
    if not (hasattr(optimizer, "init") and hasattr(optimizer, "step")):
        raise ParameterError(
            f"optimizer is {checks.shown(optimizer)}; give an optimiser, such as sbnet.SGD(0.05) or sbnet.Adam()"
        )
    check_differentiable(solver)


def _epochs(epochs: int | None, X: Any) -> int:
    """The number of epochs; an iterator has one."""
    if epochs is None:
        return 1 if is_once(X) else 5
    if is_once(X) and epochs != 1:
        raise ParameterError(
            f"epochs is {epochs!r}, but an iterator can be gone through once; give a function that makes one"
        )
    return checks.whole("epochs", epochs, 1)


def _moving(network: Network, frozen: Iterable[str | tuple[str, str]] | BoolArray) -> FloatArray:
    """1 for parameters that learn, 0 for frozen ones; weights first."""
    n_weights, block = len(network.weight), network.model.block
    free: BoolArray = np.ones(n_weights + len(network.bias), dtype=np.bool_)
    if isinstance(frozen, np.ndarray) and frozen.dtype == np.bool_:
        if frozen.shape != free.shape:
            raise ParameterError(f"the mask of frozen has shape {frozen.shape}; expected {free.shape}, weights first")
        return (~frozen).astype(np.float64)
    for item in checks.listed("frozen", frozen, "give a list of variables and of edges (parent, child), or a mask"):
        if isinstance(item, tuple):
            if len(item) != 2:
                raise ParameterError(f"frozen holds {checks.shown(item)}; an edge is (parent, child)")
            j, i = (network.index(unit) for unit in item)
            edges = np.arange(network.graph.indptr[i], network.graph.indptr[i + 1])
            found = edges[network.graph.parent[edges] == j]
            if not len(found):
                raise ParameterError(f"there is no edge {item[0]!r} -> {item[1]!r} to freeze")
            if network.names[i] in network.tables:
                raise ParameterError(f"{item[1]!r} has a table, and edges into it no weight; freeze {item[1]!r} itself")
            free[block[found[0]] : block[found[0] + 1]] = False
        else:
            free[n_weights:][network.columns_of(item)] = False
    return free.astype(np.float64)


def _kept_tables(network: Network, frozen: Any) -> tuple[str, ...]:
    """The variables whose tables stay."""
    if isinstance(frozen, np.ndarray):
        return ()
    names = (network.names[network.index(item)] for item in frozen if not isinstance(item, tuple))
    return tuple(sorted(name for name in names if name in network.tables))


def _moved(parameters: FloatArray, move: FloatArray, noisy: BoolArray) -> FloatArray:
    r"""The parameters after a step: in the weights of sigmoid units, in the log-odds of the causes of `noisy` units.

    A weight :math:`\theta = -\ln(1 - p)` of a noisy-OR unit may not become negative, and the gradient in it grows
    without limit as it nears zero. In :math:`\phi = \ln(p / (1 - p))`, so that :math:`\theta = \ln(1 + e^\phi)`, every
    number is allowed, and :math:`\partial / \partial \phi = p\, \partial / \partial \theta` is bounded: a small enough
    step along it raises the bound, as ever. A cause with p = 0 keeps it.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        free = np.where(parameters > 30.0, parameters, np.log(np.expm1(np.minimum(parameters, 30.0)))) + move
    after = np.where(noisy, softplus(np.maximum(free, -700.0)), parameters + move)
    return np.where(noisy & (parameters <= 0.0), parameters, after)
