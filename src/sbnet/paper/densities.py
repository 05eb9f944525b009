"""Beyond the paper: how probable are new digits? The paper's networks, mixtures of Bernoullis, and `SBNDensity()`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from sbnet.estimators import SBNDensity
from sbnet.paper.baselines import COMPONENTS, BernoulliMixture
from sbnet.paper.digits import data, trained
from sbnet.paper.record import Experiment, Settings, Table, signed


def run(settings: Settings) -> Experiment:
    """Mean ln P of the test images of each digit."""
    digits = data(settings)
    settings.say("densities of ten digits")
    learned = Parallel(n_jobs=settings.jobs)(delayed(_learn)(settings.quiet, digit) for digit in range(10))
    paper = trained(settings).bounds.mean(axis=0)
    rival = BernoulliMixture(components=COMPONENTS[: settings.size(len(COMPONENTS), 1)])
    density = rival.fit(digits.train, digits.train_target).log_density(digits.test)
    own = [digits.test_target == digit for digit in range(10)]
    bounds, chosen = zip(*learned, strict=True)
    means = np.array([[density[rows, k].mean(), paper[rows, k].mean(), bounds[k]] for k, rows in enumerate(own)])
    names = ("mixture", "paper", "ours")
    lines = [*((str(k), row, chosen[k]) for k, row in enumerate(means)), ("mean", means.mean(axis=0), "")]
    cells = [(name, *(signed(value, ".1f") for value in row), what) for name, row, what in lines]
    table = Table("Mean ln P of test images, nats", ("digit", *names, "chosen"), tuple(cells), best=frozenset({10}))
    return Experiment(
        "densities",
        "Densities of digits, with nothing set",
        "The paper tells digits apart by the bounds of ten networks; how probable new images are it does not say.",
        "A density is learned from the 700 training images of each digit with nothing set: scales of a sparse prior, "
        "hidden units and column mixtures (their numbers in the last column) are chosen on a tenth of them, and the "
        "400 test images are scored once. The numbers of mixtures of Bernoullis are exact, with 8 to 48 components "
        "chosen on a fifth of the training images; the others are lower bounds. On average an image gains "
        f"{np.diff(means.mean(axis=0))[1]:.1f} nats over the paper's networks.",
        tables=(table,),
        numbers={name: means[:, k].tolist() for k, name in enumerate(names)},
    )


def _learn(settings: Settings, digit: int) -> tuple[float, str]:
    """The mean test bound of a digit, and what was chosen."""
    digits = data(settings)
    epochs: Any = 1 if settings.quick else "auto"
    density = SBNDensity(epochs=epochs, random_state=0, n_jobs=1).fit(digits.train[digits.train_target == digit])
    report, bound = density.report_, density.score(digits.test[digits.test_target == digit])
    chosen = "" if report is None else f"{report.hidden} + {report.column_mixtures}"
    return bound, chosen
