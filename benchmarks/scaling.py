"""How time and memory grow with the network and with the table."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

import sbnet as sb

from .log_terms import wide
from .report import NONE, Table, in_new_process, peak_memory, race, say, seconds, size

SHAPES = ((25, 40), (100, 100), (250, 400), (1000, 1000), (2500, 4000))
EXACT_UP_TO = 10**6  # edges: the exact term keeps a table of quadrature nodes, some hundred bytes an edge
SMALL = (4, 12)


def table() -> list[Table]:
    return [_edges(), _rows()]


def _edges() -> Table:
    rows = []
    for shape in SHAPES:
        edges = shape[0] * shape[1]
        say(f"scaling: {edges:,} edges")
        net = wide(shape[0], 3.0 / np.sqrt(shape[0]), shape[1])
        X = sb.sample(net, max(1, min(200, 2 * 10**6 // edges)), rng=1)[:, -shape[1] :]
        terms = ("xi", "exact") if edges <= EXACT_UP_TO else ("xi",)
        solvers = {term: sb.MeanField(log_term=term, tol=1e-4) for term in terms}
        for solver in solvers.values():
            sb.infer_many(wide(5, 1.0), np.zeros((1, 40), int), solver=solver)  # compile
        memory = {term: in_new_process(_edges_memory, shape, term) for term in terms}
        runs = race({t: partial(sb.infer_many, net, X, solver=s, threads=1) for t, s in solvers.items()}, repeats=3)
        for term, run in runs.items():
            work = run.result.sweeps.sum() * edges
            rows.append(
                (
                    f"{shape[0]:,} × {shape[1]:,}, {edges:,} edges",
                    term,
                    str(len(X)),
                    f"{run.result.sweeps.mean():.1f}",
                    seconds(run.seconds / len(X)),
                    f"{1e9 * run.seconds / work:.2f}",
                    _show(memory[term]),
                )
            )
    columns = ("network", "log_term", "rows", "sweeps", "time per row", "ns per edge and sweep", "working memory")
    notes = (
        "All parents hidden, all children observed; weights N(0, 9 / parents); tol 1e-4, one thread, best of 3. Times "
        "include what is done once per network and table. Working memory: the peak during one row, beyond the network.",
    )
    return Table("scaling: edges", columns, rows, notes)


def _edges_memory(shape: tuple[int, int], term: str) -> float | None:
    """Working memory of one row, in bytes."""
    solver = sb.MeanField(log_term=term, tol=1e-4)
    sb.infer_many(wide(5, 1.0), np.zeros((1, 40), int), solver=solver)
    net = wide(shape[0], 3.0 / np.sqrt(shape[0]), shape[1])
    X = np.zeros((1, shape[1]), int)
    net.sparse_weights()
    return peak_memory(partial(sb.infer_many, net, X, solver=solver, threads=1))[0]


def _data(n: int, missing: bool) -> tuple[sb.Network, np.ndarray]:
    net = sb.layered(SMALL, rng=0, scale=2.0)
    X = sb.sample(net, n, rng=1)[:, -SMALL[1] :].astype(np.int8)
    if missing:
        X[np.random.default_rng(2).random(X.shape) < 0.1] = -1
    sb.infer_many(net, X[:600], threads=2)  # compile, and start threads once
    return net, X


def _million(n: int) -> tuple[float, float, float | None]:
    """Seconds, mean sweeps, and working memory beyond the table and the answer, with two threads."""
    net, X = _data(n, False)
    start = time.perf_counter()
    memory, many = peak_memory(partial(sb.infer_many, net, X, threads=2))
    spent = time.perf_counter() - start
    arrays = (many.evidence, many.means, many.bound, many.xi, many.sweeps, many.converged)
    extra = None if memory is None else memory - sum(array.nbytes for array in arrays)
    return spent, float(many.sweeps.mean()), extra


def _rows() -> Table:
    rows = []
    for n, missing in ((10**2, False), (10**3, False), (10**4, False), (10**5, False), (10**5, True)):
        label = "a tenth missing" if missing else "complete"
        say(f"scaling: {n:,} rows, {label}")
        net, X = _data(n, missing)
        contestants = {f"{k} thread{'s' * (k > 1)}": partial(sb.infer_many, net, X, threads=k) for k in (1, 2)}
        one, two = race(contestants, repeats=3 if n < 10**5 else 1).values()
        times = (seconds(one.seconds), seconds(two.seconds), f"{1e6 * two.seconds / n:.1f}")
        sweeps = f"{two.result.sweeps.mean():.1f}"
        rows.append((f"{n:,} rows, {label}", sweeps, *times, f"{one.seconds / two.seconds:.2f}", NONE))
    say("scaling: 1,000,000 rows")
    spent, mean, memory = in_new_process(_million, 10**6)
    last = ("1,000,000 rows, complete", f"{mean:.1f}", NONE, seconds(spent), f"{spent:.1f}", NONE, _show(memory))
    columns = ("table", "sweeps", "1 thread", "2 threads", "µs per row", "speed-up", "working memory")
    notes = (
        f"A network {SMALL[0]} × {SMALL[1]}, weights uniform in ±2, the default solver, best of 3 (one from 100,000 "
        "rows on). µs per row and working memory: with two threads; the latter is the peak beyond the table that was "
        "given and the arrays of the answer.",
    )
    return Table("scaling: rows", columns, [*rows, last], notes)


def _show(memory: float | None) -> str:
    if memory is None:
        return "not known"
    return size(memory) if memory >= 1e5 else "< 100 kB"  # the page size and the allocator hide less
