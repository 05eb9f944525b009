"""What a task takes along to another process or machine: large parts once for each worker, not with every block.

A task is a function, or a :func:`functools.partial` of one with a network, a solver and so on in it. Each of these
parts is pickled once; a large one is called by its digest from then on. A worker keeps the last parts that it was sent,
and one that lacks a part says so, and is sent the block again with the parts: so nobody has to know which workers there
are, and one that was started anew is served too.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Generic, TypeVar
from weakref import WeakSet

T = TypeVar("T")

_SMALL = 1_000
"""Bytes of a part that go with every block: less than a digest and a question would cost."""
_KEPT = 16
"""Parts that a worker keeps: the network and the solver are asked for by every block, weights change while learning."""


class Shared(Generic[T]):
    """A value that many calls have in common, such as the edges of a network while its weights are learned."""

    def __init__(self, value: T) -> None:
        self.value = value
        self.known_to: WeakSet[Executor] = WeakSet()

    def __reduce__(self) -> Any:
        return Shared, (self.value,)

    @cached_property
    def pickled(self) -> bytes:
        """Once, however often it is sent; with functions and classes of the caller's own script in it, if need be."""
        return _pickled(self.value)

    @cached_property
    def digest(self) -> str:
        """Its name: equal for equal bytes."""
        return hashlib.sha256(self.pickled).hexdigest()


@dataclass(frozen=True)
class Missing:
    """The answer of a worker that was not sent these parts yet."""

    digests: tuple[str, ...]


@dataclass(frozen=True)
class Done(Generic[T]):
    """What a task gave, and the seconds it took."""

    result: T
    seconds: float


class Parcel:
    """A task that is to run elsewhere, taken apart."""

    def __init__(self, task: Callable[..., Any]) -> None:
        whole = task if isinstance(task, partial) else partial(task)
        if whole.keywords:
            raise TypeError("the parts of a task that travels have no names")
        self._parts = [part if isinstance(part, Shared) else Shared(part) for part in (whole.func, *whole.args)]
        self._large = [part for part in self._parts if len(part.pickled) > _SMALL]
        self._bare = tuple(part.digest if part in self._large else part.pickled for part in self._parts)

    def to_begin(self, executor: Executor) -> dict[str, bytes]:
        """The large parts that this executor has not seen."""
        new = {part.digest: part.pickled for part in self._large if executor not in part.known_to}
        for part in self._large:
            part.known_to.add(executor)
        return new

    def lacking(self, missing: Missing, again: bool) -> dict[str, bytes]:
        """The parts that a worker has asked for; if it is not the first to ask for this block, all that there are."""
        return {part.digest: part.pickled for part in self._large if again or part.digest in missing.digests}

    def call(self, sent: dict[str, bytes]) -> Callable[[Any], Done[Any] | Missing]:
        """What a worker is to do with a block."""
        return partial(_unpacked, self._bare, sent)


def local(task: Callable[..., T]) -> Callable[[Any], Done[T]]:
    """The same for a thread of this process, to which nothing has to travel."""
    if isinstance(task, partial):
        values = (part.value if isinstance(part, Shared) else part for part in task.args)
        task = partial(task.func, *values, **task.keywords)
    return partial(_timed, task)


def _pickled(value: Any) -> bytes:
    """By value what only the caller's script defines; joblib brings the means, under its own name if it is old."""
    try:
        import cloudpickle
    except ImportError:
        from joblib.externals import cloudpickle
    return bytes(cloudpickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))


def _timed(task: Callable[[Any], T], block: Any) -> Done[T]:
    begin = time.monotonic()
    result = task(block)
    return Done(result, time.monotonic() - begin)


_kept: OrderedDict[str, Any] = OrderedDict()
_lock = threading.Lock()


def _unpacked(parts: tuple[str | bytes, ...], sent: dict[str, bytes], block: Any) -> Done[Any] | Missing:
    """In a worker: put the task together from what is kept and what was sent, and run it."""
    with _lock:
        found = {digest: _part(digest, sent) for digest in parts if isinstance(digest, str) and _has(digest, sent)}
    missing = tuple(digest for digest in parts if isinstance(digest, str) and digest not in found)
    if missing:
        return Missing(missing)
    function, *arguments = (found[part] if isinstance(part, str) else pickle.loads(part) for part in parts)
    return _timed(partial(function, *arguments), block)


def _has(digest: str, sent: dict[str, bytes]) -> bool:
    return digest in _kept or digest in sent


def _part(digest: str, sent: dict[str, bytes]) -> Any:
    """A part, which is the last one to be forgotten from now on."""
    if digest not in _kept:
        _kept[digest] = pickle.loads(sent[digest])
    _kept.move_to_end(digest)
    while len(_kept) > _KEPT:
        _kept.popitem(last=False)
    return _kept[digest]
