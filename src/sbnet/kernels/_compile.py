"""How kernels are compiled: to files that later processes reuse, and without the lock, so that threads run at once.

numba keeps compiled code beside a stamp of the file that a function stands in; that the function calls others, which
may have changed in their files, it does not see. So the files are kept in a folder named after all that any kernel can
see: kernels of other sources are in another folder, and nobody has to delete anything.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, get_args, get_type_hints

import llvmlite
import numba
import numpy as np
from llvmlite import ir
from numba import cfunc, njit, types
from numba.core import cgutils, event
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic

try:
    from sbnet.kernels._pipeline import Disjoint, Light, Part, Vector, Whole
except ImportError:  # numba's own way, which takes longer
    from numba.core.compiler import Compiler

    Disjoint = Light = Part = Vector = Whole = Compiler  # type: ignore[misc, assignment]

_CONFIG: Any = numba.config
INTERPRETED = bool(_CONFIG.DISABLE_JIT)
_KEPT = 4  # folders: enough to go back and forth between versions; a process of an older one has long ended


def _fingerprint() -> str:
    """Of every kernel, of the records they read, and of the compilers; the import rules let a kernel see no more."""
    here = Path(__file__).parent
    sources = sorted((*here.rglob("*.py"), here.parent / "_types.py"))
    state = hashlib.sha256(repr((numba.__version__, llvmlite.__version__, np.__version__)).encode())
    for path in sources:
        with contextlib.suppress(OSError):  # no sources, in a zip file: numba then looks after itself
            state.update(path.relative_to(here.parent).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return state.hexdigest()[:16]


def _folder() -> str | None:
    """Where compiled kernels are kept; None where no folder can be written to, or nothing is compiled.

    numba chooses the place, as for any function: NUMBA_CACHE_DIR, else the package's own, else the user's folder.
    """
    try:
        probe: Any = njit(cache=True)(_fingerprint)
        place = Path(probe.stats.cache_path)
        folder = place / f"sbnet-{_fingerprint()}"
        new = not folder.exists()
        folder.mkdir(exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()  # numba would go elsewhere if it could not write here
    except (AttributeError, RuntimeError, OSError):  # NUMBA_DISABLE_JIT; no place at all; not ours to write to
        return None
    if new:
        with contextlib.suppress(OSError):  # another process may be doing the same
            for stale in sorted(place.glob("sbnet-*"), key=lambda path: path.stat().st_mtime)[:-_KEPT]:
                shutil.rmtree(stale, ignore_errors=True)
    return str(folder)


FOLDER = _folder()
_ALWAYS: dict[str, Any] = {
    "cache": FOLDER is not None,
    "nogil": True,
    "pipeline_class": Whole,
    "error_model": "numpy",  # 1 / 0 is an infinity, as in NumPy; no kernel means to be told of it by an exception
}
# For kernels called by other kernels only: no code that unpacks Python objects, and no files, for their code is kept
# with that of their callers. Those that allocate nothing also do without the memory manager, and so take no reference
# counts of the arrays they look at: each is an atomic operation, as dear as several edges of a network.
_INNER: dict[str, Any] = {
    **_ALWAYS,
    "cache": False,
    "pipeline_class": Part,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
_BARE: dict[str, Any] = {**_INNER, "_nrt": False}
# Reassociation lets the compiler use vector units for sums; nothing here assumes away NaN or infinity.
_FAST = {"contract", "reassoc", "nsz", "arcp", "afn"}


class _Pause(event.Listener):
    """No garbage collection while something is compiled: it goes through millions of objects again and again."""

    def __init__(self) -> None:
        self._depth, self._was_on = 0, False  # compiling is nested; the lock of the compiler is held meanwhile

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._was_on = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0 and self._was_on:
            gc.enable()

    @contextlib.contextmanager
    def throughout(self) -> Iterator[None]:
        """One pause for all that is compiled meanwhile."""
        with global_compiler_lock:
            self.on_start(None)
            try:
                yield
            finally:
                self.on_end(None)


PAUSE = _Pause()
event.register("numba:compile", PAUSE)


_ONE_AT_A_TIME = threading.RLock()  # numba has one folder for the whole process, and threads may compile at once


@contextlib.contextmanager
def _in_our_folder() -> Iterator[None]:
    """Files of kernels that are decorated here are kept in our folder."""
    with _ONE_AT_A_TIME:
        before, _CONFIG.CACHE_DIR = _CONFIG.CACHE_DIR, FOLDER or _CONFIG.CACHE_DIR
        try:
            yield
        finally:
            _CONFIG.CACHE_DIR = before


def _compiled(**options: Any) -> Any:
    """`njit` that keeps its files in our folder."""

    def decorate(function: Callable[..., Any]) -> Any:
        with _in_our_folder():
            return njit(**options)(function)

    return decorate


kernel: Any = _compiled(**_ALWAYS, no_cfunc_wrapper=True)
# For kernels called from Python whose time goes into others.
light: Any = _compiled(**_ALWAYS | {"pipeline_class": Light}, no_cfunc_wrapper=True)
# For kernels called from Python that allocate nothing: no reference counts either, and a third less to compile.
entry: Any = _compiled(**_ALWAYS, no_cfunc_wrapper=True, _nrt=False)
inner: Any = _compiled(**_INNER)
bare: Any = _compiled(**_BARE)
vector: Any = _compiled(**_BARE | {"pipeline_class": Vector}, fastmath=_FAST)
# The same for functions that are given disjoint parts of arrays: to ask takes as long as a short loop.
disjoint: Any = _compiled(**_BARE | {"pipeline_class": Disjoint}, fastmath=_FAST)
# For small functions in loops that become vectors: they are taken in before anything is compiled, and so are as free to
# reorder sums as the loop is.
inlined: Any = _compiled(**_BARE, inline="always")


# A function that numba knows becomes part of every caller, and is optimised once more with each. Large ones are
# compiled apart, when Python first asks for their `address`; kernels are handed that number, and call through it. So
# only those are compiled that a problem needs.


def _type_of(hint: Any) -> Any:
    """The type that kernels have for an annotation: a number, a record or a tuple of such, else an array."""
    if hint in _NUMBERS:
        return _NUMBERS[hint]
    if getattr(hint, "_fields", None) is not None:
        return types.BaseTuple.from_types([_type_of(part) for part in get_type_hints(hint).values()], hint)
    if getattr(hint, "__origin__", None) is tuple:
        return types.BaseTuple.from_types([_type_of(part) for part in get_args(hint)])
    return types.Array(numba.from_dtype(np.dtype(get_args(get_args(hint)[1])[0])), 1, "C")


_NUMBERS: dict[Any, Any] = {float: types.float64, int: types.int64, bool: types.boolean, type(None): types.none}


@functools.cache
def _signature(function: Any) -> Any:
    hints = get_type_hints(plain(function))
    result = _type_of(hints.pop("return"))
    return result(*map(_type_of, hints.values()))


@functools.cache
def _apart(function: Any, like: Any, allocates: bool) -> Any:
    with PAUSE.throughout(), _in_our_folder():
        return cfunc(_signature(like), **_ALWAYS | {"pipeline_class": Light, "_nrt": allocates})(function)


def address(function: Any, like: Any = None, *, allocates: bool = False) -> Any:
    """Where a function has been compiled apart, by its annotations or those of another; without a compiler, itself."""
    return function if INTERPRETED else _apart(function, like or function, allocates).address


def caller(like: Any) -> Any:
    """What kernels call such a function with: its address comes first."""
    if INTERPRETED:
        return lambda function, *arguments: function(*arguments)

    def call(typing: Any, address: Any, *arguments: Any) -> Any:
        wanted = _signature(like)

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            given = zip(cgutils.unpack_tuple(builder, values[1]), signature.args[1], wanted.args, strict=True)
            cast = [context.cast(builder, v, a, b) if isinstance(b, types.Number) else v for v, a, b in given]
            kind = ir.FunctionType(context.get_value_type(wanted.return_type), [v.type for v in cast])
            return builder.call(builder.inttoptr(values[0], kind.as_pointer()), cast)

        return wanted.return_type(address, types.StarArgTuple.from_types(arguments)), build

    return intrinsic(call)


def variant(function: Any, name: str, **names: Any) -> Any:
    """The same function in which some names mean something else; it needs a name of its own to be kept under."""
    copy = FunctionType(function.__code__, {**function.__globals__, **names}, name)
    copy.__qualname__, copy.__module__, copy.__annotations__ = name, function.__module__, function.__annotations__
    return copy


def plain(dispatcher: Any) -> Any:
    """The Python function behind a kernel that only kernels may call, and that calls none itself."""
    return getattr(dispatcher, "py_func", dispatcher)


def announce(dispatcher: Any) -> None:
    """Tell a person at a terminal why the very first call takes long: there is no compiled kernel to reuse yet."""
    if getattr(dispatcher, "overloads", True) or not sys.stderr.isatty():
        return
    if not FOLDER or not any(Path(dispatcher.stats.cache_path).glob(f"*.{dispatcher.__name__}-*.nbi")):
        print("sbnet: compiling kernels, once for this installation (some seconds) ...", file=sys.stderr)
