"""Images that trained networks make up, and halves of images that they complete."""

from __future__ import annotations

import numpy as np

from sbnet._types import FloatArray
from sbnet.exact.probability import sample
from sbnet.inference import infer_many
from sbnet.paper.digits import SOLVER, data, trained
from sbnet.paper.drawing import tile
from sbnet.paper.record import Experiment, Picture, Row, Settings, compared


def run(settings: Settings) -> Experiment:
    """What the networks of the first seed believe digits look like."""
    networks = trained(settings).networks[0]
    rows = settings.size(4, 1)
    drawn = [sample(network, rows, rng=digit)[:, -64:] for digit, network in enumerate(networks)]
    fantasies = [[drawn[digit][row] for digit in range(10)] for row in range(rows)]
    whole, half, filled, score, usual = complete(settings)
    names = [str(digit) for digit in range(10)]
    return Experiment(
        name="generated",
        title="Digits made up, and digits completed",
        paper="The networks are models of images, not only classifiers; visible units may occur anywhere, “an "
        "important feature for handling problems with missing data”. The paper shows no such pictures.",
        found="Above: images drawn from the ten networks of seed 0, from the top layer down, none of them chosen. "
        "Below: test images of which only the upper half was observed, and the posterior means of the rest under the "
        "network of the right digit. No network was trained for either.",
        tables=(
            compared(
                "hidden pixels predicted right, %",
                (Row("lower half, given the upper half", score), Row("most frequent value of each pixel", usual)),
                ".1f",
                "All test images, each completed by the network of its digit; the second row knows the digit too.",
            ),
        ),
        pictures=(
            Picture(
                "drawn from the networks",
                lambda figure: tile(figure, fantasies, titles=names),
                "Rows of ten images that look like the digits 0 to 9.",
                (7.0, 0.72 * rows + 0.4),
            ),
            Picture(
                "test images; what was observed; what the network makes of it",
                lambda figure: tile(figure, [whole, half, filled], titles=names),
                "Three rows of ten images: whole, upper half only, and completed.",
                (7.0, 2.5),
            ),
        ),
        numbers={"hidden pixels predicted right, %": score, "by the most frequent value, %": usual},
    )


def complete(settings: Settings) -> tuple[list[FloatArray], list[FloatArray], list[FloatArray], float, float]:
    """The first test image of each digit, its upper half, its completion; and how often pixels are predicted right."""
    digits, networks = data(settings), trained(settings).networks[0]
    whole, halves, filled, right, plain = [], [], [], [], []
    for digit, network in enumerate(networks):
        X = digits.test[digits.test_target == digit].astype(np.float64)
        half = X.copy()
        half[:, 32:] = np.nan
        means = infer_many(network, half, solver=SOLVER, progress=False).means[:, -64:]
        usual = digits.train[digits.train_target == digit].mean(axis=0) > 0.5
        right.append(np.mean((means[:, 32:] > 0.5) == X[:, 32:]))
        plain.append(np.mean(usual[32:] == X[:, 32:]))
        whole.append(X[0])
        halves.append(half[0])
        filled.append(means[0])
    return whole, halves, filled, float(100 * np.mean(right)), float(100 * np.mean(plain))
