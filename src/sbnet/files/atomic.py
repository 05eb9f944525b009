"""Writing: a file is replaced whole or not at all, and nothing but a regular file is ever replaced."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from typing import BinaryIO

from sbnet import checks
from sbnet.errors import FileFormatError, KindError, ParameterError, TargetError

PathLike = str | bytes | os.PathLike[str] | os.PathLike[bytes]

_ANOTHER_NAME = "give the name of a regular file, or one that is not taken"
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def as_name(path: PathLike) -> str:
    """The name of a file as text, as it was given: errors speak of the file by it."""
    if not isinstance(path, str | bytes | os.PathLike):
        raise KindError(f"the name of a file is {checks.shown(path)}; give a text or a path")
    name = os.fsdecode(path)
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        name = ""
    if not name or "\0" in name:
        raise ParameterError(f"{checks.shown(os.fsdecode(path))} cannot be the name of a file")
    return name


def as_file(path: PathLike) -> str:
    """The name of a file that is to be read; a folder is refused."""
    name = as_name(path)
    if os.path.isdir(name):
        raise FileFormatError(f"{name} is a folder; give the name of a file in it")
    return name


def check_target(path: PathLike, *, instead: str = _ANOTHER_NAME) -> None:
    """Refuse, before any work is done, a place where :func:`write_atomically` could not write.

    Permissions are not worked out but tried, with an empty file beside the target, which is removed at once: that also
    holds for a disk that is mounted to be read only, and for those whom no permission stops. `instead` is the way out
    that the error shows if the target is no regular file.
    """
    name = as_name(path)
    with _speaking_of(name):
        target = _real_file(name, instead)
        temporary = _name_beside(target)
        handle = _new_file(temporary, target)
        try:
            os.close(handle)
        finally:
            os.unlink(temporary)


def write_atomically(path: PathLike, data: bytes) -> None:
    """Replace the file at `path` by `data`, or leave it as it was.

    Links are followed to the real file, as an ordinary write would; its permissions and, where the system lets us, its
    owner stay. Another name of the same file (a hard link) keeps the old contents.
    """
    with _speaking_of(as_name(path)), replacing(path) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: PathLike) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of the one at `path` at the end, as :func:`write_atomically` says.

    If anything is raised before, nothing has changed.
    """
    name = as_name(path)
    with _speaking_of(name):
        target = _real_file(name)
    temporary = _name_beside(target)
    try:
        with _speaking_of(name):
            handle = _new_file(temporary, target)
        with _opened(handle) as file:
            yield file
            with _speaking_of(name):
                _flush(file)
        with _speaking_of(name):
            _take_after(temporary, target)
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):  # what went wrong first is what counts
            os.unlink(temporary)
        raise
    with _speaking_of(name):
        _settle(os.path.dirname(target))


@contextlib.contextmanager
def _speaking_of(name: str) -> Iterator[None]:
    """Errors of the system, with the name of the target: nobody knows the temporary file."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, name) from None


def _real_file(name: str, instead: str = _ANOTHER_NAME) -> str:
    """The file that stands, or will stand, behind all links; one that can be written to."""
    if name.endswith(os.sep):
        raise TargetError(f"{name} names a folder, not a regular file; {instead}")
    real = os.path.realpath(name)
    try:
        found = os.stat(name)  # not of `real`: links of /proc lead to files that have no name
    except FileNotFoundError:
        return real
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise TargetError(f"{name} is {kind}, not a regular file; {instead}")
    if not os.path.exists(real) or not os.path.samestat(found, os.stat(real)):
        raise TargetError(f"{name} leads to a file that has no name any more; {instead}")
    # Renaming would not ask whether the old file may be changed.
    os.close(os.open(real, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0)))
    return real


def _name_beside(target: str) -> str:
    return os.path.join(os.path.dirname(target), f".sbnet-{secrets.token_hex(8)}.tmp")


def _new_file(temporary: str, target: str) -> int:
    """A new, empty file in the folder of the target, no more open to others than that is."""
    mode = stat.S_IMODE(os.stat(target).st_mode) if os.path.exists(target) else 0o666
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    return os.open(temporary, flags, mode)


def _opened(handle: int) -> BinaryIO:
    try:
        return os.fdopen(handle, "wb")
    except BaseException:
        os.close(handle)
        raise


def _flush(file: BinaryIO) -> None:
    """See all of it on disk: a rename must never come before what it names."""
    file.flush()
    os.fsync(file.fileno())


def _take_after(temporary: str, target: str) -> None:
    """Give the new file the permissions and the owner of the old one, if there is one."""
    try:
        old = os.stat(target)
    except FileNotFoundError:
        return
    new = os.stat(temporary)
    if hasattr(os, "chown") and (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        with contextlib.suppress(PermissionError):  # only root can give files away
            os.chown(temporary, old.st_uid, old.st_gid)
    os.chmod(temporary, stat.S_IMODE(old.st_mode))


def _settle(folder: str) -> None:
    """Make the rename itself last, where a folder can be opened and flushed."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:  # one may write in it and not read it
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)
