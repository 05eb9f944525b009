"""Missing cells of public binary tables, filled in by us and by others: log-loss, Brier score, errors, times.

The tables are those of :mod:`benchmarks.density`, in the folder that SBNET_TABLES names. Everyone learns from the same
complete rows and fills the same holes, at random or in blocks of neighbouring columns. SBNET_ROWS=4000 sets how many
rows are learned from; a tenth of that many is filled.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import BayesianRidge
from threadpoolctl import threadpool_limits

from sbnet.estimators import SBNImputer

from .density import TABLES, load
from .report import NONE, Table, say, seconds

ROWS = 1000
SHARES = (0.1, 0.3, 0.5)
WIDEST, FOREST = 200, 250  # columns beyond which regressions on all others take too long; rows that forests learn from
CLIP = 0.002  # nobody is taken at their word that something is impossible


class Found(NamedTuple):
    """Mean log-loss in nats, mean squared error, share of cells that are wrong; seconds to learn and to fill."""

    loss: float
    brier: float
    wrong: float
    learning: float
    filling: float


def table() -> list[Table]:
    found = []
    for name in TABLES:
        data = load(name)
        if data is None:
            say(f"{name}.npz was not found; set SBNET_TABLES to its folder")
            continue
        n = int(os.environ.get("SBNET_ROWS", ROWS))
        train, test = data.train[:n].astype(float), data.test[: max(n // 10, 50)].astype(float)
        found.append(_compared(name, train, test))
    return found


def holes(shape: tuple[int, int], share: float, blocks: bool, seed: int = 0) -> np.ndarray:
    """Which cells are hidden: each by chance, or runs of a tenth of the columns."""
    rng = np.random.default_rng(seed)
    if not blocks:
        return rng.random(shape) < share
    long, gone = max(shape[1] // 10, 2), np.zeros(shape, dtype=bool)
    for row in gone:
        while row.mean() < share:
            begin = rng.integers(1 - long, shape[1])
            row[max(begin, 0) : begin + long] = True
    return gone


def score(filled: np.ndarray, truth: np.ndarray, gone: np.ndarray) -> tuple[float, float, float]:
    p, x = np.clip(filled[gone], CLIP, 1.0 - CLIP), truth[gone]
    loss = -np.mean(np.where(x == 1, np.log(p), np.log1p(-p)))
    return float(loss), float(np.mean((p - x) ** 2)), float(np.mean((p > 0.5) != x))


def ways(width: int) -> dict[str, Callable[[np.ndarray], Any]]:
    """How to learn from complete rows; what comes back has a `transform`."""
    found: dict[str, Callable[[np.ndarray], Any]] = {
        "column means": lambda X: SimpleImputer(keep_empty_features=True).fit(X),
        "15 nearest rows": lambda X: KNNImputer(n_neighbors=15, keep_empty_features=True).fit(X),
    }
    if width <= WIDEST:
        found["iterative, ridge"] = lambda X: _iterative(BayesianRidge(), X, 5)
        found["iterative, trees"] = lambda X: _iterative(
            ExtraTreesRegressor(20, min_samples_leaf=3, random_state=0, n_jobs=-1), X[:FOREST], 2
        )
    found["SBNImputer(particles=0)"] = lambda X: SBNImputer(particles=0, random_state=0).fit(X)
    found["SBNImputer()"] = lambda X: SBNImputer(random_state=0).fit(X)
    return found


def _iterative(regression: Any, X: np.ndarray, rounds: int) -> Any:
    """It learns only for columns that it sees holes in, so it learns from rows with a tenth of their cells hidden."""
    imputer = IterativeImputer(
        regression, max_iter=rounds, n_nearest_features=30, min_value=0.0, max_value=1.0, random_state=0,
        keep_empty_features=True,
    )  # fmt: skip
    return imputer.fit(np.where(holes(X.shape, 0.1, False, seed=1), np.nan, X))


def _compared(name: str, train: np.ndarray, test: np.ndarray) -> Table:
    kinds = [(share, blocks) for blocks in (False, True) for share in SHARES]
    rows, learned = [], None
    for way, learn in ways(train.shape[1]).items():
        say(f"{name}: {way}")
        results = []
        with warnings.catch_warnings(), threadpool_limits(1):  # small products: threads would wait for one another
            warnings.simplefilter("ignore")  # regressions that have not converged in the rounds they have
            begin = time.perf_counter()
            model = learned.set_params(particles=256) if way == "SBNImputer()" and learned is not None else learn(train)
            learning = time.perf_counter() - begin
            if way.startswith("SBNImputer(particles"):
                learned = model
            for share, blocks in kinds:
                gone = holes(test.shape, share, blocks)
                begin = time.perf_counter()
                filled = model.transform(np.where(gone, np.nan, test))
                results.append(Found(*score(filled, test, gone), learning, time.perf_counter() - begin))
        rows.append((way, *_cells(results, same=way == "SBNImputer()")))
        say(" | ".join(rows[-1]))
    columns = [f"{share:.0%}{', blocks' * blocks}" for share, blocks in kinds]
    return Table(
        f"imputation, {name}: {train.shape[1]} columns, {len(train):,} rows to learn from, {len(test)} to fill",
        ("log-loss / Brier / wrong, %", *columns, "learning", "filling 30 %"),
        rows,
        (
            f"Chances are cut at {CLIP} and {1 - CLIP}, for all. Trees (missForest's way, 20 of them) learn from "
            f"{FOREST} rows; regressions use 30 columns each, and tables of up to {WIDEST} columns.",
        ),
    )


def _cells(results: list[Found], same: bool) -> tuple[str, ...]:
    three = [f"{one.loss:.3f} / {one.brier:.3f} / {100 * one.wrong:.1f}" for one in results]
    return (*three, NONE if same else seconds(results[0].learning), seconds(results[1].filling))
