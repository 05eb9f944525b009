"""Compile every kernel ahead of time, in several processes at once: for images, and where tests run.

A kernel is compiled when it is first called, and kept in a file. Here every public function is called once with a
problem so small that compiling is all the work; a process that comes later finds everything in files.
"""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np

from sbnet import bounds
from sbnet._types import FloatArray, LogTerm
from sbnet.bounds.upper import upper_bound
from sbnet.certificates import certify, posterior_intervals
from sbnet.errors import ParameterError
from sbnet.exact.answers import exact_pairs, exact_posterior, kl, log_likelihood
from sbnet.exact.probability import log_joint, sample
from sbnet.inference import Conditioned, Gibbs, MeanField, Mixture, Structured, estimate, infer, infer_many
from sbnet.inference.solvers.particles import particles, seeds_of_rows
from sbnet.kernels._compile import FOLDER
from sbnet.learning import fit, gradient, wake_sleep
from sbnet.learning.regressions import Design, regress_columns
from sbnet.model.build import add_column_mixtures, layered
from sbnet.model.network import Network
from sbnet.parallel.blocks import Inline

_TERMS: tuple[LogTerm, ...] = ("exact", "xi", "quadratic", "jensen")
_ROW = {"x0": 1, "x1": 0, "x2": 1}


def _small() -> Network:
    """Units with parents few enough to enumerate, and units with more."""
    return layered((2, 6, 4), rng=0, scale=1.0)


def _wide() -> Network:
    """More hidden units than are summed exactly anywhere, so that every end of an interval must be bounded."""
    return layered((26, 3), rng=0, scale=0.5)


def _shapes() -> tuple[Network, ...]:
    """One for each set of terms that is compiled on its own: few parents, many, both; and any term at all."""
    return layered((2, 3), rng=0), _wide(), _small(), layered((26, 3), rng=0, scale=1e4)


def _table() -> FloatArray:
    return np.array([[1.0, 0.0, np.nan, 1.0], [0.0, 1.0, 1.0, 1.0], [1.0, 0.0, np.nan, 1.0]])


def _infer() -> None:
    for term in _TERMS:
        for net in _shapes():
            infer(net, _ROW, solver=MeanField(log_term=term, restarts=2))


def _infer_many() -> None:
    for term in _TERMS:
        many = infer_many(_small(), _table(), solver=MeanField(log_term=term))
        bounds.lower_bound(_small(), _table(), many.means, log_term=term)


def _fit() -> None:
    for term in _TERMS:
        for net in _shapes():
            gradient(net, _table()[1:2, :3], solver=MeanField(log_term=term))
    fit(_small(), _table(), epochs=1, rng=0, progress=False)
    fit(_small(), _table(), epochs=1, batch_size=2, validation=_table(), rng=0, progress=False)


def _certify() -> None:
    for effort in ("fast", "normal", "high"):
        certify(_wide(), _ROW, effort=effort)
    certify(_wide(), _ROW, confidence=0.9)


def _intervals() -> None:
    posterior_intervals(_small(), _ROW)


def _upper_bound() -> None:
    upper_bound(_wide(), _ROW, condition=1)
    upper_bound(_small(), _table())


def _exact() -> None:
    net = _small()
    means = exact_posterior(net, _ROW)
    exact_pairs(net, _ROW)
    log_likelihood(net, _table())
    kl(net, _ROW, means)


def _sample() -> None:
    log_joint(_small(), sample(_small(), 2, rng=0))


def _gibbs() -> None:
    infer_many(_small(), _table(), solver=Gibbs(samples=4, burn_in=1))


def _roots() -> None:
    from sbnet.estimators.root_sums import summing  # which brings scikit-learn along

    net = layered((2, 3), rng=0, scale=1.0, autoregressive=True)
    states = np.array([[-1, -1, 0, 1, 0]], np.int8)
    summing(net, np.arange(2, 5), MeanField()).climb(net.model, net.bias, states, None, row_weight=np.ones(1))


def _switches() -> None:
    from sbnet.estimators.mixture_sums import switching

    net, states = add_column_mixtures(layered((1,)), units=["x0"], count=2, rng=0), np.array([[-1, -1, 1]], np.int8)
    switching(net, np.array([2]), MeanField()).climb(net.model, net.bias, states, None, row_weight=np.ones(1))


def _particles() -> None:
    states = np.full((1, 12), -1, np.int8)
    states[0, -1] = 1
    particles(_small(), states, seeds_of_rows(0, states), number=2, executor=Inline())  # `log_probabilities` too


def _conditioned() -> None:
    infer(_small(), _ROW, solver=Conditioned(1))


def _mixture() -> None:
    infer(_small(), _ROW, solver=Mixture(2))


def _structured() -> None:
    infer(_small(), _ROW, solver=Structured())


def _estimate() -> None:
    for method in ("importance", "annealed"):
        estimate(_small(), _ROW, samples=10, method=method, steps=2)


def _wake_sleep() -> None:
    wake_sleep(_small(), _table()[1:2], epochs=1, rng=0, progress=False)


def _regressions() -> None:
    cells = np.array([[0, 1], [1, 1], [1, 0], [0, 0], [0, 0]], dtype=np.int8)
    regress_columns(Design.of(cells, np.ones(len(cells))), np.ones)


def _noisy_or() -> None:
    few, many = (layered(sizes, rng=0, scale=1.0, gate="noisy-or") for sizes in ((2, 3), (12, 3)))
    for term in ("exact", "quadratic"):
        for net in (few, many):
            gradient(net, np.ones((1, 3)), solver=MeanField(log_term=term))
            infer(net, _ROW, solver=MeanField(log_term=term))
    exact_posterior(many, _ROW)
    certify(many, _ROW, exact_up_to=0)


# The first two share little; what follows the second needs little of the first. What one process has finished the
# others need not compile.
_JOBS: dict[str, Callable[[], None]] = {
    "infer": _infer,
    "upper_bound": _upper_bound,
    "Gibbs": _gibbs,
    "log_likelihood, exact_posterior, kl": _exact,
    "wake_sleep": _wake_sleep,
    "sample, log_joint": _sample,
    "Mixture": _mixture,
    "Structured": _structured,
    "fit, gradient": _fit,
    "infer_many, bounds": _infer_many,
    "estimate": _estimate,
    "certify": _certify,
    "posterior_intervals": _intervals,
    "Conditioned": _conditioned,
    "noisy-OR units": _noisy_or,
    "regressions": _regressions,
    "particles": _particles,
    "sums over hidden roots": _roots,
    "sums over switches": _switches,
}


def _run(name: str) -> float:
    """Do one job; the seconds it took."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the problems mean nothing, nor does what is said of them
        _JOBS[name]()
    return time.perf_counter() - start


def compile_all(*, processes: int | None = None, say: Callable[[str], None] = print) -> None:
    """Compile all kernels, in as many processes as there are cores, and keep them for processes to come.

    Raises
    ------
    ParameterError
        If nothing is compiled or nothing can be kept.
    """
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        raise ParameterError("NUMBA_DISABLE_JIT is set, so nothing is compiled; unset it")
    if FOLDER is None:
        raise ParameterError("no folder for compiled kernels can be written to; set NUMBA_CACHE_DIR to one that can")
    start = time.perf_counter()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes or os.cpu_count() or 1, mp_context=spawn) as pool:
        names = {pool.submit(_run, name): name for name in _JOBS}
        for done in as_completed(names):
            say(f"{names[done]}: {done.result():.1f} s")
    say(f"all kernels are compiled ({time.perf_counter() - start:.0f} s), in {FOLDER}")
