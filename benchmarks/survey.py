"""How many missing answers of a synthetic survey are filled in right, beside scikit-learn's imputers."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from sbnet.estimators import BinaryEncoder, SBNDensity, SBNImputer
from sbnet.inference.solvers.block_gibbs import cell_probabilities

from .report import Table, say, seconds

ROWS, SHARE, SEED = 2000, 0.15, 0
LEVELS = ["none", "school", "college", "degree"]


def table() -> list[Table]:
    truth = make(ROWS, SEED)
    gone = np.random.default_rng(SEED + 1).random(truth.shape) < SHARE
    incomplete = truth.astype({"smoker": "boolean"}).mask(gone)
    ways: dict[str, Callable[[Any], list[Any]]] = {
        "the most frequent value": _frequent,
        "KNNImputer(n_neighbors=15)": lambda table: _scikit(KNNImputer(n_neighbors=15), table),
        "IterativeImputer()": lambda table: _scikit(IterativeImputer(random_state=0), table),
        'SBNImputer(encode="auto")': lambda table: _ours(SBNImputer(encode="auto", random_state=0), table),
        "without hidden units": lambda table: _ours(
            SBNImputer(encode="auto", hidden=(), density=SBNDensity(), random_state=0), table
        ),
    }
    rows = []
    for name, fill in ways.items():
        say(name)
        begin = time.perf_counter()
        probabilities = fill(incomplete)
        spent = time.perf_counter() - begin
        right, loss = _compare(probabilities, BinaryEncoder(handle_unknown="missing").fit(incomplete).read(truth), gone)
        rows.append((name, f"{100 * right:.1f}", f"{loss:.3f}", seconds(spent)))
    title = f"A synthetic survey of {ROWS:,} rows and {truth.shape[1]} columns, {100 * SHARE:.0f} % of cells missing"
    note = "Numbers are right in the right interval. Probabilities below 1e-6 count as 1e-6 in the log-loss."
    return [Table(title, ("", "right, %", "log-loss, nats", "time"), rows, (note,))]


def make(n: int, seed: int) -> pd.DataFrame:
    """Four kinds of people, an interest that shows in three answers, and incomes that follow education."""
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(99)
    kind, skill, interest = rng.integers(0, 4, n), rng.normal(size=n), rng.normal(size=n)
    homes, leaning, local, trades, places = (
        scale * fixed.normal(size=shape)
        for scale, shape in [(2.0, (4, 5)), (1.5, (4, 4)), (1.2, (5, 4)), (1.5, (4, 6)), (1.0, (4, 6))]
    )

    def choose(logits: Any) -> Any:
        return (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)

    region = choose(homes[kind])
    age = np.clip(18 + (0.5 * skill + rng.normal(size=n) + 1.2) * 18, 18, 90).round()
    education = np.digitize(skill + 0.5 * rng.normal(size=n), [-0.7, 0.3, 1.1])
    spread = 0.25 * skill + 0.01 * (age - 40) + 0.3 * rng.normal(size=n)
    income = np.exp(9.5 + 0.4 * education + spread).round(-2)
    answers = {f"q{k}": push * interest for k, push in enumerate((1.1, -1.1, 0.77), 1)}
    return pd.DataFrame(
        {
            "age": age,
            "region": np.array(["north", "south", "east", "west", "centre"], dtype=object)[region],
            "education": pd.Categorical(np.array(LEVELS)[education], categories=LEVELS, ordered=True),
            "job": pd.Categorical(np.array(list("abcdef"))[choose(trades[education] + places[kind])]),
            "income": income,
            "car": np.where(rng.random(n) < 1 / (1 + np.exp(-3 * (np.log(income) - 10.2))), "yes", "no"),
            "smoker": rng.random(n) < 1 / (1 + np.exp(1 + 0.8 * education - 2 * (kind == 2))),
            "party": np.array(list("ABCD"), dtype=object)[choose(leaning[kind] + local[region])],
            **{name: np.clip(np.round(3 + push + 0.6 * rng.normal(size=n)), 1, 5) for name, push in answers.items()},
            "children": np.clip(np.round((age - 25) / 15 + 0.6 * rng.normal(size=n)), 0, 3) + 0.0,
        }
    )


def _frequent(incomplete: pd.DataFrame) -> list[Any]:
    return [np.tile(coding.shares, (len(incomplete), 1)) for coding in BinaryEncoder().fit(incomplete).columns_]


def _scikit(imputer: Any, incomplete: pd.DataFrame) -> list[Any]:
    encoder = BinaryEncoder().fit(incomplete)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten rounds do not settle
        means = np.clip(imputer.fit_transform(encoder.transform(incomplete)), 0.0, 1.0)
    ends = np.cumsum([len(coding.units) for coding in encoder.columns_])
    return [
        coding.probabilities(means[:, end - len(coding.units) : end])
        for coding, end in zip(encoder.columns_, ends, strict=True)
    ]


def _ours(imputer: SBNImputer, incomplete: pd.DataFrame) -> list[Any]:
    imputer.fit(incomplete)
    network, (given, _) = imputer.network_, imputer._table(incomplete, reset=False)
    return cell_probabilities(network, imputer._states(network, given), imputer._places(network))


def _compare(probabilities: list[Any], truth: Any, gone: Any) -> tuple[float, float]:
    """The share of missing cells whose most probable value is right, and the mean of -ln P(right value)."""
    right, loss = [], []
    for k, p_state in enumerate(probabilities):
        rows = np.flatnonzero(gone[:, k] & (truth[:, k] >= 0))
        p = np.clip(p_state[rows], 1e-6, 1.0)
        right.append(p.argmax(axis=1) == truth[rows, k])
        loss.append(-np.log(p[np.arange(len(rows)), truth[rows, k]] / p.sum(axis=1)))
    return float(np.concatenate(right).mean()), float(np.concatenate(loss).mean())
