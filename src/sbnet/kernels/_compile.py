"""How kernels are compiled: to files that later processes reuse, and without the lock, so that threads run at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from numba import njit

_ALWAYS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",  # 1 / 0 is an infinity, as in NumPy; no kernel means to be told of it by an exception
}
# For kernels called by other kernels only. Without the code that unpacks Python objects they compile several times
# faster. Those that allocate nothing also do without the memory manager, and so take no reference counts of the arrays
# they look at: each is an atomic operation, as dear as several edges of a network.
_INNER: dict[str, Any] = {**_ALWAYS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_BARE: dict[str, Any] = {**_INNER, "_nrt": False}
# Reassociation lets the compiler use vector units for sums; nothing here assumes away NaN or infinity.
_FAST = {"contract", "reassoc", "nsz", "arcp", "afn"}

kernel: Any = njit(**_ALWAYS)
inner: Any = njit(**_INNER)
bare: Any = njit(**_BARE)
vector: Any = njit(**_BARE, fastmath=_FAST)
# For small functions, and for those that only call others: they become part of whoever calls them before anything is
# compiled. (A compiled function is optimised once more with every caller, and callers of callers.)
inlined: Any = njit(**_BARE, inline="always")


def plain(dispatcher: Any) -> Any:
    """The Python function behind a kernel that only kernels may call, and that calls none itself."""
    return getattr(dispatcher, "py_func", dispatcher)


def announce(dispatcher: Any) -> None:
    """Tell a person at a terminal why the very first call takes long: there is no compiled kernel to reuse yet."""
    if getattr(dispatcher, "overloads", True) or not sys.stderr.isatty():
        return
    if not any(Path(dispatcher.stats.cache_path).glob(f"*.{dispatcher.__name__}-*.nbi")):
        print("sbnet: compiling kernels, once for this installation (about half a minute) ...", file=sys.stderr)
