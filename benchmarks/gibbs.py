"""How long Gibbs sampling needs to be as accurate as mean field."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np

import sbnet as sb

from .report import Table, race, say, seconds

SIZES, ROWS = (4, 8, 16), 50
SAMPLES = (10, 30, 100, 300, 1000, 3000)


def table() -> list[Table]:
    return [_one(scale) for scale in (1.0, 3.0)]


def _one(scale: float) -> Table:
    say(f"gibbs: weights in ±{scale:g}")
    net = sb.layered(SIZES, rng=0, scale=scale)
    X = sb.sample(net, ROWS, rng=1)[:, -SIZES[-1] :]
    hidden = slice(0, net.n_units - SIZES[-1])
    exact = sb.exact_posterior(net, X)[:, hidden]
    solvers: dict[str, sb.MeanField | sb.Gibbs] = {
        f"MeanField, {term}": sb.MeanField(log_term=term, enumerate_up_to=0) for term in ("xi", "exact")
    }
    for samples in SAMPLES:
        solvers[f"Gibbs, {2 * samples:,} samples"] = sb.Gibbs(samples=samples, burn_in=max(samples // 10, 5), chains=2)
    for solver in solvers.values():
        _solve(net, X[:1], solver)  # compile
    runs = race({name: lambda solver=solver: _solve(net, X, solver) for name, solver in solvers.items()}, repeats=3)
    errors = {name: float(np.sqrt(np.mean((run.result[:, hidden] - exact) ** 2))) for name, run in runs.items()}
    quickest = runs["MeanField, xi"].seconds
    rows = [
        (name, f"{errors[name]:.4f}", seconds(run.seconds / ROWS), f"{run.seconds / quickest:.1f}")
        for name, run in runs.items()
    ]
    notes = [
        f"A network {' × '.join(map(str, SIZES))}, weights uniform in ±{scale:g}; {ROWS} rows drawn from it, the "
        "bottom observed. error: root mean square over rows and hidden units, against enumeration. Gibbs: two chains "
        "together, each with a tenth as many sweeps (at least 5) of burn-in in front. One thread, best of 3."
    ]
    for name in ("MeanField, xi", "MeanField, exact"):
        notes.append(_crossing(name, errors, {n: run.seconds / ROWS for n, run in runs.items()}))
    columns = ("solver", "error of the means", "time per row", "ratio")
    return Table(f"gibbs: error of posterior means against time, weights in ±{scale:g}", columns, rows, tuple(notes))


def _solve(net: sb.Network, X: np.ndarray, solver: sb.MeanField | sb.Gibbs) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.errors.ConvergenceWarning)  # short chains disagree; that is measured here
        return sb.infer_many(net, X, solver=solver, threads=1).means


def _crossing(name: str, errors: dict[str, float], times: dict[str, float]) -> str:
    """Where the curve of Gibbs, straight in logarithms between its points, comes down to the error of `name`."""
    points = [(errors[n], times[n]) for n in errors if n.startswith("Gibbs")]
    target = errors[name]
    if points[0][0] <= target:
        ratio = points[0][1] / times[name]
        return f"{name}: Gibbs is more accurate even with its fewest samples, in {ratio:.1f} times the time."
    for (e0, t0), (e1, t1) in pairwise(points):
        if e1 <= target:
            share = np.log(e0 / target) / np.log(e0 / e1)
            needed = float(t0 * (t1 / t0) ** share)
            return (
                f"{name}: Gibbs needs {seconds(needed)} a row for the same error, {needed / times[name]:.1f} times as "
                "long (read off between two rows)."
            )
    return f"{name}: Gibbs does not come down to its error within {SAMPLES[-1]:,} samples a chain."
