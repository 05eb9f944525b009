"""How the families of one row are bounded: which parents are in tables, and where the parameters start."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray, Model, States
from sbnet.kernels.codes import LEAST, NOISY_OR
from sbnet.kernels.descent import descend
from sbnet.kernels.structs import Problem
from sbnet.kernels.upper import Regions, entry_t, family_t, line_t, member_t, node_t
from sbnet.model.gates import sigma

_SPLIT_WEIGHT = 4.0  # a weight beyond that decides a variable alone; it counts no more for the choice of a split
_LEAST_SLOPE = 1e-12  # of a line above ln(1 - e^-x)


class Parameters(NamedTuple):
    """The parameters of one row by weight and by threshold of the network; NaN where there are none."""

    edge: FloatArray  # the slope of a parent in a table, beside the weight of the child's first threshold
    unit: FloatArray  # the slope of a line, and the logarithm of the claim, beside the first threshold


def divide(problem: Problem, model: Model, states: States, bias: FloatArray, large: BoolArray, room: int) -> Regions:
    """Put up to `room` parents in the table of each variable in a large group: those with the largest weights.

    More than two states of a parent take more of the room: a table has 2**room joint states at most.
    """
    hidden, factors, slots = problem.hidden, problem.factors, problem.slots
    active = large[slots["parent"][factors["slot"]]]
    heads, roots = factors[active & (factors["level"] == 1)], np.flatnonzero(large & (hidden["own"] < 0))
    variable = np.concatenate([hidden["variable"][roots], heads["variable"]])
    order = np.argsort(variable, kind="stable")
    families = np.zeros(len(variable), family_t)
    families["variable"] = variable = variable[order]
    families["gate"], families["states"], families["state"] = (
        model.gate[variable], model.n_states[variable], states[variable]
    )  # fmt: skip
    families["hidden"] = own = np.concatenate([roots, heads["hidden"]])[order]
    families["column"] = np.where(own >= 0, hidden["column"][own], -1) if len(hidden) else -1
    families["width"] = width = np.concatenate([np.zeros(len(roots), np.int64), heads["slot_end"] - heads["slot"]])[
        order
    ]
    every = family = np.arange(len(families))
    thresholds, families["table"] = model.n_states[variable] - 1, 1
    if model.threshold[-1] > len(model.n_states):  # more than two states somewhere
        family = np.repeat(every, thresholds)
    families["line"], families["entry"] = _begins(thresholds), _begins(width * thresholds)

    lines = np.zeros(len(family), line_t)
    lines["family"] = family
    level = np.arange(1, len(lines) + 1) - families["line"][family]
    lines["threshold"] = model.threshold[variable][family] + level - 1
    lines["bias"] = bias[lines["threshold"]]
    lines["a"], lines["c"] = _loads(families["gate"][family] == NOISY_OR, level, families["state"][family])

    used = slots if active.all() else slots[np.repeat(active, factors["slot_end"] - factors["slot"])]
    line = np.repeat(np.arange(len(lines)), width[family])
    entries = np.zeros(len(line), entry_t)
    for name in ("weight", "parent", "column"):
        entries[name] = used[name]
    nodes = np.zeros(len(hidden), node_t)
    nodes["states"] = hidden["states"]
    (eta, mu), n = np.zeros((2, problem.n_columns)), int(thresholds.max(initial=1))
    place, by_state = np.ascontiguousarray(used["place"]), np.zeros((2 + (3 + n + 1) * n if n > 1 else 5, 2**room))
    entries["line"], members = line, np.zeros(0, member_t)
    regions = Regions(families, lines, entries, members, nodes, eta, mu, line, place, by_state)
    if room:
        regions = regions._replace(members=_fill_tables(regions, room))
    _widen(regions)
    return regions


def _first_columns(regions: Regions) -> BoolArray:
    """Is an entry the first one of its parent in its line?"""
    parent, line = regions.entries["parent"], regions.line
    return np.append(True, (parent[1:] != parent[:-1]) | (line[1:] != line[:-1]))[: len(parent)]


def _straight(regions: Regions) -> BoolArray:
    """Thresholds for which ln P is straight, such as those of noisy-OR findings that are absent.

    A line of that slope is exact.
    """
    straight: BoolArray = regions.lines["c"] == 0.0
    return straight


def _rising(regions: Regions) -> BoolArray:
    """Lines above ln(1 - e^-x), a function that rises: their slopes are positive."""
    rising: BoolArray = (regions.families["gate"][regions.lines["family"]] == NOISY_OR) & (regions.lines["c"] == 1.0)
    return rising


def free_places(regions: Regions) -> tuple[IndexArray, BoolArray]:
    """Where the parameters are that the bound depends on; and are they positive?

    For lines alone, that is one for each and none for entries.
    """
    families, lines, entries, *_ = regions
    first = regions.line == families["line"][lines["family"][regions.line]]
    moved = (lines["low"] < lines["high"]) & ~_straight(regions)
    free = np.flatnonzero(np.concatenate([(entries["block"] > 0) & first, moved, families["table"] > 1]))
    nothing = np.zeros(len(entries), np.bool_), np.zeros(len(families), np.bool_)
    return free, np.concatenate([nothing[0], _rising(regions), nothing[1]])[free]


def _begins(sizes: IndexArray) -> IndexArray:
    """Where each of several stretches of these sizes begins, end to end."""
    begins: IndexArray = np.cumsum(sizes) - sizes
    return begins


def _loads(noisy: BoolArray, level: IndexArray, state: IndexArray) -> tuple[FloatArray, FloatArray]:
    """a and c of thresholds, as `kernels.thresholds` has them; NaN for a variable that is not observed."""
    a = np.where(noisy, -1.0 * (state < level), 1.0 * (state >= level))
    c = np.where(noisy, 1.0 * (state == level), 1.0 * (state >= level - 1))
    a[state < 0] = c[state < 0] = np.nan
    return a, c


def _fill_tables(regions: Regions, room: int) -> np.ndarray:
    """Choose the parents that go in tables, and number their joint states."""
    families, lines, entries, _, nodes, *_ = regions
    bent = np.bincount(lines["family"], ~_straight(regions), len(families)) > 0.0
    # A hidden variable whose input is known only up to an interval takes all of Hölder's weight itself (its bracket
    # then has a closed form), so it may be in no table. Parents come first: what they are is known when a child asks.
    alone, size = np.zeros(len(nodes), np.bool_), np.abs(entries["weight"])
    parent, states = np.ascontiguousarray(entries["parent"]), nodes["states"][entries["parent"]]
    # the first entry of the same parent
    head = np.maximum.accumulate(np.where(_first_columns(regions), np.arange(len(entries)), 0))
    block, begin = np.zeros(len(entries), np.int64), np.zeros(len(entries), np.int64)
    powers, two = 2 ** np.arange(room), bool((states == 2).all())
    shape = zip(*(families[name].tolist() for name in ("entry", "width", "states", "hidden")), strict=True)
    for f, (first, width, n_states, own) in enumerate(shape):
        if width == 0 or not bent[f]:
            continue
        last, n = first + width, n_states - 1
        weight = size[first:last] if n == 1 else size[first : first + n * width].reshape(n, width).max(axis=0)
        free = np.flatnonzero(~alone[parent[first:last]])
        order = first + free[np.argsort(-weight[free], kind="stable")]
        if two:
            chosen = np.sort(order[:room])
            block[chosen] = begin[chosen] = powers[: len(chosen)]
            families["table"][f] = 1 << len(chosen)
        else:
            families["table"][f] = _number(order, head, states, 2**room, block, begin)
        for i in range(1, n):
            block[first + i * width : last + i * width] = block[first:last]
        if own >= 0 and not block[first:last].all():
            alone[own] = True
    entries["block"], entries["begin"] = block, begin
    first = np.flatnonzero((block > 0) & (begin == block))
    members = np.zeros(len(first), member_t)
    members["family"], members["parent"], members["entry"] = lines["family"][regions.line[first]], parent[first], first
    return members


def _number(
    order: IndexArray, head: IndexArray, states: IndexArray, most: int, block: IndexArray, begin: IndexArray
) -> int:
    """Take parents in this order while they have no more than so many joint states, and number these."""
    chosen, table = set[int](), 1
    for k in head[order].tolist():
        if table * int(states[k]) > most:
            break
        if k not in chosen:
            chosen.add(k)
            table *= int(states[k])
    table = 1
    for k in sorted(chosen):
        for j in range(1, int(states[k])):
            block[k + j - 1], begin[k + j - 1] = table, j * table
        table *= int(states[k])
    return table


def _widen(regions: Regions) -> None:
    """Between which numbers the parents outside of tables move the inputs: each to its lowest and highest weight."""
    _, lines, entries, *_ = regions
    line = regions.line
    lowest = highest = np.where(entries["block"] > 0, 0.0, entries["weight"])
    if len(regions.eta) > len(regions.nodes) and len(entries):  # parents with several weights each
        first = np.flatnonzero(_first_columns(regions))
        lowest, highest = np.minimum.reduceat(lowest, first), np.maximum.reduceat(highest, first)
        line = line[first]
    lines["low"] = np.bincount(line, np.minimum(lowest, 0.0), len(lines))
    lines["high"] = np.bincount(line, np.maximum(highest, 0.0), len(lines))


def start(regions: Regions, given: Parameters) -> FloatArray:
    """The parameters at the start: those that are given, or else those of lines at the middle of the inputs."""
    families, lines, entries, members, nodes, *_ = regions
    line, a, c, family = regions.line, lines["a"], lines["c"], lines["family"]
    middle = lines["bias"] + np.bincount(line, entries["weight"] / nodes["states"][entries["parent"]], len(lines))
    gradient = np.where(
        families["gate"][family] == NOISY_OR, -1.0 / np.expm1(np.clip(middle, LEAST, 700.0)), sigma(middle)
    )
    first_slope = np.where(np.isnan(a), 0.0, a - c * np.where(c > 0.0, gradient, 0.0))  # none for a hidden variable
    slope = given.unit[lines["threshold"], 0]
    slope = np.where(np.isnan(slope) | _straight(regions), first_slope, slope)
    slope = np.where(_rising(regions), np.maximum(slope, _LEAST_SLOPE), slope)
    children, most = 1.0 + np.bincount(members["parent"], minlength=len(nodes)), np.ones(len(families))
    if len(members):
        np.maximum.at(most, family[line], children[entries["parent"]])
    log_claim = given.unit[lines["threshold"][families["line"]], 1]
    edge = given.edge[regions.place]
    return np.concatenate(
        [
            np.where(np.isnan(edge), slope[line] * entries["weight"], edge),
            slope,
            np.where(np.isnan(log_claim), -np.log(most), log_claim),
        ]
    )


def evaluate(regions: Regions, x: FloatArray) -> tuple[float, FloatArray]:
    """The bound at the parameters x, and its gradient: a descent without a step."""
    nothing = np.empty(0, np.int64)
    return descend(regions, x, nothing, nothing > 0, 0, 0.0)


def keep(regions: Regions, x: FloatArray, given: Parameters) -> None:
    """Put the parameters back where they came from."""
    families, lines, entries, *_ = regions
    n, claims = len(entries), len(entries) + len(lines)
    given.unit[lines["threshold"], 0] = x[n:claims]
    given.unit[lines["threshold"][families["line"]], 1] = np.where(families["table"] > 1, x[claims:], np.nan)
    given.edge[regions.place] = np.where(entries["block"] > 0, x[:n], np.nan)


def rate(problem: Problem, regions: Regions, n_variables: int) -> FloatArray:
    """How much would be gained by a split at each variable, after an evaluation at the parameters that were found."""
    _, lines, entries, _, nodes, _, mean, *_ = regions
    mu, step = mean[entries["column"]], np.minimum(np.abs(entries["weight"]), _SPLIT_WEIGHT)
    gain = mu * (1.0 - mu) * step * step * lines["curvature"][regions.line]
    score = np.zeros(n_variables)
    score[problem.hidden["variable"]] = np.bincount(entries["parent"], gain, len(nodes))
    return score
