"""Figure 6: the true log-likelihood and its bound during learning."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from sklearn.utils.parallel import Parallel, delayed

from sbnet._types import FloatArray
from sbnet.exact.answers import log_likelihood
from sbnet.inference import MeanField, infer_many
from sbnet.learning import SGD, fit
from sbnet.model.build import layered
from sbnet.model.network import Network
from sbnet.paper.drawing import FIRST, SECOND
from sbnet.paper.record import Experiment, Picture, Settings, Table

SIZES, SCALE, RATE, EVERY = (3, 5), 3.0, 0.5, 5
SOLVER = MeanField(log_term="xi", enumerate_up_to=0)
STARTS = {"small random weights": False, "the true weights, biases at zero": True}
CLEARLY = 1e-4  # nats: a fall of less is no fall


class Course(NamedTuple):
    """Means over the data, at the start and after every fifth epoch, in nats."""

    log_likelihood: FloatArray
    bound: FloatArray

    @property
    def fall(self) -> float:
        """How far the true log-likelihood has come down from its peak."""
        return float(self.log_likelihood.max() - self.log_likelihood[-1])

    @property
    def rise_since(self) -> float:
        """How far the bound has risen since that peak."""
        return float(self.bound[-1] - self.bound[self.log_likelihood.argmax()])


def run(settings: Settings) -> Experiment:
    """Several data sets, each learned from two starting points; the most telling of them is drawn."""
    seeds, epochs = range(settings.size(16, 2)), settings.size(300, 15)
    tasks = [(seed, knowing) for knowing in STARTS.values() for seed in seeds]
    done = Parallel(n_jobs=settings.jobs if len(tasks) > 4 else 1)(delayed(learn)(*task, epochs) for task in tasks)
    n = len(seeds)
    courses: dict[str, list[Course]] = {name: done[k * n : (k + 1) * n] for k, name in enumerate(STARTS)}
    falls = {name: np.array([course.fall for course in group]) for name, group in courses.items()}
    uninformed, informed = falls.values()
    together, apart, shown = np.sum(uninformed <= CLEARLY), np.sum(informed > CLEARLY), int(informed.argmax())
    cells = []
    for name, fall in falls.items():
        late = int(np.sum(fall > CLEARLY))
        rising = sum(bool(np.all(np.diff(course.bound) > -1e-9)) for course in courses[name])
        cells.append((name, f"{n - late} of {n}", f"{late} of {n}", f"{fall.max():.4f}", f"{rising} of {n}"))
    return Experiment(
        title="Figure 6: the true log-likelihood and its bound during learning",
        paper="Raising the bound can affect the true log-likelihood in two ways: both increase together, or the true "
        "log-likelihood decreases, closing the gap to the bound, which acts as a form of regularisation.",
        found=f"A search over {n} data sets: a random 3×5 network with weights in ±3, and as data all 32 "
        "patterns of its bottom layer, weighted by their true probabilities, so that the true parameters are the "
        f"likeliest and nothing can be overfitted.\n\nFrom small random weights the two rose together in {together} of "
        f"{n}. From the true weights with the biases forgotten, learning went past the peak of the likelihood "
        f"in {apart} of {n}, on towards a simpler posterior. Drawn: data set {shown}, where the fall is "
        "largest, near the peak; it is small beside the rise before it.",
        tables=(
            Table(
                f"{epochs} epochs from two starting points",
                ("start", "both rise", "likelihood falls late", "largest fall, nats", "bound never falls"),
                tuple(cells),
            ),
        ),
        pictures=tuple(
            Picture(
                f"start: {name}",
                partial(_draw, course=group[shown]),
                f"Two curves against epochs, starting from {name}: the log-likelihood above, its bound below.",
            )
            for name, group in courses.items()
        ),
        numbers={
            "epochs": epochs,
            "data set shown": shown,
            "fall of the log-likelihood, nats": {name: fall.tolist() for name, fall in falls.items()},
            "rise of the bound since, nats": {name: [c.rise_since for c in group] for name, group in courses.items()},
        },
    )


def learn(seed: int, informed: bool, epochs: int) -> Course:
    """Maximise the bound on one data set, and watch the true log-likelihood."""
    rng = np.random.default_rng(seed)
    truth = layered(SIZES, rng=rng, scale=SCALE)
    X = np.array(list(product((0, 1), repeat=SIZES[-1])))
    share = np.exp(log_likelihood(truth, X))
    start = truth.with_parameters(bias=np.zeros(truth.n_units)) if informed else layered(SIZES, rng=rng, scale=0.5)
    exact: list[float] = []
    bound: list[float] = []

    def watch(epoch: int, network: Network, _: float) -> None:
        if epoch % EVERY == 0:
            exact.append(float(share @ log_likelihood(network, X)))
            bound.append(float(share @ infer_many(network, X, solver=SOLVER, threads=1, progress=False).bound))

    watch(0, start, 0.0)
    fit(
        start,
        X,
        epochs=epochs,
        optimizer=SGD(RATE),
        batch_size=len(X),
        solver=SOLVER,
        sample_weight=share,
        rng=seed,
        callbacks=[watch],
        threads=1,
        progress=False,
    )
    return Course(np.array(exact), np.array(bound))


def _draw(figure: Figure, course: Course) -> None:
    ax = figure.subplots()
    epochs = EVERY * np.arange(len(course.bound))
    ax.plot(epochs, course.log_likelihood, color=SECOND, label="ln P(V), exact")
    ax.plot(epochs, course.bound, "--", color=FIRST, label="bound")
    peak = int(course.log_likelihood.argmax())
    if course.fall > CLEARLY:  # the fall is small beside the rise before it: look at what is near the peak
        ax.plot(epochs[peak], course.log_likelihood[peak], "o", color=SECOND)
        low, high = float(course.bound[max(peak - 1, 0)]), float(course.log_likelihood[peak])
        ax.set_ylim(low - 0.1 * (high - low), high + 0.15 * (high - low))
    ax.set(xlabel="epoch", ylabel="nats per pattern")
    ax.legend(loc="lower right")
