"""Figures 3 and 4: a Markov blanket, and the three-layer network."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from sbnet import plots
from sbnet.model.build import from_edges, layered
from sbnet.model.network import Network
from sbnet.paper.record import Experiment, Picture, Settings

UNIT = "Sᵢ"


def figure3(settings: Settings) -> Experiment:
    """Units that share no factor of P(S) with unit i do not move its update: the blanket, found by changing each."""
    del settings
    edges = {
        ("parent 1", UNIT): 1.2,
        ("parent 2", UNIT): -0.8,
        (UNIT, "child 1"): 1.0,
        (UNIT, "child 2"): -1.4,
        ("spouse", "child 2"): 0.9,
        ("remote", "spouse"): 0.7,
    }
    network = from_edges(edges)
    blanket = markov_blanket(network, UNIT)
    return Experiment(
        name="figure3",
        title="Figure 3: the Markov blanket of a unit",
        paper="The Markov blanket of unit Sᵢ includes its parents and children, and the other parents of its "
        "children: all that enters its mean field equation, eq. (24).",
        found="The blanket was not assumed but found: each other unit’s state was changed in turn, and it was seen "
        "whether P(Sᵢ | all others) moves. “spouse” belongs to it; “remote” does not.",
        pictures=(
            Picture(
                "the units of the blanket as squares",
                lambda figure: _draw(figure, network, dict.fromkeys(blanket, 0)),
                "A network of seven units: two parents, unit i, two children, and another parent of the second child.",
                (4.4, 3.4),
            ),
        ),
        numbers={"blanket": sorted(blanket)},
    )


def figure4(settings: Settings) -> Experiment:
    """The architecture of the numerical experiments."""
    network = layered((2, 4, 6), rng=1996, scale=1.0)
    del settings
    return Experiment(
        name="figure4",
        title="Figure 4: a three-layer network",
        paper="A 2×4×6 network with top-down propagation of beliefs. For the digits: 8×24×64, the bottom layer being "
        "the pixels of 8×8 images.",
        found="One of the random networks of Figure 5, with weights uniform in ±1: blue is positive, orange negative.",
        pictures=(
            Picture(
                "2 × 4 × 6, and its weights",
                lambda figure: _draw(figure, network, {}),
                "Three rows of two, four and six circles; each circle is joined to all in the row below.",
                (5.2, 3.4),
            ),
        ),
        numbers={"units": network.n_units, "edges": network.n_edges},
    )


def markov_blanket(network: Network, unit: str) -> set[str]:
    """Units whose state has a say in P(unit | all others), by trying."""
    from sbnet.exact.probability import log_joint

    states = np.random.default_rng(0).integers(0, 2, (64, network.n_units))

    def odds(table: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        on, off = table.copy(), table.copy()
        on[:, network.index(unit)], off[:, network.index(unit)] = 1, 0
        return np.subtract(log_joint(network, on), log_joint(network, off))

    blanket = set()
    for other in set(network.names) - {unit}:
        flipped = states.copy()
        flipped[:, network.index(other)] ^= 1
        if np.abs(odds(flipped) - odds(states)).max() > 1e-9:
            blanket.add(other)
    return blanket


def _draw(figure: Figure, network: Network, evidence: dict[str, int]) -> None:
    figure.set_layout_engine("none")  # the drawing fills the figure
    ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    bare = network.with_parameters(bias=np.zeros(network.n_units))  # their numbers would crowd the picture
    plots.network(bare, evidence=evidence, ax=ax)
