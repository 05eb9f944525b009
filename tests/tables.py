"""Tables that the tests of the estimators learn from, and what an estimator does, written out by hand."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

import sbnet as sb
from sbnet.estimators import SBNDensity, Training

QUICK = {"hidden": 2, "column_mixtures": 0, "epochs": 8, "batch_size": 50, "learning_rate": 0.05, "random_state": 0}


def quick(**more):
    """A density that is learned in no time; as it is, or as a template."""
    given = {**QUICK, **more}
    training = {field.name: given.pop(field.name) for field in fields(Training) if field.name in given}
    return SBNDensity(settings=Training(**training), **given)


def rows_of(seed, n, width=6, tilt=0.0):
    """Rows with strong correlations: two fair causes, each of which pushes every column up or down; and a tilt."""
    rng = np.random.default_rng(seed)
    weight = rng.choice([-4.0, 4.0], size=(width, 2))
    bias = -weight.sum(axis=1) / 2 + rng.choice([-tilt, tilt], size=width)
    network = sb.layered((2, width), scale=0.0)
    truth = network.with_parameters(weight=weight.ravel(), bias=np.r_[0.0, 0.0, bias])
    return sb.sample(truth, n, rng=seed + 100)[:, 2:].astype(float)


def with_holes(table, share=0.2, seed=5):
    return np.where(np.random.default_rng(seed).random(table.shape) < share, np.nan, table)


def classes():
    """Three classes of sixty rows, with holes."""
    table = np.concatenate([rows_of(seed, 60, tilt=3.0) for seed in (0, 1, 2)])
    return with_holes(table), np.repeat(["a", "b", "c"], 60)


def by_hand(cells, hidden, generator, autoregressive, weights=None, **settings):
    """What an estimator does, in a few lines, for a table that has no empty column."""
    width = cells.shape[1]
    network = sb.layered((*hidden, width), rng=generator, scale=0.2, autoregressive=autoregressive)
    weight = np.where(network.graph.parent < network.n_units - width, network.weight, 0.0)
    bias = network.bias.copy()
    for k in range(width):
        seen = ~np.isnan(cells[:, k])
        w = np.ones(len(cells)) if weights is None else weights
        ones = w[seen] @ cells[seen, k]
        bias[network.n_units - width + k] = np.log((ones + 0.5) / (w[seen].sum() - ones + 0.5))
    network = network.with_parameters(weight=weight, bias=bias)
    return sb.fit(network, cells, sample_weight=weights, rng=generator, **settings)
