"""Missing cells of ordinary tables filled in by us and by others, where four masks hide them.

Cells are hidden at random, in runs of neighbouring columns, by what another column holds (MAR), or by what they hold
themselves (MNAR), about 30 % of them. Everyone learns from the incomplete table. Chains of regressions, one column on
all others, are our own few lines over scikit-learn's: of ridge and logistic regressions, or of forests, which is what
missForest does. miceforest and R's mice take part if they are installed (SBNET_R names Rscript, else it is looked up).
SBNET_DRAWS=40 counts how often intervals from multiple imputations hold the truth, in so many parts of a long table.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.impute import KNNImputer
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sbnet.estimators import SBNImputer
from sbnet.tables.schema import Schema

from .imputation import rubin
from .report import Table, say, seconds

SHARE, SEED, ROUNDS, DRAWS, MOST_ROWS = 0.3, 0, 4, 5, 1000
MASKS = ("random", "blocks", "MAR", "MNAR")
_MICE = """
library(mice)
a <- commandArgs(TRUE)
d <- read.csv(a[1])
for (k in which(startsWith(names(d), "c"))) d[[k]] <- factor(d[[k]])
m <- mice(d, m = {draws}, printFlag = FALSE, seed = 1)
for (k in 1:{draws}) write.csv(complete(m, k), paste0(a[1], k), row.names = FALSE)
"""


@dataclass(frozen=True)
class Incomplete:
    """A table, which of its cells are hidden, and how its columns are read."""

    frame: pd.DataFrame
    schema: Schema
    gone: np.ndarray

    @property
    def given(self) -> pd.DataFrame:
        """What is left of the table."""
        return self.frame.mask(self.gone)

    @property
    def numbers(self) -> list[bool]:
        """Which columns hold numbers; the states of others are their codes."""
        return [column.kind == "numbers" for column in self.schema.variables]

    def cells(self, frame: Any) -> np.ndarray:
        """Numbers, and codes of states; NaN where a cell is missing."""
        codes = self.schema.encode(frame).astype(float)
        codes[codes < 0] = np.nan
        for k, is_number in enumerate(self.numbers):
            if is_number:
                codes[:, k] = pd.to_numeric(frame.iloc[:, k], errors="coerce")
        return codes


@dataclass
class Answer:
    """Filled cells, the probabilities of states by column, and drawn tables, where somebody gives them."""

    filled: np.ndarray
    probabilities: dict[int, np.ndarray]
    draws: list[np.ndarray]


def tables(name: str, frame: pd.DataFrame) -> list[Table]:
    """A table of results for each mask."""
    if "SBNET_DRAWS" in os.environ:
        return [coverage(name, frame, int(os.environ["SBNET_DRAWS"]))]
    schema = Schema.learn(frame)
    kept = [c.name for c in schema.variables if c.kind not in ("tick box", "dates")]
    frame = frame[kept].sample(min(len(frame), MOST_ROWS), random_state=SEED).reset_index(drop=True)
    found = []
    for mask in MASKS:
        incomplete = Incomplete(frame, Schema.learn(frame), np.zeros(frame.shape, bool))
        frame = frame[list(incomplete.schema.names)]
        incomplete = Incomplete(frame, incomplete.schema, hidden(incomplete.cells(frame), mask))
        found.append(_table(f"{name}, {len(frame)} rows: cells hidden, {mask}", incomplete))
    return found


def coverage(name: str, frame: pd.DataFrame, number: int, n_rows: int = 200) -> Table:
    """Parts of a table: how often intervals for means of numbers and shares of states hold those of the whole table."""
    schema = Schema.learn(frame)
    kept = [k for k, c in enumerate(schema.columns) if c.is_variable and c.kind not in ("tick box", "dates")]
    frame = frame.iloc[:, kept]
    schema, rows = Schema.learn(frame), []
    incomplete = Incomplete(frame, schema, np.zeros(frame.shape, bool))
    common = [int(share.argmax()) for share in _shares(incomplete)]
    flat = lambda cells: np.where(incomplete.numbers, cells, cells == common)  # noqa: E731
    truth = flat(incomplete.cells(frame)).mean(axis=0)
    for mask in ("random", "MAR"):
        hits, widths = np.zeros((2, number, len(kept)))
        for k in range(number):
            part = frame.sample(n_rows, random_state=k).reset_index(drop=True)
            given = part.mask(hidden(incomplete.cells(part), mask, k))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tables = SBNImputer(multiple=5, random_state=k, n_jobs=1).fit(given).draws(given)
            means, widths[k] = rubin(np.array([flat(incomplete.cells(one)) for one in tables]))
            hits[k] = np.abs(means - truth) < widths[k]
        per = ", ".join(f"{column} {share:.0%}" for column, share in zip(schema.names, hits.mean(axis=0), strict=True))
        rows.append((mask, f"{hits.mean():.1%} of {hits.size}", per))
    head = ("cells hidden", "intervals of 95 % that hold the truth", "by column")
    return Table(f"{name}: multiple imputations of {n_rows} rows", head, rows)


def hidden(cells: np.ndarray, mask: str, seed: int = SEED) -> np.ndarray:
    """Which of the observed cells are hidden."""
    rng, (n, p) = np.random.default_rng(seed), cells.shape
    rank = pd.DataFrame(cells).rank(pct=True).fillna(0.5).to_numpy()
    if mask == "random":
        gone = rng.random((n, p)) < SHARE
    elif mask == "blocks":
        long = max(p // 3, 2)
        begin = rng.integers(0, p, n)[:, None]
        gone = ((np.arange(p) - begin) % p < long) & (rng.random(n) < SHARE * p / long)[:, None]
    elif mask == "MAR":  # more where the column before it is high, and half of the columns are never hidden
        gone = rng.random((n, p)) < 2.0 * SHARE * np.roll(rank, 1, axis=1) * 2.0
        gone[:, ::2] = False
    else:
        gone = rng.random((n, p)) < 2.0 * SHARE * rank
    return gone & ~np.isnan(cells)


def ways() -> dict[str, Callable[[Incomplete], Answer]]:
    found: dict[str, Callable[[Incomplete], Answer]] = {
        "SBNImputer()": _ours,
        "means and shares": _alone,
        "15 nearest": _nearest,
        "regressions": lambda incomplete: _chained(incomplete, _regression),
        "forests (missForest)": lambda incomplete: _chained(incomplete, _forest),
    }
    try:
        import miceforest  # noqa: F401

        found["miceforest"] = _miceforest
    except ImportError:
        pass
    if os.environ.get("SBNET_R") or shutil.which("Rscript"):
        found["mice (R)"] = _mice
    return found


def _table(title: str, incomplete: Incomplete) -> Table:
    rows = []
    for who, fill in ways().items():
        begin = sum(os.times()[:4])  # R's among them
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                answer = fill(incomplete)
            except (subprocess.CalledProcessError, ValueError, KeyError) as error:  # a peer that cannot do this table
                say(f"{title}: {who} fails: {error}")
                continue
        rows.append((who, *scores(incomplete, answer), seconds(sum(os.times()[:4]) - begin)))
        say(" | ".join(rows[-1]))
    return Table(title, ("", "log-loss", "states right, %", "error of numbers", "energy score", "processor time"), rows)


def scores(incomplete: Incomplete, answer: Answer) -> tuple[str, ...]:
    """Log-loss and states right; root mean square error of numbers by their deviation; the mean energy score."""
    truth, loss, right, errors = incomplete.cells(incomplete.frame), [], [], []
    scale = np.nanstd(truth, axis=0)
    for k, is_number in enumerate(incomplete.numbers):
        own = incomplete.gone[:, k]
        if is_number and own.any():
            errors.append(np.sqrt(np.mean((answer.filled[own, k] - truth[own, k]) ** 2)) / scale[k])
        elif own.any():
            p, states = answer.probabilities[k][own], truth[own, k].astype(int)
            loss.append(-np.log(np.maximum(p[np.arange(len(p)), states], 1e-3)))
            right.append(answer.filled[own, k] == states)
    energy = "–"
    if answer.draws:
        away = [_distance(incomplete, scale, one, truth) for one in answer.draws]
        apart = [_distance(incomplete, scale, a, b) for a in answer.draws for b in answer.draws if a is not b]
        energy = f"{np.mean(away) - 0.5 * np.mean(apart):.4f}"
    means = [np.concatenate(part).mean() if part else np.nan for part in (loss, right)]
    return f"{means[0]:.4f}", f"{100 * means[1]:.1f}", f"{np.mean(errors) if errors else np.nan:.4f}", energy


def _distance(incomplete: Incomplete, scale: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Of rows: the Euclidean distance of their hidden cells, a different state counting as one deviation."""
    away = np.where(incomplete.numbers, (one - other) / np.where(scale > 0, scale, 1.0), one != other)
    return np.sqrt((np.where(incomplete.gone, away, 0.0) ** 2).sum(axis=1))[incomplete.gone.any(axis=1)]


def _shares(incomplete: Incomplete) -> list[np.ndarray]:
    """How often each state was seen."""
    codes, n = incomplete.schema.encode(incomplete.given), incomplete.schema.n_states
    counts = [np.bincount(codes[codes[:, k] >= 0, k], minlength=n[k]) + 0.5 for k in range(len(n))]
    return [count / count.sum() for count in counts]


def _mixed(p: np.ndarray, share: np.ndarray, weight: float) -> np.ndarray:
    """Frequencies and shares: who has counted few is not taken at his word that a state is impossible."""
    return (1.0 - weight) * p + weight * share


def _ours(incomplete: Incomplete) -> Answer:
    given = incomplete.given
    imputer = SBNImputer(random_state=SEED, n_jobs=1).fit(given)
    filled = incomplete.cells(imputer.transform(given))
    probabilities = {}
    for k, column in enumerate(incomplete.schema.variables):
        if not incomplete.numbers[k]:
            p = np.full((len(filled), len(column.states)), 1e-9)
            if column.name in imputer.schema_.names:
                own = imputer.schema_[column.name]
                cells = [column.states.index(s) if s in column.states else 0 for s in own.states]
                p[:, cells] += imputer.probabilities(given, column=column.name)
            probabilities[k] = p / p.sum(axis=1, keepdims=True)
    draws = []
    for seed in range(DRAWS):
        imputer.set_params(strategy="sample", random_state=seed)
        draws.append(incomplete.cells(imputer.transform(given)))
    return Answer(filled, probabilities, draws)


def _alone(incomplete: Incomplete) -> Answer:
    cells, shares = incomplete.cells(incomplete.given), _shares(incomplete)
    best = [np.nanmean(cells[:, k]) if n else shares[k].argmax() for k, n in enumerate(incomplete.numbers)]
    filled = np.where(np.isnan(cells), best, cells)
    return Answer(filled, {k: np.tile(share, (len(cells), 1)) for k, share in enumerate(shares)}, [])


def _design(incomplete: Incomplete, cells: np.ndarray, without: int = -1) -> np.ndarray:
    """Numbers by their deviation and an indicator of each state; NaN where a cell is missing."""
    parts = []
    for k, (n, is_number) in enumerate(zip(incomplete.schema.n_states, incomplete.numbers, strict=True)):
        if k == without:
            continue
        own = cells[:, [k]]
        flags = np.where(np.isnan(own), np.nan, own == np.arange(n))
        parts.append((own - np.nanmean(own)) / (np.nanstd(own) + 1e-9) if is_number else flags)
    return np.concatenate(parts, axis=1)


def _nearest(incomplete: Incomplete) -> Answer:
    cells, shares = incomplete.cells(incomplete.given), _shares(incomplete)
    found = KNNImputer(n_neighbors=15, keep_empty_features=True).fit_transform(_design(incomplete, cells))
    filled, probabilities, at = cells.copy(), {}, 0
    for k, (n, is_number) in enumerate(zip(incomplete.schema.n_states.tolist(), incomplete.numbers, strict=True)):
        own = np.isnan(cells[:, k])
        if is_number:
            values = found[:, at] * (np.nanstd(cells[:, k]) + 1e-9) + np.nanmean(cells[:, k])
        else:
            probabilities[k] = _mixed(found[:, at : at + n], shares[k], 1 / 16)
            values = found[:, at : at + n].argmax(axis=1)
        filled[own, k] = values[own]
        at += 1 if is_number else n
    return Answer(filled, probabilities, [])


def _regression(is_number: bool) -> Any:
    return make_pipeline(StandardScaler(), BayesianRidge() if is_number else LogisticRegression(max_iter=300))


def _forest(is_number: bool) -> Any:
    kind = RandomForestRegressor if is_number else RandomForestClassifier
    return kind(100, max_features="sqrt", min_samples_leaf=5 if is_number else 1, random_state=SEED)


def _chained(incomplete: Incomplete, model: Callable[[bool], Any]) -> Answer:
    """Each column regressed on all others, those with fewest missing cells first, over and over."""
    cells, start = incomplete.cells(incomplete.given), _alone(incomplete)
    filled, probabilities, shares = start.filled, start.probabilities, _shares(incomplete)
    gone = np.isnan(cells)
    for _ in range(ROUNDS):
        for k in np.argsort(gone.sum(axis=0), kind="stable").tolist():
            own, seen = gone[:, k], ~gone[:, k]
            if not own.any() or len(np.unique(cells[seen, k])) < 2:
                continue
            X = _design(incomplete, filled, without=k)
            fitted = model(incomplete.numbers[k]).fit(X[seen], cells[seen, k])
            filled[own, k] = fitted.predict(X[own])
            if not incomplete.numbers[k]:
                p = np.zeros((own.sum(), len(shares[k])))
                p[:, fitted.classes_.astype(int)] = fitted.predict_proba(X[own])
                probabilities[k][own] = _mixed(p, shares[k], 0.01)
    return Answer(filled, probabilities, [])


def _from_draws(incomplete: Incomplete, draws: list[np.ndarray]) -> Answer:
    """Frequencies among drawn tables, and means of numbers."""
    every, shares, filled, probabilities = np.array(draws), _shares(incomplete), draws[0].copy(), {}
    for k, is_number in enumerate(incomplete.numbers):
        if is_number:
            filled[:, k] = every[:, :, k].mean(axis=0)
            continue
        p = np.stack([(every[:, :, k] == s).mean(axis=0) for s in range(len(shares[k]))], axis=1)
        probabilities[k] = _mixed(p, shares[k], 1 / (DRAWS + 1))
        filled[:, k] = probabilities[k].argmax(axis=1)
    return Answer(filled, probabilities, draws)


def _miceforest(incomplete: Incomplete) -> Answer:
    import miceforest

    cells = pd.DataFrame(
        incomplete.cells(incomplete.given), columns=[f"v{k}" for k in range(incomplete.frame.shape[1])]
    )
    for k, is_number in enumerate(incomplete.numbers):
        if not is_number:
            cells[f"v{k}"] = cells[f"v{k}"].astype("Int64").astype("category")
    kernel = miceforest.ImputationKernel(cells, num_datasets=DRAWS, random_state=SEED)
    kernel.mice(ROUNDS, n_estimators=50, num_threads=1)
    return _from_draws(incomplete, [kernel.complete_data(k).astype(float).to_numpy() for k in range(DRAWS)])


def _mice(incomplete: Incomplete) -> Answer:
    program = os.environ.get("SBNET_R") or shutil.which("Rscript")
    names = [f"{'n' if is_number else 'c'}{k}" for k, is_number in enumerate(incomplete.numbers)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cells.csv"
        pd.DataFrame(incomplete.cells(incomplete.given), columns=names).to_csv(file, index=False)
        (Path(folder) / "mice.R").write_text(_MICE.format(draws=DRAWS))
        command = [str(program), str(Path(folder) / "mice.R"), str(file)]
        subprocess.run(command, check=True, capture_output=True)
        draws = [pd.read_csv(f"{file}{k + 1}").to_numpy(float) for k in range(DRAWS)]
    if any(np.isnan(one).any() for one in draws):
        raise ValueError("cells are left missing")
    return _from_draws(incomplete, draws)
