"""Several networks for one table, each with its columns in another order: the mean of their likelihoods.

A column has the columns before it as parents, so every order is another model of the same table; no order is best for
all rows. The logarithm of a mean of likelihoods is bounded from below by that of the mean of e^bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax

from sbnet._types import FloatArray, IndexArray
from sbnet.estimators import _choosing, _learning
from sbnet.estimators._priors import is_auto
from sbnet.estimators._report import Report
from sbnet.estimators._rows import Rows
from sbnet.estimators.settings import Settings
from sbnet.learning import FitResult

FEWEST = 50
"""Below so many rows nothing is chosen: too few of them could be held out."""


def learn(settings: Settings, rows: Rows, generator: np.random.Generator) -> list[tuple[FitResult, Report | None]]:
    """The network of the table as it stands, and others with its columns in random orders, chosen alike."""
    found = [learn_one(settings, rows, generator)]
    report = found[0][1]
    for _ in range(1, settings.orders):
        found.append(learn_one(settings, reordered(rows, generator), generator, report))
    return found


def learn_one(
    settings: Settings, rows: Rows, generator: np.random.Generator, report: Report | None = None
) -> tuple[FitResult, Report | None]:
    """A start and all epochs, from one generator; and what was chosen, now or in an earlier report."""
    _learning.check_size(settings, len(rows.names))
    if report is not None:
        return _choosing.learn_alike(settings, rows, generator, report), report
    # units that stand for one column are not free to be regressed
    if is_auto(settings.prior) and not rows.groups and len(rows.cells) >= FEWEST:
        return _choosing.learn(settings, rows, generator)
    return _learning.learn(settings, _learning.start(settings, rows, generator), rows, generator), None


def reordered(rows: Rows, generator: np.random.Generator) -> Rows:
    """The columns in a random order; those that stand for one column stay together, and in their order."""
    grouped, n = {unit for group in rows.groups for unit in group.units}, len(rows.names) - rows.label_last
    blocks = [(name,) for name in rows.names[:n] if name not in grouped] + [group.units for group in rows.groups]
    return rows.named(tuple(unit for k in generator.permutation(len(blocks)) for unit in blocks[k]) + rows.names[n:])


def chosen(bounds: FloatArray, rng: np.random.Generator | None) -> IndexArray:
    """For each row a network: the likeliest, or one that is drawn by how likely they are."""
    share = softmax(bounds, axis=0)
    if rng is None:
        return np.asarray(share.argmax(axis=0), dtype=np.int64)
    drawn: IndexArray = (share.cumsum(axis=0) < rng.random(share.shape[1])).sum(axis=0)
    return np.minimum(drawn, len(share) - 1)


def together(values: FloatArray, bounds: FloatArray, rng: np.random.Generator | None) -> Any:
    """Values of each network, rows by columns, as one: their mean, or those of one network for each row."""
    if rng is not None:
        return values[chosen(bounds, rng), np.arange(values.shape[1])]
    return np.einsum("kr,krc->rc", softmax(bounds, axis=0), values)
