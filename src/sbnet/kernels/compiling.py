"""How kernels are compiled: plain numba, to files that later processes reuse, and without the lock.

numba looks whether the file of a function has changed, not whether those have that it calls. So a digest of all
sources lies beside the compiled files, and when it is another one they are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

_njit: Any = numba.njit
INTERPRETED = bool(getattr(numba.config, "DISABLE_JIT", False))
# Reassociation lets the compiler use vector units for sums; nothing here assumes away NaN or infinity.
_FAST = {"contract", "reassoc", "nsz", "arcp", "afn"}
_LANEWISE = {"contract"}
_ALWAYS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def kernel(function: Callable[..., Any]) -> Any:
    """For functions that Python calls; they are kept in files."""
    return _njit(cache=FOLDER is not None, **_ALWAYS)(function)


def inner(function: Callable[..., Any] | None = None, *, fast: bool = False, lanewise: bool = False) -> Any:
    """For functions that only kernels call.

    If `fast`, sums may be reordered, and the function becomes part of its callers: for loops along lanes. If
    `lanewise`, nothing is reordered, so that what a lane gets does not depend on which one it is.
    """
    if function is None:
        return lambda function: inner(function, fast=fast, lanewise=lanewise)
    flags = _FAST if fast else _LANEWISE
    options: dict[str, Any] = {"fastmath": flags, "forceinline": True} if fast or lanewise else {}
    return _njit(no_cpython_wrapper=True, **_ALWAYS, **options)(function)


def plain(dispatcher: Any) -> Any:
    """The Python function behind a kernel that only kernels may call, and that calls none itself."""
    return getattr(dispatcher, "py_func", dispatcher)


def announce(dispatcher: Any) -> None:
    """Tell a person at a terminal why the very first call takes long: there is no compiled kernel to reuse yet."""
    if INTERPRETED or dispatcher.overloads or not sys.stderr.isatty():
        return
    if not any(Path(dispatcher.stats.cache_path).glob(f"*.{dispatcher.__name__}-*.nbi")):
        print("sbnet: compiling kernels, once for this installation (some seconds) ...", file=sys.stderr)


def _digest() -> str:
    here = Path(__file__).parent
    state = hashlib.sha256(repr((numba.__version__, np.__version__)).encode())
    for path in (*sorted(here.rglob("*.py")), here.parent / "_types.py"):  # all that a kernel can see
        with contextlib.suppress(OSError):  # no sources, in a zip file: numba then looks after itself
            state.update(path.relative_to(here.parent).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return state.hexdigest()


def _prepare_folder() -> Path | None:
    """The folder that compiled files are kept in, if there is one; those of other sources are removed."""
    try:
        probe: Any = numba.njit(cache=True)(_digest)
        folder, digest = Path(probe.stats.cache_path), _digest()
        folder.mkdir(parents=True, exist_ok=True)
        stamp = folder / "sources.sha256"
        if not stamp.exists() or stamp.read_text() != digest:
            for stale in (*folder.glob("*.nbi"), *folder.glob("*.nbc")):
                stale.unlink(missing_ok=True)
            stamp.write_text(digest)
    except (AttributeError, RuntimeError, OSError):  # nothing is compiled; no place at all; not ours to write to
        return None
    return folder


FOLDER = None if INTERPRETED else _prepare_folder()
