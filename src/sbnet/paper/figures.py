"""Figures 1, 2, 3, 4 and 7: the sigmoid function, the bound of eq. (19), two networks, and digits."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from scipy.special import expit

from sbnet import plots
from sbnet._types import FloatArray, States
from sbnet.bounds import lower_bound
from sbnet.exact.answers import exact_posterior
from sbnet.exact.probability import log_joint
from sbnet.model.build import from_edges, layered
from sbnet.model.network import Network
from sbnet.paper import published
from sbnet.paper.digits import THRESHOLD, data
from sbnet.paper.drawing import FIRST, INK, SECOND, THIRD, tile
from sbnet.paper.record import Experiment, Picture, Row, Settings, compared

LABELS = {"exact": "⟨ln(1 + eᶻ)⟩, exact", "xi": "bound with the best ξ", "jensen": "bound with ξ = 0"}
UNIT = "Sᵢ"


def figure1(_: Settings) -> Experiment:
    """The probability of a unit with one observed parent, for several weights."""
    networks = {z: from_edges({("parent", "unit"): z}) for z in np.linspace(-6, 6, 13).tolist()}
    answers = {z: float(exact_posterior(network, {"parent": 1})[1]) for z, network in networks.items()}
    off = max(abs(answer - float(expit(z))) for z, answer in answers.items())

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        z = np.linspace(-6, 6, 200)
        ax.plot(z, expit(z), color=FIRST)
        ax.plot(list(answers), list(answers.values()), "o", color=FIRST, markersize=4)
        ax.set(xlabel="z", ylabel="σ(z)")

    return Experiment(
        title="Figure 1: the sigmoid function",
        paper="If z is the sum of weighted inputs to unit S, then P(S = 1 | z) = σ(z) = 1 / (1 + e⁻ᶻ).",
        found="Points: a unit with one parent, observed as 1, asked for its probability; z is the weight. They lie "
        f"on the curve of eq. (3) to within {off:.0e}.",
        pictures=(
            Picture(
                "σ(z), and the answers of networks",
                draw,
                "An S-shaped curve from 0 to 1, one half at z = 0, with points on it.",
            ),
        ),
        numbers={"P(S = 1)": {f"{z:g}": answer for z, answer in answers.items()}},
    )


def figure2(settings: Settings) -> Experiment:
    """A sum of very many fair coins, scaled to mean 0 and variance 1, is a Gaussian input for this purpose."""
    n = settings.size(100_000, 2_000)
    edges = ((f"u{k}", "child", 2 / np.sqrt(n)) for k in range(n))
    network = from_edges(edges, bias={"child": -np.sqrt(n)})
    half, off = np.full(n + 1, 0.5), {"child": 0}  # adds nothing but the logarithm term of the child
    ours = {term: -lower_bound(network, off, half, log_term=term) for term in LABELS}
    grid = np.linspace(0.0, 1.0, settings.size(41, 5))
    curve = np.array([-float(lower_bound(network, off, half, np.full(n + 1, xi))) for xi in grid])
    # Rounding of the printed number, and what n coins lack of a Gaussian.
    rows = tuple(Row(LABELS[term], ours[term], 5e-4 + 1 / n, published.FIGURE_2[term]) for term in LABELS)

    def draw(figure: Figure) -> None:
        ax, best = figure.subplots(), int(curve.argmin())
        ax.plot(grid, curve, color=FIRST, label="bound")
        ax.axhline(ours["exact"], color=SECOND, linestyle="--", label="exact")
        low = curve[best]
        ax.annotate(f"{low:.3f}", (grid[best], low), (0, 8), textcoords="offset points", ha="center", color=INK)
        ax.set(xlabel="ξ", ylabel="nats")
        ax.legend(loc="upper center")

    return Experiment(
        title="Figure 2: the bound on ⟨ln(1 + eᶻ)⟩ as a function of ξ",
        paper="For a Gaussian z with mean 0 and variance 1 the exact value is 0.806; the best ξ gives 0.818, and the "
        "standard bound from Jensen’s inequality, ξ = 0, gives 0.974. The bound is convex in ξ.",
        found=f"One unit with {n:,} parents at one half and equal weights: its input is Gaussian for this purpose, "
        "and the numbers come out of the same function that bounds any network.",
        tables=(compared("nats", rows, ".4f"),),
        pictures=(
            Picture(
                "the bound, eq. (19)",
                draw,
                "A convex curve over ξ from 0 to 1, 0.974 at both ends, lowest at one half, above the exact value "
                "0.806.",
            ),
        ),
        numbers={"values": ours, "xi": grid.tolist(), "bound": curve.tolist(), "parents": n},
    )


def figure3(_: Settings) -> Experiment:
    """Units that share no factor of P(S) with unit i do not move its update: the blanket, found by changing each."""
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
        title="Figure 3: the Markov blanket of a unit",
        paper="The Markov blanket of unit Sᵢ includes its parents and children, and the other parents of its "
        "children: all that enters its mean field equation, eq. (24).",
        found="The blanket was not assumed but found: each other unit’s state was changed in turn, and it was seen "
        "whether P(Sᵢ | all others) moves. “spouse” belongs to it; “remote” does not.",
        pictures=(
            Picture(
                "the units of the blanket have a ring",
                lambda figure: _draw_network(figure, network, blanket),
                "Seven units; two parents, two children, and another parent of the second child have rings.",
                (4.4, 3.4),
            ),
        ),
        numbers={"blanket": sorted(blanket)},
    )


def figure4(_: Settings) -> Experiment:
    """The architecture of the numerical experiments."""
    network = layered((2, 4, 6), rng=1996, scale=1.0)
    return Experiment(
        title="Figure 4: a three-layer network",
        paper="A 2×4×6 network with top-down propagation of beliefs. For the digits: 8×24×64, the bottom layer being "
        "the pixels of 8×8 images.",
        found="One of the random networks of Figure 5, with weights uniform in ±1: blue is positive, orange negative.",
        pictures=(
            Picture(
                "2 × 4 × 6, and its weights",
                lambda figure: _draw_network(figure, network),
                "Three rows of two, four and six circles; each circle is joined to all in the row below.",
                (5.2, 3.4),
            ),
        ),
        numbers={"units": network.n_units, "edges": network.n_edges},
    )


def figure7(settings: Settings) -> Experiment:
    """Training images of twos and fives."""
    digits = data(settings)
    images = [list(digits.train[digits.train_target == digit][:8]) for digit in (2, 5)]
    return Experiment(
        title="Figure 7: binary images of handwritten digits",
        paper="Two and five, as 8×8 binary images, of 11,000 digits from the US Postal Service.",
        found="The same collection: 700 training and 400 test images of each digit, embedded in sbnet. How the paper "
        "made them binary is not known. Here a pixel is 1 if the mean grey of its 2×2 block, from 0 to 1, is over "
        f"{THRESHOLD}: of the thresholds from 0.150 to 0.200 the one that comes nearest to the published error of the "
        "nearest neighbour, 6.7 %. All of them give 6.6 to 7.1 %.",
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


def markov_blanket(network: Network, unit: str) -> set[str]:
    """Units whose state has a say in P(unit | all others), by trying."""
    states, i = np.random.default_rng(0).integers(0, 2, (64, network.n_units), dtype=np.int8), network.index(unit)

    def log_odds(rows: States) -> FloatArray:
        on, off = rows.copy(), rows.copy()
        on[:, i], off[:, i] = 1, 0
        return np.subtract(log_joint(network, on), log_joint(network, off))

    blanket = set()
    for other in set(network.names) - {unit}:
        flipped = states.copy()
        flipped[:, network.index(other)] ^= 1
        if np.abs(log_odds(flipped) - log_odds(states)).max() > 1e-9:
            blanket.add(other)
    return blanket


def _draw_network(figure: Figure, network: Network, ringed: Iterable[str] = ()) -> None:
    figure.set_layout_engine("none")  # the drawing fills the figure
    bare = network.with_parameters(bias=np.zeros(network.n_units))  # there is no room for their numbers
    ax = plots.network(bare, ax=figure.add_axes((0.0, 0.0, 1.0, 1.0)))
    centres = {text.get_text().replace("\n", " "): text.get_position() for text in ax.texts if text.get_gid() == "unit"}
    for name in ringed:
        ax.add_patch(
            Circle(centres[name], 1.25 * plots.RADIUS, fill=False, edgecolor=THIRD, linewidth=2.0, linestyle="--")
        )
