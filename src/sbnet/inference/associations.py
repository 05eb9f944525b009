"""How much two variables tell about each other, in nats, by what a network says of them together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from sbnet._types import IndexArray, States
from sbnet.errors import not_among
from sbnet.exact.probability import sample
from sbnet.model.network import Network

_DRAWS = 1 << 14
"""Rows that are drawn from a network: errors of mutual information are about 0.001 nats between small variables."""


class Association(NamedTuple):
    """Two variables, and their mutual information in nats; `joined` is whether an edge goes from one to the other."""

    one: str
    other: str
    nats: float
    joined: bool


def associations(
    network: Network, *, about: str | None = None, among: Iterable[str] | None = None
) -> list[Association]:
    """Pairs of variables by their mutual information, the strongest first.

    Without `about` pairs are those that an edge joins; with it, that variable and each of the others. `among` are the
    variables that count, by default all.
    """
    names = list(network.names if among is None else among)
    if about is not None and about not in names:
        raise not_among(about, names, "the variables")
    place = {network.index(name): name for name in names}
    child, parent = network.graph.child_of_edge.tolist(), network.graph.parent.tolist()
    joined = {(min(pair), max(pair)) for pair in zip(parent, child, strict=True)}
    if about is None:
        pairs = sorted(pair for pair in joined if pair[0] in place and pair[1] in place)
    else:
        i = network.index(about)
        pairs = sorted((min(i, j), max(i, j)) for j in place if j != i)
    rows = sample(network, _DRAWS, rng=0)
    found = [
        Association(place[i], place[j], mutual_information(rows[:, [i, j]], network.n_states[[i, j]]), (i, j) in joined)
        for i, j in pairs
    ]
    return sorted(found, key=lambda one: -one.nats)


def mutual_information(pairs: States, n_states: IndexArray) -> float:
    """Mutual information of two columns of states, less its bias in a sample of this size (Miller & Madow 1955)."""
    n, m = n_states.tolist()
    counts = np.bincount(pairs[:, 0].astype(np.int64) * m + pairs[:, 1], minlength=n * m).reshape(n, m)
    total = counts.sum()
    if not total:
        return 0.0
    p = counts / total
    one, other = p.sum(axis=1, keepdims=True), p.sum(axis=0, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        nats = float(np.nansum(np.where(p > 0.0, p * np.log(p / (one * other)), 0.0)))
    by_accident = (np.count_nonzero(one) - 1) * (np.count_nonzero(other) - 1) / (2 * total)
    return max(0.0, nats - float(by_accident))
