"""A new term and a new solver are each a file and a line: those that the docs show, added and removed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sbnet as sb
from sbnet._types import Bound

ROOT = Path(__file__).parents[1]
PAGES = ("adding_a_term.md", "adding_a_solver.md")
TEXT = "\n".join((ROOT / "docs" / "project" / page).read_text(encoding="utf-8") for page in PAGES)
FILES = dict(re.findall(r"^`(\S+\.py)`\n```python\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE))
DIFFS = {
    name: tuple("".join(line[1:] + "\n" for line in body.splitlines() if line[0] in kept) for kept in (" -", " +"))
    for name, body in re.findall(r"^```diff\n--- a/(\S+)\n\+\+\+ b/\1\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE)
}
TERM, SOLVER = "src/sbnet/kernels/terms/chord.py", "summed.py"
TERM_LINE, SOLVER_LINE = "src/sbnet/kernels/kinds.py", "tests/test_contract.py"


@pytest.fixture
def clone(tmp_path):
    """A copy of the package and of what the contract tests need."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(sb.__file__).parent, tmp_path / "src" / "sbnet", ignore=ignore)
    (tmp_path / "tests").mkdir()
    for name in ("conftest.py", "strategies.py", "test_contract.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests" / name)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def run(clone, *command):
    """Run Python on the copy, without compilation: what the command said, and whether it went well."""
    path = os.pathsep.join(map(str, (clone / "src", clone)))
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *command], cwd=clone, env=environment, capture_output=True, text=True, check=False
    )


def add(clone, file, line):
    (clone / file).write_text(FILES[file], encoding="utf-8")
    _replace(clone / line, *DIFFS[line])


def remove(clone, file, line):
    (clone / file).unlink()
    _replace(clone / line, *reversed(DIFFS[line]))


def _replace(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_the_page_shows_two_files_and_a_line_for_each():
    assert set(FILES) == {TERM, SOLVER}
    assert set(DIFFS) == {TERM_LINE, SOLVER_LINE}


# --- a term ---------------------------------------------------------------------------------------------------------

CHECKS = """
import numpy as np
import sbnet as sb

def check(network, row, solver):
    post = sb.infer(network, row, solver=solver)
    truth = sb.log_likelihood(network, row)
    assert post.converged and np.all(np.diff(post.trace) >= -1e-12), post.trace
    assert truth - 20.0 < post.bound <= truth + 1e-12, (post.bound, truth)
    again = sb.bounds.lower_bound(network, row, post.means, log_term="chord")
    assert abs(post.bound - again) < 1e-12 and abs(post.breakdown().bound - again) < 1e-12
    paper = sb.bounds.lower_bound(network, row, post.means, log_term="exact", enumerate_up_to=12)
    assert again < paper  # another term than ours, and a loose one

    def bound(**parameters):
        moved = network.with_parameters(**parameters)
        return sb.bounds.lower_bound(moved, row, post.means, log_term="chord")

    slope, step = sb.gradient(network, row, solver=solver), 1e-5
    for name in ("weight", "bias"):
        value = getattr(network, name)
        for e, direction in enumerate(step * np.eye(len(value))):
            numeric = (bound(**{name: value + direction}) - bound(**{name: value - direction})) / (2 * step)
            assert abs(getattr(slope, name)[e] - numeric) < 1e-7, (name, e, numeric)

for seed in range(4):
    network = sb.layered((2, 4, 6), rng=seed, scale=2.0, autoregressive=seed % 2 == 1)
    row = sb.sample(network, 1, rng=seed)[0, 6:].astype(float)
    row[seed] = np.nan
    check(network, row, sb.MeanField(log_term="chord", enumerate_up_to=0, tol=1e-10))
    best = sb.infer(network, row).bound
    assert sb.infer(network, row, solver=sb.MeanField(log_term="chord", enumerate_up_to=12)).bound > best - 1e-3
print(sb.__file__)
"""
REFUSED = """
import sbnet as sb
try:
    sb.MeanField(log_term="chord")
except sb.errors.ParameterError as error:
    print(error)
"""


def test_a_term_is_a_file_and_a_line(clone):
    add(clone, TERM, TERM_LINE)
    done = run(clone, "-c", CHECKS)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(clone)
    remove(clone, TERM, TERM_LINE)
    refused = "log_term is 'chord'; choose one of 'xi', 'exact', 'quadratic', 'jensen'\n"
    assert run(clone, "-c", REFUSED).stdout == refused
    package = Path(sb.__file__).parent
    for name in ("kernels/kinds.py", "bounds/lower.py"):
        assert (clone / "src/sbnet" / name).read_bytes() == (package / name).read_bytes()


def test_the_file_of_a_term_alone_changes_nothing(clone):
    (clone / TERM).write_text(FILES[TERM], encoding="utf-8")
    assert run(clone, "-c", REFUSED).stdout.startswith("log_term is 'chord'; choose one of 'xi', ")


@pytest.mark.small
@pytest.mark.parametrize("code", [7, 15, 1000])
def test_a_kind_that_is_not_on_the_list_is_no_other_term(code, monkeypatch):
    monkeypatch.setattr(sb.MeanField, "bound", Bound(code, 0))
    with pytest.raises(IndexError):
        sb.infer(sb.layered((2, 6, 4), rng=0, scale=1.0), [1, 0, 1, 1], solver=sb.MeanField(max_sweeps=3))


# --- a solver -------------------------------------------------------------------------------------------------------


def test_a_solver_is_a_file_and_the_contract_tests_hold_it_with_a_line(clone):
    add(clone, SOLVER, SOLVER_LINE)
    ask = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_contract.py", "-k", "summed")
    done = run(clone, *ask)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 10
    remove(clone, SOLVER, SOLVER_LINE)
    assert run(clone, *ask).returncode == 5  # nothing is left to run


@pytest.mark.small
def test_the_solver_works_where_it_stands(sprinkler):
    names: dict[str, object] = {"__name__": __name__}
    exec(compile(FILES[SOLVER], SOLVER, "exec"), names)
    post = sb.infer(sprinkler, {"wet": 1}, solver=names["Summed"]())
    assert post.bound == sb.log_likelihood(sprinkler, {"wet": 1})
    assert np.array_equal(post.means, sb.exact_posterior(sprinkler, {"wet": 1}))
    with pytest.raises(sb.errors.TooManyHiddenError):
        sb.infer(sprinkler, {"wet": 1}, solver=names["Summed"](limit=1))
