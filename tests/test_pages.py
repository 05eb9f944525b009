"""The pages of the documentation that show a terminal: every command is run, and prints what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import sbnet as sb
from sbnet import cli

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "command_line.md"
STEPS = [
    (command, printed)
    for block in re.findall(r"^```console\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for command, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, flags=re.MULTILINE)
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """With the files that the page speaks of."""
    monkeypatch.chdir(tmp_path)
    edges = {("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}
    sb.save(sb.from_edges(edges, bias={"rain": -1.0, "wet": -2.0}), "lawn.sbn")
    (days,) = [printed for command, printed in STEPS if command == "cat days.csv"]
    Path("days.csv").write_text(days)


@pytest.mark.parametrize(("command", "printed"), [s for s in STEPS if not s[0].startswith("cat ")])
@pytest.mark.usefixtures("folder")
def test_a_command_prints_what_the_page_says(command, printed, capsys):
    name, *arguments = shlex.split(command)
    assert name == "sbnet"
    try:
        status = cli.main(arguments)
    except SystemExit as stopped:
        status = stopped.code
    shown = capsys.readouterr()
    assert (shown.err if status else shown.out) == printed


def test_the_page_has_every_command():
    words = cli._parser().format_help()
    for command in re.findall(r"^    (\w+)", words, flags=re.MULTILINE):
        assert f"sbnet {command}" in PAGE.read_text(encoding="utf-8")


def test_every_extra_is_explained():
    import tomllib

    extras = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    explained = re.findall(r"^\| `(\w+)` \|", (DOCS / "install.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert set(explained) == set(extras)


@pytest.mark.parametrize("page", sorted(path.stem for path in DOCS.glob("*.md") if path.stem != "index"))
def test_every_page_is_in_the_table_of_contents(page):
    contents = re.search(r"```\{toctree\}(.*?)```", (DOCS / "index.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert page in re.findall(r"([\w/]+)>?$", contents[1], flags=re.MULTILINE)
