"""Where learning stands after an epoch, on disk: enough to go on to the very same weights."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray, RngLike
from sbnet._version import __version__
from sbnet.checks import is_whole
from sbnet.errors import FileFormatError, ParameterError
from sbnet.files.atomic import PathLike, as_name, check_target
from sbnet.files.locks import alone
from sbnet.files.tensors import Kind, Stored, parse, read_tensors, write_tensors
from sbnet.learning.gradients import parameters_of, tables_from
from sbnet.learning.optimizers import Optimizer
from sbnet.model.network import MAX_PARAMETER, Network

CHECKPOINT = Kind("sbnet-checkpoint", 1, "a checkpoint that sbnet.fit() wrote")
_DIGEST = re.compile("[0-9a-f]{64}")
_PARTS = 2_000
"""Numbers and texts in a part that is JSON: the state of MT19937 has 624 numbers."""
GENERATORS = {
    kind.__name__: kind
    for kind in (np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64)
}
"""Random generators whose state can be written and brought back: NumPy's own, by name."""
_LARGEST = {"has_uint32": 1, "pos": 624, "buffer_pos": 4}
"""The largest places in buffers: NumPy takes them as they are, and reads there."""


@dataclass(frozen=True, eq=False)
class Run:
    """Learning between two epochs.

    `warm` are the means of hidden cells that the next one starts from, if any, and `n_rows` the rows of an epoch, which
    for a stream are not known before one has passed.
    """

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
    n_rows: int = 0

    @property
    def epoch(self) -> int:
        """Epochs finished."""
        return len(self.bounds)


def _described(**settings: Any) -> dict[str, str]:
    """What a run must agree in with the one it continues, by name; tables and networks as fingerprints."""
    found = {}
    for name, value in settings.items():
        if isinstance(value, Network):
            edges = value.graph.indptr, value.graph.parent
            gate = (value.gate,) if value.gate.any() else ()
            more = () if value.is_binary else (value.n_states, *value.tables.values())
            found[name] = _fingerprint(*edges, value.weight, value.bias, repr(value.names), *gate, *more)
        elif isinstance(value, np.ndarray):
            found[name] = _fingerprint(value)
        else:  # frozen records have telling representations; the address of anything else means nothing
            found[name] = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
    return found


def read(path: PathLike) -> Stored:
    """What was written to a file; nothing of it is known to fit yet."""
    try:
        return read_tensors(path, CHECKPOINT)
    except FileNotFoundError:
        raise ParameterError(
            f"there is no checkpoint {as_name(path)!r} to resume; with checkpoint= and resume=True "
            "learning goes on if the file is there, and starts afresh if not"
        ) from None


class Checkpoints:
    """Where a run is written to after each epoch, if anywhere, and the run that it goes on from, if any."""

    def __init__(self, path: PathLike | None, stored: Stored | None) -> None:
        self.path, self.stored, self.used = path, stored, path is not None or stored is not None
        self._settings: dict[str, str] = {}

    def generator(self, rng: RngLike) -> np.random.Generator:
        """The random generator as it was when the run began, which decided what rows were held out."""
        if self.stored is None:
            generator = checks.generator(rng)
        else:
            with _of_one_run(self.stored):
                generator = generator_from(_text(self.stored, "first_rng"))
        if self.path is not None:
            kind = type(generator.bit_generator)
            if GENERATORS.get(kind.__name__) is not kind:  # nobody could bring its state back
                known = f"give rng= a seed, or one of {', '.join(GENERATORS)}"
                raise ParameterError(f"checkpoint= cannot keep the state of a {kind.__name__}; {known}")
        self._first = generator.bit_generator.state
        return generator

    def begin(self, fresh: Run, n_warm: int | None, *, optimizer: Optimizer, **settings: Any) -> Run:
        """The run that was written, or `fresh`, the run before its first epoch; `n_warm` are the means that it keeps.

        Every part is held against what this run would have written: a checkpoint is also a file, which anyone can make.
        """
        scale = getattr(optimizer, "scale", None)
        settings |= {} if scale is None else {"scale": np.asarray(scale)}  # does not show in its representation
        self._settings = _described(optimizer=optimizer, **settings)
        if self.stored is None:
            return fresh
        with _of_one_run(self.stored):
            old = parse(_text(self.stored, "settings"), _PARTS)
        _check_settings(self.stored.name, old, self._settings)
        with _of_one_run(self.stored):
            run = _restored(self.stored, fresh, _arrays(self.stored, fresh, self._settings, n_warm))
            _check_step(optimizer, run)
            return run

    def write(self, run: Run) -> None:
        """Replace the checkpoint, all or nothing."""
        assert self.path is not None
        metadata = {
            "made_by": f"sbnet {__version__}",
            "settings": json.dumps(self._settings),
            "first_rng": state_text(self._first),
            "rng": state_text(run.rng),
            "best": json.dumps([run.best_epoch, run.best_bound if np.isfinite(run.best_bound) else None]),
            "seconds": repr(run.seconds),
            "n_rows": repr(run.n_rows),
        }
        contiguous = {name: np.ascontiguousarray(array) for name, array in _parts(run).items()}
        write_tensors(self.path, CHECKPOINT, contiguous, metadata)


@contextmanager
def opened(path: PathLike | None, resume: bool | PathLike) -> Iterator[Checkpoints]:
    """A look at where checkpoints shall be written, now and not after an epoch; meanwhile nobody else writes there."""
    with ExitStack() as held:
        if path is not None:
            name = as_name(path)
            if not os.path.isdir(os.path.dirname(os.path.abspath(name))):
                raise ParameterError(f"checkpoint is {name!r}, but there is no such folder; make it first")
            check_target(name)
            held.enter_context(alone(name))
        if not isinstance(resume, bool | np.bool_):
            yield Checkpoints(path, read(resume))
        elif resume and path is None:
            raise ParameterError("resume=True goes on from the file given as checkpoint=; give one, or resume=path")
        else:
            there = resume and path is not None and os.path.exists(path)
            yield Checkpoints(path, read(path) if there and path is not None else None)


def _parts(run: Run) -> dict[str, FloatArray]:
    """All arrays of a run, by the names that they have in a file."""
    parts = {
        "weight": run.network.weight,
        "bias": run.network.bias,
        "best_weight": run.best.weight,
        "best_bias": run.best.bias,
        "bounds": np.array(run.bounds),
        "held_out": np.array(run.held_out),
        "exact": np.array(run.exact),
    }
    if run.network.tables:
        parts |= {"tables": _entries(run.network), "best_tables": _entries(run.best)}
    parts |= {f"optimizer_{k}": np.asarray(part, dtype=np.float64) for k, part in enumerate(run.optimizer)}
    return parts if run.warm is None else parts | {"warm": run.warm}


def _restored(stored: Stored, fresh: Run, parts: dict[str, FloatArray]) -> Run:
    rng = generator_from(_text(stored, "rng")).bit_generator.state
    if rng["bit_generator"] != fresh.rng["bit_generator"]:
        raise ValueError("it begins with one random generator and goes on with another")
    best_epoch, best_bound = _best(_text(stored, "best"), len(parts["bounds"]))
    return Run(
        network=_network(fresh.network, parts, ""),
        optimizer=tuple(parts[f"optimizer_{k}"] for k in range(len(fresh.optimizer))),
        warm=parts.get("warm"),
        rng=rng,
        best=_network(fresh.network, parts, "best_"),
        best_epoch=best_epoch,
        best_bound=best_bound,
        bounds=tuple(parts["bounds"].tolist()),
        held_out=tuple(parts["held_out"].tolist()),
        exact=tuple(parts["exact"].tolist()),
        seconds=_number("seconds", _text(stored, "seconds")),
        n_rows=int(_number("n_rows", stored.metadata.get("n_rows", "0"))),  # earlier versions had no use for it
    )


@contextmanager
def _of_one_run(stored: Stored) -> Iterator[None]:
    """What does not fit is said of the file."""
    try:
        yield
    except FileFormatError:
        raise
    except ValueError as error:
        raise FileFormatError(f"{stored.name} cannot be resumed; its parts do not fit: {error}") from None


def _check_settings(name: str, old: Any, settings: dict[str, str]) -> None:
    if not isinstance(old, dict):
        raise FileFormatError(f"{name} cannot be resumed; it does not say with what settings it was begun")
    for key, value in settings.items():
        if old.get(key) != value:
            was = "another" if _DIGEST.fullmatch(value) else f"{key}={old.get(key)}"
            raise ParameterError(f"{name} cannot be resumed with this {key}; that run was begun with {was}")


def _arrays(stored: Stored, fresh: Run, settings: Mapping[str, str], n_warm: int | None) -> dict[str, FloatArray]:
    """Copies of all arrays, each of finite numbers and of the shape that this run would have written."""
    epochs = stored.arrays["bounds"].size if "bounds" in stored.arrays else 0
    shapes = {name: part.shape for name, part in _parts(fresh).items()} | {
        "bounds": (max(epochs, 1),),
        "held_out": (epochs if settings["validation"] != repr(None) else 0,),
        "exact": (epochs if settings["log_likelihood"] == repr(True) else 0,),
    }
    shapes |= {} if n_warm is None else {"warm": (n_warm,)}
    for name, shape in shapes.items():
        if name not in stored.arrays:
            raise ValueError(f"it lacks {name!r}")
        array = stored.arrays[name]
        if array.dtype != np.float64 or array.shape != shape:
            raise ValueError(f"{name!r} has type {array.dtype} and shape {array.shape}; expected float64 and {shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name!r} is not finite")
    extra = stored.arrays.keys() - shapes.keys()
    if extra:
        raise ValueError(f"there is no place for {min(extra)[:40]!r}")
    means = stored.arrays["warm"] if n_warm is not None else np.zeros(0)
    bad = means[(means < 0.0) | (means > 1.0)]
    if bad.size:
        raise ValueError(f"'warm' holds a mean of {bad[0]}, which is not between 0 and 1")
    return {name: stored.arrays[name].copy() for name in shapes}


def _entries(network: Network) -> FloatArray:
    return parameters_of(network)[len(network.weight) + len(network.bias) :]


def _network(fresh: Network, parts: dict[str, FloatArray], which: str) -> Network:
    tables = tables_from(fresh, parts[f"{which}tables"]) if fresh.tables else None
    return fresh.with_parameters(weight=parts[f"{which}weight"], bias=parts[f"{which}bias"], tables=tables)


def _check_step(optimizer: Optimizer, run: Run) -> None:
    """Only the optimiser knows what its state means: a gradient of next to nothing must give a finite step."""
    gradient = np.full(len(run.network.weight) + len(run.network.bias), 1e-100)
    try:
        with np.errstate(all="raise", under="ignore"):
            move, _ = optimizer.step(gradient, run.optimizer, run.epoch)
    except FloatingPointError:
        raise ValueError("the state of its optimiser leads nowhere") from None
    if not np.abs(move).max() <= MAX_PARAMETER:
        raise ValueError("the state of its optimiser leads nowhere")


def _text(stored: Stored, key: str) -> str:
    if key not in stored.metadata:
        raise ValueError(f"it lacks {key!r}")
    return stored.metadata[key]


def _best(text: str, epochs: int) -> tuple[int, float]:
    best = parse(text, _PARTS)
    if not isinstance(best, list) or len(best) != 2:
        raise ValueError("'best' is not an epoch and its bound")
    epoch, bound = best
    if not is_whole(epoch) or not 0 <= epoch <= epochs:
        raise ValueError(f"'best' names epoch {str(epoch)[:20]} of {epochs}")
    if bound is None:
        return epoch, -np.inf
    if not isinstance(bound, float) or not np.isfinite(bound):
        raise ValueError("'best' has a bound that is not a finite number")
    return epoch, bound


def _number(name: str, text: str) -> float:
    number = float(text) if len(text) <= 40 else np.nan
    if not 0.0 <= number < 1e15:
        raise ValueError(f"{name!r} is {text[:40]!r}")
    return number


def _fingerprint(*parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        array = np.ascontiguousarray(part)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def state_text(state: Mapping[str, Any]) -> str:
    """The state of a bit generator in JSON; some of it is in NumPy's numbers and arrays."""
    return json.dumps(state, default=lambda value: value.tolist(), sort_keys=True)


def generator_from(text: str) -> np.random.Generator:
    """A generator in the state that :func:`state_text` wrote; a ValueError if it is none."""
    state = parse(text, _PARTS)
    kind = state.get("bit_generator") if isinstance(state, dict) else None
    if not isinstance(kind, str) or kind not in GENERATORS:
        raise ValueError(f"its random generator is {str(kind)[:40]!r}; known are {', '.join(GENERATORS)}")
    bits = GENERATORS[kind](0)
    try:
        bits.state = state
        found: Mapping[str, Any] = bits.state
    except Exception:  # whatever NumPy says of wrong kinds and lengths
        raise ValueError("the state of its random generator is that of no such generator") from None
    places = {**found, **found["state"]}
    in_range = all(0 <= places.get(name, 0) <= most for name, most in _LARGEST.items())
    if not in_range or state_text(found) != state_text(state):  # NumPy leaves out what it does not know
        raise ValueError("the state of its random generator is out of range, or has other parts")
    return np.random.Generator(bits)
