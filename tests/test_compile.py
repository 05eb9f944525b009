"""Compiled kernels are kept in files: they are reused while no source has changed, and never after."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sbnet as sb
from strategies import INTERPRETED

pytestmark = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")

CALLEE = "from sbnet.kernels.compiling import inner\n\n\n@inner\ndef callee(x):\n    return x + {}\n"
CALLER = """from sbnet.kernels.compiling import kernel
from sbnet.kernels.toys.callee import callee


@kernel
def caller(x):
    return callee(x)
"""
ASK = "from sbnet.kernels.toy import caller; print(caller(1), sum(caller.made.stats.cache_hits.values()))"


@pytest.fixture
def package(tmp_path):
    """A copy of the package, with a kernel in one file that calls another, in a folder below."""
    kernels = tmp_path / "sbnet" / "kernels"
    shutil.copytree(Path(sb.__file__).parent, kernels.parent, ignore=shutil.ignore_patterns("__pycache__"))
    (kernels / "toys").mkdir()
    (kernels / "toys" / "__init__.py").touch()
    (kernels / "toys" / "callee.py").write_text(CALLEE.format(1))
    (kernels / "toy.py").write_text(CALLER)
    return kernels


def ask(package, **environment):
    """What the kernel answers in a new process, and how often it was found compiled."""
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment = {**inherited, "PYTHONPATH": str(package.parents[1]), **environment}
    done = subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=True)
    return tuple(map(int, done.stdout.split()))


def compiled(place):
    return [path.name for path in place.rglob("toy.caller*.nbc")]


def test_an_edited_kernel_is_compiled_anew_and_so_is_what_calls_it(package):
    assert ask(package) == (2, 0)
    assert ask(package) == (2, 1)
    (package / "toys" / "callee.py").write_text(CALLEE.format(100))  # the caller's own file is as it was
    assert ask(package) == (101, 0)
    assert ask(package) == (101, 1)


def test_files_of_other_sources_do_not_pile_up(package):
    for k in (1, 10, 100):  # of other lengths: Python tells files of one length and one second not apart
        (package / "toys" / "callee.py").write_text(CALLEE.format(k))
        assert ask(package) == (1 + k, 0)
    assert len(compiled(package)) == 1


def test_the_cache_folder_of_numba_is_honoured(package, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    ask(package, NUMBA_CACHE_DIR=str(elsewhere))
    assert len(compiled(elsewhere)) == 1
    assert not compiled(package)
    assert ask(package, NUMBA_CACHE_DIR=str(elsewhere)) == (2, 1)


def test_an_installation_that_cannot_be_written_to_uses_the_folder_of_the_user(package, tmp_path):
    (package / "__pycache__").touch()  # a file where the folder would be
    home = tmp_path / "home"
    assert ask(package, XDG_CACHE_HOME=str(home), HOME=str(home)) == (2, 0)
    assert ask(package, XDG_CACHE_HOME=str(home), HOME=str(home)) == (2, 1)
    assert len(compiled(home)) == 1


def test_where_nothing_can_be_written_kernels_still_run(package, tmp_path):
    (package / "__pycache__").touch()
    (package / "toys" / "__pycache__").touch()
    blocked = tmp_path / "blocked"
    blocked.touch()
    assert ask(package, XDG_CACHE_HOME=str(blocked), HOME=str(blocked)) == (2, 0)
