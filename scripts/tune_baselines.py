"""Choose settings for the other classifiers and imputers of the paper's experiments.

    python scripts/tune_baselines.py

All settings of `SEARCHED` are tried by cross-validation over three folds of the training images; the best are written
down in `baselines.CHOSEN`. Names of algorithms may follow, to try these alone. ``missing`` tries all pairs of
`IMPUTERS` and `CLASSIFIERS`, whose best are written down in `baselines.PIPELINES`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]

from sbnet._types import FloatArray
from sbnet.datasets import load_digits
from sbnet.paper import published
from sbnet.paper.baselines import make
from sbnet.paper.missing import SHARES, fill, remove_pixels

SEARCHED: dict[str, dict[str, list[Any]]] = {
    "back-propagation": {"hidden_layer_sizes": [(50,), (100,), (200,)], "alpha": [0.03, 0.1, 0.3, 1.0]},
    "logistic regression": {"C": [0.1, 0.3, 1.0, 3.0]},
    "RBF support vectors": {"C": [1.0, 3.0, 10.0], "gamma": [0.05, 0.08, 0.12, 0.18]},
    "extra trees": {"max_features": [2, 4, 8], "min_samples_leaf": [1, 2]},
    "restricted Boltzmann machine + logistic regression": {
        "bernoullirbm__n_components": [200],
        "bernoullirbm__learning_rate": [0.01, 0.03, 0.1],
        "bernoullirbm__n_iter": [20],
        "logisticregression__C": [10.0, 30.0, 100.0],
    },
}

IMPUTERS: dict[str, list[dict[str, Any]]] = {
    "none": [{}],
    "mean": [{}],
    "k-nearest": list(ParameterGrid({"n_neighbors": [5, 10, 20], "weights": ["uniform", "distance"]})),
    "iterative": [
        {"estimator": "Bayesian ridge", "max_iter": 3},
        {"estimator": "Bayesian ridge", "max_iter": 10},
        {"estimator": "extra trees", "max_iter": 3, "step": 4},
    ],
}

CLASSIFIERS: dict[str, dict[str, list[Any]]] = {
    "RBF support vectors": {"C": [1.0, 3.0, 10.0], "gamma": [0.02, 0.04, 0.08]},
    "extra trees": {"max_features": [4, 8, 16], "min_samples_leaf": [1, 3]},
    "histogram boosting": {"learning_rate": [0.1, 0.2], "max_leaf_nodes": [7, 15, 31]},
}


def main() -> None:
    """Print the error of every setting, the best first named."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # 60 epochs are a setting like any other
    digits = load_digits()
    X, y = digits.train.astype(np.float64), digits.train_target
    with threadpool_limits(1):
        for name in sys.argv[1:] or [*SEARCHED, "missing"]:
            if name == "missing":
                missing(X, y)
                continue
            search = GridSearchCV(make(name, 0), SEARCHED[name], cv=3).fit(X, y)
            print(f"{name}: {search.best_params_}, error {100 * (1 - search.best_score_):.2f} %", flush=True)
            for score, setting in zip(search.cv_results_["mean_test_score"], search.cv_results_["params"], strict=True):
                print(f"    {100 * (1 - score):.2f} %  {setting}")


def missing(X: Any, y: Any) -> None:
    """Learn from the first 600 images of each digit, and name the others with missing pixels."""
    held = np.arange(len(X)) % published.N_TRAIN >= 600
    tables = {share: remove_pixels(X[held], share, seed=7) for share in SHARES if share > 0.0}
    fillings = [(imputer, filling) for imputer, several in IMPUTERS.items() for filling in several]
    filled = Parallel(n_jobs=2)(delayed(_fill)(X[~held], tables, *filling) for filling in fillings)
    print(f"{len(filled)} ways to fill in missing pixels", flush=True)
    jobs = (delayed(_try)(X[~held], y[~held], y[held], fillings, filled, *one) for one in _settings())
    found: dict[tuple[str, str], list[tuple[float, list[float], Any, Any]]] = {}
    for name, setting, scores in Parallel(n_jobs=2, return_as="generator")(jobs):
        print(f"tried: {name} {setting}", flush=True)
        for (imputer, filling), errors in scores:
            found.setdefault((imputer, name), []).append((float(np.mean(errors)), errors, filling, setting))
    for (imputer, name), rows in found.items():
        print(f"{imputer} imputer + {name}: mean error, and errors at {', '.join(map(str, tables))}")
        for mean, errors, filling, setting in sorted(rows, key=lambda row: row[0])[:8]:
            print(f"    {mean:.2f} %  ({', '.join(f'{error:.1f}' for error in errors)})  {filling} {setting}")


def _fill(X: Any, tables: dict[float, FloatArray], imputer: str, filling: dict[str, Any]) -> list[FloatArray]:
    with threadpool_limits(1):
        return [fill(imputer, filling, X, share, table) for share, table in tables.items()]


def _try(X: Any, y: Any, truth: Any, fillings: list[Any], filled: list[Any], name: str, setting: dict[str, Any]) -> Any:
    """The errors of one classifier behind every imputer that it needs."""
    with threadpool_limits(1):
        model, scores = make(name, 0, setting=setting).fit(X, y), []
        for filling, group in zip(fillings, filled, strict=True):
            if filling[0] != "none" or name != "RBF support vectors":  # these take no missing values
                errors = [100 * float(np.mean(model.predict(table) != truth)) for table in group]
                scores.append((filling, errors))
    return name, setting, scores


def _settings() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, grid in CLASSIFIERS.items():
        yield from product([name], ParameterGrid(grid))


if __name__ == "__main__":
    main()
