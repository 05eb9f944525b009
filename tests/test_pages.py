"""The pages of the documentation that show a terminal: every command is run, and prints what the page says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from sbnet.cli.commands import COMMANDS

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "howto" / "command_line.md").read_text(encoding="utf-8")


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
    explained = re.findall(
        r"^\| `(\w+)` \|", (DOCS / "start" / "install.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert set(explained) == set(extras)


def contents(page: Path) -> list[Path]:
    """The pages that a page lists in its table of contents."""
    text = page.read_text(encoding="utf-8")
    (listed,) = re.findall(r"```\{toctree\}\n(.*?)```", text, flags=re.DOTALL)
    names = [line for line in listed.splitlines() if line and not line.startswith(":")]
    return [page.parent / f"{name}.md" for name in names if name != "examples/index"]  # the gallery, made when built


SECTIONS = contents(DOCS / "index.md")


@pytest.mark.parametrize("section", SECTIONS, ids=lambda page: page.parent.name)
def test_every_page_is_in_the_table_of_contents_of_its_section(section):
    pages = {page for page in section.parent.glob("*.md") if page != section}
    assert set(contents(section)) == pages


def test_every_folder_of_pages_is_a_section_or_outside_the_navigation():
    folders = {page.parent for page in DOCS.glob("*/*.md")}
    assert folders - {section.parent for section in SECTIONS} == {DOCS / "notes"}
