"""The paper's protocol on the digits: one network for each digit, and the one with the highest bound names the image.

Written with :func:`sbnet.fit` and :func:`sbnet.infer_many` alone, so that each step of section 4 can be read here.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from sbnet._types import FloatArray, IndexArray
from sbnet.datasets import load_digits
from sbnet.datasets.digits import Digits
from sbnet.inference import MeanField, infer_many
from sbnet.learning import SGD, fit, wake_sleep
from sbnet.model.build import layered
from sbnet.model.network import Network
from sbnet.paper import published
from sbnet.paper.record import Settings

SOLVER = MeanField(log_term="xi", tol=1e-4, enumerate_up_to=0)
THRESHOLD = 0.181
"""Mean grey, from 0 to 1, over which a pixel of the images is 1: `sbnet/datasets/PROVENANCE.md` says why."""
COLLECTION = 1100
"""Images of each digit in the collection that training and test images were taken from."""
WAKE_SLEEP_EPOCHS = 30
"""Wake-sleep needs more than mean field. Of 5, 30 and 100 epochs on 600 training images a digit, 30 gave the fewest
errors (6.2, 4.8 and 5.4 %) and the highest mean bound on the other 100 images."""


class Digit(NamedTuple):
    """A network for one digit, and its bounds for all test images."""

    network: Network
    bounds: FloatArray
    seconds: float


class Trained(NamedTuple):
    """Ten networks for each seed."""

    networks: list[list[Network]]
    bounds: FloatArray  # seeds × test images × networks
    targets: NDArray[np.uint8]  # of the test images
    seconds: float  # of processor time

    @property
    def predicted(self) -> IndexArray:
        """The digit whose network has the highest bound: seeds × test images."""
        best: IndexArray = self.bounds.argmax(axis=2)
        return best

    @property
    def errors(self) -> FloatArray:
        """Share of test images classified wrongly, for each seed."""
        shares: FloatArray = (self.predicted != self.targets).mean(axis=1)
        return shares


def data(settings: Settings) -> Digits:
    """The digits; in quick mode a few of each."""
    full = load_digits()
    if not settings.quick:
        return full
    train = np.flatnonzero(np.arange(len(full.train)) % published.N_TRAIN < 40)
    test = np.flatnonzero(np.arange(len(full.test)) % published.N_TEST < 12)
    return Digits(full.train[train], full.train_target[train], full.test[test], full.test_target[test])


@lru_cache(maxsize=2)
def trained(settings: Settings, algorithm: str = "mean field") -> Trained:
    """Networks for every seed and digit, made once for all the experiments of a run."""
    begin, digits, n = time.monotonic(), data(settings), 10 * settings.seeds
    # Networks are made side by side in processes of one thread: single patterns leave nothing to share.
    pairs = [(seed, digit) for seed in range(settings.seeds) for digit in range(10)]
    tasks = (delayed(_learn)(algorithm, settings.quiet, seed, digit) for seed, digit in pairs)
    made: list[Digit] = []
    for one in Parallel(n_jobs=settings.jobs, return_as="generator")(tasks):
        made.append(one)
        settings.say(f"{algorithm}: network {len(made)} of {n}, {time.monotonic() - begin:.0f} s")
    networks = [[one.network for one in made[start : start + 10]] for start in range(0, n, 10)]
    bounds = np.stack([np.column_stack([one.bounds for one in made[start : start + 10]]) for start in range(0, n, 10)])
    return Trained(networks, bounds, digits.test_target, sum(one.seconds for one in made))


def _learn(algorithm: str, settings: Settings, seed: int, digit: int) -> Digit:
    """Section 4: five sweeps through the training images of a digit at rate 0.05; then the bounds of test images."""
    begin, digits, rng = time.process_time(), data(settings), np.random.default_rng([seed, digit, 1])
    sizes = (2, 4, 64) if settings.quick else published.SIZES
    network = layered(sizes, rng=np.random.default_rng([seed, digit]), scale=0.1)
    X = digits.train[digits.train_target == digit]
    if algorithm == "wake-sleep":
        epochs = settings.size(WAKE_SLEEP_EPOCHS, 2)
        network = wake_sleep(network, X, epochs=epochs, rate=published.RATE, rng=rng, progress=False).network
    else:
        epochs, optimizer = settings.size(published.EPOCHS, 1), SGD(published.RATE)
        network = fit(network, X, epochs=epochs, optimizer=optimizer, rng=rng, threads=1, progress=False).network
    bounds = infer_many(network, digits.test, solver=SOLVER, threads=1, progress=False).bound
    return Digit(network, bounds, time.process_time() - begin)


def another_split(deviation: float, n: int) -> float:
    """Standard error of the difference between two means over test images, with another choice of training and test.

    Which images the paper had in its test set is not known. Two random choices of `n` images, drawn without return from
    a collection of 1,100 for every 400, differ by this for a quantity of the given standard deviation over images.
    """
    return float(deviation * np.sqrt(2.0 / n * (1.0 - published.N_TEST / COLLECTION)))
