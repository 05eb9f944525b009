"""Tightness against time: which bound on the mean of ln(1 + e^z) to take."""

from __future__ import annotations

import numpy as np

import sbnet as sb
from sbnet.datasets import load_digits

from .digits import networks
from .report import Table, race, say, seconds

TERMS = ("exact", "xi", "quadratic", "jensen")
OBSERVED = 40


def wide(parents: int, deviation: float, observed: int = OBSERVED, rng: int = 0) -> sb.Network:
    """Hidden parents, each on with probability 0.27, above observed units; weights from a normal distribution."""
    net = sb.layered((parents, observed), rng=rng)
    weight = np.random.default_rng(rng).normal(0.0, deviation, len(net.weight))
    return net.with_parameters(weight=weight, bias=np.repeat([-1.0, 0.0], [parents, observed]))


def table() -> list[Table]:
    say("training the digit networks")
    digits = load_digits()
    digit = networks()[0][3]
    problems = {
        "a digit network, 8 × 24 × 64": (digit, digits.test[digits.test_target == 3][:200]),
        "sparse causes, 60 × 40, 3 parents a unit, weights N(0, 4)": _sparse(),
    }
    for parents in (200, 1000):
        for deviation, label in ((3.0 / np.sqrt(parents), f"N(0, 9/{parents})"), (1.0, "N(0, 1)")):
            net = wide(parents, deviation)
            X = sb.sample(net, 4000 // parents, rng=1)[:, -OBSERVED:]
            problems[f"{parents:,} × {OBSERVED}, weights {label}"] = (net, X)
    details = [_one(name, net, X) for name, (net, X) in problems.items()]
    return [*details, _summary(list(problems), details)]


def _summary(names: list[str], details: list[Table]) -> Table:
    """One row for each network: gap to the best and time, by term, without enumeration."""
    rows = []
    for name, detail in zip(names, details, strict=True):
        found = {row[0]: f"{row[2]}; {row[4]}" for row in detail.rows}
        rows.append((name, *(found[term] for term in TERMS)))
    note = "Each cell: how many nats the mean bound lies below the best one; time per row. Nothing is enumerated."
    return Table("log-terms: summary", ("network", *TERMS), rows, (note,))


def _sparse() -> tuple[sb.Network, np.ndarray]:
    rng = np.random.default_rng(0)
    edges = [(f"c{j}", f"s{i}", rng.normal(0.0, 2.0)) for i in range(40) for j in rng.choice(60, 3, replace=False)]
    bias = {f"c{j}": -1.0 for j in range(60)} | {f"s{i}": 0.0 for i in range(40)}
    net = sb.from_edges(edges, bias=bias, names=tuple(bias))
    return net, sb.sample(net, 200, rng=1)[:, -40:]


def _one(name: str, net: sb.Network, X: np.ndarray) -> Table:
    say(f"log-terms: {name}")
    tol = 1e-4
    solvers = {
        (term, limit): sb.MeanField(log_term=term, enumerate_up_to=limit, tol=tol, max_sweeps=2000)
        for term in TERMS
        for limit in (0, sb.MeanField().enumerate_up_to)
    }
    fan_in = np.diff(net.graph.indptr)
    narrow = int(((fan_in > 0) & (fan_in <= sb.MeanField().enumerate_up_to)).sum())
    if not narrow:  # nothing to enumerate: the two settings are the same
        solvers = {key: solver for key, solver in solvers.items() if key[1] == 0}
    for solver in solvers.values():
        sb.infer_many(net, X[:1], solver=solver)  # compile
    contestants = {
        _label(*key): lambda solver=solver: sb.infer_many(net, X, solver=solver, threads=1)
        for key, solver in solvers.items()
    }
    runs = race(contestants, repeats=3)
    best = max(run.result.bound.mean() for run in runs.values())
    quickest = min(run.processor for run in runs.values())
    rows = [
        (
            label,
            f"{run.result.bound.mean():.2f}",
            f"{best - run.result.bound.mean():.2f}",
            f"{run.result.sweeps.mean():.1f}",
            seconds(run.processor / len(X)),
            f"{run.processor / quickest:.1f}",
        )
        for label, run in runs.items()
    ]
    columns = ("log_term", "mean bound", "gap to the best", "sweeps", "time per row", "ratio")
    notes = f"{len(X)} rows, tol {tol:g}, one thread, processor time, best of 3; nats. ratio: to the quickest."
    if not narrow:
        notes += " No unit has so few hidden parents that they would be enumerated."
    return Table(f"log-terms: {name}", columns, rows, (notes,))


def _label(term: str, limit: int) -> str:
    return f"{term}" if limit == 0 else f"{term}, enumerate_up_to={limit}"
