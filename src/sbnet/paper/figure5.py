"""Figure 5: how tight the bound is on random networks that can be enumerated."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from sklearn.utils.parallel import Parallel, delayed

from sbnet._types import FloatArray, LogTerm
from sbnet.exact.answers import log_likelihood
from sbnet.inference import MeanField, infer
from sbnet.model.build import layered
from sbnet.paper import published
from sbnet.paper.drawing import FIRST, SECOND
from sbnet.paper.record import Experiment, Picture, Row, Settings, compared

SIZES, SEED, BLOCK = (2, 4, 6), 1996, 500
TERMS: dict[LogTerm, str] = {"xi": "mean field, the paper’s bound", "exact": "mean field, exact ⟨ln(1 + eᶻ)⟩"}


def run(settings: Settings) -> Experiment:
    """Relative errors of bounds over random networks, with the bottom layer all zero."""
    n = settings.size(10_000, 50)
    log_p, bounds = random_networks(n, 1.0, settings.jobs)
    error = {term: 100 * (bound / log_p - 1) for term, bound in bounds.items()}
    uniform = 100 * (SIZES[-1] * np.log(0.5) / log_p - 1)
    rms = float(np.sqrt(np.mean(uniform**2)))
    rms_error = float((uniform**2).std() / np.sqrt(n) / (2 * rms))  # of a root of a mean
    mean = {term: float(values.mean()) for term, values in error.items()}
    spread = {term: _spread(values.std() / np.sqrt(n)) for term, values in error.items()}
    rows = [
        Row(TERMS["xi"] + ": mean", mean["xi"], spread["xi"], published.FIGURE_5["mean field"]),
        Row("all states equally likely: root mean square", rms, _spread(rms_error), published.FIGURE_5["uniform"]),
        Row(TERMS["exact"] + ": mean", mean["exact"], spread["exact"]),
    ]
    return Experiment(
        title="Figure 5: relative error of the log-likelihood",
        paper="Over 10,000 random 2×4×6 networks, weights and biases uniform in ±1, bottom layer all zero: the mean "
        "relative error of the bound is 1.6 %. If all states of the bottom layer are assumed equally likely, the "
        "root mean square relative error is 22.6 %.",
        found=f"{n:,} networks, the exact log-likelihood by enumeration. Every bound lies below it, as it must. The "
        "third row is not in the paper: the same factorial distribution with its logarithm term exact, the default "
        "of sbnet.",
        tables=(compared("relative error, %", tuple(rows), ".2f", _NOTE),),
        pictures=(
            Picture("mean field", lambda figure: _draw(figure, error["xi"], FIRST), _ALT[0]),
            Picture("all states equally likely", lambda figure: _draw(figure, uniform, SECOND), _ALT[1]),
        ),
        numbers={
            "networks": n,
            "seed": SEED,
            "mean relative error, %": mean,
            "largest relative error, %": {term: float(values.max()) for term, values in error.items()},
            "smallest relative error, %": {term: float(values.min()) for term, values in error.items()},
            "root mean square relative error of the uniform approximation, %": rms,
        },
    )


_NOTE = "±: two standard errors of the difference of two sets of so many networks, and the rounding of the paper."
_ALT = (
    "A histogram of relative errors, all positive, most between 0 and 4 per cent.",
    "A broad histogram of relative errors from about −50 to 60 per cent.",
)


def random_networks(n: int, scale: float, jobs: int = 1) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Exact log-likelihoods and bounds, one for each random network."""
    tasks = (delayed(_block)(k, min(BLOCK, n - k), scale) for k in range(0, n, BLOCK))
    parts = np.concatenate(Parallel(n_jobs=jobs if n > BLOCK else 1)(tasks))
    return parts[:, 0], {term: parts[:, 1 + k] for k, term in enumerate(TERMS)}


def _block(first: int, n: int, scale: float) -> FloatArray:
    rng, zeros = np.random.default_rng([SEED, first]), np.zeros(SIZES[-1])
    solvers = [MeanField(log_term=term, enumerate_up_to=0) for term in TERMS]
    rows = np.empty((n, 1 + len(solvers)))
    for row in rows:
        network = layered(SIZES, rng=rng, scale=scale)
        row[0] = log_likelihood(network, zeros)
        row[1:] = [infer(network, zeros, solver=solver).bound for solver in solvers]
    return rows


def _spread(standard_error: float) -> float:
    return float(2 * np.sqrt(2) * standard_error + 0.05)


def _draw(figure: Figure, values: FloatArray, colour: str) -> None:
    ax = figure.subplots()
    ax.hist(values, bins=min(60, max(5, len(values) // 10)), color=colour)
    ax.axvline(0, color="#888888", linewidth=0.8)
    ax.set(xlabel="relative error, %", ylabel="networks")
