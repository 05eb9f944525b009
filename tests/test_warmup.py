"""`sbnet warmup` leaves nothing to compile for the processes that come after it."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys

import pytest

import sbnet.kernels
from sbnet import warmup
from sbnet.cli import main
from strategies import INTERPRETED

compiled = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
USE = """
import numpy as np, sbnet as sb
net = sb.layered((3, 8, 24), rng=0, scale=0.5)
X = sb.sample(net, 20, rng=0)[:, -24:].astype(float)
X[::2, ::3] = np.nan
sb.infer(net, {"x1": 1})
sb.infer_many(net, X)
sb.fit(net, X, epochs=1)
sb.certify(net, {"x1": 1, "x2": 0})
sb.infer(net, {"x1": 1}, solver=sb.Gibbs(samples=10))
"""


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """The environment of later processes, the folder with compiled kernels, and what the command printed."""
    folder = tmp_path_factory.mktemp("warm")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-m", "sbnet", "warmup"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return environment, folder, done.stdout


def files(folder):
    return {path: path.stat().st_mtime_ns for kind in ("nbi", "nbc") for path in folder.rglob(f"*.{kind}")}


@compiled
def test_a_later_process_compiles_nothing(warm):
    environment, folder, _ = warm
    before = files(folder)
    assert before
    subprocess.run([sys.executable, "-c", USE], env=environment, check=True)
    assert files(folder) == before


@compiled
def test_every_kernel_that_python_calls_has_been_compiled(warm):
    kernels = set()
    for found in pkgutil.walk_packages(sbnet.kernels.__path__, "sbnet.kernels."):
        for name, value in vars(importlib.import_module(found.name)).items():
            inner = getattr(value, "targetoptions", {"no_cpython_wrapper": True}).get("no_cpython_wrapper")
            if not inner and value.py_func.__module__ == found.name:
                kernels.add(f"{found.name.rpartition('.')[2]}.{name}")
    assert "rows.climb_rows" in kernels
    assert kernels <= {path.name.split("-")[0] for path in warm[1].rglob("*.nbi")}


@compiled
def test_the_command_says_what_it_compiles_and_where_it_is_kept(warm):
    *lines, last = warm[2].splitlines()
    assert {line.rpartition(":")[0] for line in lines} == set(warmup._JOBS)
    assert str(warm[1]) in last


def test_without_a_compiler_or_a_folder_there_is_one_line_of_advice(monkeypatch, capsys):
    monkeypatch.setattr(warmup, "FOLDER", None)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    assert main(["warmup"]) == 2
    assert "set NUMBA_CACHE_DIR to one that can" in capsys.readouterr().err
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert main(["warmup"]) == 2
    assert "NUMBA_DISABLE_JIT is set, so nothing is compiled" in capsys.readouterr().err
