"""The pages of the documentation that show a terminal: every command is run, and prints what the page says."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import json
import re
from pathlib import Path

import pytest

from sbnet.cli.commands import COMMANDS

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "howto" / "command_line.md").read_text(encoding="utf-8")


def terminal():
    return helper("terminal")


def helper(name):
    """A module that the pages are built with."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
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


MAP = (DOCS / "paper" / "map.md").read_text(encoding="utf-8")


def test_the_map_of_the_paper_has_every_equation_and_names_what_exists():
    rows = [line for line in MAP.splitlines() if line.startswith("| (")]
    numbers = [int(number) for row in rows for number in re.findall(r"\((\d+)\)", row.split("|")[1])]
    assert sorted(numbers) == list(range(1, 36))
    for name in re.findall(r"\{\w+\}`sbnet\.([\w.]+)`", MAP):
        thing = importlib.import_module("sbnet")
        for part in name.split("."):
            thing = importlib.import_module("sbnet.paper") if part == "paper" else getattr(thing, part)
    for path in re.findall(r"`((?:tests|kernels)/[\w/]+\.py)`", MAP):
        assert (DOCS.parent / path).exists() or (DOCS.parent / "src" / "sbnet" / path).exists(), path


def test_every_equation_is_on_the_page_of_the_theory():
    theory = (DOCS / "explain" / "theory.md").read_text(encoding="utf-8")
    assert [int(number) for number in re.findall(r"\\tag\{(\d+)\}", theory)] == list(range(1, 36))
    for formula in re.findall(r"^\$\$\n(.*?)^\$\$", theory, flags=re.DOTALL | re.MULTILINE):
        assert r"\tag" not in formula or r"\\" not in formula  # Sphinx splits such lines, where no tag may stand


def test_the_notebook_of_the_lab_has_the_code_of_its_page():
    notebook, text = helper("notebook"), (DOCS / "paper" / "lab.md").read_text(encoding="utf-8")
    solved = json.loads(notebook.notebook(text, solutions=True))["cells"]
    open_ones = json.loads(notebook.notebook(text, solutions=False))["cells"]
    code = ["".join(cell["source"]) for cell in solved if cell["cell_type"] == "code"]
    plain = "\n".join("" if line.startswith("```") else line for line in text.splitlines())
    shown = [example.source.rstrip("\n") for example in doctest.DocTestParser().get_examples(plain)]
    assert "\n".join(code) == "\n".join(shown)
    assert sum("".join(cell["source"]) == "# your solution" for cell in open_ones) == text.count("**Exercise.**") == 9
    assert not any("<details>" in "".join(cell["source"]) for cell in solved + open_ones)


WORDS = "variational, ELBO, autoregressive, lasso, hyperparameter, tutorial, overconfident, calibration, Markov blanket"
WORDS += ", noisy-MAX, missing data, evidence lower bound"


@pytest.mark.parametrize("word", WORDS.split(", "))
def test_a_search_finds_the_words_of_the_field(word):
    pages = [page for page in DOCS.glob("*/*.md") if page.parent.name != "notes"]
    assert any(word.lower() in page.read_text(encoding="utf-8").lower() for page in pages)


WAYS = {
    "SBNImputer(random_state=0).fit": ["guide/imputation.md"],
    "KL is never negative": ["explain/why_bounds_hold.md"],
    "sb.read(": ["howto/formats.md"],
    "in processor time": ["guide/certificates.md"],
    ":pyobject: sweep": ["paper/map.md", "../explain/theory.md#the-mean-field-equations"],  # eq. (24) in the code
}


@pytest.mark.parametrize("answer", WAYS)
def test_the_landing_page_leads_to_answers_in_three_clicks(answer):
    page = DOCS / "index.md"
    for link in WAYS[answer]:
        assert f"]({link})" in page.read_text(encoding="utf-8")
        page = (page.parent / link.partition("#")[0]).resolve()
    assert answer in page.read_text(encoding="utf-8")


def test_no_amount_of_money_begins_a_formula():
    for page in [DOCS.parent / "CHANGELOG.md", *DOCS.glob("*/*.md")]:
        text = re.sub(r"```.*?^```|`[^`]+`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        assert not re.findall(r"\$\d+,\d{3}", text), page
