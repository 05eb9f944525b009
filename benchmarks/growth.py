"""Growth curves: what twice the units, more equal rows, more components or more conditioned units cost."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import sbnet as sb

from .report import NONE, Table, before, before_note, in_new_process, say, seconds

CHAIN = (25_000, 50_000, 100_000, 200_000)
ROWS = (1, 200, 20_000)
UNITS = (250, 500, 1000)  # for Mixture
CONDITIONED = (2, 4, 6, 8)
LIMIT = 120.0  # seconds by the clock; what takes longer is stopped


class Point(NamedTuple):
    """Processor time in seconds, and mean sweeps a row."""

    seconds: float
    sweeps: float


def table() -> list[Table]:
    say("growth: compiling")
    for function, small in ((equal_rows, 1), (chain, 10), (mixture, 60), (conditioned, 1)):
        in_new_process(function, small)
    curves = (
        ("a chain of {:,} units, the leaf observed", chain, CHAIN),
        ("{:,} equal rows, 8 × 24 × 64", equal_rows, ROWS),
        ("Mixture(3), {:,} units", mixture, UNITS),
        ("Conditioned({}), 40 hidden units", conditioned, CONDITIONED),
    )
    rows = [row for label, function, sizes in curves for row in _curve(label, function, sizes)]
    notes = (
        f"Processor time of one thread. ratio: to the line above. Stopped after {LIMIT:.0f} s by the clock.",
        "Mixture: a twentieth of the units is hidden, above all others; twice the units have four times the edges. "
        "Conditioned: 40 hidden units above 20 observed ones.",
        before_note("growth"),
    )
    return [Table("growth: time and size", ("", "sweeps", "time", "ratio", "before"), rows, notes)]


def _curve(label: str, function: Callable[[int], Point], sizes: Iterable[int]) -> list[tuple[str, ...]]:
    rows, last = [], None
    for size in sizes:
        name = label.format(size)
        say(f"growth: {name}")
        point = _within(LIMIT, function, size)
        ratio = f"{point.seconds / last.seconds:.1f}" if point and last else NONE
        then = before("growth", name)
        shown = (f"{point.sweeps:.0f}", seconds(point.seconds)) if point else (NONE, f"> {LIMIT:.0f} s")
        rows.append((name, *shown, ratio, seconds(then) if then else NONE))
        last = point
    return rows


def _within(limit: float, function: Callable[[int], Point], size: int) -> Point | None:
    """What a function finds in a process of its own; None if it has not come back in time."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, function, size), daemon=True)
    process.start()
    found = receiver.recv() if receiver.poll(limit) else None
    process.terminate()
    process.join()
    return found


def _send(sender: Any, function: Callable[[int], Point], size: int) -> None:
    sender.send(function(size))


def _measure(solve: Callable[[int], Any], size: int, small: int) -> Point:
    """The better of two runs, after a small one that compiles; one run if that takes more than ten seconds."""
    solve(small)
    work = partial(solve, size)
    best, many = _timed(work)
    if best < 10.0:
        best = min(best, _timed(work)[0])
    return Point(best, float(np.mean(many.sweeps)))


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def chain(units: int) -> Point:
    networks = {n: sb.from_edges([(f"u{k}", f"u{k + 1}", 1.0) for k in range(n - 1)]) for n in (3, units)}
    return _measure(lambda n: sb.infer_many(networks[n], [{f"u{n - 1}": 1}], threads=1), units, 3)


def equal_rows(rows: int) -> Point:
    net = sb.layered((8, 24, 64), rng=0, scale=1.0)
    row = sb.sample(net, 1, rng=1)[:, -64:]
    return _measure(lambda n: sb.infer_many(net, np.repeat(row, n, axis=0), threads=1), rows, 1)


def mixture(units: int) -> Point:
    networks = {n: sb.layered((n // 20, n - n // 20), rng=0, scale=1.0) for n in (60, units)}
    X = {n: sb.sample(net, 1, rng=1)[:, n // 20 :] for n, net in networks.items()}
    return _measure(lambda n: sb.infer_many(networks[n], X[n], solver=sb.Mixture(3), threads=1), units, 60)


def conditioned(on: int) -> Point:
    net = sb.layered((40, 20), rng=0, scale=1.0)
    X = sb.sample(net, 1, rng=1)[:, -20:]
    return _measure(lambda n: sb.infer_many(net, X, solver=sb.Conditioned(n), threads=1), on, 1)
