"""Hypothesis strategies: random networks, and evidence on them.

Hypothesis chooses the shape, the size and how hostile the weights are; numbers come from a seeded generator, which is
faster than one choice per number and still repeatable.
"""

from __future__ import annotations

import os

import numpy as np
from hypothesis import strategies as st

import sbnet as sb
from sbnet._types import Model

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
MAX_UNITS = 8 if INTERPRETED else 14
SHAPES = ("sparse", "dense", "disconnected", "roots", "chain", "layers", "autoregressive")
SCALES = ("zero", "tame", "strong", "hostile")
LOG_TERMS = ("exact", "xi", "quadratic", "jensen")

seeds = st.integers(0, 2**32 - 1)


def model_of(*arrays: np.ndarray) -> Model:
    """The arrays of a model, read-only as those of a network are: kernels are compiled for such, once."""
    for array in arrays:
        array.setflags(write=False)
    return Model(*arrays)


def _edges(shape: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """A lower triangular matrix of where the edges are."""
    below = np.tri(n, k=-1, dtype=bool)
    if shape == "roots":
        return np.zeros((n, n), bool)
    if shape == "chain":
        return np.eye(n, k=-1, dtype=bool)
    if shape == "disconnected":
        island = rng.integers(0, 3, n)
        return below & (island[:, None] == island) & (rng.random((n, n)) < 0.7)
    if shape in ("layers", "autoregressive"):
        layer = np.sort(rng.integers(0, 3, n))
        adjacent = layer[:, None] == layer + 1
        beside = (layer[:, None] == layer) & (layer == layer.max()) & below
        return adjacent | beside if shape == "autoregressive" else adjacent
    return below & (rng.random((n, n)) < (0.25 if shape == "sparse" else 0.9))


def _numbers(scale: str, size, max_weight: float, rng: np.random.Generator) -> np.ndarray:
    largest = {"zero": 0.0, "tame": 1.0, "strong": max_weight, "hostile": max_weight}[scale]
    values = rng.uniform(-largest, largest, size)
    if scale == "hostile":
        values = np.where(rng.random(size) < 0.3, rng.choice([-1001.0, 1001.0], size), values)
    return values


@st.composite
def networks(draw, max_units: int = MAX_UNITS, max_weight: float = 30.0, scales=SCALES):
    """Random networks; weights to ±max_weight, and some of ±1001 if `scales` has "hostile"."""
    n = draw(st.integers(1, max_units))
    shape, scale = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(scales))
    rng = np.random.default_rng(draw(seeds))
    child, parent = np.nonzero(_edges(shape, n, rng))
    names = [f"unit {k}" for k in rng.permutation(n)]  # names tell nothing about the order
    weight = _numbers(scale, len(child), max_weight, rng)
    bias = dict(zip(names, _numbers(scale, n, max_weight, rng).tolist(), strict=True))
    edges = [(names[j], names[i], w) for i, j, w in zip(child, parent, weight.tolist(), strict=True)]
    return sb.from_edges(edges, bias=bias, names=names)


def causes(hostile: bool, size, rng: np.random.Generator) -> np.ndarray:
    """Weights into noisy-OR units: some without influence, and of all sizes from 1e-12 to 1000 if hostile."""
    values = 10.0 ** rng.uniform(-12, 3, size) if hostile else rng.uniform(0.0, 3.0, size)
    return np.where(rng.random(size) < 0.1, 0.0, values)


def leaks(hostile: bool, size, rng: np.random.Generator) -> np.ndarray:
    """Biases of noisy-OR units: some are 0 if hostile, others as small as 1e-9."""
    if not hostile:
        return rng.uniform(0.001, 1.0, size)
    return np.where(rng.random(size) < 0.15, 0.0, 10.0 ** rng.uniform(-9, 1, size))


@st.composite
def mixed_networks(draw, max_units: int = 7, scales=("tame", "hostile")):
    """Random networks in which some units are noisy-OR units, and others sigmoid units."""
    n = draw(st.integers(1, max_units))
    shape, scale = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(scales))
    share, rng = draw(st.sampled_from([0.3, 0.7, 1.0])), np.random.default_rng(draw(seeds))
    child, parent = np.nonzero(_edges(shape, n, rng))
    noisy = rng.random(n) < share
    hostile, most = scale == "hostile", 30.0 if scale == "hostile" else 2.0
    numbers = _numbers("hostile" if hostile else "strong", len(child) + n, most, rng)
    weight = np.where(noisy[child], causes(hostile, len(child), rng), numbers[: len(child)])
    bias = np.where(noisy, leaks(hostile, n, rng), numbers[len(child) :])
    names = [f"unit {k}" for k in range(n)]
    edges = [(names[j], names[i], w) for i, j, w in zip(child, parent, weight.tolist(), strict=True)]
    gate = {name: "noisy-or" if is_noisy else "sigmoid" for name, is_noisy in zip(names, noisy, strict=True)}
    return sb.from_edges(edges, bias=dict(zip(names, bias.tolist(), strict=True)), gate=gate, names=names)


@st.composite
def mixed_cases(draw, **options):
    """(mixed network, one pattern); all that is observed is on in some."""
    network = draw(mixed_networks(**options))
    kind, rng = draw(st.sampled_from(KINDS)), np.random.default_rng(draw(seeds))
    row = _evidence(1, network.n_units, kind, rng)[0]
    return network, np.where(row == 0.0, 1.0, row) if draw(st.booleans()) else row


def _evidence(n_rows: int, n: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    chance = {"none": 0.0, "few": 0.25, "half": 0.5, "most": 0.8, "all": 1.0}
    values = rng.integers(0, 2, (n_rows, n)).astype(float)
    if kind == "leaves":
        observed = np.broadcast_to(np.arange(n) >= n - max(1, n // 2), values.shape)
    else:
        observed = rng.random(values.shape) < chance[kind]
    return np.where(observed, values, np.nan)


KINDS = ("none", "few", "half", "most", "all", "leaves")


@st.composite
def cases(draw, **options):
    """(network, one pattern): evidence anywhere, nowhere or everywhere; NaN marks hidden units."""
    network = draw(networks(**options))
    kind, rng = draw(st.sampled_from(KINDS)), np.random.default_rng(draw(seeds))
    return network, _evidence(1, network.n_units, kind, rng)[0]


@st.composite
def tables(draw, max_rows: int = 6, **options):
    """(network, rows of patterns): another mask in each row, among them an empty row and one that comes twice."""
    network = draw(networks(**options))
    rng = np.random.default_rng(draw(seeds))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=0, max_size=max_rows))
    rows = [_evidence(1, network.n_units, kind, rng) for kind in kinds]
    rows = rows[:1] + rows + [np.full((1, network.n_units), np.nan)] * bool(rows)
    return network, np.concatenate(rows) if rows else np.empty((0, network.n_units))


LIKELIHOODS = (0.0, 5e-324, 1e-300, 1e-10, 0.1, 0.5, 0.5, 0.9, 1.0, 7.0, 1e300)


@st.composite
def questions(draw, max_units=8, of=networks, **options):
    """(network, evidence as a mapping, do as a mapping), and the same as arrays: evidence, do, likelihoods."""
    network = draw(of(max_units=max_units, **options))
    rng, n = np.random.default_rng(draw(seeds)), network.n_units
    share = draw(st.sampled_from([0.0, 0.3, 0.8]))
    kind = np.where(rng.random(n) < share, rng.integers(1, 4, n), 0)  # free, observed, reported on, held
    states = rng.integers(0, 2, n).astype(float)
    pairs = rng.choice(LIKELIHOODS, (n, 2))
    pairs[(kind != 2) | (pairs == 0.0).all(axis=1)] = 1.0
    evidence, do = np.where(kind == 1, states, np.nan), np.where(kind == 3, states, np.nan)
    given_ = {network.names[i]: int(states[i]) for i in np.flatnonzero(kind == 1)}
    given_ |= {network.names[i]: tuple(pairs[i].tolist()) for i in np.flatnonzero(kind == 2)}
    held = {network.names[i]: int(states[i]) for i in np.flatnonzero(kind == 3)}
    return network, given_, held, (evidence, do, pairs)


@st.composite
def means(draw, n: int):
    """Means of n units, some of them exactly 0, ½ or 1."""
    rng = np.random.default_rng(draw(seeds))
    mu = rng.random(n)
    special = rng.random(n) < draw(st.sampled_from([0.0, 0.3, 1.0]))
    return np.where(special, rng.choice([0.0, 0.5, 1.0, 1e-16, 1 - 1e-16], n), mu)


@st.composite
def separate_hidden_units(draw, max_hidden: int = 4, max_weight: float = 30.0, scales=SCALES):
    """(network, one pattern) whose hidden units do not meet: each observed unit has at most one hidden parent."""
    n, rng = draw(st.integers(0, max_hidden)), np.random.default_rng(draw(seeds))
    scale = draw(st.sampled_from(scales))
    observed = [f"x{k}" for k in range(draw(st.integers(1, 6)))]
    pairs = [(f"h{rng.integers(n)}", x) for x in observed if n]
    pairs += [(a, b) for k, b in enumerate(observed) for a in observed[:k] if rng.random() < 0.5]
    names = [f"h{k}" for k in range(n)] + observed
    weight, bias = _numbers(scale, len(pairs), max_weight, rng), _numbers(scale, len(names), max_weight, rng)
    edges = [(a, b, w) for (a, b), w in zip(pairs, weight.tolist(), strict=True)]
    network = sb.from_edges(edges, bias=dict(zip(names, bias.tolist(), strict=True)), names=names)
    return network, np.where(np.arange(len(names)) < n, np.nan, rng.integers(0, 2, len(names)))


def live_units(network, evidence):
    """The units that are observed or have an observed descendant; all others are barren and sum to one."""
    live = set(np.flatnonzero(~np.isnan(evidence)).tolist())
    for child in reversed(range(network.n_units)):
        if child in live:
            live.update(network.index(name) for name in network.parents(child))
    return sorted(live)


TWO_TO_FIVE = ("no", "rather", "mostly", "yes", "very much")


@st.composite
def state_networks(draw, max_units: int = 5, scales=("tame", "hostile"), tables: bool = True, max_states: int = 5):
    """Random networks of variables with 2 to 5 states, sigmoid, noisy-OR and, if asked for, with tables and zeros."""
    n = draw(st.integers(1, max_units))
    shape, scale = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(scales))
    rng = np.random.default_rng(draw(seeds))
    hostile, names = scale == "hostile", [f"v{k}" for k in range(n)]
    sizes = rng.integers(2, max_states + 1, n)
    gate = rng.choice(["sigmoid", "noisy-or", "table"] if tables else ["sigmoid", "noisy-or"], n)
    where = _edges(shape, n, rng)
    edges, own = [], {}
    for i, j in zip(*np.nonzero(where), strict=True):
        block, weight = (sizes[i] - 1, sizes[j] - 1), None
        if gate[i] == "noisy-or":
            weight = causes(hostile, block, rng)
        elif gate[i] == "sigmoid":
            weight = _numbers("hostile" if hostile else "strong", block, 30.0 if hostile else 2.0, rng)
        edges.append((names[j], names[i], weight))
    for i in range(n):
        if gate[i] == "table":
            table = rng.dirichlet(np.ones(sizes[i]), tuple(sizes[where[i]]))
            if hostile:
                table = np.where(rng.random(table.shape) < 0.3, 0.0, table)
                table[..., 0] = np.where(table.sum(axis=-1) == 0.0, 1.0, table[..., 0])
            own[names[i]] = table / table.sum(axis=-1, keepdims=True)
    bias = {}
    for i in np.flatnonzero(gate != "table"):
        size = sizes[i] - 1
        noisy = gate[i] == "noisy-or"
        bias[names[i]] = leaks(hostile, size, rng) if noisy else _numbers("strong", size, 30.0 if hostile else 2.0, rng)
    states = {name: TWO_TO_FIVE[:size] if size > 2 else ("no", "yes") for name, size in zip(names, sizes, strict=True)}
    kinds = {name: kind for name, kind in zip(names, gate.tolist(), strict=True) if kind != "table"}
    return sb.from_edges(edges, bias=bias, gate=kinds, names=names, states=states, tables=own)


@st.composite
def states_of(draw, network):
    """A pattern of evidence: numbers of states, and -1 for variables that are not observed."""
    rng, share = np.random.default_rng(draw(seeds)), draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    return np.where(rng.random(network.n_units) < share, rng.integers(0, network.n_states), -1).astype(np.int8)
