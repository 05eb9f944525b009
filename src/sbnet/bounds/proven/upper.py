"""The upper bound at given parameters, and exact sums, in ball arithmetic; `sbnet.bounds.upper` has the proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sbnet._types import FloatArray, IndexArray, States
from sbnet.bounds.proven import balls, gates, log_sum, round_down, round_up
from sbnet.errors import ParameterError
from sbnet.kernels.structs import Problem
from sbnet.kernels.upper import LARGEST
from sbnet.model.network import Network
from sbnet.questions.reduction import components, reduce


class Subproblem(NamedTuple):
    """A part of P(evidence), the parameters of its upper bound, and the groups that are summed exactly."""

    network: Network
    states: States
    edge: FloatArray  # b of a parent in a table; NaN for one that a line stands for
    unit: FloatArray  # the slope of the line, and the logarithm of the claim
    exact_up_to: int


def upper(subproblems: Sequence[Subproblem]) -> float:
    """A number that ln of the sum over the subproblems is not above, rounding included."""
    with balls() as flint:
        return min(round_up(log_sum([_Bound(flint, subproblem).value() for subproblem in subproblems])), 0.0)


def exact(network: Network, row: States) -> Any:
    """A ball that holds ln P of the evidence."""
    nothing = np.full(network.n_edges, np.nan), np.full((network.n_units, 2), np.nan)
    with balls() as flint:
        return _Bound(flint, Subproblem(network, row, *nothing, network.n_units)).value()


def enclosed(network: Network, row: States) -> tuple[float, float]:
    """Two numbers with ln P of the evidence between them."""
    with balls():
        ball = exact(network, row)
        return round_down(ball), min(round_up(ball), 0.0)


class _Bound:
    """One subproblem, reduced: evidence absorbed, barren variables dropped. Two states each, one factor a variable."""

    def __init__(self, flint: Any, subproblem: Subproblem) -> None:
        network, row = subproblem.network, subproblem.states
        for i in np.flatnonzero(network.model.n_states > 2)[:1]:
            raise ParameterError(
                f"proven bounds know variables with two states; {network.names[i]!r} has {network.model.n_states[i]}"
            )
        self.arb, self.subproblem = flint.arb, subproblem
        self.problem: Problem = reduce(network.model, row)
        self.gate = [int(gate) for gate in network.gate]
        self.weight = [self.arb(float(w)) for w in self.problem.slots["weight"]]
        self.bias = [self.arb(float(h)) for h in network.bias]
        for i in range(network.n_units):
            for e in range(network.graph.indptr[i], network.graph.indptr[i + 1]):
                if row[network.graph.parent[e]] == 1:
                    self.bias[i] += self.arb(float(network.weight[e]))

    def value(self) -> Any:
        states, total = self.subproblem.states, self.arb(0)
        for i in self.problem.known:
            if states[i] >= 0:
                total += gates.log_p(self.gate[i], int(states[i]), self.bias[i])
        label = components(self.problem)
        large = np.zeros(len(label), np.bool_)
        for first in np.unique(label):
            group = np.flatnonzero(label == first)
            if len(group) > self.subproblem.exact_up_to:
                large[group] = True
            else:
                total += self._sum(group)
        return total + self._bounded(large) if large.any() else total

    def _sum(self, group: IndexArray) -> Any:
        """ln of the sum over the states of one group, in Gray code."""
        p, states = self.problem, self.subproblem.states
        inside = set(group.tolist())
        mine = [f for f, slot in enumerate(p.factors["slot"]) if int(p.slots["parent"][slot]) in inside]
        gate = {f: self.gate[p.factors["variable"][f]] for f in mine}
        z = {f: self.bias[p.factors["variable"][f]] for f in mine}
        t = {f: gates.t(gate[f], z[f]) for f in mine}
        on = dict.fromkeys(group.tolist(), 0)
        roots = {k: p.hidden["variable"][k] for k in on if p.hidden["own"][k] < 0}
        root_log_p = {k: [gates.log_p(self.gate[i], s, self.bias[i]) for s in (0, 1)] for k, i in roots.items()}
        terms = []
        for code in range(1 << len(group)):
            if code:
                k = int(group[(code & -code).bit_length() - 1])
                on[k] = 1 - on[k]
                for c in range(p.hidden["child"][k], p.hidden["child_end"][k]):
                    f, w = int(p.children["factor"][c]), self.weight[p.children["slot"][c]]
                    z[f] = z[f] + w if on[k] else z[f] - w
                    t[f] = gates.t(gate[f], z[f])
            value = sum((both[on[k]] for k, both in root_log_p.items()), self.arb(0))
            for f in mine:
                own = int(p.factors["hidden"][f])
                state = on[own] if own >= 0 else int(states[p.factors["variable"][f]])
                a, c = gates.loads(gate[f], state)
                value += a * z[f] - c * t[f]
            terms.append(value)
        return log_sum(terms)

    def _bounded(self, large: Any) -> Any:
        """The units of the other groups, by Hölder's inequality."""
        p, arb = self.problem, self.arb
        n_hidden, parent = len(p.hidden), p.slots["parent"].tolist()
        ends = zip(p.factors["slot"].tolist(), p.factors["slot_end"].tolist(), strict=True)
        slots = {f: range(first, last) for f, (first, last) in enumerate(ends) if large[parent[first]]}
        b, unit = self.subproblem.edge[p.slots["place"]], self.subproblem.unit[p.factors["threshold"]]
        table = ~np.isnan(b)
        claim = np.exp(np.clip(np.nan_to_num(unit[:, 1]), -LARGEST, LARGEST))
        load, eta, omega = np.zeros(n_hidden), [arb(0)] * n_hidden, [arb(1)] * n_hidden
        for f in slots:
            for s in slots[f]:
                k = parent[s]
                load[k] += claim[f] * table[s]
                eta[k] = eta[k] + (arb(float(b[s])) if table[s] else self.weight[s] * arb(float(unit[f, 0])))
        tau = {}
        for f in slots:  # numbers as any other; what counts is that those of a unit add up to one, or more
            tau[f] = arb(float(claim[f] / (1.0 + max((load[parent[s]] for s in slots[f] if table[s]), default=0.0))))
            for s in slots[f]:
                if table[s]:
                    omega[parent[s]] = omega[parent[s]] - tau[f]
        omega = [w if w > 1e-12 else arb(1e-12) for w in omega]
        total = arb(0)
        for k in range(n_hidden):
            if large[k] and p.hidden["own"][k] < 0:
                i = p.hidden["variable"][k]
                total += gates.bracket(self.gate[i], self.bias[i], eta[k], omega[k])
        for f in slots:
            k = int(p.factors["hidden"][f])
            own = (None, None) if k < 0 else (eta[k], omega[k])
            inside = [s for s in slots[f] if table[s]]
            total += self._table(f, inside, [s for s in slots[f] if not table[s]], b, tau[f], float(unit[f, 0]), *own)
        return total

    def _table(
        self, f: int, inside: list[int], outside: list[int], b: FloatArray, tau: Any, slope: float, eta: Any, omega: Any
    ) -> Any:
        """tau ln sum exp((max_t [G(z + t) - lam t] - b S) / tau) over the states of the parents in the table."""
        arb, i = self.arb, self.problem.factors["variable"][f]
        gate, state = self.gate[i], int(self.subproblem.states[i])
        low, high = (sum((self.weight[s] for s in outside if sign * self.weight[s] > 0), arb(0)) for sign in (-1, 1))
        z, shift = [self.bias[i]], [arb(0)]
        for s in inside:
            z += [x + self.weight[s] for x in z]
            shift += [x - arb(float(b[s])) for x in shift]
        lam, values = arb(slope), []
        for c, move in zip(z, shift, strict=True):
            if eta is None:
                best = gates.highest_observed(gate, state, c, lam, low, high)
            elif not outside:
                best = gates.bracket(gate, c, eta, omega)
            else:
                assert omega == 1  # such a unit is in no table
                best = gates.highest_hidden(gate, c, eta, lam, low, high)
            values.append((best + move) / tau)
        return tau * log_sum(values)
