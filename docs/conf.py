"""Sphinx configuration. Every example on the pages is run during the build, and must print what it says."""

import importlib.util
import inspect
import os
import runpy
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

os.environ["MPLBACKEND"] = "Agg"

import sphinx.ext.autosummary
from sphinx_gallery.sorting import ExplicitOrder

import sbnet

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for the two modules that stand beside this one
sphinx.ext.autosummary.WELL_KNOWN_ABBREVIATIONS += ("eq.", "eqs.")  # no sentence ends there

project = "sbnet"
author = "the sbnet developers"
copyright = author
version = release = sbnet.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx-mathjax-offline",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
]
templates_path = ["_templates"]
exclude_patterns = [
    "_build",
    "_templates",
    "notes",
    "_defaults.md",
    "reference/_names.rst",
    "examples/**/*.ipynb",
    "examples/**/*.py",
]
exclude_patterns += ["sg_execution_times.rst", "examples/sg_execution_times.rst", "examples/*/sg_execution_times.rst"]
suppress_warnings = ["config.cache"]  # the configuration of the gallery is an object

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist", "substitution"]
myst_substitutions = {"version": release}
myst_heading_anchors = 3
autosummary_generate = ["reference/_names.rst"]
autodoc_typehints = "signature"
autodoc_type_aliases = {name: name for name in ("FloatArray", "IndexArray", "BoolArray", "States", "RngLike")}
python_maximum_signature_line_length = 88
numpydoc_class_members_toctree = False
numpydoc_show_inherited_class_members = False

plot_basedir = str(HERE)
plot_html_show_formats = plot_html_show_source_link = False
plot_formats = [("png", 160)]
plot_rcparams = {"savefig.bbox": "tight"}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",
    "subsection_order": ExplicitOrder(["../examples/networks", "../examples/tables", "../examples/bounds"]),
    "filename_pattern": "plot_",
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1e6,  # no example says how long it took on the machine of the build
}

html_theme = "pydata_sphinx_theme"
html_title = f"sbnet {release}"
html_static_path = ["_static"]
html_css_files = ["sbnet.css"]
html_js_files = ["pictures.js"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 8,
}
if address := os.environ.get("SBNET_REPOSITORY"):  # where the source stands, once it does: a link at the top
    link = {"name": "Repository", "url": address, "icon": "fa-solid fa-code-branch"}
    html_theme_options["icon_links"] = [link]
html_sidebars = {"index": []}


TASKS = {
    "model": "Build a network",
    "inference": "Infer posteriors and bounds",
    "exact": "Answer exactly, sample",
    "certificates": "Certify",
    "bounds": "Bounds at given parameters",
    "decisions": "Decide: causes, contributions, what to ask next, sensitivity",
    "learning": "Learn parameters",
    "estimators": "Learn from tables, as with scikit-learn",
    "files": "Read and write",
    "catalogue": "Build a diagnosis kit from a catalogue",
    "convert": "Convert: networkx, pgmpy, pyAgrum, other gates",
    "plots": "Draw",
    "explore": "Explore",
    "datasets": "Data",
    "paper": "The paper's experiments",
    "solvers": "Solvers and their settings",
    "results": "Results",
    "errors": "Errors and warnings",
}


def write_names() -> None:
    """List every public name for the reference page, by task; new names need no change here."""
    groups: dict[str, list[str]] = {task: [] for task in TASKS}
    modules = ["estimators", "plots", "explore", "datasets", "paper"]
    for name in sbnet.__all__:
        thing = getattr(sbnet, name)
        if inspect.ismodule(thing):
            modules.append(name)
        elif hasattr(thing, "__module__"):
            groups.setdefault(thing.__module__.split(".")[1], []).append(f"sbnet.{name}")
    for name in dict.fromkeys(modules):
        groups.setdefault(name, []).extend(public_names(importlib.import_module(f"sbnet.{name}")))
    lines = []
    for task, names in groups.items():
        if names:
            lines += [f".. rubric:: {TASKS.get(task, task)}", "", ".. autosummary::"]
            lines += ["   :toctree: generated", "   :nosignatures:", ""]
            lines += [f"   {name}" for name in names] + [""]
    (HERE / "reference" / "_names.rst").write_text("\n".join(lines))


def public_names(module) -> list[str]:
    def ours(name: str) -> bool:
        thing = getattr(module, name)
        kind = inspect.isclass(thing) or (inspect.isfunction(thing) and module is not sbnet.errors)
        home = "sbnet" if module in (sbnet.results, sbnet.solvers, sbnet.convert) else module.__name__
        return kind and thing.__module__.startswith(home)

    names = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
    others = [sbnet, *(m for m in (sbnet.results, sbnet.solvers, sbnet.convert) if m is not module)]
    names = [name for name in names if not any(name in other.__all__ for other in others)]  # once is enough
    return [f"{module.__name__}.{name}" for name in names if ours(name)]


def run_examples() -> None:
    """Run the examples on the hand-written pages; stop if one prints something else."""
    import examples_of_pages

    for said in examples_of_pages.all_wrong():
        raise RuntimeError(said)


def write_lab() -> None:
    """The notebooks of the lab, and its animation."""
    import notebook

    notebook.write(HERE / "paper" / "lab.md")
    runpy.run_path(str(HERE / "pictures" / "steps_animation.py"))


def run_commands() -> None:
    """Run the commands on the page of the command line, in a folder of their own."""
    import terminal

    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for command, printed, found in terminal.differences(
            (HERE / "howto" / "command_line.md").read_text(encoding="utf-8")
        ):
            raise RuntimeError(f"command_line.md: {command} prints\n{found}\nand not\n{printed}")


write_names()
write_lab()
if "SBNET_DOCS_QUICK" not in os.environ:  # while a page is being written: only look at it
    run_examples()
    run_commands()
