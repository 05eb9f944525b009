"""What variables with three states cost beside a binary network with as many weights and biases."""

from __future__ import annotations

import warnings

import numpy as np

import sbnet as sb

from .report import Table, race, say, seconds

ROWS, SWEEPS = 40, 20
BINARY, THREE = (8, 24, 64), (4, 12, 32)


def table() -> list[Table]:
    say("states: two and three")
    two = sb.layered(BINARY, rng=0, scale=1.0)
    states = dict.fromkeys(sb.layered(THREE).names, ("a", "b", "c"))
    three = sb.layered(THREE, rng=0, scale=1.0, states=states)
    assert (len(two.weight), len(two.bias)) == (len(three.weight), len(three.bias))
    rows, jobs = [], {}
    for term in ("xi", "exact"):
        solver = sb.MeanField(log_term=term, tol=0.0, max_sweeps=SWEEPS, enumerate_up_to=0)
        for name, net in (("two states", two), ("three states", three)):
            X = sb.sample(net, ROWS, rng=1)[:, -(BINARY if net is two else THREE)[-1] :]
            _solve(net, X[:1], solver)  # compile
            jobs[f"{term}, {name}"] = lambda net=net, X=X, solver=solver: _solve(net, X, solver)
    runs = race(jobs, repeats=5)
    for term in ("xi", "exact"):
        base = runs[f"{term}, two states"].processor
        for name in ("two states", "three states"):
            took = runs[f"{term}, {name}"].processor
            rows.append((term, name, seconds(took / ROWS / SWEEPS), f"{took / base:.2f}"))
    notes = (
        f"Networks {' × '.join(map(str, BINARY))} of two states and {' × '.join(map(str, THREE))} of three, both with "
        f"{len(two.weight):,} weights and {len(two.bias)} biases, uniform in ±1; {ROWS} rows drawn from each, "
        f"the bottom observed, {SWEEPS} sweeps. Processor time of one thread, best of 5.",
    )
    columns = ("term", "network", "time per row and sweep", "ratio")
    return [Table("states: three states beside two, the same number of parameters", columns, rows, notes)]


def _solve(net: sb.Network, X: np.ndarray, solver: sb.MeanField) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.errors.ConvergenceWarning)
        return sb.infer_many(net, X, solver=solver, threads=1).bound
