"""`sbnet warmup` leaves nothing to compile for the processes that come after it."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from sbnet.kernels._compile import FOLDER

import sbnet.kernels
from sbnet.cli import main, warmup
from strategies import INTERPRETED

compiled = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
USE = """
from numba.core import event
import numpy as np, sbnet as sb
with event.install_recorder("numba:compile") as compiled:
    net = sb.layered((3, 8, 24), rng=0, scale=0.5)
    X = sb.sample(net, 20, rng=0)[:, -24:].astype(float)
    X[::2, ::3] = np.nan
    sb.infer(net, {"x1": 1})
    sb.infer_many(net, X)
    sb.fit(net, X, epochs=1)
    sb.certify(net, {"x1": 1, "x2": 0})
    sb.infer(net, {"x1": 1}, solver=sb.Gibbs(samples=10))
print(sorted({str(what.data["dispatcher"]) for _, what in compiled.buffer}))
"""


@pytest.fixture(scope="module")
def warm():
    """What the command prints; it keeps kernels where the other tests find theirs, so that it has little to do."""
    command = [sys.executable, "-m", "sbnet", "warmup"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


@compiled
def test_a_later_process_compiles_nothing(warm):
    later = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, check=True)
    assert later.stdout.strip() == "[]"


@compiled
def test_every_kernel_that_python_calls_has_been_compiled(warm):
    kernels = set()
    for found in pkgutil.walk_packages(sbnet.kernels.__path__, "sbnet.kernels."):
        for value in vars(importlib.import_module(found.name)).values():
            inner = getattr(value, "targetoptions", {"no_cpython_wrapper": True}).get("no_cpython_wrapper")
            if not inner and value.py_func.__module__ == found.name:
                kernels.add(f"{found.name.rpartition('.')[2]}.{value.py_func.__name__}")
    assert "rows.climb_rows" in kernels
    assert kernels <= {path.name.split("-")[0] for path in Path(FOLDER).rglob("*.nbi")}


@compiled
def test_the_command_says_what_it_compiles_and_where_it_is_kept(warm):
    *lines, last = warm.splitlines()
    assert {line.rpartition(":")[0] for line in lines} == set(warmup._JOBS)
    assert FOLDER in last


def test_without_a_compiler_or_a_folder_there_is_one_line_of_advice(monkeypatch, capsys):
    monkeypatch.setattr(warmup, "FOLDER", None)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    assert main(["warmup"]) == 2
    assert "set NUMBA_CACHE_DIR to one that can" in capsys.readouterr().err
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert main(["warmup"]) == 2
    assert "NUMBA_DISABLE_JIT is set, so nothing is compiled" in capsys.readouterr().err
