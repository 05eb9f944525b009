"""Realistic networks for the benchmark: one per digit, trained as in the paper's section 4."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import sbnet as sb
from sbnet.datasets import Digits, load_digits

from . import cpp

SIZES = (8, 24, 64)


class Score(NamedTuple):
    """Share of test digits given to a wrong network; mean bound of digits under their own, in units of 64 ln 2."""

    error: float
    normalised: float


def digit_networks(seed: int = 0, scale: float = 0.1, epochs: int = 5, rate: float = 0.05) -> list[sb.Network]:
    """Ten networks, trained by the C++ baseline on 700 images each."""
    digits = load_digits()
    networks = []
    for digit, rng in enumerate(np.random.SeedSequence(seed).spawn(10)):
        start = sb.layered(SIZES, rng=np.random.default_rng(rng), scale=scale)
        networks.append(cpp.train(start, digits.train[digits.train_target == digit], epochs=epochs, rate=rate))
    return networks


def score(bounds: NDArray[np.float64], digits: Digits) -> Score:
    """Score of a table of bounds: test digits × networks."""
    own = bounds[np.arange(len(bounds)), digits.test_target]
    error = float(np.mean(bounds.argmax(axis=1) != digits.test_target))
    return Score(error, float(own.mean() / (digits.test.shape[1] * np.log(2))))
