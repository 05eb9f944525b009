"""One writer at a time: a lock on a file that is written again and again, which ends with the process that holds it."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from sbnet.errors import TargetError

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}


@contextlib.contextmanager
def alone(name: str) -> Iterator[None]:
    """Nobody else writes to this file meanwhile; whoever tries is told who does.

    The file itself is replaced each time, so that the lock is on one beside it, whose name is derived from it, and
    which holds the number of the process. The system lets go of a lock when a process ends, however it ends. On a file
    system that has no locks there is none.
    """
    folder, file = os.path.split(os.path.realpath(name))
    beside = Path(folder, f".sbnet-{hashlib.sha256(os.fsencode(file)).hexdigest()[:16]}.lock")
    lock = FileLock(beside, blocking=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        owner = "?"
        with contextlib.suppress(OSError):  # it has just ended, or the system shows a locked file to its owner alone
            owner = beside.read_text(errors="replace")[:20].strip() or "?"
        raise TargetError(
            f"{name} is being written by process {owner}, and two runs would overwrite each other's "
            "checkpoints; wait until it has ended, or give another name"
        ) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    try:
        with contextlib.suppress(OSError):  # a full disk has no room for a number; the lock holds all the same
            beside.write_text(f"{os.getpid()}\n")
        yield
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()  # before the lock is let go: who opens the name from now on makes a new file
        lock.release()
