"""The examples of the README and of the pages run as they stand, and what they say is true."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

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


def test_links_of_the_readme_lead_to_files():
    text = README.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text) + re.findall(r'src="([^"]+)"', text):
        assert target.startswith("https://") or (README.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_every_example_on_a_page_prints_what_it_shows(page):  # as `make docs` does
    assert helper("examples_of_pages").wrong(page) == ""
