"""Figures 2 and 5 of the paper beside ours, and the same yardstick for stronger weights."""

from __future__ import annotations

import numpy as np

import sbnet as sb

from .report import NONE, Table, say

COINS = 100_000
NETWORKS, STRONG_NETWORKS = 10_000, 4_000
SOLVERS = {
    "Jensen, ξ = 0": sb.MeanField(log_term="jensen", enumerate_up_to=0),
    "quadratic": sb.MeanField(log_term="quadratic", enumerate_up_to=0),
    "the paper, best ξ": sb.MeanField(log_term="xi", enumerate_up_to=0),
    "exact term": sb.MeanField(log_term="exact", enumerate_up_to=0),
}


def table() -> list[Table]:
    return [_figure_2(), _figure_5()]


def _figure_2() -> Table:
    """A sum of very many fair coins, scaled to mean 0 and variance 1, is a Gaussian input for this purpose."""
    say("figure 2: one unit with 100,000 parents")
    edges = ((f"u{k}", "child", 2 / np.sqrt(COINS)) for k in range(COINS))
    net = sb.from_edges(edges, bias={"child": -np.sqrt(COINS)})
    half = np.full(COINS + 1, 0.5)  # adds nothing but the logarithm term of the child
    rows = []
    for name, term, published in (
        ("⟨ln(1 + e^z)⟩", "exact", 0.806),
        ("best ξ", "xi", 0.818),
        ("ξ = 0", "jensen", 0.974),
    ):
        ours = -sb.bounds.lower_bound(net, {"child": 0}, half, log_term=term)
        rows.append((name, f"{ours:.4f}", f"{published:.3f}"))
    return Table("paper: Figure 2, z Gaussian with mean 0 and variance 1", ("", "ours", "paper"), rows)


def _figure_5() -> Table:
    published = {"the paper, best ξ": "1.6", "uniform approximation (root mean square)": "22.6"}
    errors: dict[str, list[str]] = {name: [] for name in [*SOLVERS, "uniform approximation (root mean square)"]}
    for scale, n in ((1, NETWORKS), (2, STRONG_NETWORKS), (5, STRONG_NETWORKS)):
        say(f"figure 5: {n:,} networks with weights in ±{scale}")
        rng = np.random.default_rng(1996)
        bounds = {name: np.empty(n) for name in SOLVERS}
        log_p = np.empty(n)
        for k in range(n):
            net = sb.layered((2, 4, 6), rng=rng, scale=scale)
            log_p[k] = sb.log_likelihood(net, np.zeros(6))
            for name, solver in SOLVERS.items():
                bounds[name][k] = sb.infer(net, np.zeros(6), solver=solver).bound
        for name, values in bounds.items():
            errors[name].append(f"{100 * np.mean(values / log_p - 1):.2f}")
        uniform = 100 * np.sqrt(np.mean((6 * np.log(0.5) / log_p - 1) ** 2))
        errors["uniform approximation (root mean square)"].append(f"{uniform:.1f}")
    rows = [(name, published.get(name, NONE), *values) for name, values in errors.items()]
    return Table(
        "paper: Figure 5, relative error of the log-likelihood in %, random 2 × 4 × 6 networks, bottom layer all zero",
        ("", "paper, ±1", "±1", "±2", "±5"),
        rows,
        (f"{NETWORKS:,} networks at ±1, {STRONG_NETWORKS:,} at ±2 and ±5; exact log-likelihoods by enumeration.",),
    )
