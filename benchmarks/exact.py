"""Exact inference with tables, where that still works, beside enumeration and the bound."""

from __future__ import annotations

import numpy as np

import sbnet as sb
from sbnet.exact.answers import LIMIT

from .report import NONE, Table, race, say, seconds, size

FAN_IN = (5, 10, 15, 20, 22, 40, 200)
OBSERVED, ROWS = 4, 3


def table() -> list[Table]:
    try:
        from .baselines import pyagrum_exact
    except ImportError:
        pyagrum_exact = None  # type: ignore[assignment]
    rows, notes = [], []
    for k in FAN_IN:
        say(f"exact: fan-in {k}")
        net = sb.layered((k, OBSERVED), rng=k, scale=1.0)
        X = np.random.default_rng(k).integers(0, 2, (ROWS, OBSERVED))
        sb.infer_many(net, X[:1])  # compile
        contestants = {"infer": lambda net=net, X=X: sb.infer_many(net, X, threads=1).bound}
        if k <= LIMIT:
            sb.log_likelihood(sb.layered((2, 2), rng=0), X[:1, :2])
            contestants["log_likelihood"] = lambda net=net, X=X: sb.log_likelihood(net, X)
        tables = NONE if pyagrum_exact else "not installed"
        if pyagrum_exact:
            needed = pyagrum_exact.needed_bytes(net, k)
            if needed > pyagrum_exact.MEMORY:
                tables = f"refused: {size(needed)}" if needed < 1e21 else f"refused: {needed:.0e} bytes"
            else:
                contestants["pyAgrum"] = lambda net=net, X=X: pyagrum_exact.log_likelihood(net, X)
        runs = race(contestants, repeats=2 if k < 20 else 1)
        bound = runs["infer"]
        exact, gap, agree = "refused", NONE, NONE
        if "log_likelihood" in runs:
            exact = seconds(runs["log_likelihood"].seconds / ROWS)
            gap = f"{np.mean(runs['log_likelihood'].result - bound.result):.4f}"
        if "pyAgrum" in runs:
            tables = seconds(runs["pyAgrum"].seconds / ROWS)
            difference = np.abs(runs["pyAgrum"].result.log_likelihood - runs["log_likelihood"].result).max()
            agree = f"{difference:.0e}"
        rows.append((str(k), tables, exact, agree, seconds(bound.seconds / ROWS), gap))
    notes = [
        f"Networks of k hidden parents above {OBSERVED} observed units, weights uniform in ±1; time per row, mean of "
        f"{ROWS} rows, one thread. pyAgrum's time includes writing out the tables, 2^(k + 1) numbers for each unit.",
        "difference: the largest between the two exact answers; gap: mean of ln P minus bound. Both in nats.",
    ]
    if pyagrum_exact:
        notes.append(
            f"pyAgrum is allowed {size(pyagrum_exact.MEMORY)} of tables, which is reached by a single unit with "
            f"{pyagrum_exact.largest_fan_in() + 1} parents; sb.log_likelihood stops at {LIMIT} coupled hidden units."
        )
    columns = ("parents", "pyAgrum", "sb.log_likelihood", "difference", "sb.infer_many", "gap of the bound")
    return [Table("exact: tables, enumeration, and the bound", columns, rows, tuple(notes))]
