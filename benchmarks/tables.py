"""Ordinary tables, the CSV files of a folder: classification, missing cells and densities beside other libraries.

Every number is a mean over the same five folds for all, with the spread over folds; LightGBM and CatBoost take part if
they are installed. A file's label is the column that `LABELS` names, or its last column of two to ten states.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from sbnet.estimators import SBNClassifier, SBNDensity

from . import mixed_imputation
from .report import Table, say, seconds

HIDDEN, FOLDS, SEED, LEAST = 0.3, 5, 0, 1e-6
LABELS = {"titanic": ("survived", ("alive",))}
"""Labels by name of file, and copies of them that are left out."""


def table(folder: str | None = None) -> list[Table]:
    files = sorted(Path(folder or ".").glob("*.csv"))
    if not files:
        raise SystemExit("no CSV files there; say python -m benchmarks tables FOLDER")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [made for file in files for made in _of_file(file)]


def _of_file(file: Path) -> list[Table]:
    frame = pd.read_csv(file, encoding="latin-1", na_values=["?"])
    label, copies = LABELS.get(file.stem, ("", ()))
    schema = SBNDensity(random_state=SEED).fit(frame[:2000]).schema_
    known = [c.name for c in schema.variables if 2 <= len(c.states) <= 10]
    frame = frame[[c for c in frame.columns if c in schema.names]]
    label = label or known[-1]
    say(f"{file.stem}: {len(frame):,} rows, label {label!r}")
    return [
        _classified(file.stem, frame, label, copies),
        *mixed_imputation.tables(file.stem, frame),
        _densities(file.stem, frame),
    ]


def classifiers() -> dict[str, Any]:
    """Ours and others, each with what its own documentation does with words and missing cells."""
    number, word = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
    filled = make_pipeline(SimpleImputer(), StandardScaler())
    dense = make_column_transformer((filled, number), (OneHotEncoder(handle_unknown="ignore", min_frequency=2), word))
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1)
    ranked = make_column_transformer(("passthrough", number), (codes, word))
    found = {
        "SBNClassifier()": SBNClassifier(random_state=SEED, n_jobs=1),
        "logistic regression": make_pipeline(dense, LogisticRegression(max_iter=1000)),
        "random forest": make_pipeline(dense, RandomForestClassifier(300, min_samples_leaf=2, random_state=SEED)),
        "HistGradientBoosting": make_pipeline(ranked, HistGradientBoostingClassifier(random_state=SEED)),
    }
    try:
        from lightgbm import LGBMClassifier

        found["LightGBM"] = make_pipeline(ranked, LGBMClassifier(verbose=-1, n_jobs=1, random_state=SEED))
    except ImportError:
        pass
    try:
        from catboost import CatBoostClassifier

        boosted = CatBoostClassifier(
            verbose=0, thread_count=1, random_state=SEED, iterations=300, allow_writing_files=False
        )
        found["CatBoost"] = make_pipeline(ranked, boosted)
    except ImportError:
        pass
    return found


def _folds(y: Any) -> list[Any]:
    return list(StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(np.zeros(len(y)), y))


def _spread(values: list[float], digits: int = 3) -> str:
    return f"{np.mean(values):.{digits}f} ± {np.std(values) / np.sqrt(len(values)):.{digits}f}"


def _classified(name: str, frame: pd.DataFrame, label: str, copies: tuple[str, ...]) -> Table:
    frame = frame.dropna(subset=[label])
    X, y = frame.drop(columns=[label, *copies]), frame[label].astype(str).to_numpy(dtype=object).astype(str)
    for column in X.select_dtypes(exclude="number"):
        X[column] = X[column].astype(object).where(X[column].notna(), np.nan)
    gone, rows, classes = np.random.default_rng(SEED).random(X.shape) < HIDDEN, [], np.unique(y)
    for who, model in classifiers().items():
        found: list[list[float]] = [[], [], [], []]
        begin = time.process_time()
        spent = 0.0
        for train, test in _folds(y):
            begin = time.process_time()
            fitted = clone(model).fit(X.iloc[train], y[train])
            spent += time.process_time() - begin
            for k, rest in enumerate((X.iloc[test], X.iloc[test].mask(gone[test]))):
                p = np.clip(fitted.predict_proba(rest), LEAST, 1.0)
                found[2 * k].append(float(np.mean(classes[p.argmax(axis=1)] == y[test])))
                found[2 * k + 1].append(log_loss(y[test], p / p.sum(axis=1, keepdims=True), labels=classes))
        rows.append((who, *map(_spread, found), seconds(spent / FOLDS)))
    head = ("", "accuracy", "log-loss", "accuracy, 30 % hidden", "log-loss, 30 % hidden", "a fit")
    return Table(f"{name}: {label!r} told from {X.shape[1]} columns, {len(X):,} rows", head, rows)


def _densities(name: str, frame: pd.DataFrame) -> Table:
    ours, alone, spent = [], [], 0.0
    order = np.random.default_rng(SEED).permutation(len(frame))
    for k in range(FOLDS):
        test = order[k::FOLDS]
        train = frame.iloc[np.setdiff1d(order, test)]
        begin = time.process_time()
        density = SBNDensity(random_state=SEED, n_jobs=1).fit(train)
        spent += time.process_time() - begin
        ours.append(density.score(frame.iloc[test]))
        rows, held, total = density.schema_.encode(train), density.schema_.encode(frame.iloc[test]), 0.0
        for v, n in enumerate(density.schema_.n_states):
            share = np.bincount(rows[rows[:, v] >= 0, v], minlength=n) + 0.5
            total += np.log(share / share.sum())[held[held[:, v] >= 0, v]].sum() / len(held)
        alone.append(total)
    made = [("SBNDensity()", _spread(ours), seconds(spent / FOLDS)), ("independent columns", _spread(alone), "–")]
    return Table(f"{name}: mean ln P of held-out rows", ("", "nats a row", "a fit"), made)
