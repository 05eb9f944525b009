"""What to ask next: the findings whose answers are expected to tell most about the causes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, IndexArray
from sbnet.decisions.answers import Present, units_about
from sbnet.decisions.information import information, summed_entropy
from sbnet.errors import in_line, short
from sbnet.exact.probability import entropy_of
from sbnet.inference import Posterior, Solver, infer
from sbnet.inference.solvers.enumeration import best
from sbnet.inference.solvers.families import Row, draw
from sbnet.kernels.codes import NOISY_OR
from sbnet.model import roles
from sbnet.model.gates import sigma
from sbnet.model.network import Network
from sbnet.questions import printing
from sbnet.questions.batches import Batch, framed
from sbnet.questions.by_state import probabilities
from sbnet.questions.evidence import OnePattern
from sbnet.questions.printing import Reading

if TYPE_CHECKING:
    import pandas


_FAR = 0.01
"""The weight of mutual information with a neighbour of a candidate that is not asked about, in choosing candidates."""
_DRAWN = 64
"""Samples of the other parents of a child, in choosing candidates."""


class NextQuestion(NamedTuple):
    """A finding that could be asked for.

    Attributes
    ----------
    rank : int
        From 1.
    name : str
    information : float
        The nats to expect of it.
    probability : float
        Its probability of a yes.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> best, *_ = sb.next_question(net, {"wet": 1}, about="rain", among=["sprinkler"])
    >>> best.name
    'sprinkler'
    """

    rank: int
    name: str
    information: float
    probability: float


@dataclass(frozen=True, eq=False, repr=False)
class Questions(Batch[NextQuestion]):
    """Findings worth asking next, the most informative first.

    ``questions[0]`` is the first, with a rank, a name, its information and its probability of a yes; a slice, or an
    array of numbers or of truth values, gives some.

    Attributes
    ----------
    names : tuple of str
    information : ndarray
        Nats that the answer is expected to tell about the variables in `about`; see :func:`next_question`.
    probability : ndarray
        The probability that the answer is yes; where there are more than two states, that it is not the first of them.
    about : tuple of str
        The variables that are asked about.
    entropy : float
        Their summed entropies before the answer, in nats: what there is to be told.
    considered : int
        How many variables could be asked for; if they are many, only the best of them were worked out.
    exact : bool
        Are the numbers sums over all states, and not those of a solver?
    rank : ndarray of int
        From 1.
    first : tuple of str
        The first state of those whose states are not called no and yes; empty for others.
    cost : ndarray
        What each costs: questions are ranked by information over cost.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> questions = sb.next_question(net, {"wet": 1}, about="rain", among=["sprinkler"])
    >>> len(questions)
    1
    """

    names: tuple[str, ...]
    information: FloatArray
    probability: FloatArray
    about: tuple[str, ...]
    entropy: float
    considered: int
    exact: bool
    rank: IndexArray
    first: tuple[str, ...]
    cost: FloatArray

    _columns = ("names", "information", "probability", "rank", "first", "cost")

    def _one(self, r: int) -> NextQuestion:
        number = float(self.information[r]), float(self.probability[r])
        return NextQuestion(int(self.rank[r]), self.names[r], *number)

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row for each question: rank, information, and the probability of a yes.

        Returns
        -------
        pandas.DataFrame
        """
        columns = {"rank": self.rank, "information": self.information, "probability": self.probability}
        return framed(columns | ({"cost": self.cost} if self.priced else {}), units=self.names)

    @property
    def priced(self) -> bool:
        """Do some cost more than others?"""
        return bool((self.cost != 1.0).any())

    def _reading(self) -> Reading:
        who = ", ".join(map(short, self.about)) if len(self.about) <= 3 else f"{len(self.about):,} variables"
        head = f"What to ask next about {who or 'nothing'}: of {self.entropy:.4g} nats an answer is expected to tell"
        if not self.names:
            return Reading("What to ask next: there is nothing left to ask for")
        rows = self.rows(printing.SHOWN)
        remarks = []
        if self.considered > len(self):
            remarks.append(f"the best {len(self):,} of {self.considered:,} variables were worked out")
        titles: tuple[str, ...] = ("", "variable", "information", "kind", "P(yes)")
        titles = (*titles, *["cost"] * self.priced)
        return Reading(head, (titles, *rows, *printing.more(len(self) - len(rows))), remarks, cuts=(1,))

    def rows(self, most: int) -> list[tuple[str, ...]]:
        """The first of them in words: rank, name, information and its kind, probability of a yes, and cost."""
        words = [f" not {in_line(first)}" if first else "" for first in self.first]
        p, kind = printing.probability, "exact" if self.exact else "estimate"
        told = [f"{nats:.4f} nats ({printing.factor(nats)})" for nats in self.information[:most].tolist()]
        return [
            (f"{q.rank}", q.name, nats, kind, p(q.probability) + word, *[f"{cost:g}"] * self.priced)
            for q, nats, word, cost in zip(self[:most], told, words, self.cost, strict=False)
        ]


def next_question(
    network: Network,
    evidence: OnePattern | Posterior,
    *,
    about: Iterable[str | int] | str | int | None = None,
    among: Iterable[str | int] | str | int | None = None,
    cost: Mapping[str, float] | None = None,
    tries: int = 50,
    solver: Solver | None = None,
) -> Questions:
    r"""The findings worth asking next, ranked by the information that their answers are expected to give.

    The information of a variable f about the variables A is the sum of the mutual informations with each,

    .. math:: \sum_{j \in A} I(f; S_j \mid V)
        = \sum_{j \in A} \Big( H\big(\textstyle\sum_s p_s m_{js}\big) - \sum_s p_s H(m_{js}) \Big)

    with :math:`p_s = P(f = s \mid V)`, :math:`m_{js} = P(S_j = 1 \mid V, f = s)`, or the probabilities of all states of
    a variable that has more, and the entropy H: by how much the summed entropies of A are expected to fall when f is
    known. It is never negative, and zero for a variable
    whose answer changes nothing; e to its power is by how much the probability of what is true will rise, in the
    geometric mean. Both answers to each question are put to :func:`infer_many`; :math:`p_s` is in
    proportion to :math:`e^{L_s}`, L being the bounds. That is exact where sums over all states are feasible, with
    tables of 2**18 numbers (2**22 for variables with states or tables of their own) or as many as 18 positive findings
    of independent causes, and they stand in the place of a solver; else it is as good as the solver. Where one such sum
    over states is feasible and hundreds would take minutes, the mutual informations are estimates from 32,768 samples
    of the exact posterior, the same ones for all.

    Parameters
    ----------
    network : Network
    evidence : mapping, sequence or Posterior
        One pattern, as in :func:`infer`; or the :class:`~sbnet.results.Posterior` of it, which is then not solved for
        again.
    about : str, int or sequence of these, optional
        The variables to learn about. By default the unobserved variables of the group "causes", or, if there is none,
        those without parents, hidden ones only if there are no others.
    among : str, int or sequence of these, optional
        The variables that can be asked for; those that are observed are passed over. By default the unobserved
        variables of the group "findings", or, if there is none, all that are not in `about`, nor in the group "hidden",
        whose variables nobody can observe.
    cost : mapping, optional
        What it costs to ask for a variable, by name, above zero and in whatever it is counted in; those that are not
        named cost 1. Questions are ranked by their information over their cost.
    tries : int
        How many candidates are worked out. If there are more, those are taken that say most about the variables next to
        them if all hidden variables were independent, with the means they have now.
    solver : Solver, optional
        By default that of the posterior, if one is given; else sums over all states where they are small, and
        :class:`MeanField` elsewhere.

    Returns
    -------
    Questions

    Examples
    --------
    >>> import sbnet as sb
    >>> effects = {("flu", "fever"): 0.9, ("cold", "fever"): 0.2, ("cold", "sneezing"): 0.8, ("flu", "aches"): 0.5}
    >>> net = sb.noisy_or(effects, leak=0.01, prior={"flu": 0.05, "cold": 0.1})
    >>> sb.next_question(net, {"fever": 1})
    What to ask next about flu, cold: of 1.302 nats an answer is expected to tell
         variable  information          kind   P(yes)
      1  sneezing  0.5182 nats (×1.68)  exact  0.2727
      2  aches     0.2325 nats (×1.26)  exact  0.3142
    """
    checks.whole("tries", tries, 1)
    present = Present.of(network, evidence)
    targets = np.array(units_about(present, about), np.int64)
    named = roles.findings(network, targets.tolist())
    if among is not None:
        named = [network.index(unit) for unit in checks.units("among", among)]
    unknown = [i for i in dict.fromkeys(named) if network.names[i] not in present.findings]
    candidates = np.array(unknown, np.int64)
    price, considered = _prices(network, cost), len(candidates)
    if considered > tries:
        present = _answered(present, solver)
        candidates = _promising(present, candidates, targets, tries, price)
    told = information(present, candidates, targets, solver)
    order = np.lexsort((candidates, -told.information / price[candidates]))
    return Questions(
        tuple(network.names[candidates[k]] for k in order),
        told.information[order],
        told.probability[order],
        tuple(network.names[i] for i in targets),
        told.entropy,
        considered,
        told.exact,
        np.arange(1, len(order) + 1),
        tuple(_first(network.states[network.names[i]]) for i in candidates[order]),
        price[candidates[order]],
    )


def _first(states: tuple[str, ...]) -> str:
    return states[0] if len(states) > 2 or printing.second(states) else ""


def _prices(network: Network, cost: Any) -> FloatArray:
    """What each variable costs to ask for: one, unless it is said."""
    prices = np.ones(network.n_units)
    wanted = "give what it costs to ask for a variable, by name, such as {'x-ray': 50}"
    for name, value in checks.mapping("cost", {} if cost is None else cost, wanted).items():
        prices[network.index(name)] = checks.positive(f"cost[{name!r}]", value)
    return prices


def _answered(present: Present, solver: Solver | None) -> Present:
    """With an answer to the present evidence that is kept for what follows: by sums where those are small."""
    network = present.question.network
    if present.known:
        return present

    def ask(other: Solver | None) -> Posterior:
        return infer(network, present.findings, solver=solver or other)

    return present._replace(known=(best(ask)[0],))


def _promising(
    present: Present, candidates: IndexArray, targets: IndexArray, tries: int, price: FloatArray
) -> IndexArray:
    """The candidates with most mutual information with their neighbours, above all with those that are asked about."""
    network = present.question.network
    means = present.known[0].means
    of, graph = of_edges if network.is_binary else _of_edges_by_samples, network.graph
    told = of(network, means)
    weight = np.full(network.n_units, _FAR)
    weight[targets] = 1.0
    n, parent, child = network.n_units, graph.parent, graph.child_of_edge
    score = np.bincount(child, told * weight[parent], n) + np.bincount(parent, told * weight[child], n)
    first = np.argsort(-score[candidates] / price[candidates], kind="stable")[:tries]
    return np.sort(candidates[first])


def of_edges(network: Network, means: FloatArray) -> FloatArray:
    """The mutual information of the two variables of each edge, if the parents of the child were independent."""
    mu = means[network.graph.parent]
    off, on = _probabilities_of_edges(network, means, 0.0), _probabilities_of_edges(network, means, 1.0)
    mixed = mu * on + (1.0 - mu) * off
    information: FloatArray = np.maximum(entropy_of(mixed) - mu * entropy_of(on) - (1.0 - mu) * entropy_of(off), 0.0)
    fixed = (means == 0.0) | (means == 1.0)
    information[fixed[network.graph.child_of_edge]] = 0.0
    return information


def _of_edges_by_samples(network: Network, means: FloatArray) -> FloatArray:
    """The mutual information of each edge, with more than two states: other parents are drawn from their means."""
    row, rng = Row(network, np.full(network.n_units, HIDDEN, np.int8)), np.random.default_rng(0)
    q = [probabilities(means[network.columns_of(i)]) for i in range(network.n_units)]
    drawn = np.array([draw(np.tile(p, (_DRAWN, 1)), rng.random(_DRAWN)) for p in q]).T
    information = np.zeros(network.n_edges)
    for e, (u, v) in enumerate(zip(network.graph.parent, network.graph.child_of_edge, strict=True)):
        if max(q[u].max(), q[v].max()) == 1.0:
            continue
        given = []
        for state in range(network.n_states[u]):
            drawn_with = drawn.copy()
            drawn_with[:, u] = state
            given.append(np.exp(row.all[v].log_p(drawn_with)).mean(axis=0)[1:])
        mixed, own = q[u] @ np.array(given), [int(v)]
        left = q[u] @ summed_entropy(network, own, np.array(given))
        information[e] = max(float(summed_entropy(network, own, mixed[None, :])[0] - left), 0.0)
    return information


def _probabilities_of_edges(network: Network, means: FloatArray, state: float) -> FloatArray:
    """For each edge, the probability of the child if the parent has that state and its other parents their means.

    That of a noisy-OR unit is a product; the input of a sigmoid unit is taken as Gaussian, and the logistic function as
    a probit one of the same gradient at 0.
    """
    graph, weight, n = network.graph, network.weight, network.n_units
    child, mu = graph.child_of_edge, means[graph.parent]
    spread = weight**2 * mu * (1.0 - mu)
    center = (network.bias + np.bincount(child, weight * mu, n))[child] + weight * (state - mu)
    variance = np.maximum(np.bincount(child, spread, n)[child] - spread, 0.0)
    probability: FloatArray = sigma(center / np.sqrt(1.0 + np.pi / 8.0 * variance))
    noisy = network.gate[child] == NOISY_OR
    if noisy.any():
        stays = np.log(np.maximum(1.0 + mu * np.expm1(-np.where(noisy, weight, 0.0)), 1e-300))
        absent = np.bincount(child, stays, n)[child] - stays - network.bias[child] - weight * state
        probability[noisy] = -np.expm1(np.minimum(absent[noisy], 0.0))
    return probability
