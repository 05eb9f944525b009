"""Digits, whole and with missing pixels: errors and scores of classifiers, tuned and not.

Every choice is made on training images; the test images are named once. SBNET_SEEDS=3 takes the mean over seeds, and
SBNET_ORDERS=4 adds a mixture over four orders of the pixels.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from sbnet.datasets import load_digits
from sbnet.estimators import SBNClassifier, SBNDensity
from sbnet.paper.missing import remove_pixels

from .report import NONE, Table, say, seconds

SHARES = (0.25, 0.5, 0.75)
EVERY = 2  # of the test images with missing pixels, as in `sbnet reproduce missing`
FEW = 30


def table() -> list[Table]:
    seeds = range(int(os.environ.get("SBNET_SEEDS", 1)))
    rows = [_row(name, [_measured(make(seed)) for seed in seeds]) for name, make in _ways().items()]
    return [
        Table(
            f"digits: 700 images a class to learn from, 4,000 to name; mean of {len(seeds)} seed(s)",
            ("", "errors, %", "score", "log-loss", *(f"{share:.0%} missing" for share in SHARES), "learning"),
            rows,
            (
                "score: mean bound of the right class in units of 64 ln 2. log-loss: of predict_proba, in nats.",
                f"Missing pixels: every {EVERY}nd test image, the pixels that `sbnet reproduce missing` removes.",
            ),
        ),
        _few(),
    ]


def _ways() -> dict[str, Any]:
    found: dict[str, Any] = {
        "SBNClassifier(hidden=8)": lambda seed: SBNClassifier(hidden=8, random_state=seed, n_jobs=-1),
        'tune="discriminative"': lambda seed: SBNClassifier(tune="discriminative", random_state=seed, n_jobs=-1),
    }
    orders = os.environ.get("SBNET_ORDERS")
    if orders:
        density = SBNDensity(orders=int(orders))
        found[f"the same, {orders} orders"] = lambda seed: SBNClassifier(
            tune="discriminative", density=density, random_state=seed, n_jobs=-1
        )
    return found


def _measured(model: SBNClassifier) -> list[float]:
    digits = load_digits()
    say(f"{model}")
    begin = time.perf_counter()
    model.fit(digits.train, digits.train_target)
    return [*measure(model), time.perf_counter() - begin]


def measure(model: SBNClassifier) -> list[float]:
    """Errors in %, score, log-loss, and errors at each share of missing pixels."""
    digits = load_digits()
    whole, truth = digits.test.astype(float), digits.test_target
    joint = model.decision_function(whole)
    own = joint[np.arange(len(truth)), truth] - model.temperature_ * model.class_log_prior_[truth]
    loss = -np.mean(model.predict_log_proba(whole)[np.arange(len(truth)), truth])
    found = [100 * np.mean(joint.argmax(axis=1) != truth), own.mean() / (64 * np.log(2)), loss]
    images = np.arange(0, len(whole), EVERY)
    for share in SHARES:
        found.append(100 * np.mean(model.predict(remove_pixels(whole[images], share, 0)) != truth[images]))
    say(", ".join(f"{value:.4g}" for value in found))
    return [float(value) for value in found]


def _row(name: str, measured: list[list[float]]) -> tuple[str, ...]:
    error, score, loss, *missing, spent = np.mean(measured, axis=0)
    return (name, f"{error:.2f}", f"{score:.4f}", f"{loss:.3f}", *(f"{e:.1f}" for e in missing), seconds(spent))


def _few() -> Table:
    """Does it pay to share strength, and to calibrate, where classes have few rows?"""
    digits, rows = load_digits(), []
    some = np.concatenate([np.flatnonzero(digits.train_target == k)[:FEW] for k in range(10)])
    whole, truth = digits.test[::4].astype(float), digits.test_target[::4]
    for pooled in (False, True):
        for calibrate in (False, True):
            say(f"{FEW} rows a class, pooled={pooled}, calibrate={calibrate}")
            model = SBNClassifier(hidden=0, pooled=pooled, calibrate=calibrate, random_state=0, n_jobs=-1)
            model.fit(digits.train[some], digits.train_target[some])
            error, proba = 100 * np.mean(model.predict(whole) != truth), model.predict_log_proba(whole)
            loss = -np.mean(proba[np.arange(len(truth)), truth])
            rows.append((f"pooled={pooled}, calibrate={calibrate}", f"{error:.1f}", f"{loss:.3f}", _heat(model)))
            say(" | ".join(rows[-1]))
    title = f"digits, {FEW} rows a class: autoregressive edges alone, 1,000 test images"
    return Table(title, ("", "errors, %", "log-loss", "temperature"), rows)


def _heat(model: SBNClassifier) -> str:
    return NONE if model.temperature_ == 1.0 else f"{model.temperature_:.2f}"
