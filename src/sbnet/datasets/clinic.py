"""A small clinic and a car, written by hand, and synthetic clinics as large and sparse as diagnostic networks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray, IndexArray, RngLike
from sbnet.files import read
from sbnet.kernels import codes as gates
from sbnet.model.graph import Graph
from sbnet.model.network import Network

PRIORS = (1e-4, 0.03)
LEAKS = (1e-4, 0.01)
CAUSES, SPREAD = 6.0, 1.0
"""Median number of causes of a finding, beside the first, and the standard deviation of its logarithm."""
FREQUENCIES = (0.025, 0.2, 0.5, 0.8, 0.985)
SHARES = (0.2, 0.35, 0.25, 0.15, 0.05)


def clinic_path() -> Path:
    """Where the file of the small clinic stands: a TOML text to read, to copy and to change.

    It has fifteen causes and thirty findings. All its numbers are made up: nothing in it is medical knowledge.

    Returns
    -------
    pathlib.Path

    Examples
    --------
    >>> from sbnet.datasets import clinic_path
    >>> print(clinic_path().read_text(encoding="utf-8").split("\\n")[0])
    # A made-up clinic: fifteen causes and thirty findings of a walk-in practice.
    """
    return Path(__file__).with_name("clinic.toml")


def example_clinic() -> Network:
    """The small clinic: fifteen causes and thirty findings, with notes. All its numbers are made up.

    Returns
    -------
    Network

    Examples
    --------
    >>> from sbnet.datasets import example_clinic
    >>> clinic = example_clinic()
    >>> clinic.notes["short-breath"].about
    'shortness of breath'
    """
    return read(clinic_path())


def car_path() -> Path:
    """Where the file of the car that does not start stands: a TOML text with variables of several states.

    Returns
    -------
    Path

    Examples
    --------
    >>> from sbnet.datasets import car_path
    >>> print(car_path().read_text(encoding="utf-8").split(":")[0])
    # Why the car does not start
    """
    return Path(__file__).with_name("car.toml")


def example_car() -> Network:
    """Why the car does not start: nine causes, their signs, and the voltage between them. All numbers are made up.

    Returns
    -------
    Network

    Examples
    --------
    >>> import sbnet as sb
    >>> from sbnet.datasets import example_car
    >>> sb.single_cause(example_car(), {"does not start": 1, "headlights": "dim"}).ranked[0]
    'empty battery'
    """
    return read(car_path())


def make_clinic(diseases: int = 600, findings: int = 4000, *, rng: RngLike = None) -> Network:
    """A random network of diseases and their findings, as large as those that doctors have written by hand.

    It has two levels: diseases, independent of each other, are the parents of findings, which are noisy-OR variables.
    The default sizes are about those of QMR-DT, the network for internal medicine that this kind is known by; with them
    it has some 41,000 edges. All its numbers are made up: nothing in it is medical knowledge.

    Parameters
    ----------
    diseases, findings : int
        Their numbers, one or more.
    rng : int or numpy.random.Generator, optional
        Seed or generator.

    Returns
    -------
    Network
        Variables ``disease 0``, ``disease 1``, …, then ``finding 0``, ``finding 1``, …

    Notes
    -----
    How the numbers are drawn, each independently of the others:

    - the prior of a disease: its logarithm is uniform, from 0.0001 to 0.03. Of 600 diseases a patient has three on
      average;
    - the causes of a finding: 1 + k diseases, where k is a log-normal number with median 6 and a standard deviation of
      1 of its logarithm, rounded down. Most findings have a few causes, some a hundred, and the mean is about 10. Every
      disease is as likely as any other; one that is drawn twice counts once;
    - the probability p that a disease produces a finding: 0.025, 0.2, 0.5, 0.8 or 0.985, for rarely, sometimes, often,
      mostly and nearly always, with the shares 20, 35, 25, 15 and 5 %;
    - the leak of a finding: its logarithm is uniform, from 0.0001 to 0.01. Of 4,000 findings nine on average are there
      without a disease.

    Examples
    --------
    >>> from sbnet.datasets import make_clinic
    >>> clinic = make_clinic(20, 100, rng=0)
    >>> clinic.conditional("finding 4")
    P(finding 4 = 1), noisy-or, with these parents on:
      none of its parents  0.0017
      disease 0            0.0267
      disease 2            0.5009
      disease 8            0.8003
      disease 9            0.8003
      disease 17           0.2014
      disease 19           0.0267
      all 6 parents        0.9848
    """
    checks.whole("diseases", diseases, 1)
    checks.whole("findings", findings, 1)
    generator = checks.generator(rng)
    prior, leak = _log_uniform(generator, PRIORS, diseases), _log_uniform(generator, LEAKS, findings)
    graph = _graph(generator, diseases, findings)
    p = generator.choice(FREQUENCIES, size=graph.n_edges, p=SHARES)
    names = [f"disease {k}" for k in range(diseases)] + [f"finding {k}" for k in range(findings)]
    bias = np.concatenate([np.log(prior) - np.log1p(-prior), -np.log1p(-leak)])
    gate = np.repeat(np.array([gates.SIGMOID, gates.NOISY_OR], np.int8), (diseases, findings))
    return Network(tuple(names), graph, -np.log1p(-p), bias, gate)


def _log_uniform(generator: np.random.Generator, ends: tuple[float, float], n: int) -> FloatArray:
    low, high = np.log(ends)
    return np.asarray(np.exp(generator.uniform(low, high, size=n)))


def _graph(generator: np.random.Generator, diseases: int, findings: int) -> Graph:
    """Every finding draws its causes; sorting all pairs at once puts them in order and drops what was drawn twice."""
    more = generator.lognormal(np.log(CAUSES), SPREAD, size=findings)
    drawn = 1 + np.minimum(more, diseases - 1).astype(np.int64)
    cause = generator.integers(diseases, size=int(drawn.sum()))
    pairs: IndexArray = np.unique(np.repeat(np.arange(findings), drawn) * diseases + cause)
    counts = np.concatenate([np.zeros(diseases, np.int64), np.bincount(pairs // diseases, minlength=findings)])
    return Graph(np.concatenate([[0], np.cumsum(counts)]), pairs % diseases)
