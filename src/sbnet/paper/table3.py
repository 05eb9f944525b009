"""Table 3: the normalised score of each digit's network on its own test images."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from sbnet._types import FloatArray
from sbnet.paper import published
from sbnet.paper.digits import another_split, trained
from sbnet.paper.record import Experiment, Picture, Row, Settings, Table, tolerance
from sbnet.paper.style import FIRST, SECOND


def run(settings: Settings) -> Experiment:
    """Mean bounds of test images under the networks of their own digits, in units of 64 ln 2."""
    result = trained(settings)
    rows, scores = [], np.empty((settings.seeds, 10))
    for digit in range(10):
        own = result.bounds[:, result.targets == digit, digit] / (64 * np.log(2))
        scores[:, digit] = own.mean(axis=1)
        sampling = another_split(own.mean(axis=0).std(), own.shape[1])
        rows.append(_row(str(digit), scores[:, digit], sampling, published.TABLE_3[digit]))
    parts = [(row.spread or 0.0) / 10 for row in rows]
    overall = scores.mean(axis=1)
    rows.append(_row("all", overall, float(np.linalg.norm(parts)) / 2, published.TABLE_3_ALL))
    mean = scores.mean(axis=0)
    rank = float(spearmanr(mean, published.TABLE_3)[0])
    off = float(np.abs(mean - published.TABLE_3).max())
    return Experiment(
        name="table3",
        title="Table 3: log-likelihood score of each digit",
        paper="Mean bound of the test images of a digit under its network, normalised so that a network with zero "
        "weights and biases scores −1. Zeros, ones and sevens are more easily modelled than the rest; the average is "
        "−0.511.",
        found=f"The rank correlation of our scores with the paper’s is {rank:.2f}, and none is more than {off:.3f} "
        "away. Differences are to be expected: how the paper made its images binary is not known, and thicker or "
        "thinner strokes are harder or easier to predict.",
        tables=(Table("score, mean over seeds", tuple(rows), ".3f", _NOTE),),
        pictures=(
            Picture(
                "ours and the paper’s: higher is better",
                lambda figure: _draw(figure, mean),
                "Two points for each digit, close together; ones are highest, twos lowest.",
            ),
        ),
        numbers={"score by seed": scores.tolist(), "all": overall.tolist(), "rank correlation": rank},
    )


_NOTE = (
    "±: two standard errors of the difference: over seeds, and over the choice of test images. How images were made "
    "binary is not part of it."
)


def _row(label: str, ours: FloatArray, sampling: float, paper: float) -> Row:
    return Row(label, float(ours.mean()), tolerance(ours, sampling, 5e-4), paper)


def _draw(figure: Figure, mean: FloatArray) -> None:
    """A column for each digit: no label can fall on another."""
    ax = figure.subplots()
    place = np.arange(10)
    ax.vlines(place, np.minimum(mean, published.TABLE_3), np.maximum(mean, published.TABLE_3), color="#888888", lw=1)
    ax.plot(place, published.TABLE_3, "D", color=SECOND, markersize=6, markerfacecolor="none", label="the paper’s")
    ax.plot(place, mean, "o", color=FIRST, markersize=5, label="ours")
    ax.set(xlabel="digit", ylabel="score", xticks=place)
    ax.grid(axis="y", color="#88888855", linewidth=0.6)
    ax.legend(loc="upper center", ncols=2, fontsize=9)
