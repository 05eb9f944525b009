"""The paper's algorithm in C++ (meanfield.cpp), compiled when first used and called through ctypes. One thread.

The observed units are the last ones of the network, as many as X has columns, and every one of them is observed.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sbnet import Network

SOURCE = Path(__file__).with_name("meanfield.cpp")
FLAGS = ("-std=c++17", "-O3", "-march=native", "-mprefer-vector-width=512", "-ffast-math", "-fopenmp-simd")
LARGEST_WEIGHT = 20.0  # past it the plain factors of this code lose digits: 2e-10 nats at 20, 3e-6 at 30
LARGEST_SUM = 600.0  # of |J| and |h| into one unit, for a plain product of all factors
MAX_SWEEPS = 500


class CompilerMissing(RuntimeError):
    """There is no C++ compiler, or it does not accept the source."""


class Solution(NamedTuple):
    """What `solve` gives: bounds in nats (n,), means (n, n_hidden), and the sweeps a row took, on average."""

    bounds: NDArray[np.float64]
    means: NDArray[np.float64]
    mean_sweeps: float


def solve(
    network: Network, X: ArrayLike, tol: float = 1e-4, max_sweeps: int = MAX_SWEEPS, *, layout: str = "blocks"
) -> Solution:
    """Mean field bounds and means of the rows of X, from means and xi of one half.

    A row stops when a sweep raises its bound by less than `tol`. With ``layout="blocks"`` the loops run along the
    children of a layer and a sweep takes one exponential per edge: the fast one. ``layout="parents"`` takes the same
    steps with two exponentials per edge, loops along the parents of a unit, and a transposed copy.
    """
    if layout not in ("blocks", "parents"):
        raise ValueError(f"layout is {layout!r}; it is 'blocks' or 'parents'")
    function = library().solve if layout == "blocks" else library().solve_plain
    rows, n_hidden = _rows(network, X)
    inputs = np.abs(network.bias)
    np.add.at(inputs, np.repeat(np.arange(network.n_units), np.diff(network.graph.indptr)), np.abs(network.weight))
    if layout == "parents" and inputs.max() > LARGEST_SUM:
        raise ValueError(f"a unit has inputs up to {inputs.max():.0f}; layout='parents' holds {LARGEST_SUM:.0f}")
    bounds, means = np.empty(len(rows)), np.empty((len(rows), n_hidden))
    sweeps = np.empty(len(rows), dtype=np.int64)
    weight, bias = network.weight.copy(), network.bias.copy()
    graph = _network_arguments(network, n_hidden, weight, bias)
    results = (_pointer(bounds), _pointer(means), _pointer(sweeps))
    function(*graph, *_row_arguments(rows, tol, max_sweeps), *results)
    return Solution(bounds, means, float(sweeps.mean()) if len(rows) else 0.0)


def train(
    network: Network,
    X: ArrayLike,
    epochs: int = 5,
    rate: float = 0.05,
    tol: float = 1e-3,
    max_sweeps: int = MAX_SWEEPS,
) -> Network:
    """Online gradient ascent on the bound, eqs. (25), (26), (34), (35): one step after each row of X, in order."""
    rows, n_hidden = _rows(network, X)
    weight, bias = network.weight.copy(), network.bias.copy()
    graph = _network_arguments(network, n_hidden, weight, bias)
    library().train(*graph, *_row_arguments(rows, tol, max_sweeps), ctypes.c_int64(epochs), ctypes.c_double(rate))
    return network.with_parameters(weight=weight, bias=bias)


@functools.cache
def library() -> ctypes.CDLL:
    """The compiled source; compiled anew only if the source, the flags or the machine changed."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        raise CompilerMissing("the C++ baseline needs a compiler: install g++, or set CXX to the one you have")
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout
    key = hashlib.sha256(
        "\0".join([SOURCE.read_text(), Path(__file__).read_text(), *FLAGS, version, platform.node()]).encode()
    ).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"sbnet-baselines-{os.getuid() if hasattr(os, 'getuid') else 0}"
    folder.mkdir(mode=0o700, exist_ok=True)
    target = folder / f"meanfield-{key}.so"
    if not target.exists():
        unfinished = target.with_suffix(f".{os.getpid()}")
        part = target.with_suffix(f".{os.getpid()}.o")
        _run([compiler, *FLAGS, "-fPIC", "-c", "-o", str(part), str(SOURCE)])
        # Linked without -ffast-math: that would add start-up code which flushes denormals in the whole process.
        _run([compiler, "-shared", "-o", str(unfinished), str(part), "-lmvec", "-lm"])
        part.unlink()
        unfinished.replace(target)
    loaded = ctypes.CDLL(str(target))
    for name in ("solve", "solve_plain", "train"):
        getattr(loaded, name).restype = None
    return loaded


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompilerMissing(f"{' '.join(command)} failed:\n{done.stderr}")


def _rows(network: Network, X: ArrayLike) -> tuple[NDArray[np.uint8], int]:
    table = np.asarray(X)
    if table.ndim != 2 or not 1 <= table.shape[1] <= network.n_units:
        raise ValueError(f"X has shape {table.shape}; expected (n, m) with m from 1 to {network.n_units}")
    if not np.all((table == 0) | (table == 1)):
        raise ValueError("this baseline takes complete binary rows only: 0 or 1")
    largest = float(np.abs(network.weight).max(initial=0.0))
    if largest > LARGEST_WEIGHT:
        raise ValueError(f"the largest weight is {largest:.3g}; this baseline takes weights up to {LARGEST_WEIGHT}")
    return np.ascontiguousarray(table, dtype=np.uint8), network.n_units - table.shape[1]


def _network_arguments(network: Network, n_hidden: int, weight: NDArray[np.float64], bias: NDArray[np.float64]) -> list:
    arrays = (network.graph.indptr, network.graph.parent, weight, bias)
    return [ctypes.c_int64(network.n_units), ctypes.c_int64(n_hidden), *map(_pointer, arrays)]


def _row_arguments(rows: NDArray[np.uint8], tol: float, max_sweeps: int) -> list:
    return [ctypes.c_int64(len(rows)), _pointer(rows), ctypes.c_double(tol), ctypes.c_int64(max_sweeps)]


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
