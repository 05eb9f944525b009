"""What it costs to work in other processes: overhead, scaling, bytes, a stream of ten million rows, and a billion."""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np

import sbnet as sb
from sbnet.learning import streams
from sbnet.parallel.blocks import Inline

from .report import NONE, Table, in_new_process, peak_memory, race, say, seconds, size

DIGITS, WIDE = (8, 24, 64), (100, 900)
SOLVER = sb.MeanField("xi", tol=1e-3)
STREAM, SMALL = 10**7, (2, 6)
BILLION = 10**9
CORES, PARTITIONS, BATCH = 1000, 2000, 10**6
PRICE = 0.04  # dollars for an hour of a core, about what clouds ask


def table() -> list[Table]:
    return [_rows(), _bytes(), _stream(), _billion()]


class Counted(Executor):
    """Does at once what it is given, and counts the bytes that would have travelled both ways."""

    _max_workers = 1

    def __init__(self) -> None:
        self.sent = self.back = self.calls = 0
        self._inline = Inline()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.sent += len(pickle.dumps((fn, args, kwargs)))
        self.calls += 1
        future = self._inline.submit(fn, *args, **kwargs)
        self.back += len(pickle.dumps(future.result()))
        return future


@contextlib.contextmanager
def _places(workers: int) -> Iterator[dict[str, Any]]:
    """Processes, and a local cluster of Dask if it is there."""
    from distributed import Client, LocalCluster

    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
    local = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50)
    with pool, local as cluster, Client(cluster) as client:
        yield {"processes": pool, "Dask's executor": client.get_executor(), "Dask's partitions": client}


def _work(n: int) -> tuple[dict[str, Callable[[Any, int], Any]], sb.Network]:
    network = sb.layered(DIGITS, rng=0, scale=0.5)
    X = sb.sample(network, n, rng=1)[:, -64:].astype(np.int8)

    def infer(place: Any, threads: int) -> Any:
        if hasattr(place, "get_executor"):
            return sb.infer_many(network, _cut(X), solver=SOLVER).bound.compute()
        return sb.infer_many(network, X, solver=SOLVER, executor=place, threads=threads)

    def learn(place: Any, threads: int) -> Any:
        table, executor = (_cut(X), None) if hasattr(place, "get_executor") else (X, place)
        settings = {"epochs": 1, "batch_size": 1000, "solver": SOLVER, "rng": 0}
        return sb.fit(network, table, executor=executor, threads=threads if table is X else 1, **settings)

    return {"infer_many": infer, "fit, batches of 1,000": learn}, network


def _cut(X: np.ndarray) -> Any:
    import dask.array as da

    return da.from_array(X, chunks=(-(-len(X) // 4), X.shape[1]))


def _rows(n: int = 4000) -> Table:
    tasks, _ = _work(n)
    times: dict[tuple[str, str, int], float] = {}
    for workers in (1, 2):
        say(f"cluster: {workers} worker{'s' * (workers > 1)}")
        with _places(workers) as places:
            for task, work in tasks.items():
                contestants = {"threads": partial(work, None, workers)}
                contestants |= {name: partial(work, executor, workers) for name, executor in places.items()}
                for contestant in contestants.values():
                    contestant()  # kernels are loaded, and the network is there
                for name, run in race(contestants, repeats=3).items():
                    times[task, name, workers] = run.seconds
    rows = []
    for task in tasks:
        alone = times[task, "threads", 1]
        for name in dict.fromkeys(name for _, name, _ in times):
            one, two = (times[task, name, workers] for workers in (1, 2))
            rows.append(
                (
                    f"{task}: {name}",
                    seconds(one / n),
                    f"{100 * (one / alone - 1):+.0f} %",
                    seconds(two / n),
                    f"{one / two:.2f}",
                )
            )
    columns = ("work and place", "a row, 1 worker", "beside a thread", "a row, 2 workers", "speed-up")
    notes = (f"{n:,} rows of a network 8 × 24 × 64, the paper's term, tol 1e-3; workers are running; best of 3.",)
    return Table("cluster: what other processes cost", columns, rows, notes)


def _bytes(n: int = 4000) -> Table:
    tasks, network = _work(n)
    rows = []
    for task, work in tasks.items():
        post = Counted()
        work(post, 1)
        first = post.sent, post.back
        if task.startswith("fit"):
            steps = n // 1000
            shown = (size(first[0] / n), size(first[1] / n), size(first[0] / steps), size(first[1] / steps))
        else:
            shown = (size(first[0] / n), size(first[1] / n), NONE, NONE)
        rows.append((f"{task}: executor", *shown))
    step = 8 * (network.n_edges + network.n_units)
    rows.append(
        ("fit on Dask partitions", "0", "0", f"{size(step)} to each worker", f"{size(step)} from each partition")
    )
    columns = ("work and place", "to workers, a row", "back, a row", "to workers, a step", "back, a step")
    notes = (
        f"The network and its edges travel once, {size(len(pickle.dumps(network)))}, and are counted. An executor is "
        "sent the rows of every step and means to start from; partitions stay where they are, and only parameters and "
        "sums of gradients travel.",
    )
    return Table("cluster: bytes that travel", columns, rows, notes)


def _pass_by(n: int) -> tuple[float, float | None, float]:
    network, block = sb.layered(SMALL, rng=0, scale=0.1), 10**5
    truth = sb.layered(SMALL, rng=1, scale=2.0)

    def rows(count: int) -> Iterator[np.ndarray]:
        for k in range(count // block):
            yield sb.sample(truth, block, rng=k)[:, -SMALL[1] :].astype(np.int8)

    settings = {"batch_size": 10_000, "solver": SOLVER, "optimizer": sb.Adam(0.02), "rng": 0}
    sb.fit(network, rows(10 * block), **settings)  # compile, and fill a buffer once
    start = time.perf_counter()
    memory, result = peak_memory(lambda: sb.fit(network, rows(n), **settings))
    return time.perf_counter() - start, memory, float(result.bounds[-1])


def _stream() -> Table:
    say(f"cluster: a stream of {STREAM:,} rows")
    spent, memory, bound = in_new_process(_pass_by, STREAM)
    row = (
        f"{STREAM:,}",
        seconds(spent),
        seconds(spent / STREAM),
        "not known" if memory is None else size(memory),
        f"{bound:.3f}",
    )
    notes = (
        f"A network {SMALL[0]} × {SMALL[1]}, rows sampled on the fly in blocks of 100,000, batches of 10,000, one "
        f"epoch, all cores; sampling is in the time. The buffer holds {size(streams.BUFFER)}; working memory is the "
        "peak beyond what a run of a million rows has left.",
    )
    return Table("cluster: a stream", ("rows", "time", "a row", "working memory", "mean bound"), [row], notes)


def _billion() -> Table:
    say("cluster: a row of 1,000 units")
    network = sb.layered(WIDE, rng=0, scale=0.1)
    X = sb.sample(network, 200, rng=1)[:, -WIDE[1] :].astype(np.int8)
    work = {"gradient": lambda: sb.gradient(network, X, solver=SOLVER, threads=1)}
    work["gradient"]()
    row = race(work, repeats=3)["gradient"].processor / len(X)
    hours, units, step = row * BILLION / 3600, network.n_units, 8 * (network.n_edges + network.n_units)
    steps = BILLION // BATCH
    rows = [
        ("gradient of a row, one core", seconds(row), f"100 hidden × 900 observed, {network.n_edges:,} edges"),
        (
            "an epoch",
            f"{hours:,.0f} core hours",
            f"{hours / CORES:,.1f} h on {CORES:,} cores; {PRICE * hours:,.0f} dollars at {PRICE} an hour",
        ),
        (
            "the table, a byte a cell",
            size(BILLION * units),
            f"{size(BILLION * units / CORES)} for each core: fits, at 2 GB a core",
        ),
        (
            "means to start from",
            size(8 * BILLION * units),
            f"{size(8 * BILLION * units / CORES)} for each core: does not fit; they spill to disk",
        ),
        (
            "parameters of a step",
            size(step),
            f"{size(step * CORES)} to all workers; {steps:,} steps of {BATCH:,} rows an epoch",
        ),
        (
            "tasks of an epoch",
            f"{steps * PARTITIONS * 3:,}",
            f"{steps * PARTITIONS * 3 / 3000 / 3600:,.1f} h of a scheduler that does 3,000 a second",
        ),
    ]
    notes = (
        "Where it breaks first: the scheduler, whose tasks grow as partitions times steps (few partitions a core, and "
        "batches of a million rows or more); then memory, for the means of the last epoch; last the wires that carry "
        "parameters.",
    )
    return Table(
        "cluster: a billion rows of a thousand units, estimated", ("what", "amount", "which means"), rows, notes
    )
