"""Where learning stands after an epoch, on disk: enough to go on to the very same weights."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sbnet._types import BoolArray, FloatArray, States
from sbnet._version import __version__
from sbnet.errors import FileFormatError, ParameterError
from sbnet.io import read_tensors, write_tensors
from sbnet.network import Network

FORMAT = "sbnet-checkpoint"
FORMAT_VERSION = 1
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, eq=False)
class Run:
    """Learning between two epochs."""

    network: Network
    optimizer: tuple[FloatArray, ...]
    warm: FloatArray | None
    rng: Mapping[str, Any]
    best: Network
    best_epoch: int = 0
    best_bound: float = -np.inf
    bounds: tuple[float, ...] = ()
    held_out: tuple[float, ...] = ()
    exact: tuple[float, ...] = ()
    seconds: float = 0.0

    @property
    def epoch(self) -> int:
        """Epochs finished."""
        return len(self.bounds)


def describe(**settings: Any) -> dict[str, str]:
    """What a run must agree in with the one it continues, by name; tables and networks as fingerprints."""
    found = {}
    for name, value in settings.items():
        if isinstance(value, Network):
            edges = value.graph.indptr, value.graph.parent
            found[name] = _fingerprint(*edges, value.weight, value.bias, repr(value.names))
        elif isinstance(value, np.ndarray):
            found[name] = _fingerprint(value)
        else:  # frozen records have telling representations; the address of anything else means nothing
            found[name] = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
    return found


def write(
    path: str | os.PathLike[str], run: Run, states: States, settings: dict[str, str], first_rng: Mapping[str, Any]
) -> None:
    """Replace the checkpoint, all or nothing."""
    arrays = {
        "weight": run.network.weight,
        "bias": run.network.bias,
        "best_weight": run.best.weight,
        "best_bias": run.best.bias,
        "bounds": np.array(run.bounds),
        "held_out": np.array(run.held_out),
        "exact": np.array(run.exact),
    }
    arrays |= {f"optimizer_{k}": np.asarray(part, dtype=np.float64) for k, part in enumerate(run.optimizer)}
    if run.warm is not None:  # those of observed units are in the table
        arrays["warm"] = run.warm[_hidden(states)]
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "made_by": f"sbnet {__version__}",
        "settings": json.dumps(settings),
        "first_rng": json.dumps(first_rng, default=_plain),
        "rng": json.dumps(run.rng, default=_plain),
        "best": json.dumps([run.best_epoch, run.best_bound if np.isfinite(run.best_bound) else None]),
        "seconds": repr(run.seconds),
    }
    write_tensors(path, {name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata)


def first_generator(path: str | os.PathLike[str]) -> np.random.Generator:
    """The random generator as it was when the run began, which decided what rows were held out."""
    try:
        _, metadata = read_tensors(path, FORMAT, FORMAT_VERSION, "a checkpoint that sbnet.fit() wrote")
    except FileNotFoundError:
        raise ParameterError(
            f"there is no checkpoint {os.fspath(path)!r} to resume; with checkpoint= and resume=True "
            "learning goes on if the file is there, and starts afresh if not"
        ) from None
    state = json.loads(metadata["first_rng"])
    generator = np.random.Generator(getattr(np.random, state["bit_generator"])())
    generator.bit_generator.state = state
    return generator


def read(path: str | os.PathLike[str], fresh: Run, states: States, settings: dict[str, str]) -> Run:
    """The run that was written to a file; `fresh` is the same run before its first epoch."""
    arrays, metadata = read_tensors(path, FORMAT, FORMAT_VERSION, "a checkpoint that sbnet.fit() wrote")
    name = os.fspath(path)
    old = json.loads(metadata["settings"])
    for key, value in settings.items():
        if old.get(key) != value:
            was = "another" if _DIGEST.fullmatch(value) else f"{key}={old.get(key)}"
            raise ParameterError(f"{name} cannot be resumed with this {key}; that run was begun with {was}")
    count = sum(key.startswith("optimizer_") for key in arrays)
    if (fresh.warm is not None) != ("warm" in arrays):
        raise FileFormatError(f"{name} lacks the means of the last epoch")
    warm = fresh.warm
    if warm is not None:
        hidden = _hidden(states)
        warm = states.astype(np.float64)
        warm[hidden] = arrays["warm"]
    best_epoch, best_bound = json.loads(metadata["best"])
    network = fresh.network
    return replace(
        fresh,
        network=network.with_parameters(weight=arrays["weight"], bias=arrays["bias"]),
        optimizer=tuple(arrays[f"optimizer_{k}"] for k in range(count)),
        warm=warm,
        rng=json.loads(metadata["rng"]),
        best=network.with_parameters(weight=arrays["best_weight"], bias=arrays["best_bias"]),
        best_epoch=best_epoch,
        best_bound=-np.inf if best_bound is None else best_bound,
        bounds=tuple(arrays["bounds"].tolist()),
        held_out=tuple(arrays["held_out"].tolist()),
        exact=tuple(arrays["exact"].tolist()),
        seconds=float(metadata["seconds"]),
    )


def _hidden(states: States) -> BoolArray:
    hidden: BoolArray = states < 0
    return hidden


def _fingerprint(*parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        array = np.ascontiguousarray(part)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """Generators keep some of their state in NumPy numbers and arrays."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
