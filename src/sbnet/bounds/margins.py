r"""How far rounding can move a bound: margins that keep it on the safe side of ln P(evidence).

The bounds are theorems about real numbers, evaluated in numbers of 53 bits. Write :math:`u = 2^{-53}` for the rounding
of one operation and :math:`s_i = |h_i| + \sum_j |J_{ij}|`, over all parents j of unit i. Then

- a sum of n numbers, in whatever order, is wrong by at most :math:`\gamma_n = n u / (1 - n u)` times the sum of their
  sizes; so an input :math:`z_i`, or its mean, with n parents is wrong by at most :math:`\gamma_{n + 1} s_i`;
- :math:`\ln(1 + e^z)`, its mean and all bounds on that have slopes between 0 and 1 in z, so they pass this error on and
  add a few u times :math:`s_i + 1`; products of n factors between 0 and 1 add n u each to their logarithms;
- no partial sum over units exceeds :math:`S = \sum_i (s_i + 2)`, the 2 standing for logarithms of 2 and entropies, so
  adding up n units is wrong by at most :math:`\gamma_n S`.

So every margin is a number of roundings, times u, times S: a matter of how large weights are, not of how small P is. S
runs over the *units involved*: those observed and their ancestors. Numbers of roundings are rounded up generously;
:math:`\gamma_n < 1.001\, n u` is in that. Functions of the mathematical library are taken to be right to four units in
the last place, as they are on every platform that we know.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sbnet._types import BoolArray, Bound, FloatArray, IndexArray, States
from sbnet.kernels.codes import SIGMOID
from sbnet.kernels.kinds import EXACT
from sbnet.kernels.structs import Problem
from sbnet.kernels.upper import Regions
from sbnet.model.network import Network
from sbnet.quadrature.frequencies import MAX_NODES
from sbnet.questions.reduction import live_variables

UNIT = 2.0**-53
"""Of rounding: half the distance from 1 to the next number."""

_RAREST = 700.0
"""Above -ln of the smallest probability that a noisy-OR unit has, or nearly any in a table. Of the former, the input is
a sum of numbers none of which is negative, so its error is in proportion to it, and that of t = -ln(1 - e^-x), with
slope -1 / (e^x - 1), at most as large."""

_MOST_KEPT = 1000  # margins, for as many sets of observed units


class Scale(NamedTuple):
    """What the margins of some units depend on: |h_i| + sum_j |J_ij| + 2, and the number of parents."""

    size: FloatArray
    parents: IndexArray

    def of(self, units: BoolArray) -> Scale:
        """The scales of some of the units."""
        return Scale(self.size[units], self.parents[units])


def scale(network: Network) -> Scale:
    """The scales of all units of a network, computed once."""
    known: Scale | None = network._cache.get(Scale)
    if known is None:
        model = network.model
        sums = np.concatenate([[0.0], np.cumsum(np.abs(network.weight))])
        first, last = model.block[model.indptr[:-1]], model.block[model.indptr[1:]]
        each = np.abs(network.bias) + 2.0 + _RAREST * (model.gate != SIGMOID)[network.columns[0]]
        size = np.add.reduceat(each, model.threshold[:-1]) + (sums[last] - sums[first])
        known = network._cache[Scale] = Scale(size, np.diff(model.indptr))
    return known


def involved(problem: Problem, states: States) -> BoolArray:
    """The units that a problem is about: factors, hidden units, and observed units with known inputs."""
    mask = np.zeros(len(states), np.bool_)
    mask[problem.hidden["variable"]] = mask[problem.factors["variable"]] = True
    mask[problem.known[states[problem.known] >= 0]] = True
    return mask


def of_mean_field(network: Network, which: Bound, states: States) -> FloatArray:
    """For each row: how far a mean field bound, as computed, may be above the bound itself.

    It depends on which units are observed, not on their states.
    """
    seen = states >= 0
    if len(states) and (seen == seen[0]).all():
        key = which, seen[0].tobytes()  # kept: who asks once will ask again, with other states of the same units
        kept: float | None = network._cache.get(key)
        if kept is None:
            kept = float(of_terms(scale(network), which, live_variables(network.model, states[0])[None, :])[0])
            if len(network._cache) < _MOST_KEPT:
                network._cache[key] = kept
        return np.full(len(states), kept)
    first = np.flatnonzero(np.append(True, np.any(seen[1:] != seen[:-1], axis=1)))[: len(states)]  # of rows seen alike
    live = np.empty((len(first), network.n_units), np.bool_)
    for k, r in enumerate(first):
        live[k] = live_variables(network.model, states[r])
    return np.repeat(of_terms(scale(network), which, live), np.diff(np.append(first, len(states))))


def of_terms(scale: Scale, which: Bound, live: BoolArray) -> FloatArray:
    """The margins of mean field bounds, for rows of units that are involved.

    A term goes through three roundings for each parent (the input, its mean, a product or a mean over states), and some
    twenty more; then all units are added up.
    """
    margin: FloatArray = _over(live, (3 * scale.parents + 24) * scale.size)
    margin += live.sum(axis=1) * _over(live, scale.size)
    many = scale.parents > which.enumerate_up_to
    if which.log_term == EXACT and np.any(many):
        # Q frequencies, with weights that add up to Q/9 or less: Q roundings for each of two sums, five for each
        # parent in each product, and some for the powers. Units of a block share the frequencies of the widest.
        # They are rounded up to whole chunks, by 128 at most.
        q = np.clip(86.0 + 1.3 * np.where(live, scale.size, 0.0).max(axis=1), 0.0, MAX_NODES + 128.0)
        margin += q * ((0.25 * q + 2.0) * _over(live, many * 1.0) + 0.6 * _over(live, many * scale.parents))
    return UNIT * margin


def _over(live: BoolArray, numbers: NDArray[Any]) -> FloatArray:
    """The sum over the units involved, by row, in an order that does not depend on the other rows.

    A product of matrices would be quicker, but its order of addition changes with their shapes.
    """
    total: FloatArray = np.where(live, numbers, 0.0).sum(axis=1)
    return total


def of_components(scale: Scale, which: Bound, gate_weight: FloatArray, gate_bias: FloatArray) -> float:
    """One margin for all components of a mixture: gates are units with all hidden units as parents."""
    gates = np.abs(gate_bias) + np.abs(gate_weight).sum(axis=2) + 2.0  # components by gates
    n_gates, n_hidden = gate_weight.shape[1:]
    widest = Scale(np.append(scale.size, gates.max(axis=0)), np.append(scale.parents, np.full(n_gates, n_hidden)))
    return float(of_terms(widest, which, np.ones((1, len(widest.size)), np.bool_))[0])


def of_sum(scale: Scale, problem: Problem, label: IndexArray, limit: int) -> float:
    """How far a sum over all states of the groups of up to `limit` units may be off; `scale` is of the units involved.

    ln P(S) is a sum over thresholds, K - 1 for a variable with K states: each has a rounding of its input for each
    parent, some for t, and one of ln P(S). A sum of 2^k positive terms, rescaled as it goes, is off by 2^(k+1)
    roundings of itself.
    """
    groups = np.bincount(label, np.log2(problem.hidden["states"]))
    summed, levels = groups[groups <= limit], int(problem.factors["level"].max(initial=1))
    operations = scale.parents + levels * (len(scale.size) + 10)
    return UNIT * float(operations @ scale.size + np.sum(2.0 ** (summed + 1) + 64.0))


def of_elimination(network: Network, live: BoolArray) -> float:
    """How far ln P may be off if the variables involved are eliminated, in probabilities or in logarithms.

    A factor goes through a rounding of its input for each parent, and some forty more for a logarithm, the largest
    number that is taken out, and a power. No term is negative, so that errors of sums are no larger than those of their
    terms. To eliminate a variable with K states takes K sums and a product for each factor that it is in; a cause that
    passes an accumulator of K states, 4 K more. Where all this is done with logarithms, each is a rounding of one that
    is no larger than S. Terms that are left out as too small for a number come to less than e^-60 of the sum.
    """
    known, model = scale(network).of(live), network.model
    child = np.repeat(np.arange(network.n_units), np.diff(model.indptr))
    steps = (model.n_states + 4)[live].sum() + (4 * model.n_states[child] + 1)[live[child]].sum() + 64
    return UNIT * float((known.parents + 40) @ known.size + steps * (known.size.sum() + 4.0))


def of_upper(scale: Scale, regions: Regions, x: FloatArray) -> float:
    """How far the upper bound at the parameters x, as computed, may be below the bound itself.

    The slopes that parents exchange count as weights do: each is met in its table, in the sum that a parent receives,
    and in the bracket of that parent. A sum over the joint states of a table is off by so many roundings of itself.
    """
    families, lines, entries, *_ = regions
    n = len(entries)
    slope = np.abs(x[n : n + len(lines)])[regions.line]
    sent = np.where(entries["block"] > 0, np.abs(x[:n]), slope * np.abs(entries["weight"]))
    operations = 3 * int(scale.parents.max(initial=0)) + len(scale.size) + 40
    operations += len(lines) - len(families) + 4 * (int(families["states"].max(initial=2)) - 2)  # more than two states
    return UNIT * float(operations * (scale.size.sum() + 3.0 * sent.sum()) + families["table"].sum())


def of_weights(scale: Scale, regions: Regions, x: FloatArray) -> float:
    """How far ln of P(H, V) / [U q(H)] may be off, as computed.

    ln P(H, V) goes through a rounding for each parent of a unit, some ten for its term, and one for each unit of the
    sum; so does ln q(H). U counts twice: it is evaluated, and q was made of rounded numbers.
    """
    joint = UNIT * float((scale.parents + 2 * len(scale.size) + 24) @ scale.size)
    return joint + 2.0 * of_upper(scale, regions, x)


def log_sum_below(values: FloatArray) -> float:
    """ln of the sum of e^x, or a little less: not above it, rounding included."""
    return _log_sum(values) - _of_log_sum(_log_sum(values))


def sum_below(values: FloatArray) -> float:
    """The sum, or a little less."""
    return float(values.sum()) - UNIT * len(values) * float(np.abs(values).sum()) * (len(values) > 1)


def log_sum_above(values: FloatArray) -> float:
    """ln of the sum of e^x, or a little more."""
    return widened(_log_sum(values))


def widened(total: float) -> float:
    """A little above a logarithm of a sum, or of sums of sums."""
    return total + _of_log_sum(total)


def _log_sum(values: FloatArray) -> float:
    top = float(np.max(values))
    return top + float(np.log(np.exp(values - top).sum()))


def _of_log_sum(total: float) -> float:
    """How far it may be off: NumPy adds up in pairs, and sums are nested sixteen deep at most, so n hardly counts."""
    return 64.0 * UNIT * (abs(total) + 4.0)
