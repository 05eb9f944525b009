"""Missing cells of public binary tables, filled in by us and by others: log-loss, Brier score, errors, times.

The tables are those of :mod:`benchmarks.density`, in the folder that SBNET_TABLES names. Everyone learns from the same
complete rows and fills the same missing cells, at random or in blocks of neighbouring columns. SBNET_ROWS=4000 sets how
many rows are learned from. Narrow tables have more rows to fill, for the differences are small. SBNET_DRAWS=25 counts
the coverage of multiple imputations on so many tables with nothing set, which takes ten seconds each, twice.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import BayesianRidge
from threadpoolctl import threadpool_limits

import sbnet as sb
from sbnet.estimators import SBNDensity, SBNImputer

from .density import TABLES, load
from .report import NONE, Table, say, seconds

ROWS, FILLED = 1000, 16_000  # rows to learn from; cells of the rows to fill
SHARES = (0.1, 0.3, 0.5)
WIDEST, FOREST = 200, 250  # columns beyond which regressions on all others take too long; rows that forests learn from
CLIP = 0.002  # nobody is taken at their word that something is impossible


class Found(NamedTuple):
    """Mean log-loss in nats, mean squared error, share of cells that are wrong; seconds to learn and to fill; and the
    sum of the losses of each row.
    """

    loss: float
    brier: float
    wrong: float
    learning: float
    filling: float
    by_row: np.ndarray


def table() -> list[Table]:
    found = []
    for name in TABLES:
        data = load(name)
        if data is None:
            say(f"{name}.npz was not found; set SBNET_TABLES to its folder")
            continue
        n = int(os.environ.get("SBNET_ROWS", ROWS))
        to_fill = min(max(FILLED // data.train.shape[1], 100), 1000)
        found.append(_compared(name, data.train[:n].astype(float), data.test[:to_fill].astype(float)))
    return [*found, _coverage()]


def removed(shape: tuple[int, int], share: float, blocks: bool, seed: int = 0) -> np.ndarray:
    """Which cells are hidden: each at random, or runs of a tenth of the columns."""
    rng = np.random.default_rng(seed)
    if not blocks:
        return rng.random(shape) < share
    long, gone = max(shape[1] // 10, 2), np.zeros(shape, dtype=bool)
    for row in gone:
        while row.mean() < share:
            begin = rng.integers(1 - long, shape[1])
            row[max(begin, 0) : begin + long] = True
    return gone


def losses(filled: np.ndarray, truth: np.ndarray, gone: np.ndarray) -> np.ndarray:
    """In nats; zero where nothing was hidden."""
    p = np.clip(filled, CLIP, 1.0 - CLIP)
    return np.where(gone, -np.where(truth == 1, np.log(p), np.log1p(-p)), 0.0)


def score(filled: np.ndarray, truth: np.ndarray, gone: np.ndarray) -> tuple[float, float, float]:
    p, x = np.clip(filled[gone], CLIP, 1.0 - CLIP), truth[gone]
    loss = losses(filled, truth, gone).sum() / gone.sum()
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
    """It learns only for columns with missing values, so it learns from rows with a tenth of their cells hidden."""
    imputer = IterativeImputer(
        regression, max_iter=rounds, n_nearest_features=30, min_value=0.0, max_value=1.0, random_state=0,
        keep_empty_features=True,
    )  # fmt: skip
    return imputer.fit(np.where(removed(X.shape, 0.1, False, seed=1), np.nan, X))


def _compared(name: str, train: np.ndarray, test: np.ndarray) -> Table:
    kinds = [(share, blocks) for blocks in (False, True) for share in SHARES]
    rows, others, learned = [], [], None
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
                gone = removed(test.shape, share, blocks)
                begin = time.perf_counter()
                filled = model.transform(np.where(gone, np.nan, test))
                spent, by_row = time.perf_counter() - begin, losses(filled, test, gone).sum(axis=1)
                results.append(Found(*score(filled, test, gone), learning, spent, by_row))
        rows.append((way, *_cells(results, same=way == "SBNImputer()")))
        others.append(results)
        say(" | ".join(rows[-1]))
    rows.append(("ahead of the best of the others by", *_ahead(others[-1], others[:-2]), NONE, NONE))
    columns = [f"{share:.0%}{', blocks' * blocks}" for share, blocks in kinds]
    return Table(
        f"imputation, {name}: {train.shape[1]} columns, {len(train):,} rows to learn from, {len(test)} to fill",
        ("log-loss / Brier / wrong, %", *columns, "learning", "filling 30 %"),
        rows,
        (
            "Ahead: in log-loss, ± its standard error; mean field is ours and does not count as another.",
            f"Probabilities are cut at {CLIP} and {1 - CLIP}, for all. Trees (missForest's way, 20 of them) learn from "
            f"{FOREST} rows; regressions use 30 columns each, and tables of up to {WIDEST} columns.",
        ),
    )


def _cells(results: list[Found], same: bool) -> tuple[str, ...]:
    three = [f"{one.loss:.3f} / {one.brier:.3f} / {100 * one.wrong:.1f}" for one in results]
    return (*three, NONE if same else seconds(results[0].learning), seconds(results[1].filling))


def _ahead(ours: list[Found], others: list[list[Found]]) -> tuple[str, ...]:
    """By how much each kind of missing cells is filled better than by the best of those that are not ours."""
    found = []
    for k, own in enumerate(ours):
        best = min((results[k] for results in others), key=lambda one: one.loss)
        cells = own.by_row.sum() / own.loss
        difference = best.by_row - own.by_row
        found.append(f"{difference.sum() / cells:.3f} ± {np.sqrt(len(difference)) * difference.std() / cells:.3f}")
    return tuple(found)


def _coverage(n_tables: int = 50, n_rows: int = 150) -> Table:
    """How often intervals of 95 % by Rubin's rules, from five draws, hold the proportions of four columns."""
    edges = {("a", "b"): 2.5, ("a", "c"): -2.0, ("b", "c"): 1.5, ("c", "d"): 2.0}
    network = sb.from_edges(edges, bias={"a": -0.5, "b": -1.0, "c": 0.3, "d": -1.0})
    truth, rows = sb.exact_posterior(network, {}), []
    settings: SBNDensity | None = SBNDensity(hidden=0, prior=sb.Laplace(2.0), epochs=30)
    if "SBNET_DRAWS" in os.environ:
        settings, n_tables = None, int(os.environ["SBNET_DRAWS"])
    for share in (0.2, 0.4):
        say(f"coverage, {share:.0%} hidden")
        hits, widths = np.zeros((n_tables, 4)), np.zeros((n_tables, 4))
        for k in range(n_tables):
            rng = np.random.default_rng(k)
            whole = sb.sample(network, n_rows, rng=rng).astype(float)
            gone = np.where(rng.random(whole.shape) < share, np.nan, whole)
            tables = np.array(SBNImputer(density=settings, multiple=5, random_state=k).fit(gone).draws(gone))
            means, widths[k] = rubin(tables)
            hits[k] = np.abs(means - truth) < widths[k]
        rows.append((f"{share:.0%} of cells", f"{hits.mean():.1%} of {hits.size}", f"± {widths.mean():.3f}"))
    return Table(
        "multiple imputations: intervals of 95 % for a proportion",
        ("hidden", "hold the truth", "half width"),
        rows,
        (
            f"SBNImputer(multiple=5){' without hidden units' * (settings is not None)}; tables of {n_rows} rows and "
            "four columns, by Rubin's rules.",
        ),
    )


def rubin(tables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means, and half the widths of their intervals, from completed tables."""
    number, n_rows = tables.shape[:2]
    estimates, within = tables.mean(axis=1), (tables.var(axis=1) / n_rows).mean(axis=0)
    extra = (1 + 1 / number) * estimates.var(axis=0, ddof=1)
    freedom = (number - 1) * (1 + within / np.maximum(extra, 1e-12)) ** 2
    return estimates.mean(axis=0), student.ppf(0.975, freedom) * np.sqrt(within + extra)
