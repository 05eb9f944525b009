r"""The distribution that an upper bound defines: P(H, V) is nowhere above U q(H), so that weights are bounded.

The bound of :mod:`sbnet.bounds.upper` sums out one hidden unit after the other, children before parents. Where unit c
goes, the factors :math:`g_r` that hold it have weights :math:`w_r` with :math:`\sum_r w_r = 1`, sums
:math:`Z_r = (\sum_{S_c} g_r^{1/w_r})^{w_r}`, and distributions :math:`b_r(S_c) = g_r^{1/w_r} / \sum_{S_c} g_r^{1/w_r}`
given all units that are still there. As :math:`g_r = b_r^{w_r} Z_r`, and no geometric mean is above an arithmetic one,

.. math:: \prod_r g_r = \prod_r b_r^{w_r} \prod_r Z_r \le \Big[ \sum_r w_r b_r(S_c) \Big] \prod_r Z_r .

So let :math:`q(S_c \mid \dots) = \sum_r w_r b_r(S_c)`. Multiplied along the order of elimination, it gives
:math:`P(H, V) \le U q(H)` for every H; a line above :math:`G_c(z + t)` only adds slack. H is drawn from q parents
first, the order of elimination backwards. Of a unit's own factor, :math:`b = \sigma((l_c + \eta_c) / \omega_c)` with
:math:`l_c` its log-odds given its parents; of a table, it is the conditional distribution in
:math:`\pi_f(S) \propto \exp([G_f - b_f \cdot S] / \tau_f)`, given the parents drawn before.

*A better proposal.* Where U is loose, q is poor, but a factorial Q with the means of mean field theory is not. Draws
come from :math:`\alpha q + (1 - \alpha) Q`, and :math:`w = P(H, V) / [\alpha q(H) + (1 - \alpha) Q(H)]` is at most
:math:`U / \alpha`.

*Rounding.* The argument holds for any distributions :math:`b_r`, with U raised by the largest
:math:`\sum_r (\ln g_r - w_r \ln b_r - \ln Z_r)`. So they may be what floating point makes of them, and U needs one more
margin. A draw compares a number of 53 bits with a probability that was rounded, which moves the distribution of H by a
few
:math:`2^{-53}` for each unit, in total variation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sbnet._types import BoolArray, FloatArray, IndexArray, Problem
from sbnet.bounds import margins
from sbnet.bounds.upper.regions import Parameters, divide, start
from sbnet.bounds.upper.subproblems import Limits
from sbnet.exact.enumeration import Reduced
from sbnet.kernels.proposal import Factorial, Holder, Joint, draw, grow
from sbnet.kernels.upper import Regions, evaluate
from sbnet.questions.reduction import stretches

_SHY = 1e-3  # means of the factorial distribution keep that far from 0 and 1: what it leaves out is found by q alone
_DRAW = 16.0 * margins.UNIT  # how far the drawing of one unit is off, in total variation


class Proposal(NamedTuple):
    """What one subproblem is drawn from: P(H, V) <= e^log_bound q(H), in real numbers and, with the margin, here."""

    joint: Joint
    holder: Holder
    factorial: Factorial
    log_bound: float
    margin: float  # how far ln of a weight may be off
    variation: float  # how far the distribution that draws come from is from that of the weights
    constant: float  # ln of what was summed exactly: the part of P(V) that does not depend on the draws

    def draw(self, seeds: NDArray[np.uint64], from_factorial: BoolArray) -> FloatArray:
        """ln P(H, V), ln q(H) and ln Q(H), in rows, for each seed; is H drawn from Q?"""
        out, n_factors = np.empty(3 * len(seeds)), len(self.joint.base)
        draw(*self[:3], seeds, from_factorial, np.empty(n_factors), np.empty(n_factors, np.int64), out)
        return out.reshape(3, -1)


def propose(row: Reduced, limits: Limits, given: Parameters, means: FloatArray) -> Proposal:
    """That of the upper bound at given parameters, with the factorial distribution around the means of all units."""
    problem, sums = row.problem, row.sums(limits.exact_up_to, findings=limits.findings)
    regions = divide(problem, row.states, row.bias, sums.large, limits.table_up_to)
    x = start(problem, regions, given)
    log_bound = float(evaluate(problem, regions, x, np.empty_like(x)))
    units = np.flatnonzero(sums.large)
    joint, holder = _joint(problem, regions, units), _holder(problem, regions, units, x)
    scale = margins.scale(row.network).of(margins.involved(problem, row.states))
    mu = np.clip(means[problem.hidden[units]], _SHY, 1.0 - _SHY)
    return Proposal(
        joint,
        holder,
        Factorial(mu, np.log(mu), np.log1p(-mu)),
        log_bound,
        margins.of_weights(scale, problem, regions, x, sums.label, limits.exact_up_to) + sums.error,
        _DRAW * len(units),
        sums.total,
    )


def _joint(problem: Problem, regions: Regions, units: IndexArray) -> Joint:
    hidden, seen = problem.hidden[units], np.flatnonzero(regions.active & (problem.own < 0))
    slots, ptr = stretches(problem.child_ptr, units)
    return Joint(
        problem.gate[hidden],
        regions.bias[hidden],
        problem.factor_of[units],
        ptr,
        problem.child[slots],
        problem.weight[problem.child_slot[slots]],
        regions.bias[problem.factor],
        seen,
        problem.gate[problem.factor[seen]],
        regions.states[problem.factor[seen]],
    )


def _holder(problem: Problem, regions: Regions, units: IndexArray, x: FloatArray) -> Holder:
    """The shares of all distributions that a unit is drawn from; they add up to one."""
    factor_of_slot = np.repeat(np.arange(len(problem.factor)), np.diff(problem.ptr))
    place, table = np.zeros(len(problem.parent), np.int64), regions.table
    before: IndexArray = np.cumsum(table) - table  # tabled slots in front
    place[table] = (before - before[problem.ptr[:-1]][factor_of_slot])[table]
    tau, omega = np.where(table, regions.of_factor.tau[factor_of_slot], 0.0), regions.of_unit.omega
    whole = omega + np.bincount(problem.parent, tau, len(omega))
    children, _ = stretches(problem.child_ptr, units)
    tabled = children[table[problem.child_slot[children]]]
    slots = problem.child_slot[tabled]
    counts = np.bincount(problem.parent[slots], minlength=len(omega))[units]
    in_table = np.bincount(factor_of_slot[table], minlength=len(problem.factor))
    root = np.concatenate([[0], np.cumsum(np.where(in_table > 0, 2**in_table, 0))]).astype(np.int64)
    on, off = np.zeros(int(root[-1])), np.zeros(int(root[-1]))
    grow(problem, regions, x, root, on, off)
    return Holder(
        (omega / whole)[units],
        omega[units],
        regions.of_unit.eta[units],
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        factor_of_slot[slots],
        tau[slots] / whole[problem.parent[slots]],
        2 ** place[slots],
        root,
        on,
        off,
    )
