"""Compile all kernels now, in parallel, so that no later process has to.

A kernel is compiled when it is first called, and kept in a file. Here every public function is called once with a
problem so small that compiling is all the work; a process that comes later finds everything in files.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np

from sbnet import bounds
from sbnet._types import LogTerm
from sbnet.bounds.upper import upper_bound
from sbnet.certificates import CertifySettings, certify, posterior_intervals
from sbnet.cli import commands
from sbnet.errors import ParameterError
from sbnet.exact.answers import exact_pairs, exact_posterior, kl, log_likelihood
from sbnet.exact.probability import log_joint, sample
from sbnet.inference import Conditioned, Gibbs, MeanField, Mixture, Structured, estimate, infer, infer_many
from sbnet.inference.solvers.particles import particles, seeds_of_rows
from sbnet.kernels.compiling import folder
from sbnet.learning import fit, gradient, wake_sleep
from sbnet.learning.regressions import Design, regress_columns
from sbnet.model.build import layered
from sbnet.parallel.blocks import Inline

EXAMPLES = """
  sbnet warmup
  sbnet warmup --jobs 2 --quiet"""
_TERMS: tuple[LogTerm, ...] = ("exact", "xi", "quadratic", "jensen")
_ROW = {"x0": 1, "x1": 0, "x2": 1}


def options(one: argparse.ArgumentParser) -> None:
    one.add_argument("--jobs", type=commands.whole, default=os.cpu_count() or 1, help="processes (default: all cores)")


def run(chosen: argparse.Namespace) -> int:
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        raise ParameterError("NUMBA_DISABLE_JIT is set, so nothing is compiled; unset it")
    if folder() is None:
        raise ParameterError("no folder for compiled kernels can be written to; set NUMBA_CACHE_DIR to one that can")
    begin, spoken = time.monotonic(), not (chosen.quiet or chosen.json)
    with ProcessPoolExecutor(chosen.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        names = {pool.submit(_run, name): name for name in _JOBS}
        for done in as_completed(names):
            seconds = done.result()
            if spoken:
                print(f"{names[done]}: {seconds:.1f} s")
    seconds = time.monotonic() - begin
    if chosen.json:
        print(json.dumps({"seconds": seconds}))
    elif spoken:
        print(f"all kernels are compiled ({seconds:.0f} s), in {folder()}")
    return 0


def _run(name: str) -> float:
    """Do one job; the seconds it took."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the problems mean nothing, nor does what is said of them
        _JOBS[name]()
    return time.perf_counter() - start


# --- small problems ---------------------------------------------------------------------------------------------------


_SMALL = layered((2, 6, 4), rng=0, scale=1.0)
"""Units with parents few enough to enumerate, and units with more."""
_WIDE = layered((26, 3), rng=0, scale=0.5)
"""More hidden units than are summed exactly anywhere, so that both ends of an interval must be bounded."""
_SHAPES = (layered((2, 3), rng=0), _WIDE, _SMALL, layered((26, 3), rng=0, scale=1e4))
"""One for each set of terms that is compiled on its own: few parents, many, both; and any term at all."""
_TABLE = np.array([[1.0, 0.0, np.nan, 1.0], [0.0, 1.0, 1.0, 1.0], [1.0, 0.0, np.nan, 1.0]])


# --- jobs -------------------------------------------------------------------------------------------------------------


def _infer() -> None:
    for term in _TERMS:
        for net in _SHAPES:
            infer(net, _ROW, solver=MeanField(log_term=term, restarts=2))


def _infer_many() -> None:
    for term in _TERMS:
        many = infer_many(_SMALL, _TABLE, solver=MeanField(log_term=term))
        bounds.lower_bound(_SMALL, _TABLE, many.means, log_term=term)


def _fit() -> None:
    for term in _TERMS:
        for net in _SHAPES:
            gradient(net, _TABLE[1:2, :3], solver=MeanField(log_term=term))
    fit(_SMALL, _TABLE, epochs=1, rng=0, progress=False)
    fit(_SMALL, _TABLE, epochs=1, batch_size=2, validation=_TABLE, rng=0, progress=False)


def _certify() -> None:
    for effort in ("fast", "normal", "high"):
        certify(_WIDE, _ROW, effort=effort)
    certify(_WIDE, _ROW, confidence=0.9)


def _upper_bound() -> None:
    upper_bound(_WIDE, _ROW, condition=1)
    upper_bound(_SMALL, _TABLE)


def _exact() -> None:
    exact_pairs(_SMALL, _ROW)
    log_likelihood(_SMALL, _TABLE)
    cells = np.random.default_rng(0).integers(0, 3, (300, 4))
    log_likelihood(_SMALL, np.where(cells == 2, np.nan, cells), progress=False)  # rows that miss other units
    kl(_SMALL, _ROW, exact_posterior(_SMALL, _ROW))


def _column_sums() -> None:
    from sbnet.inference.solvers.column_sums import marginalising

    net = layered((2, 3), rng=0, scale=1.0, autoregressive=True)
    states = np.array([[-1, -1, 0, 1, 0]], np.int8)
    marginalising(net, np.arange(2, 5), MeanField()).maximise(net.model, net.bias, states, None, row_weight=np.ones(1))


def _particles() -> None:
    states = np.full((1, 12), -1, np.int8)
    states[0, -1] = 1
    particles(_SMALL, states, seeds_of_rows(0, states), number=2, executor=Inline())


def _estimate() -> None:
    for method in ("importance", "annealed"):
        estimate(_SMALL, _ROW, samples=10, method=method, steps=2)


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
    certify(many, _ROW, settings=CertifySettings(exact_up_to=0))


_JOBS: dict[str, Callable[[], object]] = {
    "infer": _infer,
    "upper_bound": _upper_bound,
    "Gibbs": lambda: infer_many(_SMALL, _TABLE, solver=Gibbs(samples=4, burn_in=1)),
    "log_likelihood, exact_posterior, kl": _exact,
    "wake_sleep": lambda: wake_sleep(_SMALL, _TABLE[1:2], epochs=1, rng=0, progress=False),
    "sample, log_joint": lambda: log_joint(_SMALL, sample(_SMALL, 2, rng=0)),
    "Mixture": lambda: infer(_SMALL, _ROW, solver=Mixture(2)),
    "Structured": lambda: infer(_SMALL, _ROW, solver=Structured()),
    "fit, gradient": _fit,
    "infer_many, bounds": _infer_many,
    "estimate": _estimate,
    "certify": _certify,
    "posterior_intervals": lambda: posterior_intervals(_SMALL, _ROW),
    "Conditioned": lambda: infer(_SMALL, _ROW, solver=Conditioned(1)),
    "noisy-OR variables": _noisy_or,
    "regressions": _regressions,
    "particles": _particles,
    "sums over shared latents and column mixtures": _column_sums,
}
"""In an order that lets processes share work: the first two have little in common, later ones need what they made."""
