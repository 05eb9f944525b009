"""One writer at a time: a lock on a file that is written again and again, which ends with the process that holds it."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterator

from sbnet.errors import TargetError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}


@contextlib.contextmanager
def alone(name: str) -> Iterator[None]:
    """Nobody else writes to this file meanwhile; whoever tries is told who does.

    The file itself is replaced each time, so that the lock is on one beside it, whose name is derived from it, and
    which holds the number of the process. The system lets go of a lock when a process ends, however it ends.
    """
    if fcntl is None:
        yield
        return
    folder, file = os.path.split(os.path.realpath(name))
    beside = os.path.join(folder, f".sbnet-{hashlib.sha256(os.fsencode(file)).hexdigest()[:16]}.lock")
    handle = _locked(beside, name)
    if handle is None:
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(beside)  # before the lock is let go: who opens the name from now on makes a new file
        os.close(handle)


def _locked(beside: str, name: str) -> int | None:
    """The open file that holds the lock; None on a file system that has no locks."""
    while True:
        handle = os.open(beside, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(handle, beside):
                with contextlib.suppress(OSError):  # a full disk has no room for a number; the lock holds all the same
                    os.ftruncate(handle, 0)
                    os.write(handle, f"{os.getpid()}\n".encode())
                return handle
        except BlockingIOError:
            owner = os.read(handle, 20).decode(errors="replace").strip() or "?"
            os.close(handle)
            raise TargetError(
                f"{name} is being written by process {owner}, and two runs would overwrite each other's checkpoints; "
                "wait until it has ended, or give another name"
            ) from None
        except OSError as error:
            os.close(handle)
            if error.errno in _NO_LOCKS:
                os.unlink(beside)
                return None
            raise
        os.close(handle)  # the last owner removed it just now


def _is_at(handle: int, path: str) -> bool:
    """Does the name still stand for the file that was opened?"""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False
