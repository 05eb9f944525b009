"""The pages of the documentation that show a terminal: every command is run, and prints what the page says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from sbnet.cli.commands import COMMANDS

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "command_line.md").read_text(encoding="utf-8")


def terminal():
    spec = importlib.util.spec_from_file_location("terminal", DOCS / "terminal.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_command_prints_what_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert list(terminal().differences(PAGE)) == []


def test_a_page_that_says_something_else_is_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = "```console\n$ sbnet --version\nsbnet 0.0.0\n```\n"
    assert [step[:2] for step in terminal().differences(wrong)] == [("sbnet --version", "sbnet 0.0.0\n")]


def test_the_page_has_every_command():
    for command in COMMANDS:
        assert f"| [`sbnet {command}`]" in PAGE


def test_every_extra_is_explained():
    import tomllib

    extras = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    explained = re.findall(r"^\| `(\w+)` \|", (DOCS / "install.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert set(explained) == set(extras)


@pytest.mark.parametrize("page", sorted(path.stem for path in DOCS.glob("*.md") if path.stem != "index"))
def test_every_page_is_in_the_table_of_contents(page):
    contents = re.search(r"```\{toctree\}(.*?)```", (DOCS / "index.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert page in re.findall(r"([\w/]+)>?$", contents[1], flags=re.MULTILINE)
