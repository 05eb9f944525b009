"""The package as a whole: what importing it costs, what it offers, and that its examples are true."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.resources
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import sbnet as sb

MODULES = [
    module.name
    for module in pkgutil.walk_packages(sb.__path__, "sbnet.")
    if not module.name.endswith("__main__")  # it would run
]


def _in_a_fresh_process(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_importing_sbnet_imports_next_to_nothing():
    brought = _in_a_fresh_process("import sys; old = {*sys.modules}; import sbnet; print(*({*sys.modules} - old))")
    assert {name for name in brought if name.startswith("sbnet")} == {"sbnet", "sbnet._version"}
    heavy = {"numpy", "numba", "scipy", "sklearn", "matplotlib", "pandas", "networkx", "dask", "rich"}
    assert len(brought) <= 40
    assert not heavy & set(brought)


def test_names_are_found_when_they_are_asked_for_and_listed_before():
    code = "import sbnet as sb; print(*dir(sb)); from sbnet import infer; assert sb.infer is infer; sb.results.Status"
    assert {*sb.__all__, "datasets", "estimators", "explore", "paper", "plots"} <= set(_in_a_fresh_process(code))
    with pytest.raises(AttributeError, match="module 'sbnet' has no attribute 'nonsense'"):
        sb.nonsense  # noqa: B018


def test_type_checkers_see_the_names_where_they_are_found():
    (block,) = (node for node in ast.parse(Path(sb.__file__).read_text()).body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    modules = {name for name, module in seen.items() if module == "sbnet"}
    assert modules == set(sb._MODULES)
    assert {name: module for name, module in seen.items() if name not in modules} == sb._HOME


def test_type_checkers_are_told_that_the_package_is_typed():
    assert importlib.resources.files(sb).joinpath("py.typed").is_file()


@pytest.mark.parametrize("name", sb.__all__)
def test_every_public_name_exists_and_says_what_it_is(name):
    value = getattr(sb, name)
    if name != "__version__":
        assert inspect.getdoc(value)


@pytest.mark.parametrize("module", [sb.results, sb.solvers, sb.convert])
def test_public_names_are_listed_once_and_in_order(module):
    names = [name for name in module.__all__ if name != "__version__"]
    # constants, classes, functions: as style checkers sort them
    assert names == sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert len(set(names)) == len(names)


def test_about_forty_names_are_offered_and_the_rest_stands_in_modules():
    assert len(set(sb.__all__) - set(sb._MODULES)) <= 46
    assert not set(sb.__all__) & {*sb.results.__all__, *sb.convert.__all__}


def test_packages_show_the_architecture():
    root = importlib.resources.files(sb)
    modules = {path.name for path in root.iterdir() if path.name.endswith(".py")}
    offered = {"results.py", "solvers.py", "convert.py"}
    assert modules == {"__init__.py", "__main__.py", "_types.py", "_version.py", "checks.py", "errors.py"} | offered
    packages = {path.name for path in root.iterdir() if path.is_dir() and path.joinpath("__init__.py").is_file()}
    assert packages == {
        *("bounds", "catalogue", "certificates", "cli", "datasets", "decisions", "estimators", "exact", "explore"),
        *("files", "inference", "kernels", "learning", "model", "paper", "parallel", "plots", "quadrature"),
        *("questions", "tables"),
    }
    for name in packages:
        assert importlib.import_module(f"sbnet.{name}").__doc__, name


def test_every_public_function_has_keywords_after_the_data():
    for name in sb.__all__:
        value = getattr(sb, name)
        if not inspect.isfunction(value):
            continue
        for parameter in inspect.signature(value).parameters.values():
            if parameter.default is not parameter.empty:
                assert parameter.kind is parameter.KEYWORD_ONLY, (name, parameter)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name):
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def _documented():
    """Every public name that the reference lists, apart from exceptions."""
    modules = [getattr(sb, name) for name in sb.__all__ if inspect.ismodule(getattr(sb, name))]
    for module in (sb, *modules, *map(importlib.import_module, ("sbnet.estimators", "sbnet.plots", "sbnet.paper"))):
        for name in () if module is sb.errors else module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                yield f"{module.__name__}.{name}", thing


def test_every_public_name_has_an_example_and_its_parameters_with_types_and_returns():
    lacking = []
    for name, thing in _documented():
        text = inspect.getdoc(thing) or ""
        if ">>> " not in text:
            lacking.append(f"{name}: an example")
        if inspect.isfunction(thing):
            signature = inspect.signature(thing)
            if signature.return_annotation != "None" and not re.search(r"^(Returns|Yields)$", text, re.MULTILINE):
                lacking.append(f"{name}: Returns")
            lacking += [
                f"{name}: {parameter}"
                for parameter in signature.parameters
                if not re.search(rf"^(\w+, )*\*{{0,2}}{parameter}(, \w+)* : .+$", text, re.MULTILINE)
            ]
    assert lacking == []


def test_there_are_examples_to_check():
    finder = doctest.DocTestFinder()
    for name in ("sbnet.model.build", "sbnet.exact.answers", "sbnet.files.formats"):
        found = finder.find(importlib.import_module(name))
        assert any(test.examples for test in found)


def test_every_dependency_is_used_by_the_package_itself():
    root = Path(__file__).parents[1]
    named = tomllib.loads((root / "pyproject.toml").read_text())["project"]["dependencies"]
    source = "\n".join(path.read_text() for path in Path(sb.__file__).parent.rglob("*.py"))
    modules = [re.split("[<>=!~ ]", one)[0].replace("-", "_").replace("scikit_learn", "sklearn") for one in named]
    assert [one for one in modules if not re.search(rf"^ *(import|from) {one}\b", source, re.MULTILINE)] == []


KERNELS = "sbnet.kernels._compile"
"""Those who run a kernel in Python, or say that kernels are compiled, do so through their compiler."""


def _imported(path):
    """The modules that a source file imports, and the names that it takes from them, as modules."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_private_to_another(name, package):
    """Is one of the names behind ``sbnet.PACKAGE`` an underscore module, and is the package another one?"""
    parts = name.split(".")
    private = any(part.startswith("_") and not part.startswith("__") for part in parts[2:])
    return parts[0] == "sbnet" and len(parts) > 2 and private and parts[1] != package


def test_no_package_imports_underscore_modules_of_another():
    root = Path(sb.__path__[0])
    files = [path for path in root.rglob("*.py") if not path.is_relative_to(root / "kernels")]
    assert len(files) > 100
    wrong = [
        f"{path.relative_to(root)}: {name}"
        for path in files
        for name in _imported(path)
        if _is_private_to_another(name, path.relative_to(root).parts[0]) and not name.startswith(KERNELS)
    ]
    assert wrong == []
