"""Figure 1: the sigmoid function."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit

from sbnet.exact.answers import exact_posterior
from sbnet.model.build import from_edges
from sbnet.paper.record import Experiment, Picture, Settings
from sbnet.paper.style import FIRST


def run(settings: Settings) -> Experiment:
    """The probability of a unit with one observed parent, for several weights."""
    del settings  # nothing to repeat
    answers = {z: _answer(z) for z in np.linspace(-6, 6, 13).tolist()}
    off = max(abs(answer - float(expit(z))) for z, answer in answers.items())
    return Experiment(
        name="figure1",
        title="Figure 1: the sigmoid function",
        paper="If z is the sum of weighted inputs to unit S, then P(S = 1 | z) = σ(z) = 1 / (1 + e⁻ᶻ).",
        found="Points: a unit with one parent, observed as 1, asked for its probability; z is the weight. They lie "
        f"on the curve of eq. (3) to within {off:.0e}.",
        pictures=(Picture("σ(z), and the answers of networks", lambda figure: _draw(figure, answers), _ALT),),
        numbers={"P(S = 1)": {f"{z:g}": answer for z, answer in answers.items()}},
    )


_ALT = "An S-shaped curve from 0 to 1, one half at z = 0, with points on it."


def _answer(z: float) -> float:
    return float(exact_posterior(from_edges({("parent", "unit"): z}), {"parent": 1})[1])


def _draw(figure: Figure, answers: dict[float, float]) -> None:
    ax = figure.subplots()
    z = np.linspace(-6, 6, 200)
    ax.plot(z, expit(z), color=FIRST)
    ax.plot(list(answers), list(answers.values()), "o", color=FIRST, markersize=4)
    ax.set(xlabel="z", ylabel="σ(z)")
