"""Other classifiers for the same digits, and imputers for missing pixels; settings were chosen on training images.

`scripts/tune_baselines.py` chose those of `CHOSEN`, by cross-validation on whole images, unless noted, and those of
`PIPELINES` on held-out images with missing pixels.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.neural_network import BernoulliRBM, MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from sbnet._types import FloatArray

CHOSEN: dict[str, dict[str, Any]] = {
    "back-propagation": {"hidden_layer_sizes": (200,), "alpha": 0.1},
    "logistic regression": {"C": 1.0},
    "RBF support vectors": {"C": 3.0, "gamma": 0.12},
    "extra trees": {"max_features": 4, "min_samples_leaf": 1},
    "restricted Boltzmann machine + logistic regression": {
        "bernoullirbm__n_components": 200,
        "bernoullirbm__learning_rate": 0.03,
        "bernoullirbm__n_iter": 20,
        "logisticregression__C": 30.0,
    },
}

QUICK: dict[str, dict[str, Any]] = {
    "back-propagation": {"max_iter": 3},
    "extra trees": {"n_estimators": 10},
    "restricted Boltzmann machine + logistic regression": {"bernoullirbm__n_iter": 1},
    "histogram boosting": {"max_iter": 2},
}
"""Changes for quick runs."""

Chosen: TypeAlias = tuple[tuple[str, Any], ...]
"""Names and values of settings."""


class Pipeline(NamedTuple):
    """An imputer in front of a classifier, with the settings of both."""

    imputer: str
    classifier: str
    filling: Chosen
    setting: Chosen

    @property
    def name(self) -> str:
        if self.imputer == "none":
            return f"{self.classifier}, no imputer"
        return f"{self.imputer} imputer + {self.classifier}"


_NEAR: Chosen = (("n_neighbors", 10), ("weights", "distance"))
_FOREST: Chosen = (("estimator", "extra trees"), ("max_iter", 3), ("step", 4))


def _kernel(C: float) -> Chosen:
    return (("C", C), ("gamma", 0.08))


def _trees(leaf: int) -> Chosen:
    return (("max_features", 4), ("min_samples_leaf", leaf))


def _boost(rate: float, leaves: int) -> Chosen:
    return (("learning_rate", rate), ("max_leaf_nodes", leaves))


PIPELINES = (
    Pipeline("mean", "RBF support vectors", (), _kernel(1.0)),
    Pipeline("mean", "extra trees", (), _trees(3)),
    Pipeline("mean", "histogram boosting", (), _boost(0.2, 15)),
    Pipeline("k-nearest", "RBF support vectors", _NEAR, _kernel(10.0)),
    Pipeline("k-nearest", "extra trees", (("n_neighbors", 20), ("weights", "uniform")), _trees(1)),
    Pipeline("k-nearest", "histogram boosting", _NEAR, _boost(0.1, 15)),
    Pipeline("iterative", "RBF support vectors", _FOREST, _kernel(3.0)),
    Pipeline("iterative", "extra trees", _FOREST, _trees(1)),
    Pipeline("iterative", "histogram boosting", _FOREST, _boost(0.2, 15)),
    Pipeline("none", "extra trees", (), _trees(1)),
    Pipeline("none", "histogram boosting", (), _boost(0.2, 31)),
)
"""The winner of each pair; `step` is the stride through the training images that the iterative imputer learns from."""

COMPONENTS = (8, 16, 32, 48)
HELD_OUT = 0.2
PSEUDO = 0.1  # imaginary images of each value, for each component and pixel: no probability is ever 0 or 1


class NearestNeighbour:
    """The published one: Hamming distance; of equally near images the first decides."""

    def fit(self, X: Any, y: Any) -> NearestNeighbour:
        self.X, self.y = np.asarray(X, dtype=np.float32), np.asarray(y)
        return self

    def predict(self, X: Any) -> Any:
        distance = self.X.sum(axis=1) - 2.0 * np.asarray(X, dtype=np.float32) @ self.X.T  # less a constant; exact
        return self.y[distance.argmin(axis=1)]


class BernoulliMixture:
    """Mixtures of independent pixels; how many components a class has is decided on held-out training rows."""

    def __init__(self, *, rng: int = 0, sweeps: int = 40, components: tuple[int, ...] = COMPONENTS) -> None:
        self.rng, self.sweeps, self.components = rng, sweeps, components

    def fit(self, X: NDArray[np.uint8], y: NDArray[np.uint8]) -> BernoulliMixture:
        """Choose on held-out rows, then learn from all rows of each class."""
        self.classes_ = np.unique(y)
        self.parts_, self.chosen_ = [], []
        for label in self.classes_:
            generator = np.random.default_rng([self.rng, int(label)])
            rows = generator.permutation(X[y == label].astype(np.float64))
            n_out = max(1, round(HELD_OUT * len(rows)))
            scores = [
                _log_density(rows[:n_out], *self._learn(rows[n_out:], k, generator)).mean() for k in self.components
            ]
            self.chosen_.append(self.components[int(np.argmax(scores))])
            self.parts_.append(self._learn(rows, self.chosen_[-1], generator))
        return self

    def log_density(self, X: NDArray[np.uint8]) -> FloatArray:
        """ln P(image | class), rows by classes."""
        return np.column_stack([_log_density(X.astype(np.float64), *part) for part in self.parts_])

    def predict(self, X: NDArray[np.uint8]) -> NDArray[np.uint8]:
        best: NDArray[np.uint8] = self.classes_[self.log_density(X).argmax(axis=1)]
        return best

    def _learn(self, rows: FloatArray, k: int, generator: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """EM from responsibilities drawn at random; logarithms of the shares, and probabilities of the pixels."""
        share = generator.dirichlet(np.full(k, 0.1), size=len(rows))
        for _ in range(self.sweeps):
            total = share.sum(axis=0)
            pixels = (share.T @ rows + PSEUDO) / (total[:, None] + 2 * PSEUDO)
            log_share = np.log((total + PSEUDO) / (total + PSEUDO).sum())
            joint = _joint(rows, log_share, pixels)
            share = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        return log_share, pixels


def _joint(rows: FloatArray, log_share: FloatArray, pixels: FloatArray) -> FloatArray:
    joint: FloatArray = rows @ np.log(pixels).T + (1.0 - rows) @ np.log1p(-pixels).T + log_share
    return joint


def _log_density(rows: FloatArray, log_share: FloatArray, pixels: FloatArray) -> FloatArray:
    density: FloatArray = logsumexp(_joint(rows, log_share, pixels), axis=1)
    return density


def make(name: str, seed: int, *, quick: bool = False, setting: dict[str, Any] | None = None) -> Any:
    """A classifier by its name, with the settings of `CHOSEN` or with those given."""
    changes = QUICK.get(name, {}) if quick else {}
    makers: dict[str, Callable[[], Any]] = {
        "back-propagation": lambda: MLPClassifier(early_stopping=False, max_iter=60, random_state=seed),
        "logistic regression": lambda: LogisticRegression(max_iter=1000),
        "RBF support vectors": SVC,
        "extra trees": lambda: ExtraTreesClassifier(n_estimators=300, n_jobs=1, random_state=seed),
        "restricted Boltzmann machine + logistic regression": lambda: make_pipeline(
            BernoulliRBM(batch_size=20, random_state=seed), LogisticRegression(max_iter=1000)
        ),
        "histogram boosting": lambda: HistGradientBoostingClassifier(max_iter=100, random_state=seed),
    }
    return makers[name]().set_params(**{**(CHOSEN[name] if setting is None else setting), **changes})


def fill(imputer: str, filling: dict[str, Any], train: FloatArray, table: FloatArray, *, quick: bool) -> FloatArray:
    """The table with its missing values filled in, after learning from training images."""
    if imputer == "mean":
        return np.asarray(SimpleImputer().fit(train).transform(table))
    if imputer == "k-nearest":
        parts = np.array_split(table, len(table) // 1000 + 1)  # all distances at once would take a gigabyte
        return np.vstack([nearest(train, part, **filling) for part in parts])
    estimators = {
        "Bayesian ridge": BayesianRidge,
        "extra trees": lambda: ExtraTreesRegressor(10, min_samples_leaf=5, max_features=0.3, random_state=0),
    }
    estimator, rounds = estimators[filling["estimator"]](), 1 if quick else filling["max_iter"]
    model = IterativeImputer(estimator, max_iter=rounds, tol=0.0, min_value=0.0, max_value=1.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of rounds is a setting like any other
        return np.asarray(model.fit(train[:: filling.get("step", 1)]).transform(table))


def nearest(train: FloatArray, table: FloatArray, *, n_neighbors: int, weights: str) -> FloatArray:
    """What scikit-learn's ``KNNImputer`` gives, for training images that are binary and whole.

    That one ranks the neighbours of an image anew for each missing pixel. Where all training images are whole they are
    the same for each, so they are ranked once here, which is many times faster.
    """
    seen = ~np.isnan(table)
    ink, weight = np.where(seen, table, 0.0), seen.astype(np.float64)
    # (x − t)² = x − 2xt + t for binary pixels; scaled up for the pixels that are not seen.
    apart = ink.sum(axis=1)[:, None] - 2.0 * ink @ train.T + weight @ train.T
    distance = np.sqrt(apart * (table.shape[1] / weight.sum(axis=1))[:, None])
    near = np.argpartition(distance, n_neighbors - 1, axis=1)[:, :n_neighbors]
    share = np.ones(near.shape)
    if weights == "distance":
        distance = np.take_along_axis(distance, near, axis=1)
        same = distance == 0.0  # these alone count, if there are any
        share = np.where(same.any(axis=1)[:, None], same, 1.0 / np.where(same, 1.0, distance))
    means = np.einsum("rk,rkp->rp", share, train[near]) / share.sum(axis=1)[:, None]
    return np.where(seen, table, means)
