"""Table 1: the confusion matrix of the digit classifier."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from sbnet._types import FloatArray
from sbnet.paper import published
from sbnet.paper.digits import Trained, another_split, trained
from sbnet.paper.record import Experiment, Picture, Row, Settings, Table, tolerance
from sbnet.paper.style import INK


def run(settings: Settings) -> Experiment:
    """Ten networks for each seed, and the digits they name."""
    result = trained(settings)
    confusion = confusion_matrices(result)
    per_digit = result.targets.size // 10
    factor = published.N_TEST / per_digit  # only in quick mode are there fewer images
    wrong = factor * (per_digit - np.diagonal(confusion, axis1=1, axis2=2))  # seeds × digits
    total = wrong.sum(axis=1)
    rows = [_row("errors in all, of 4,000", total, published.ERRORS, 10 * published.N_TEST)]
    expected = published.N_TEST - np.diag(published.TABLE_1)
    rows += [_row(f"errors among {k}s, of 400", wrong[:, k], int(expected[k]), published.N_TEST) for k in range(10)]
    mean = confusion.mean(axis=0)
    off = ~np.eye(10, dtype=bool)
    likeness = float(np.corrcoef(mean[off], published.TABLE_1[off])[0, 1])
    return Experiment(
        name="table1",
        title="Table 1: confusion matrix",
        paper="There were 184 errors in classification out of a possible 4,000, an error rate of 4.6 %.",
        found="The paper’s protocol: one 8×24×64 network for each digit, 700 images, five sweeps at rate 0.05; an "
        f"image is named by the network with the highest bound. {settings.seeds} seeds. Which digits are taken for "
        f"which others is much the same: the correlation of the two matrices off the diagonal is {likeness:.2f}. "
        "Tables 2 and 3 and the pictures share these networks; the time to make them is counted where they are first "
        "used.",
        tables=(Table("errors, mean over seeds", tuple(rows), ".1f", _NOTE),),
        pictures=(
            Picture("ours, mean over seeds", lambda f: _draw(f, mean), "Confusion matrix of ours.", _SIZE),
            Picture("the paper’s", lambda f: _draw(f, published.TABLE_1), "Confusion matrix of the paper.", _SIZE),
        ),
        numbers={
            "errors by seed": total.tolist(),
            "confusion by seed": confusion.tolist(),
            "correlation off the diagonal": likeness,
            "processor seconds to make the networks": result.seconds,
        },
    )


_SIZE = (4.4, 3.9)
_NOTE = (
    "±: two standard errors of the difference: over seeds, and over the choice of test images, as it is not known "
    "which ones the paper had."
)


def confusion_matrices(result: Trained) -> FloatArray:
    """How often digit i was named j, for each seed."""
    counts = np.zeros((len(result.networks), 10, 10))
    for seed, predicted in enumerate(result.predicted):
        np.add.at(counts[seed], (result.targets, predicted), 1)
    return counts


def _row(label: str, ours: FloatArray, paper: int, n: int) -> Row:
    rate = max(float(ours.mean()), 1.0) / n
    sampling = n * another_split(np.sqrt(rate * (1 - rate)), n)
    return Row(label, float(ours.mean()), tolerance(ours, sampling), paper)


def _draw(figure: Figure, counts: FloatArray) -> None:
    ax = figure.subplots()
    shown = counts.copy().astype(np.float64)
    for i in range(10):
        for j in range(10):
            if round(shown[i, j]):
                strong = i == j
                size = 8 if strong else 6 + min(3.0, shown[i, j] / 5)
                ax.text(j, i, f"{shown[i, j]:.0f}", ha="center", va="center", color=INK, fontsize=size,
                        fontweight="bold" if strong else "normal")  # fmt: skip
                if not strong:
                    ax.add_patch(_square(i, j, float(shown[i, j])))
    ax.set(xlim=(-0.5, 9.5), ylim=(9.5, -0.5), xticks=range(10), yticks=range(10), xlabel="named", ylabel="digit")
    ax.set_aspect("equal")


def _square(i: int, j: int, count: float) -> Rectangle:
    return Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor="#e07b1a", alpha=min(0.75, 0.05 + count / 20), linewidth=0)
