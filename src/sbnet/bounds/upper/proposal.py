r"""The distribution that an upper bound defines: P(H, V) is nowhere above U q(H), so that weights are bounded.

The bound of :mod:`sbnet.bounds.upper` sums out one hidden variable after the other, children before parents. Where
variable c goes, the factors :math:`g_r` that hold it have weights :math:`w_r` with :math:`\sum_r w_r = 1`, sums
:math:`Z_r = (\sum_{S_c} g_r^{1/w_r})^{w_r}`, and distributions :math:`b_r(S_c) = g_r^{1/w_r} / \sum_{S_c} g_r^{1/w_r}`
given all variables that are still there. As :math:`g_r = b_r^{w_r} Z_r`, and no geometric mean is above an arithmetic
one,

.. math:: \prod_r g_r = \prod_r b_r^{w_r} \prod_r Z_r \le \Big[ \sum_r w_r b_r(S_c) \Big] \prod_r Z_r .

So let :math:`q(S_c \mid \dots) = \sum_r w_r b_r(S_c)`. Multiplied along the order of elimination, it gives
:math:`P(H, V) \le U q(H)` for every H; a line above :math:`G_c(z + t)` only adds slack. H is drawn from q parents
first, the order of elimination backwards. Of a variable's own bracket,
:math:`b \propto [P(s \mid z) e^{\eta_{cs}}]^{1/\omega_c}`; of a table, it is the conditional distribution in
:math:`\pi_f(S) \propto \exp([G_f - b_f \cdot S] / \tau_f)`, given the parents drawn before.

*A better proposal.* Where U is loose, q is poor, but a factorial Q with the means of mean field theory is not. Draws
come from :math:`\alpha q + (1 - \alpha) Q`, and :math:`w = P(H, V) / [\alpha q(H) + (1 - \alpha) Q(H)]` is at most
:math:`U / \alpha`.

*Rounding.* The argument holds for any distributions :math:`b_r`, with U raised by the largest
:math:`\sum_r (\ln g_r - w_r \ln b_r - \ln Z_r)`. So they may be what floating point makes of them, and U needs one more
margin. A draw compares a number of 53 bits with a probability that was rounded, which moves the distribution of H by a
few :math:`2^{-53}` for each variable, in total variation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sbnet._types import BoolArray, FloatArray, IndexArray
from sbnet.bounds import margins
from sbnet.bounds.upper.regions import Parameters, divide, evaluate, start
from sbnet.bounds.upper.subproblems import Limits
from sbnet.exact.enumeration import Reduced
from sbnet.kernels.proposal import Joint, condition, draw, link_t, table_t
from sbnet.kernels.upper import Regions
from sbnet.questions.reduction import columns_of_hidden

_SHY = 1e-3  # probabilities in the factorial distribution are at least that: what it leaves out is found by q alone
_DRAW = 16.0 * margins.UNIT  # how far the drawing of one variable is off, in total variation


class Proposal(NamedTuple):
    """What one subproblem is drawn from: P(H, V) <= e^log_bound q(H), in real numbers and, with the margin, here."""

    joint: Joint
    log_bound: float
    margin: float  # how far ln of a weight may be off
    variation: float  # how far the distribution that draws come from is from that of the weights
    constant: float  # ln of what was summed exactly: the part of P(V) that does not depend on the draws

    @property
    def drawn(self) -> int:
        """How many variables are drawn."""
        return int((self.joint.regions.families["hidden"] >= 0).sum())

    def draw(self, seeds: NDArray[np.uint64], from_factorial: BoolArray) -> FloatArray:
        """ln P(H, V), ln q(H) and ln Q(H), in rows, for each seed; is H drawn from Q?"""
        families, lines, *_ = self.joint.regions
        out, q = np.empty((3, len(seeds))), np.empty(int(families["states"].max(initial=2)))
        draw(self.joint, seeds, from_factorial, np.empty(len(lines)), q, np.empty(len(families), np.int64), out)
        return out


def propose(row: Reduced, limits: Limits, given: Parameters, means: FloatArray) -> Proposal:
    """The proposal of the upper bound at given parameters, and the factorial distribution with these means."""
    sums, model = row.sums(limits.exact_up_to, findings=limits.findings), row.network.model
    problem = row.problem
    regions = divide(problem, model, row.states, row.bias, sums.large, limits.table_up_to)
    x = start(regions, given)
    log_bound = float(evaluate(regions, x)[0])
    scale = margins.scale(row.network).of(margins.involved(row.problem, row.states))
    margin = margins.of_weights(scale, regions, x) + margins.of_sum(scale, row.problem, sums.label, limits.exact_up_to)
    mu = means[columns_of_hidden(model, problem)]
    found = Proposal(_joint(regions, x, mu), log_bound, margin + sums.error, 0.0, sums.total)
    return found._replace(variation=_DRAW * found.drawn)


def _joint(regions: Regions, x: FloatArray, mu: FloatArray) -> Joint:
    """The shares of all distributions that a variable is drawn from add up to one."""
    families, _, entries, members, nodes, *_ = regions
    family, parent, entry = (members[name] for name in ("family", "parent", "entry"))
    tau, block = families["tau"][family], entries["block"][entry].astype(np.int64)
    whole = nodes["omega"] + np.bincount(parent, tau, len(nodes))

    room = block * nodes["states"][parent]
    begin, place, in_tables = np.cumsum(room) - room, np.zeros(len(entries), np.int64), np.empty(int(room.sum()))
    place[entry] = begin
    condition(regions, x, place, in_tables)
    order = np.argsort(parent, kind="stable")
    tables = np.zeros(len(members), table_t)
    tables["family"], tables["share"] = family[order], (tau / whole[parent])[order]
    tables["block"], tables["begin"] = block[order], begin[order]
    table = np.searchsorted(parent[order], np.arange(len(nodes) + 1))

    by_column = np.argsort(entries["column"], kind="stable")
    links = np.zeros(len(entries), link_t)
    links["line"], links["weight"] = entries["line"][by_column], entries["weight"][by_column]
    link = np.searchsorted(entries["column"][by_column], np.arange(len(mu) + 1))
    p = _factorial(nodes["states"], mu)
    return Joint(regions, tables, table, in_tables, nodes["omega"] / whole, p, np.log(p), links, link)


def _factorial(states: IndexArray, mu: FloatArray) -> FloatArray:
    """The probabilities of all states of each variable, none of them too small, from those of states 1 and on."""
    variable, first = np.repeat(np.arange(len(states)), states), np.cumsum(states) - states
    p = np.zeros(len(variable))
    p[np.arange(len(p)) != first[variable]] = mu
    p[first] = 1.0 - np.bincount(variable, p, len(states))
    p = np.clip(p, _SHY, 1.0 - _SHY)
    return p / np.bincount(variable, p, len(states))[variable]
