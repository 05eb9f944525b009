"""A mixture of Bernoullis for each class, learned by EM: the simplest rival among densities of binary images."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from sbnet._types import FloatArray

COMPONENTS = (8, 16, 32, 48)
HELD_OUT = 0.2
PSEUDO = 0.1  # imaginary images of each value, for each component and pixel: no probability is ever 0 or 1


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
        """The class under which each row is most likely."""
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
