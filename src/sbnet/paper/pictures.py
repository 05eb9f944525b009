"""Figure 7, images that trained networks make up, and halves of images that they complete."""

from __future__ import annotations

import numpy as np

from sbnet._types import FloatArray
from sbnet.exact.probability import sample
from sbnet.inference import infer_many
from sbnet.paper.digits import SOLVER, data, trained
from sbnet.paper.record import Experiment, Picture, Row, Settings, Table
from sbnet.paper.style import tile


def figure7(settings: Settings) -> Experiment:
    """Training images of twos and fives."""
    digits = data(settings)
    images = [list(digits.train[digits.train_target == digit][:8]) for digit in (2, 5)]
    return Experiment(
        name="figure7",
        title="Figure 7: binary images of handwritten digits",
        paper="Two and five, as 8×8 binary images, of 11,000 digits from the US Postal Service.",
        found="The same collection: 700 training and 400 test images of each digit, embedded in sbnet. How the paper "
        "made them binary is not known; here the threshold is the one that gives the published error of the nearest "
        "neighbour.",
        pictures=(
            Picture(
                "the first eight twos and fives of the training set",
                lambda figure: tile(figure, images),
                "Two rows of eight small images: twos above, fives below.",
                (6.4, 1.8),
            ),
        ),
        numbers={"images": len(digits.train) + len(digits.test)},
    )


def generated(settings: Settings) -> Experiment:
    """What the networks of the first seed believe digits look like."""
    networks = trained(settings).networks[0]
    rows = settings.size(4, 1)
    drawn = [sample(network, rows, rng=digit)[:, -64:] for digit, network in enumerate(networks)]
    fantasies = [[drawn[digit][row] for digit in range(10)] for row in range(rows)]
    whole, half, filled, score, guess = complete(settings)
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
            Table(
                "hidden pixels guessed right, %",
                (Row("lower half, given the upper half", score), Row("most frequent value of each pixel", guess)),
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
        numbers={"hidden pixels guessed right, %": score, "by the most frequent value, %": guess},
    )


def complete(settings: Settings) -> tuple[list[FloatArray], list[FloatArray], list[FloatArray], float, float]:
    """The first test image of each digit, its upper half, its completion; and how often pixels are guessed right."""
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
