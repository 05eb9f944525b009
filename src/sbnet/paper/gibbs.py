"""Gibbs sampling beside mean field: the error of posterior means against the time they take."""

from __future__ import annotations

import time
import warnings
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from sbnet._types import FloatArray, LogTerm, States
from sbnet.errors import ConvergenceWarning
from sbnet.exact.answers import exact_posterior
from sbnet.exact.probability import sample
from sbnet.inference import Gibbs, MeanField, Solver, infer_many
from sbnet.model.build import layered
from sbnet.model.network import Network
from sbnet.paper.drawing import FIRST, SECOND, THIRD
from sbnet.paper.record import Experiment, Picture, Settings, Table

SIZES, SCALES = (4, 8, 16), (1.0, 3.0)
SAMPLES = (10, 30, 100, 300, 1000)
FIELDS: dict[str, LogTerm] = {"mean field, exact term": "exact", "mean field, the paper’s": "xi"}
Points = dict[str, tuple[float, float]]


def run(settings: Settings) -> Experiment:
    """Networks small enough to enumerate, weak and strong, their bottom layers observed."""
    measured = {scale: _measure(settings, scale) for scale in SCALES}
    cells = []
    for name in measured[SCALES[0]]:
        numbers = [measured[scale][name] for scale in SCALES]
        cells.append((name, *(text for error, s in numbers for text in (f"{error:.4f}", f"{1000 * s:.3f}"))))
    header = ("solver", *(text for scale in SCALES for text in (f"error, ±{scale:g}", f"ms a row, ±{scale:g}")))
    return Experiment(
        title="Gibbs sampling: accuracy against time",
        paper="“Though similar results can be obtained via Gibbs sampling, this seems to require considerably more "
        "computation than methods based on maximizing a lower bound.”",
        found="Posterior means of 4×8×16 networks with the bottom layer observed, against enumeration. "
        + " ".join(_crossing(scale, points) for scale, points in measured.items())
        + " Mean field is at its error at once and gives a bound; sampling gets better with time, without one.",
        tables=(
            Table("root mean square error of the means; milliseconds for a row, one thread", header, tuple(cells)),
        ),
        pictures=tuple(
            Picture(
                f"weights in ±{scale:g}",
                partial(_draw, points=points),
                "A falling line for Gibbs sampling in logarithmic scales, and two points for mean field.",
            )
            for scale, points in measured.items()
        ),
        numbers={f"error and seconds a row, ±{scale:g}": points for scale, points in measured.items()},
    )


def _measure(settings: Settings, scale: float) -> Points:
    network, rows = layered(SIZES, rng=0, scale=scale), settings.size(50, 4)
    X = sample(network, rows, rng=1)[:, -SIZES[-1] :]
    exact = exact_posterior(network, X).means
    hidden = slice(0, network.n_units - SIZES[-1])
    solvers: dict[str, Solver] = {name: MeanField(log_term=term, enumerate_up_to=0) for name, term in FIELDS.items()}
    for samples in SAMPLES[: settings.size(5, 2)]:
        solvers[f"Gibbs, {2 * samples:,} samples"] = Gibbs(samples=samples, burn_in=max(samples // 10, 5), chains=2)
    points = {}
    for name, solver in solvers.items():
        settings.say(f"gibbs: {name}, weights in ±{scale:g}")
        _solve(network, X[:1], solver)  # compile
        means, seconds = min((_solve(network, X, solver) for _ in range(settings.size(3, 1))), key=lambda one: one[1])
        error = float(np.sqrt(np.mean((means[:, hidden] - exact[:, hidden]) ** 2)))
        points[name] = (error, seconds / rows)
    return points


def _solve(network: Network, X: States, solver: Solver) -> tuple[FloatArray, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # short chains disagree; that is what is measured
        begin = time.perf_counter()
        means = infer_many(network, X, solver=solver, threads=1, progress=False).means
        return means, time.perf_counter() - begin


def _crossing(scale: float, points: Points) -> str:
    """When sampling is as accurate as the paper's mean field."""
    error, seconds = points["mean field, the paper’s"]
    enough = [point[1] for name, point in points.items() if name.startswith("Gibbs") and point[0] <= error]
    if not enough:
        return f"Weights in ±{scale:g}: sampling does not become as accurate as the paper’s mean field here."
    ratio = f"{min(enough) / seconds:.2g} times its time"
    return f"Weights in ±{scale:g}: sampling is at least as accurate as the paper’s mean field in {ratio}."


def _draw(figure: Figure, points: Points) -> None:
    ax = figure.subplots()
    sampled = np.array([point for name, point in points.items() if name.startswith("Gibbs")])
    ax.loglog(1000 * sampled[:, 1], sampled[:, 0], "o-", color=SECOND, label="Gibbs sampling")
    for (name, colour), marker in zip(zip(FIELDS, (THIRD, FIRST), strict=True), "sD", strict=True):
        ax.loglog(1000 * points[name][1], points[name][0], marker, color=colour, label=name)
    for axis in (ax.xaxis, ax.yaxis):  # few numbers, in plain digits: those of every decade's nine lines overlap
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    ax.set(xlabel="milliseconds a row", ylabel="error of the means")
    ax.legend(fontsize=8)
