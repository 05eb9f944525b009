"""Compiled kernels are kept in files: they are reused while no source has changed, and never after."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.errors import TypingError

import sbnet as sb
from sbnet.kernels._compile import Light, Part, Vector, Whole
from strategies import INTERPRETED

pytestmark = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")

CALLEE = "from sbnet.kernels._compile import inner\n\n\n@inner\ndef callee(x):\n    return x + {}\n"
CALLER = """from sbnet.kernels._compile import kernel
from sbnet.kernels.toys.callee import callee


@kernel
def caller(x):
    return callee(x)
"""
ASK = "from sbnet.kernels.toy import caller; print(caller(1), sum(caller.stats.cache_hits.values()))"


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


def folders(place):
    return {path.name for path in place.rglob("sbnet-*")}


def test_an_edited_kernel_is_compiled_anew_and_so_is_what_calls_it(package):
    assert ask(package) == (2, 0)
    assert ask(package) == (2, 1)
    (package / "toys" / "callee.py").write_text(CALLEE.format(100))  # the caller's own file is as it was
    assert ask(package) == (101, 0)
    (package / "toys" / "callee.py").write_text(CALLEE.format(1))
    assert ask(package) == (2, 1)  # back again: that state is still there


def test_old_states_do_not_pile_up(package):
    for k in range(6):
        stale = package / "__pycache__" / f"sbnet-{k}"
        stale.mkdir(parents=True)
        os.utime(stale, (k, k))
    ask(package)
    left = folders(package)
    assert len(left) == 4
    assert {"sbnet-3", "sbnet-4", "sbnet-5"} < left


def test_the_cache_folder_of_numba_is_honoured(package, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    ask(package, NUMBA_CACHE_DIR=str(elsewhere))
    assert len(folders(elsewhere)) == 1
    assert not folders(package)
    assert ask(package, NUMBA_CACHE_DIR=str(elsewhere)) == (2, 1)


def test_an_installation_that_cannot_be_written_to_uses_the_folder_of_the_user(package, tmp_path):
    (package / "__pycache__").touch()  # a file where the folder would be
    home = tmp_path / "home"
    assert ask(package, XDG_CACHE_HOME=str(home), HOME=str(home)) == (2, 0)
    assert ask(package, XDG_CACHE_HOME=str(home), HOME=str(home)) == (2, 1)
    assert len(folders(home)) == 1


def test_where_nothing_can_be_written_kernels_still_run(package, tmp_path):
    (package / "__pycache__").touch()
    (package / "toys" / "__pycache__").touch()
    blocked = tmp_path / "blocked"
    blocked.touch()
    assert ask(package, XDG_CACHE_HOME=str(blocked), HOME=str(blocked)) == (2, 0)


# Whatever is left out on the way to machine code, answers are those of numba's own way, to the last bit.

HOSTILE = st.sampled_from([np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, 1.0, -1e308]) | st.floats()
KINDS = (np.float64, np.float32, np.int32, np.uint8, np.bool_)


def exchange(values, at, put, out):
    for k in range(len(at)):
        out[k] = values[at[k]]
        values[at[k]] = put[k]


def read(values, at, out):
    for k in range(len(at)):
        out[k] = values[at[k]]


def mix(x, y):
    return max(x, y) - x / y if x < 0.0 else min(x, y) * y


def scale(x, factor):
    for k in range(np.uint64(len(x))):
        x[k] = mix(x[k], factor)


def drive(x, factor):
    scale(x, factor)
    return mix(x[0], x[-1])


def driven(outer, vector, part):
    """`drive`, `scale` and `mix`, compiled so and linked."""
    names = {"mix": njit(pipeline_class=part, error_model="numpy")(mix)}
    for function, pipeline in ((scale, vector), (drive, outer)):
        copy = type(function)(function.__code__, {**globals(), **names}, function.__name__)
        names[function.__name__] = njit(pipeline_class=pipeline, error_model="numpy")(copy)
    return names["drive"]


OURS = pytest.mark.parametrize("pipeline", [Whole, Light])
EXCHANGE = {pipeline: njit(pipeline_class=pipeline)(exchange) for pipeline in (Compiler, Whole, Light)}
READ = {pipeline: njit(pipeline_class=pipeline)(read) for pipeline in (Compiler, Whole, Light)}
DRIVE = {Whole: driven(Whole, Vector, Part), Light: driven(Light, Vector, Part), Compiler: driven(*[Compiler] * 3)}


def same(one, other):
    assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


@OURS
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", [np.int64, np.int32, np.uint8])
@given(st.data())
@settings(max_examples=20)
def test_places_in_arrays_are_those_of_numba(pipeline, kind, place, data):
    numbers = HOSTILE if kind in (np.float64, np.float32) else st.integers(0, 1 if kind is np.bool_ else 255)
    with np.errstate(over="ignore"):
        values, put = (np.array(data.draw(st.lists(numbers, min_size=7, max_size=7))).astype(kind) for _ in "ab")
    lowest = 0 if place is np.uint8 else -7  # negative: from the end
    at = np.array(data.draw(st.lists(st.integers(lowest, 6), max_size=7)), dtype=place)
    left = {way: (values.copy(), np.zeros(7, kind)) for way in (Compiler, pipeline)}
    for way, (array, out) in left.items():
        EXCHANGE[way](array, at, put, out)
    for one, other in zip(*left.values(), strict=True):
        same(one, other)


@OURS
def test_arrays_of_other_kinds_are_left_to_numba(pipeline):
    values, at = np.arange(14.0), np.array([0, -1, 3])
    for array in (values[::2], values[::-1], np.frombuffer(values.tobytes())):  # the last cannot be written to
        out = np.zeros(3)
        READ[pipeline](array, at, out)
        same(out, array[at])
    EXCHANGE[pipeline](values[::2], at, np.full(3, 9.0), np.zeros(3))
    assert np.flatnonzero(values == 9.0).tolist() == [0, 6, 9, 12]
    with pytest.raises(TypingError, match="readonly"):
        EXCHANGE[pipeline](np.frombuffer(values.tobytes()), at, values, values)


@OURS
@given(st.lists(HOSTILE, min_size=1, max_size=40), HOSTILE)
def test_kernels_that_call_others_answer_as_with_numba(pipeline, numbers, factor):
    left = [np.array(numbers) for _ in range(2)]
    answers = [DRIVE[way](x, factor) for way, x in zip((Compiler, pipeline), left, strict=True)]
    np.testing.assert_array_equal(*left)
    np.testing.assert_array_equal(*np.signbit(np.nan_to_num(left)))
    np.testing.assert_array_equal(*answers)


def test_functions_of_others_are_compiled_as_ever():
    @njit
    def theirs(x):
        return [np.sqrt(x)[k] + (lambda y: 2.0 * y)(x[k]) for k in range(len(x))]

    x = np.array([1.0, 4.0, -0.0])
    assert theirs(x) == [3.0, 10.0, 0.0]
    (made,) = theirs.overloads.values()
    assert type(made.library) is JITCodeLibrary
