"""Densities of three public binary tables: test log-likelihoods beside trees and fully visible networks.

The tables (nltcs, plants and jester, of the twenty that density estimators are compared on) are not part of this
project. Put ``nltcs.npz``, ``plants.npz`` and ``jester.npz``, each with arrays train, valid and test, in a folder and
name it in the environment variable SBNET_TABLES.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import sbnet as sb
from sbnet.estimators import SBNDensity

from .report import Table, say, seconds

TABLES = ("nltcs", "plants", "jester")
EXACT = sb.MeanField(tol=1e-4)
CANDIDATES: tuple[dict[str, Any], ...] = (
    {"hidden": 8, "switches": 1, "lateral_prior_scale": 1.0, "prior_scale": 3.0},
    {"hidden": 8, "switches": 1, "lateral_prior_scale": 0.5, "prior_scale": 2.0},
    {"hidden": 16, "switches": 0, "lateral_prior_scale": 0.15, "prior_scale": 1.0},
)
LONG = {"epochs": 30, "learning_rate": 0.02}


class Data(NamedTuple):
    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray


def load(name: str) -> Data | None:
    """The three parts of a table, if it is there."""
    path = Path(os.environ.get("SBNET_TABLES", ".")) / f"{name}.npz"
    if not path.exists():
        return None
    with np.load(path) as file:
        return Data(file["train"], file["valid"], file["test"])


def chow_liu(data: Data) -> float:
    """Mean test log-likelihood of the best tree: a maximum spanning tree of mutual informations, add one half."""
    n, width = data.train.shape
    states = np.stack([1.0 - data.train, data.train])
    joint = (np.einsum("ani,bnj->ijab", states, states, optimize=True) + 0.25) / (n + 1.0)
    single = joint[np.arange(width), np.arange(width)].diagonal(axis1=1, axis2=2)
    single = single / single.sum(axis=1, keepdims=True)
    information = np.sum(joint * np.log(joint / (single[:, None, :, None] * single[None, :, None, :])), axis=(2, 3))
    inside, parent = {0}, {}
    best = {j: (information[0, j], 0) for j in range(1, width)}
    while len(inside) < width:
        j = max(best, key=lambda k: best[k][0])
        parent[j] = best.pop(j)[1]
        inside.add(j)
        best = {k: max(value, (information[j, k], j)) for k, value in best.items()}
    T = data.test.astype(int)
    total = np.log(single[0][T[:, 0]])
    for j, i in parent.items():
        conditional = joint[i, j] / joint[i, j].sum(axis=1, keepdims=True)
        total += np.log(conditional[T[:, i], T[:, j]])
    return float(total.mean())


def table() -> list[Table]:
    rows = []
    for name in TABLES:
        data = load(name)
        if data is None:
            return [Table("densities", ("",), [(f"{name}.npz was not found; set SBNET_TABLES to its folder",)])]
        say(f"{name}: defaults")
        start = time.perf_counter()
        default = SBNDensity(random_state=0).fit(data.train)
        spent = time.perf_counter() - start
        rows.append((name, "Chow–Liu tree", "", f"{chow_liu(data):.3f}", ""))
        rows.append(
            (
                name,
                "SBNDensity()",
                f"{default.score(data.valid):.3f}",
                f"{default.score(data.test):.3f}",
                seconds(spent),
            )
        )
        rows.append((name, *_chosen(name, data)))
    return [
        Table(
            "densities: mean log-likelihood or bound, nats per row",
            ("table", "", "valid", "test", "learning"),
            rows,
            (
                "The last line of each table: the candidate with the best bound on the validation rows. Its test bound "
                "is with the exact logarithm term, its time that of all candidates together.",
            ),
        )
    ]


def _chosen(name: str, data: Data) -> tuple[str, str, str, str]:
    start, found = time.perf_counter(), []
    for candidate in CANDIDATES:
        density = SBNDensity(**LONG, **candidate, random_state=0).fit(data.train)
        found.append((density.score(data.valid), candidate, density))
        say(f"{name}: {candidate} valid {found[-1][0]:.3f}, {time.perf_counter() - start:.0f} s")
    spent = time.perf_counter() - start
    bound, candidate, density = max(found, key=lambda f: f[0])
    density.set_params(solver=EXACT)
    text = ", ".join(f"{key}={value}" for key, value in candidate.items())
    return text, f"{bound:.3f}", f"{density.score(data.test):.3f}", seconds(spent)
