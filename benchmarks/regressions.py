"""L1 logistic regressions of every column on those before it: ours, scikit-learn's, and skglm's if it is installed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from sbnet.learning.regressions import Design, regress_columns

from .report import Table, say

ROWS, COLUMNS, PENALTY = 3_000, 80, 4.0


def made(seed: int = 0) -> np.ndarray:
    """Rare ones, each column with a few strong parents among those before it."""
    rng = np.random.default_rng(seed)
    table = np.zeros((ROWS, COLUMNS), np.int8)
    for k in range(COLUMNS):
        parents = rng.choice(k, min(k, 4), replace=False)
        z = -2.0 + table[:, parents] @ rng.normal(0.0, 2.0, len(parents))
        table[:, k] = rng.random(ROWS) < 1.0 / (1.0 + np.exp(-z))
    return table


def _objective(X: np.ndarray, y: np.ndarray, w: np.ndarray, b: float) -> float:
    z = X @ w + b
    return float(np.sum(np.logaddexp(0.0, z) - y * z) + PENALTY * np.abs(w).sum())


def _peer(make: Callable[[], Any], table: np.ndarray) -> tuple[float, float]:
    start, total = time.process_time(), 0.0
    for k in range(1, COLUMNS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make().fit(table[:, :k].astype(float), table[:, k])
        total += _objective(table[:, :k], table[:, k], np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]))
    return time.process_time() - start, total


def _ours(table: np.ndarray) -> tuple[float, float]:
    start = time.process_time()
    weights, bias = regress_columns(Design.of(table, np.ones(ROWS)), lambda k: np.full(k, PENALTY), threads=1).weights()
    spent, dense = time.process_time() - start, weights.toarray()
    columns = range(1, COLUMNS)
    return spent, sum(_objective(table[:, :k], table[:, k], dense[k, :k], bias[k]) for k in columns)


def _peers() -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {
        # liblinear penalises the intercept too, so it is made large
        "scikit-learn, liblinear": lambda: LogisticRegression(
            C=1 / PENALTY, l1_ratio=1.0, solver="liblinear", intercept_scaling=100.0, tol=1e-4
        ),
        "scikit-learn, saga": lambda: LogisticRegression(
            C=1 / PENALTY, l1_ratio=1.0, solver="saga", tol=1e-4, max_iter=300
        ),
    }
    try:
        from skglm import GeneralizedLinearEstimator
        from skglm.datafits import Logistic
        from skglm.penalties import L1
        from skglm.solvers import ProxNewton
    except ImportError:
        return found
    found["skglm, ProxNewton"] = lambda: GeneralizedLinearEstimator(
        Logistic(), L1(PENALTY / ROWS), ProxNewton(tol=1e-5, fit_intercept=True)
    )
    return found


def table() -> list[Table]:
    data = made()
    _ours(data[:, :COLUMNS])  # compiled
    spent, least = _ours(data)
    rows = [("sbnet", f"{spent:.2f} s", "1.0", "0.000")]
    for name, make in _peers().items():
        say(name)
        _peer(make, data) if "skglm" in name else None
        other, objective = _peer(make, data)
        rows.append((name, f"{other:.2f} s", f"{other / spent:.1f}", f"{objective - least:+.3f}"))
    title = f"{COLUMNS} L1 logistic regressions of {ROWS:,} rows, penalty {PENALTY:g}"
    heads = ("solver", "processor time", "times ours", "objective above ours, nats")
    return [Table(title, heads, rows, ("One thread. What is minimised is the same for all.",))]
