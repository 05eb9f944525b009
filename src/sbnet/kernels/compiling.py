"""How kernels are compiled: plain numba, to files that later processes reuse, and without the lock.

numba takes half a second to import, so that is left until a kernel is first called. It looks whether the file of a
function has changed, not whether those have that it calls. So a digest of all sources lies beside the compiled files,
and when it is another one they are removed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
# Reassociation lets the compiler use vector units for sums; nothing here assumes away NaN or infinity.
_FAST = {"contract", "reassoc", "nsz", "arcp", "afn"}
_LANEWISE = {"contract"}
_ALWAYS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_UNWRAPPED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class Deferred:
    """A function that becomes numba's when it is first called, by Python or by another that is being compiled."""

    __slots__ = ("_made", "_options", "py_func")

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func, self._options, self._made = function, options, None

    def __call__(self, *given: Any) -> Any:
        return (self._made or self.made)(*given)

    @property
    def made(self) -> Any:
        """What numba makes of it."""
        if self._made is None:
            options = {key: value() if callable(value) else value for key, value in self._options.items()}
            self._made = _numba().njit(**options)(self.py_func)
        return self._made


def kernel(function: Callable[..., Any]) -> Any:
    """For functions that Python calls; they are kept in files."""
    return function if INTERPRETED else Deferred(function, {"cache": lambda: folder() is not None, **_ALWAYS})


def inner(function: Callable[..., Any] | None = None, *, fast: bool = False, lanewise: bool = False) -> Any:
    """For functions that only kernels call.

    If `fast`, sums may be reordered, and the function becomes part of its callers: for loops along lanes. If
    `lanewise`, nothing is reordered, so that what a lane gets does not depend on which one it is.
    """
    if function is None:
        return lambda function: inner(function, fast=fast, lanewise=lanewise)
    flags = _FAST if fast else _LANEWISE
    options: dict[str, Any] = {"fastmath": flags, "forceinline": True} if fast or lanewise else {}
    return function if INTERPRETED else Deferred(function, {**_UNWRAPPED, **_ALWAYS, **options})


def before_compiling(function: Callable[[], None]) -> Callable[[], None]:
    """Have something done when numba has been imported."""
    _WAITING.append(function)
    return function


_WAITING: list[Callable[[], None]] = []


@functools.cache
def _numba() -> Any:
    import numba
    from numba.extending import typeof_impl

    typeof_impl.register(Deferred)(lambda one, _: numba.types.Dispatcher(one.made))
    for function in _WAITING:
        function()
    return numba


def plain(function: Any) -> Any:
    """The Python function behind a kernel that only kernels may call, and that calls none itself."""
    return getattr(function, "py_func", function)


def announce(function: Any) -> None:
    """Tell a person at a terminal why the very first call takes long: there is no compiled kernel to reuse yet."""
    if INTERPRETED or not sys.stderr.isatty() or function.made.overloads:
        return
    if not any(Path(function.made.stats.cache_path).glob(f"*.{function.py_func.__name__}-*.nbi")):
        print("sbnet: compiling kernels, once for this installation (some seconds) ...", file=sys.stderr)


def _digest() -> str:
    here = Path(__file__).parent
    state = hashlib.sha256(repr((_numba().__version__, np.__version__)).encode())
    others = here.parent / "_types.py", *sorted((here.parent / "quadrature").glob("*.py"))
    for path in (*sorted(here.rglob("*.py")), *others):  # all that a kernel can see
        with contextlib.suppress(OSError):  # no sources, in a zip file: numba then looks after itself
            state.update(path.relative_to(here.parent).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return state.hexdigest()


@functools.cache
def folder() -> Path | None:
    """The folder that compiled files are kept in, if there is one; those of other sources are removed."""
    if INTERPRETED:
        return None
    from sbnet.kernels import terms  # whose files have a folder of their own

    try:
        digest = _digest()
        for function in (terms.file_of, _digest):
            place = Path(_numba().njit(cache=True)(function).stats.cache_path)
            place.mkdir(parents=True, exist_ok=True)
            stamp = place / "sources.sha256"
            if not stamp.exists() or stamp.read_text() != digest:
                for stale in (*place.glob("*.nbi"), *place.glob("*.nbc")):
                    stale.unlink(missing_ok=True)
                stamp.write_text(digest)
    except (AttributeError, RuntimeError, OSError):  # no place at all; not ours to write to
        return None
    return place
