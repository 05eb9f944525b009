"""The examples of the README and of the pages run as they stand, and what they say is true."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def helper(name):
    """A module that the pages are built with."""
    spec = importlib.util.spec_from_file_location(name, README.parent / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = helper("examples_of_pages").pages()


def test_every_example_runs_in_order_and_says_the_truth(tmp_path, monkeypatch):
    """Blocks of Python, then those of the command line, in one folder."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    checked = 0
    for block in BLOCKS:
        exec(compile(block, str(README), "exec"), namespace)
        for expression, number in re.findall(r"^(\S.*?)  # (-?\d+\.\d+)\b", block, flags=re.MULTILINE):
            value = eval(expression, namespace)  # an expression with its value as a comment
            digits = len(number.split(".")[1])
            assert np.round(value, digits) == float(number), expression
            checked += 1
    plt.close("all")
    assert len(BLOCKS) >= 3
    assert checked >= 1
    assert list(helper("terminal").differences(README.read_text(encoding="utf-8"))) == []


def brought_by(package, extras):
    """Names of all that installing a package with these extras brings, itself included."""
    found, left = set(), [(package, frozenset(extras))]
    while left:
        name, wanted = left.pop()
        if (name, wanted) in found:
            continue
        found.add((name, wanted))
        for line in metadata.requires(name) or ():
            needed = Requirement(line)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in wanted | {""}):
                left.append((canonicalize_name(needed.name), frozenset(needed.extras)))
    return {name for name, _ in found}


ALONE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
exec({blocks!r})
from sbnet.cli import main
for command in {commands}:
    main(command.split())
"""


def test_the_install_line_brings_all_that_the_blocks_need(tmp_path):
    """In a process of its own, where nothing else is found. `make dist` does it in a new environment."""
    text = README.read_text(encoding="utf-8")
    (extras,) = re.findall(r'^pip install "\.\[([\w,]+)\]"', text, flags=re.MULTILINE)
    brought = brought_by("sbnet", extras.split(","))
    owners = metadata.packages_distributions().items()
    absent = {module for module, names in owners if not brought & {canonicalize_name(name) for name in names}}
    assert {"pytest", "polars"} <= absent
    commands = re.findall(r"^\$ sbnet (.*)$", text, flags=re.MULTILINE)
    code = ALONE.format(absent=absent, blocks="\n".join(BLOCKS), commands=commands)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "clinic.html").stat().st_size > 10_000


def test_links_of_the_readme_lead_to_files():
    text = README.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text) + re.findall(r'src="([^"]+)"', text):
        assert target.startswith("https://") or (README.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_every_example_on_a_page_prints_what_it_shows(page):  # as `make docs` does
    assert helper("examples_of_pages").wrong(page) == ""
