"""Hostile networks and evidence by the thousand, each from a number."""

from __future__ import annotations

import dataclasses

import numpy as np

import sbnet as sb

SIZES = (1.0, 30.0, 1e3, 1e4, 1e6, 1e8)
SHAPES = ("sparse", "dense", "islands", "chain", "single")


def network(seed: int, most: int = 7) -> sb.Network:
    """A network of up to `most` units: weights to ±1e8, sums that nearly cancel, denormal weights, lonely units."""
    rng = np.random.default_rng([1996, seed])
    shape = SHAPES[rng.integers(len(SHAPES))]
    n = 1 if shape == "single" else int(rng.integers(2, most + 1))
    below = np.tri(n, k=-1, dtype=bool)
    if shape == "chain":
        below &= np.eye(n, k=-1, dtype=bool)
    elif shape == "islands":
        island = rng.integers(0, 2, n)
        below &= island[:, None] == island
    elif shape == "sparse":
        below &= rng.random((n, n)) < 0.4
    numbers = _numbers(rng, (n, n + 1))
    return sb.from_weight_matrix(np.where(below, numbers[:, :n], 0.0), bias=numbers[:, n])


def _numbers(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    kind = rng.integers(5)
    if kind == 0:  # every number of its own size
        values = rng.choice(SIZES, shape) * rng.uniform(-1.0, 1.0, shape)
    elif kind == 1:  # some too small to be normal, some at the limit
        values = rng.choice([5e-324, -2e-310, 1e-300, 0.0, -1e8, 1e8, 0.3], shape)
    else:
        values = rng.choice(SIZES) * rng.uniform(-1.0, 1.0, shape)
    if kind == 3:  # large biases beside small ones
        values[:, -1] = rng.uniform(-2.0, 2.0, shape[0])
    if kind == 4:  # the last number of a row takes back what the others add up to, but for little
        values[:, -1] = np.clip(rng.uniform(-2.0, 2.0, shape[0]) - values[:, :-1].sum(axis=1), -1e8, 1e8)
    return values


def mixed(seed: int, most: int = 6) -> sb.Network:
    """The same with noisy-OR units among the others: causes from 1e-12 to 1e8 and weaker, leaks from 5e-324 on.

    Without a leak, evidence could be impossible, and the oracle here does not know that.
    """
    plain, rng = network(seed, most), np.random.default_rng([1998, seed])
    noisy = rng.random(plain.n_units) < rng.choice([0.3, 0.7, 1.0])
    weight, bias = np.abs(plain.weight), np.abs(plain.bias)
    if rng.random() < 0.6:
        weight, bias = 10.0 ** rng.uniform(-12, 3, len(weight)), 10.0 ** rng.uniform(-9, 1, len(bias))
    weight[rng.random(len(weight)) < 0.1] = 0.0
    return dataclasses.replace(
        plain,
        weight=np.where(noisy[plain.graph.child_of_edge], weight, plain.weight),
        bias=np.where(noisy, np.where((rng.random(len(bias)) < 0.1) | (bias == 0.0), 5e-324, bias), plain.bias),
        gate=noisy.astype(np.int8),
    )


def rows(network: sb.Network, seed: int, n: int) -> np.ndarray:
    """Patterns with NaN for hidden units: anything observed, and in half of them states that hardly ever come about."""
    rng = np.random.default_rng([1997, seed])
    states = np.where(
        rng.random((n, 1)) < 0.5, sb.sample(network, n, rng=rng), rng.integers(0, 2, (n, network.n_units))
    )
    seen = rng.random(states.shape) < rng.choice([0.2, 0.5, 0.8, 1.0], (n, 1))
    return np.where(seen, states, np.nan)


def states(seed: int, most: int = 5) -> sb.Network:
    """Variables with 2 to 5 states, sigmoid, noisy-OR and with tables: weights to ±1e8, entries of zero and 1e-300."""
    rng = np.random.default_rng([2028, seed])
    n = int(rng.integers(2, most + 1))
    names, sizes = [f"v{k}" for k in range(n)], rng.integers(2, 6, n)
    gate = rng.choice(["sigmoid", "noisy-or", "table"], n, p=rng.choice([[0.5, 0.5, 0.0], [0.3, 0.3, 0.4]]))
    below = np.tri(n, k=-1, dtype=bool) & (rng.random((n, n)) < rng.choice([0.4, 0.9]))
    edges, bias, tables = [], {}, {}
    for i in range(n):
        parents, size = np.flatnonzero(below[i]), int(sizes[i])
        if gate[i] == "table":
            table = rng.dirichlet(np.full(size, rng.choice([0.05, 1.0])), tuple(sizes[parents]))
            table = np.where(rng.random(table.shape) < 0.2, rng.choice([0.0, 1e-300]), table)
            table[..., 0] += table.sum(axis=-1) < 0.5
            tables[names[i]] = table / table.sum(axis=-1, keepdims=True)
        for j in parents:
            weight = None if gate[i] == "table" else _block(rng, gate[i], (size - 1, int(sizes[j]) - 1))
            edges.append((names[j], names[i], weight))
        if gate[i] != "table":
            bias[names[i]] = _block(rng, gate[i], (1, size - 1))[0] + (1e-9 if gate[i] == "noisy-or" else 0.0)
    kinds = {name: kind for name, kind in zip(names, gate.tolist(), strict=True) if kind != "table"}
    called = {name: [f"s{k}" for k in range(size)] for name, size in zip(names, sizes, strict=True) if size > 2}
    return sb.from_edges(edges, bias=bias, gate=kinds, names=names, states=called, tables=tables)


def _block(rng: np.random.Generator, gate: str, shape: tuple[int, int]) -> np.ndarray:
    values = np.clip(_numbers(rng, shape), -1e8, 1e8)
    if gate == "noisy-or" and rng.random() < 0.6:
        return np.where(rng.random(shape) < 0.1, 0.0, 10.0 ** rng.uniform(-12, 3, shape))
    return np.abs(values) if gate == "noisy-or" else values


def state_rows(network: sb.Network, seed: int, n: int) -> np.ndarray:
    """Patterns of numbers of states, -1 for hidden variables, half of them with states that hardly ever come about."""
    rng = np.random.default_rng([2029, seed])
    anything = rng.integers(0, network.n_states, (n, network.n_units))
    drawn = np.where(rng.random((n, 1)) < 0.5, sb.sample(network, n, rng=rng), anything)
    seen = rng.random(drawn.shape) < rng.choice([0.2, 0.5, 0.8, 1.0], (n, 1))
    return np.where(seen, drawn, -1).astype(np.int8)
