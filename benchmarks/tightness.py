"""How near the lower bounds come to the truth: the yardstick of the paper's Figure 5, and a digit network."""

from __future__ import annotations

import time

import numpy as np

import sbnet as sb
from sbnet.datasets import load_digits

from .digits import networks
from .report import Table, say, seconds

NETWORKS = 200
ROWS = 20
PAPER = sb.MeanField(log_term="xi", enumerate_up_to=0)
SOLVERS = {
    "Jensen, ξ = 0": sb.MeanField(log_term="jensen", enumerate_up_to=0),
    "quadratic": sb.MeanField(log_term="quadratic", enumerate_up_to=0),
    "the paper, best ξ": PAPER,
    "exact term": sb.MeanField(),
    "the paper, top layer enumerated": sb.Conditioned("roots", PAPER),
    "exact term, top layer enumerated": sb.Conditioned("roots"),
    "1 unit enumerated, chosen by gain": sb.Conditioned(1),
    "2 units": sb.Conditioned(2),
    "3 units": sb.Conditioned(3),
    "mixture of 2 components": sb.Mixture(2),
    "mixture of 5 components": sb.Mixture(5),
}
SAMPLES = {
    "importance sampling, 100 samples": {"samples": 100},
    "importance sampling, 1,000 samples": {"samples": 1000},
    "annealed, 100 samples of 30 steps": {"samples": 100, "method": "annealed", "steps": 30},
}


def table() -> list[Table]:
    return [_yardstick(), _digits()]


def _yardstick() -> Table:
    errors: dict[str, list[str]] = {name: [] for name in [*SOLVERS, *SAMPLES]}
    spent = dict.fromkeys(errors, 0.0)
    for scale in (1, 2, 5):
        say(f"tightness: {NETWORKS:,} networks with weights in ±{scale}")
        rng = np.random.default_rng(1996)
        found = {name: np.empty(NETWORKS) for name in errors}
        for k in range(NETWORKS):
            net = sb.layered((2, 4, 6), rng=rng, scale=scale)
            exact = sb.log_likelihood(net, np.zeros(6))
            for name, values in found.items():
                start = time.perf_counter()
                if name in SOLVERS:
                    bound = sb.infer(net, np.zeros(6), solver=SOLVERS[name]).bound
                else:
                    bound = sb.estimate(net, np.zeros(6), **SAMPLES[name]).lower
                spent[name] += time.perf_counter() - start
                values[k] = bound / exact - 1
        for name, values in found.items():
            errors[name].append(f"{100 * values.mean():.3f}")
    rows = [(name, *values, seconds(spent[name] / (3 * NETWORKS))) for name, values in errors.items()]
    note = (
        f"{NETWORKS:,} networks each. Sampling: the lower bound that holds with 95 % confidence. Time per network, one "
        "thread, calls included."
    )
    return Table(
        "tightness: relative error of lower bounds in %, random 2 × 4 × 6 networks, bottom layer all zero",
        ("", "±1", "±2", "±5", "time"),
        rows,
        (note,),
    )


def _digits() -> Table:
    say("training the digit networks")
    digits = load_digits()
    net = networks()[0][3]
    X = digits.test[digits.test_target == 3][:ROWS]
    quick = sb.MeanField(log_term="xi", tol=1e-4)
    exact = sb.MeanField(tol=1e-4)
    solvers = {
        "the paper, best ξ": quick,
        "exact term": exact,
        "exact term, 20 restarts": sb.MeanField(tol=1e-4, restarts=20),
        "exact term, top layer (8 units) enumerated": sb.Conditioned("roots", exact),
        "1 unit enumerated, chosen by gain": sb.Conditioned(1, exact),
        "3 units": sb.Conditioned(3, exact),
        "mixture of 2 components": sb.Mixture(2, exact),
        "mixture of 5 components": sb.Mixture(5, exact),
    }
    rows = []
    for name, solver in solvers.items():
        say(f"tightness: {name}")
        sb.infer(net, X[0], solver=solver)  # compile
        start = time.perf_counter()
        bound = sb.infer_many(net, X, solver=solver, threads=1, progress=False).bound.mean()
        rows.append((name, f"{bound:.3f}", seconds((time.perf_counter() - start) / len(X))))
    for name, options in {
        "importance sampling, 10,000 samples, 95 % confidence": {"samples": 10_000},
        "annealed, 100 samples of 300 steps, 95 % confidence": {"samples": 100, "method": "annealed", "steps": 300},
    }.items():
        say(f"tightness: {name}")
        start = time.perf_counter()
        estimate = sb.estimate(
            net, X, solver=exact, progress=False, settings=sb.solvers.EstimateSettings(threads=1), **options
        )
        rows.append((name, f"{estimate.lower.mean():.3f}", seconds((time.perf_counter() - start) / len(X))))
    last = f"{estimate.log_probability.mean():.3f} ± {estimate.error.mean():.3f}"
    note = f"{len(X)} images. The last estimate itself: {last} nats (the error is that of one image)."
    return Table("tightness: a digit network, 8 × 24 × 64", ("", "mean lower bound", "time per row"), rows, (note,))
