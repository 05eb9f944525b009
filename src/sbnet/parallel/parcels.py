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
from functools import cached_property, partial
from typing import Any, Generic, TypeAlias, TypeVar
from weakref import WeakSet

T = TypeVar("T")
Answer: TypeAlias = "tuple[T, float] | None"
"""What a task gave and the seconds it took; None from a worker that lacks a part of the task."""

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
        """Once, however often it is sent; with functions and classes of the caller's own script in it, if need be.

        cloudpickle comes with joblib, under its own name if joblib is old.
        """
        try:
            import cloudpickle
        except ImportError:
            from joblib.externals import cloudpickle
        return bytes(cloudpickle.dumps(self.value, protocol=pickle.HIGHEST_PROTOCOL))

    @cached_property
    def digest(self) -> str:
        """Its name: equal for equal bytes."""
        return hashlib.sha256(self.pickled).hexdigest()


class Parcel(Generic[T]):
    """A task taken apart: a function, and all of its arguments but the block."""

    def __init__(self, task: Callable[..., T]) -> None:
        whole = task if isinstance(task, partial) else partial(task)
        if whole.keywords:
            raise TypeError("the parts of a task that travels have no names")
        self._parts = [part if isinstance(part, Shared) else Shared(part) for part in (whole.func, *whole.args)]

    @property
    def here(self) -> Callable[[Any], Answer[T]]:
        """For a thread of this process, to which nothing has to travel."""
        return partial(_timed, *(part.value for part in self._parts))

    def away(self, sent: list[Shared[Any]]) -> Callable[[Any], Answer[T]]:
        """For a worker elsewhere, with these of the large parts."""
        return partial(_put_together, self._names, {part.digest: part.pickled for part in sent})

    def unknown_to(self, executor: Executor) -> list[Shared[Any]]:
        """The large parts that this executor has not seen; from now on it has."""
        new = [part for part in self.large if executor not in part.known_to]
        for part in new:
            part.known_to.add(executor)
        return new

    @cached_property
    def large(self) -> list[Shared[Any]]:
        """Parts that are called by their digests."""
        return [part for part in self._parts if len(part.pickled) > _SMALL]

    @cached_property
    def _names(self) -> tuple[str | bytes, ...]:
        return tuple(part.digest if part in self.large else part.pickled for part in self._parts)


def _timed(function: Callable[..., T], *arguments: Any) -> tuple[T, float]:
    begin = time.monotonic()
    result = function(*arguments)
    return result, time.monotonic() - begin


_kept: OrderedDict[str, Any] = OrderedDict()
_lock = threading.Lock()


def _put_together(parts: tuple[str | bytes, ...], sent: dict[str, bytes], block: Any) -> Answer[Any]:
    """In a worker: the task from what is kept and what was sent, run on a block."""
    with _lock:
        for digest, pickled in sent.items():
            if digest not in _kept:
                _kept[digest] = pickle.loads(pickled)
        found = {digest: _kept[digest] for digest in parts if isinstance(digest, str) and digest in _kept}
        for digest in found:
            _kept.move_to_end(digest)  # the last to be forgotten
        while len(_kept) > _KEPT:
            _kept.popitem(last=False)
    if any(isinstance(part, str) and part not in found for part in parts):
        return None
    return _timed(*(found[part] if isinstance(part, str) else pickle.loads(part) for part in parts), block)
