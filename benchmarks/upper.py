"""How near the upper bound comes to the truth, and what it takes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import sbnet as sb
from sbnet.bounds import upper_bound

from .report import Table, say, seconds

NETWORKS = 100
TOP = ("h1_0", "h1_1")
METHODS: dict[str, dict[str, Any]] = {
    "lines": {"table_up_to": 0},
    "lines, top layer": {"table_up_to": 0, "condition": TOP},
    "lines, top layer and 2 units": {"table_up_to": 0, "condition": (*TOP, "h2_0", "h2_1")},
    "lines, 16 subproblems": {"table_up_to": 0, "condition": 4},
    "tables": {},
    "tables, 2 subproblems": {"condition": 1},
    "tables, top layer": {"condition": TOP},
    "tables, 4 subproblems": {"condition": 2},
    "tables, top layer and 2 units": {"condition": (*TOP, "h2_0", "h2_1")},
    "tables, 16 subproblems": {"condition": 4},
}
LARGE = (((500, 100), 0.1), ((8, 24, 64), 0.3), ((8, 24, 64), 1.0), ((10, 20, 30), 1.0), ((100, 100, 100), 0.2))
LARGE_METHODS: dict[str, dict[str, Any]] = {
    "lines": {"table_up_to": 0},
    "tables": {},
    "4 subproblems": {"table_up_to": 4, "condition": 2},
}


def table() -> list[Table]:
    return [_figure_5(), _large()]


def _figure_5() -> Table:
    looseness: dict[str, list[str]] = {name: [] for name in METHODS}
    spent = dict.fromkeys(METHODS, 0.0)
    for scale in (1.0, 2.0, 5.0):
        say(f"upper: {NETWORKS:,} networks with weights in ±{scale:g}")
        networks = [sb.layered((2, 4, 6), rng=[1996, k], scale=scale) for k in range(NETWORKS)]
        exact = np.array([sb.log_likelihood(network, np.zeros(6)) for network in networks])
        for name, options in METHODS.items():
            upper_bound(networks[0], np.zeros(6), exact_up_to=0, **options)  # compile
            start = time.process_time()
            bounds = [upper_bound(network, np.zeros(6), exact_up_to=0, **options).bound for network in networks]
            spent[name] += time.process_time() - start
            looseness[name].append(f"{100 * np.mean(1 - np.array(bounds) / exact):.3f}")
    rows = [(name, *values, seconds(spent[name] / (3 * NETWORKS))) for name, values in looseness.items()]
    return Table(
        "upper: relative looseness of the upper bound in %, random 2 × 4 × 6 networks, bottom layer all zero",
        ("", "±1", "±2", "±5", "time each"),
        rows,
        (
            f"{NETWORKS:,} networks for each size of weights. Nothing is summed exactly here (exact_up_to=0); "
            "by default these networks are, and the bound is ln P.",
        ),
    )


def _large() -> Table:
    rows = []
    for sizes, scale in LARGE:
        say(f"upper: {sizes}, weights in ±{scale:g}")
        network = sb.layered(sizes, rng=0, scale=scale)
        pattern = sb.sample(network, 1, rng=0)[0, -sizes[-1] :]
        lower = sb.infer(network, pattern).bound
        cells = []
        for options in LARGE_METHODS.values():
            start = time.process_time()
            bound = upper_bound(network, pattern, **options).bound
            cells.append(f"{bound:.2f} ({seconds(time.process_time() - start)})")
        rows.append((f"{' × '.join(map(str, sizes))}, ±{scale:g}", f"{lower:.2f}", *cells))
    return Table(
        "upper: ln P of one pattern, enclosed",
        ("network", "lower bound", *LARGE_METHODS),
        rows,
        ("The pattern is a sample of the bottom layer. 4 subproblems: with tables of at most 4 parents.",),
    )
