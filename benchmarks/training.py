"""Learning: rows a second against the size of batches, networks and tables, beside other ways to learn."""

from __future__ import annotations

import time
import warnings
from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.neural_network import BernoulliRBM

import sbnet as sb
from sbnet.datasets import load_digits
from sbnet.estimators import SBNClassifier, SBNDensity, Training

from .baselines import cpp
from .report import NONE, Table, race, say, seconds

BATCHES = (1, 10, 100, 1000)
SHAPES = ((8, 24, 64), (32, 64), (100, 200))
ROWS = (1000, 4000, 16000)
TORCH_ROWS = {1: 5, 10: 20, 100: 200, 1000: 1000}
TORCH_STEPS = 25  # of L-BFGS for each batch: the mean bound then comes within 0.1 nats or so of ours on digits


def table() -> list[Table]:
    return [_paper(), _batches(), _rows()]


def _paper() -> Table:
    """Ten networks on 700 rows each, one row at a time."""
    digits = load_digits()
    protocol = SBNDensity(
        autoregressive=False, epochs=5, prior=None, settings=Training(batch_size=1, optimizer=sb.SGD(0.05))
    )
    paper = SBNClassifier(density=protocol, hidden=(8, 24), random_state=0)
    contestants = {
        f"SBNClassifier, n_jobs={jobs}": partial(
            lambda jobs: clone(paper).set_params(n_jobs=jobs).fit(digits.train, digits.train_target), jobs
        )
        for jobs in (1, 2)
    }
    missing = []
    try:
        cpp.library()
    except cpp.CompilerMissing as error:
        missing.append(f"C++: {error}")
    else:
        starts = [sb.layered((8, 24, 64), rng=k, scale=0.1) for k in range(10)]
        parts = [digits.train[digits.train_target == k] for k in range(10)]
        contestants["C++ blocks, 1 thread"] = lambda: [
            cpp.train(n, p, epochs=5) for n, p in zip(starts, parts, strict=True)
        ]
    warm = clone(paper).set_params(n_jobs=2)
    warm.fit(digits.train[::50], digits.train_target[::50])  # compile, start processes
    runs = race(contestants, repeats=2)
    rows = [(name, seconds(run.seconds), f"{10 * 700 * 5 / run.seconds:,.0f}") for name, run in runs.items()]
    return Table(
        "training: ten 8 × 24 × 64 networks, 700 digits each, 5 epochs of online ascent (the paper's protocol)",
        ("", "time", "rows/s"),
        rows,
        ("All solve each row until a sweep gains less than 0.001 nats. Best of 2.", *missing),
    )


def _batches() -> Table:
    rows = []
    for shape in SHAPES:
        truth = sb.layered(shape, rng=0, scale=1.0)
        X = sb.sample(truth, 2000, rng=1)[:, -shape[-1] :].astype(float)
        net = sb.layered(shape, rng=2, scale=0.1)
        for batch in BATCHES:
            say(f"training: {shape}, batches of {batch}")
            part = X if batch > 1 else X[:500]
            work = partial(sb.fit, net, part, epochs=2, batch_size=batch, rng=0)
            work()  # compile
            run = race({"sbnet": work}, repeats=2)["sbnet"]
            rbm = _rbm(shape[-2], part, batch)
            rows.append(
                (
                    " × ".join(map(str, shape)),
                    f"{batch:,}",
                    f"{2 * len(part) / run.seconds:,.0f}",
                    f"{rbm:,.0f}",
                    _torch(net, X, batch),
                )
            )
    notes = (
        "sbnet: the paper's bound on all cores, two epochs, each row solved until a sweep gains less than 0.001 nats.",
        "BernoulliRBM: scikit-learn's, as many hidden units as the layer above the table; one sampling step a row, "
        "and no likelihood or bound.",
        f"PyTorch: the same bound by automatic differentiation, {TORCH_STEPS} steps of L-BFGS on means and xi for each "
        "batch, one thread, and one gradient step on the weights.",
    )
    return Table("training: rows a second", ("network", "batch", "sbnet", "BernoulliRBM", "PyTorch"), rows, notes)


def _rbm(components: int, X: np.ndarray, batch: int) -> float:
    model = BernoulliRBM(components, batch_size=batch, n_iter=2, random_state=0)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    return 2 * len(X) / (time.perf_counter() - begin)


def _torch(net: sb.Network, X: np.ndarray, batch: int) -> str:
    try:
        from .baselines import autodiff
    except ImportError:
        return NONE
    part = X[: TORCH_ROWS[batch]]
    autodiff.train(net, part[:2], 2, 2)  # loads half of PyTorch
    return f"{len(part) / autodiff.train(net, part, batch, TORCH_STEPS):,.0f}"


def _rows() -> Table:
    truth = sb.layered((8, 24, 64), rng=0, scale=1.0)
    X = sb.sample(truth, max(ROWS), rng=1)[:, -64:].astype(float)
    net = sb.layered((8, 24, 64), rng=2, scale=0.1)
    found = []
    for threads in (1, 2):
        contestants = {
            f"{n:,}": partial(sb.fit, net, X[:n], epochs=1, batch_size=200, threads=threads, rng=0) for n in ROWS
        }
        for (name, run), n in zip(race(contestants, repeats=2).items(), ROWS, strict=True):
            found.append((name, str(threads), seconds(run.seconds), f"{n / run.seconds:,.0f}"))
    return Table(
        "training: one epoch of an 8 × 24 × 64 network in batches of 200",
        ("rows", "threads", "time", "rows/s"),
        found,
        ("Best of 2.",),
    )
