r"""How an answer moves with each number of a network: priors, links, leaks, entries of tables.

P(evidence) and P(cause, evidence) are straight lines in each probability :math:`\theta` of the network, so that the
answer is :math:`(a + b\theta) / (c + d\theta)` (Castillo, Gutiérrez & Hadi 1997). They are straight in all entries of
one conditional distribution together: the derivative by P(v = k | parents) is P of the evidence and those states of
the parents if v is held at k, so that a family takes one sum for each state, and gives all of its numbers at any value.
A weight of a sigmoid unit moves several entries, by the chain rule.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, IndexArray
from sbnet.errors import EvidenceError, ParameterError, not_among, short
from sbnet.exact.answers import LIMIT, exact_posterior
from sbnet.kernels.codes import NAMES, NOISY_OR, SIGMOID, TABLE
from sbnet.model import roles
from sbnet.model.conditional import Family
from sbnet.model.gates import sigma
from sbnet.model.network import Network
from sbnet.model.probabilities import thresholds_of
from sbnet.questions import printing
from sbnet.questions.batches import framed
from sbnet.questions.by_state import columns_at
from sbnet.questions.evidence import OnePattern
from sbnet.questions.printing import Readable, Reading
from sbnet.questions.question import ask_one
from sbnet.questions.reduction import live_variables
from sbnet.questions.support import refusal

if TYPE_CHECKING:
    import pandas

_MOST = 30_000
"""Numbers that are worked out."""
_ROWS = 1 << 12
"""Joint states of hidden parents up to which a family is taken as a whole; beyond, each number takes a sum."""
_STEP = 1e-4
"""Half the distance of the two weights whose difference is a derivative there, in nats."""
_FAR, _GRID = 40.0, 0.125
"""Nats to either side within which a weight may change the leader, and the steps in which that is looked for."""


class Influence(NamedTuple):
    """What :class:`Sensitivity` says of one number.

    Attributes
    ----------
    value, derivative : float
        What it is now, and the derivative of the answer by it.
    halved, doubled : float
        The answer at half and at twice its odds.
    least, most : float
        The range within which the leading cause stays first.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.noisy_or({("flu", "fever"): 0.9, ("cold", "fever"): 0.2}, leak=0.01, prior={"flu": 0.05, "cold": 0.1})
    >>> round(sb.sensitivity(net, {"fever": 1}, about="flu")["flu → fever"].value, 2)
    0.9
    """

    value: float
    derivative: float
    halved: float
    doubled: float
    least: float
    most: float


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(Readable):
    """How an answer moves with each number of the network; see :func:`sensitivity`.

    ``found["flu → fever"]`` has what is said of one number.

    Attributes
    ----------
    about : str
        The cause asked about, with its state where there are more than two.
    answer : float
        Its probability, given the evidence.
    leader : str
        The likeliest cause.
    numbers : tuple of str
        What the numbers are: "prior of flu", "flu → fever", "leak of fever"; what moves the answer most comes first.
    value, derivative : ndarray
        Each number, and the derivative of the answer by it. Weights and biases of sigmoid variables are in nats.
    halved, doubled : ndarray
        The answer if the odds of the number were half of, and twice, what they are; of a weight, log 2 nats less and
        more.
    least, most : ndarray
        The range of each number within which the leader stays first, others being as they are. Weights may be
        infinite; those of a sigmoid variable with more than twelve hidden parents have none, NaN.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.noisy_or({("flu", "fever"): 0.9, ("cold", "fever"): 0.2}, leak=0.01, prior={"flu": 0.05, "cold": 0.1})
    >>> found = sb.sensitivity(net, {"fever": 1}, about="flu")
    >>> found.leader, found.numbers[0]
    ('flu', 'prior of flu')
    """

    about: str
    answer: float
    leader: str
    numbers: tuple[str, ...]
    value: FloatArray
    derivative: FloatArray
    halved: FloatArray
    doubled: FloatArray
    least: FloatArray
    most: FloatArray

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, number: str) -> Influence:
        if not isinstance(number, str) or number not in self.numbers:
            raise not_among(number, self.numbers, "the numbers")
        k = self.numbers.index(number)
        columns = (self.value, self.derivative, self.halved, self.doubled, self.least, self.most)
        return Influence(*(float(column[k]) for column in columns))

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, a row for each number.

        Returns
        -------
        pandas.DataFrame
        """
        return framed({name: getattr(self, name) for name in Influence._fields}, units=self.numbers)

    def _reading(self, most: int = printing.SHOWN) -> Reading:
        p = printing.probability
        head = f"P({short(self.about)}) = {p(self.answer)}; the leading cause is {short(self.leader)}"
        rows = [("number", "value", "derivative", "halved, doubled", f"{short(self.leader)} stays first")]
        for name in self.numbers[:most]:
            one = self[name]
            ends = [f"{x:.4g}" if x < 0.0 or x > 1.0 else p(x) for x in (one.least, one.most)]
            stays = "–" if math.isnan(one.least) else " to ".join(ends).replace("inf", "∞")
            moves = f"{p(one.halved)}, {p(one.doubled)}"
            rows.append((name, f"{one.value:.4g}", f"{one.derivative:+.4g}", moves, stays))
        return Reading(head, [*rows, *printing.more(len(self) - most)])


def sensitivity(
    network: Network,
    evidence: OnePattern,
    *,
    about: str | int | tuple[str, str] | None = None,
    of: Iterable[str | int] | str | int | None = None,
    limit: int = LIMIT,
) -> Sensitivity:
    r"""How the probability of a cause moves with each prior, link and leak of the network, and each entry of a table.

    In a probability :math:`\theta` of the network the answer is exactly
    :math:`P(\text{cause} \mid V) = (a + b\theta) / (c + d\theta)`, of which this gives the derivative where
    :math:`\theta` is, the answers at half and at twice its odds, and the range of :math:`\theta` within which the
    leading cause stays ahead of all others. For a weight :math:`w` of a sigmoid variable they are exact as well: its
    conditional probabilities are :math:`\sigma(w + \dots)`, and the answer is a ratio of two sums of them. When a
    probability moves, the first state takes up the difference; in a row
    of a table all others do, in proportion.

    Parameters
    ----------
    network : Network
    evidence : mapping or sequence
        One pattern, as in :func:`infer`.
    about : str, int or tuple, optional
        The cause, by default the leading one: the likeliest among the variables of the group "causes", or without
        parents. Of a variable with more than two states, the name and the state.
    of : str, int or sequence of these, optional
        The variables whose numbers are looked at; by default all that have a part in the answer.
    limit : int
        As in :func:`exact_posterior`, which is asked once for each state of each variable.

    Returns
    -------
    Sensitivity

    Examples
    --------
    >>> import sbnet as sb
    >>> effects = {("flu", "fever"): 0.9, ("cold", "fever"): 0.2, ("cold", "sneezing"): 0.8, ("flu", "aches"): 0.5}
    >>> net = sb.noisy_or(effects, leak=0.01, prior={"flu": 0.05, "cold": 0.1})
    >>> sb.sensitivity(net, {"fever": 1})
    P(flu) = 0.6146; the leading cause is flu
      number         value  derivative  halved, doubled  flu stays first
      prior of flu   0.05   +4.987      0.4436, 0.7613   0.0250 to 1.0000
      prior of cold  0.1    -1.569      0.6992, 0.5086   0.0000 to 0.1857
      cold → fever   0.2    -0.7843     0.6933, 0.5254   0.0000 to 0.4210
      leak of fever  0.01   -7.764      0.6559, 0.5470   0.0000 to 0.3007
      flu → fever    0.9    +0.2545     0.5926, 0.6263   0.4334 to 1.0000
    """
    states = ask_one(network, evidence, None)
    states.check_possible()
    seen, chosen = states.given[0].copy(), set(roles.causes(network))
    if states.conditions is not None:
        seen[[report.unit for report in states.conditions.reports[0]]] = 0
    target = None if about is None else _column(network, about)
    chosen |= set() if target is None else {int(network.columns[0][target])}
    named = {network.names[i]: evidence_ for i, evidence_ in _given(network, evidence)}
    hidden = sorted(i for i in chosen if network.names[i] not in named)
    if not hidden or (target is not None and int(network.columns[0][target]) not in hidden):
        raise EvidenceError("the cause is observed; there is nothing to move. Ask about one that is hidden")
    seen[hidden] = 0
    small = network.subnetwork(np.flatnonzero(live_variables(network.model, seen)).tolist())
    causes = [network.names[i] for i in hidden]
    now = _Sums.of(small, named, causes, limit)
    if now.log_p == -math.inf:
        raise refusal()
    place = int(np.argmax(now.means))
    if target is not None:
        variable, state = (int(array[target]) for array in network.columns)
        columns = columns_at(small, [small.index(name) for name in causes])
        wanted = small.columns_of(network.names[variable]).start + state - 1
        place = int(np.flatnonzero(columns == wanted)[0])
    return _ranked(now, place, _names_of(small, network, of))


def _given(network: Network, evidence: Any) -> Iterator[tuple[int, Any]]:
    """Evidence by the number of its variable, as it was given where it was given by name."""
    if hasattr(evidence, "items"):
        yield from ((network.index(key), value) for key, value in evidence.items() if value is not None)
        return
    states = ask_one(network, evidence, None).states[0]
    for i in np.flatnonzero(states != HIDDEN).tolist():
        yield i, network.states[network.names[i]][states[i]]


def _column(network: Network, about: Any) -> int:
    """The column of a cause, given by name, or by name and state."""
    name, state = about if isinstance(about, tuple) and len(about) == 2 else (about, None)
    own, states = network.columns_of(name), network.states[network.names[network.index(name)]]
    if state is None and len(states) > 2:
        raise ParameterError(f"{name!r} has {len(states)} states; say which, as in about=({name!r}, {states[1]!r})")
    if state is not None and state not in states[1:]:
        raise not_among(state, states[1:], f"the states of {name!r} but the first")
    return int(own.start) + (0 if state is None else states.index(state) - 1)


def _names_of(small: Network, network: Network, of: Any) -> list[str]:
    if of is None:
        return list(small.names)
    asked = [network.names[network.index(unit)] for unit in checks.units("of", of)]
    return [name for name in asked if name in small._index]


@dataclass(frozen=True, eq=False)
class _Sums:
    """ln P(evidence), and the means of the causes, zero where the evidence is impossible."""

    network: Network
    evidence: dict[str, Any]
    causes: list[str]
    limit: int
    log_p: float
    means: FloatArray

    @classmethod
    def of(cls, network: Network, evidence: dict[str, Any], causes: list[str], limit: int) -> _Sums:
        """Exact sums for the evidence."""
        found = exact_posterior(network, evidence, units=causes, limit=limit)
        means = np.nan_to_num(np.asarray(found, dtype=np.float64))
        return cls(network, evidence, causes, limit, float(found.log_likelihood), means)

    @property
    def labels(self) -> list[str]:
        """What to call each of the means."""
        titles = []
        for name in self.causes:
            states = self.network.states[name]
            titles += [name] if len(states) == 2 else [f"{name} = {state}" for state in states[1:]]
        return titles

    def at(self, family: Family) -> FloatArray:
        """P(evidence) and P(cause, evidence) with another conditional distribution, over P(evidence) of this one."""
        other = _Sums.of(_with(self.network, family), self.evidence, self.causes, self.limit)
        ratio = math.exp(other.log_p - self.log_p)
        return np.array([ratio, *(ratio * other.means)])

    def likelihood(self, name: str) -> FloatArray:
        """The likelihood of each state of a variable, given what is observed of it."""
        n, seen = len(self.network.states[name]), self.evidence.get(name)
        likelihood: FloatArray = np.ones(n)
        if seen is None:
            return likelihood
        asked = ask_one(self.network, {name: seen}, None)
        state = int(asked.given[0][self.network.index(name)])
        if asked.conditions is not None and asked.conditions.reports[0]:
            likelihood = np.exp(asked.conditions.constant[0]) * sigma(np.array(asked.conditions.reports[0][0].inputs))
        return likelihood if state == HIDDEN else likelihood * (np.arange(n) == state)


def _with(network: Network, family: Family) -> Network:
    """A network with another conditional distribution of one variable."""
    if family.table is not None:
        return network.with_parameters(tables={family.name: family.table})
    weight = {(u, family.name): block for u, block in zip(family.parents, family.weights, strict=True)}
    return network.with_parameters(bias={family.name: family.bias}, weight=weight)


class _Curve(NamedTuple):
    """P(evidence), and then P(cause, evidence) of each cause, over P(evidence) as it is: straight in the entries of one
    conditional distribution. `rows` are joint states of the parents, `gradient` is rows by states of v by those."""

    now: FloatArray
    rows: IndexArray
    gradient: FloatArray
    family: Family

    @classmethod
    def of(cls, now: _Sums, family: Family) -> _Curve | None:
        """By holding the variable at each of its states; None where its parents have too many states together."""
        above = [now.likelihood(name) for name in family.parents]
        possible = [np.flatnonzero(p) for p in above]
        n = math.prod(len(one) for one in possible)
        few = 16 * (len(family.parents) + 1) if family.gate == NOISY_OR else _ROWS
        if n > few:
            return None
        rows = np.stack([one.ravel() for one in np.meshgrid(*possible, indexing="ij")], axis=1) if above else None
        rows = np.zeros((1, 0), np.int64) if rows is None else rows
        weight = np.prod([p[rows[:, k]] for k, p in enumerate(above)], axis=0) * np.ones(n)
        others = {name: value for name, value in now.evidence.items() if name not in (family.name, *family.parents)}
        named = [
            others | {u: states[s] for u, states, s in zip(family.parents, family.parent_states, row, strict=True)}
            for row in rows.tolist()
        ]
        gradient = np.zeros((n, len(family.states), 1 + len(now.means)))
        for k in np.flatnonzero(now.likelihood(family.name)):
            held = {family.name: family.states[k]}
            found = exact_posterior(now.network, named, do=held, units=now.causes, limit=now.limit, progress=False)
            share = weight * now.likelihood(family.name)[k] * np.exp(found.log_likelihood - now.log_p)
            gradient[:, k, 0] = share
            gradient[:, k, 1:] = share[:, None] * np.nan_to_num(np.asarray(found))
        return cls(np.array([1.0, *now.means]), rows, gradient, family)

    def at(self, other: Family) -> FloatArray:
        """With another distribution of the same variable."""
        return self.now + self.along(other.distribution(self.rows) - self.family.distribution(self.rows))

    def along(self, change: FloatArray) -> FloatArray:
        """How much they change with the entries."""
        moved: FloatArray = np.einsum("rk,rkc->c", change, self.gradient)
        return moved


class _Number(NamedTuple):
    """A number of the network: what to call it, its value, the largest that it can be, and the family at another.

    A weight, which is no probability, has the derivative of the entries by it, for joint states of the parents.
    """

    title: str
    value: float
    top: float
    changed: Callable[[float], Family]
    derivative: Callable[[IndexArray], FloatArray] | None = None


def _ranked(now: _Sums, place: int, names: list[str]) -> Sensitivity:
    """All numbers, those with the widest swing first."""
    families = [now.network.family(name) for name in names]
    numbers = [list(_numbers(family)) for family in families]
    if (n := sum(map(len, numbers))) > _MOST:
        raise ParameterError(f"there are {n:,} numbers, more than {_MOST:,}; name variables: of=[…]")
    leader, found, titles = int(np.argmax(now.means)), list[Influence](), list[str]()
    for family, own in zip(families, numbers, strict=True):
        curve = _Curve.of(now, family)
        for number in own:
            of = _of_probability if number.derivative is None else _of_weight
            found.append(of(now, curve, place, leader, number))
            titles.append(number.title)
    rows = np.array(found).reshape(-1, len(Influence._fields))
    order: IndexArray = np.argsort(-np.abs(rows[:, 3] - rows[:, 2]), kind="stable") if len(rows) else np.arange(0)
    ranked = tuple(titles[k] for k in order)
    return Sensitivity(now.labels[place], float(now.means[place]), now.labels[leader], ranked, *rows[order].T)


def _of_probability(now: _Sums, curve: _Curve | None, place: int, leader: int, number: _Number) -> Influence:
    """From the sum at another value, as far away as there is: both P are straight lines between."""
    theta, top = number.value, number.top
    other = 0.0 if theta > top / 2.0 else top
    ratio, *joint = (now if curve is None else curve).at(number.changed(other))
    slope, slopes = (ratio - 1.0) / (other - theta), (np.array(joint) - now.means) / (other - theta)

    def answer(x: float) -> float:
        below = 1.0 + slope * (x - theta)
        return (
            float(np.clip((now.means[place] + slopes[place] * (x - theta)) / below, 0.0, 1.0)) if below > 0.0 else 0.0
        )

    share = theta / top
    half, twice = (top * c * share / (1.0 - share + c * share) for c in (0.5, 2.0))
    ahead, gain = now.means[leader] - now.means, slopes[leader] - slopes
    others = np.arange(len(ahead)) != leader
    with np.errstate(divide="ignore", invalid="ignore"):
        cross = theta - ahead / gain
    up, down = others & (gain < 0.0), others & (gain > 0.0)
    least, most = float(cross[down].max(initial=0.0)), float(cross[up].min(initial=top))
    derivative = float(slopes[place] - now.means[place] * slope)
    return Influence(theta, derivative, answer(half), answer(twice), min(least, theta), max(most, theta))


def _of_weight(now: _Sums, curve: _Curve | None, place: int, leader: int, number: _Number) -> Influence:
    """A weight or a bias in nats, which moves several entries of one distribution."""
    at, w = (now if curve is None else curve).at, number.value

    def answer(x: float) -> float:
        both = at(number.changed(x))
        return float(np.clip(both[1 + place] / both[0], 0.0, 1.0)) if both[0] > 0.0 else 0.0

    halved, doubled = answer(w - math.log(2.0)), answer(w + math.log(2.0))
    if curve is None or number.derivative is None:
        derivative = (answer(w + _STEP) - answer(w - _STEP)) / (2.0 * _STEP)
        return Influence(w, derivative, halved, doubled, math.nan, math.nan)
    slope, *slopes = curve.along(number.derivative(curve.rows))
    derivative = float(slopes[place] - now.means[place] * slope)

    def leads(x: float) -> bool:
        joint = curve.at(number.changed(x))[1:]
        return bool(joint[leader] >= joint.max() - 1e-12 * max(1.0, joint.max()))

    return Influence(w, derivative, halved, doubled, _end(leads, w, -1.0), _end(leads, w, 1.0))


def _end(leads: Callable[[float], bool], w: float, side: float) -> float:
    """Where the leader changes first on one side of a weight: infinite if it does not."""
    for step in np.arange(_GRID, _FAR, _GRID):
        if not leads(w + side * step):
            inside, outside = w + side * (step - _GRID), w + side * step
            for _ in range(50):
                middle = 0.5 * (inside + outside)
                inside, outside = (middle, outside) if leads(middle) else (inside, middle)
            return float(inside)
    return side * math.inf


# --- the numbers of a network -----------------------------------------------------------------------------------------


def _numbers(family: Family) -> Iterator[_Number]:
    """All numbers of a conditional distribution."""
    if family.gate == TABLE:
        yield from _of_table(family)
    elif family.gate == SIGMOID and family.parents:
        yield from _weights(family)
    else:
        yield from _probabilities(family)


def _probabilities(family: Family) -> Iterator[_Number]:
    """A prior, or a leak and the links of a noisy-MAX."""
    gate = NAMES[family.gate]

    def biased(p: FloatArray) -> Family:
        return replace(family, bias=thresholds_of(p, gate, family.bias))

    first = family.distribution(np.zeros((1, len(family.parents)), np.int64))[0]
    word = "leak of" if family.parents else "prior of"
    yield from _states_of(f"{word} {family.name}", family.states, first, biased)
    for k, parent in enumerate(family.parents):
        block = family.weights[k]
        for s, own in enumerate(family.parent_states[k][1:]):

            def linked(p: FloatArray, k: int = k, s: int = s) -> Family:
                return _replaced(family, k, (slice(None), s), thresholds_of(p, gate, family.bias))

            cause = parent if block.shape[1] == 1 else f"{parent} = {own}"
            yield from _states_of(f"{cause} → {family.name}", family.states, _alone(block[:, s]), linked)


def _replaced(family: Family, parent: int, where: Any, value: Any) -> Family:
    """A family with other weights of one parent."""
    block = family.weights[parent].copy()
    block[where] = value
    return replace(family, weights=(*family.weights[:parent], block, *family.weights[parent + 1 :]))


def _alone(weight: FloatArray) -> FloatArray:
    """The distribution that one cause of a noisy-MAX alone brings: P(v <= k) = exp(-sum of x_l over l > k)."""
    below = np.append(np.exp(-np.cumsum(weight[::-1])[::-1]), 1.0)
    return np.diff(below, prepend=0.0)


def _states_of(
    title: str, states: tuple[str, ...], p: FloatArray, changed: Callable[[FloatArray], Family]
) -> Iterator[_Number]:
    """The probability of each state but the first, which takes up the difference, if there is any."""
    for k in (np.flatnonzero(p[0] + p[1:]) + 1).tolist():

        def at(theta: float, k: int = k) -> Family:
            new = p.copy()
            new[k], new[0] = theta, max(p[0] + p[k] - theta, 0.0)
            return changed(new)

        yield _Number(title if len(p) == 2 else f"{title} = {states[k]}", float(p[k]), float(p[0] + p[k]), at)


def _of_table(family: Family) -> Iterator[_Number]:
    """Each entry of a table; the others of its row move in proportion."""
    assert family.table is not None
    table = family.table
    for row in itertools.product(*(range(len(states)) for states in family.parent_states)):
        p = table[row]
        pairs = zip(family.parents, family.parent_states, row, strict=True)
        given = ", ".join(f"{parent} = {states[s]}" for parent, states, s in pairs)
        for k in range(1 if len(p) == 2 else 0, len(p)):

            def at(theta: float, p: FloatArray = p, row: tuple[int, ...] = row, k: int = k) -> Family:
                others = p if p[k] < 1.0 else np.ones_like(p)  # a certain state gives to all others alike
                new = others * (1.0 - theta) / (others.sum() - others[k])
                new[k] = theta
                whole = table.copy()
                whole[row] = new
                return replace(family, table=whole)

            title = f"P({family.name} = {family.states[k]}{' | ' * bool(given)}{given})"
            yield _Number(title, float(p[k]), 1.0, at)


def _weights(family: Family) -> Iterator[_Number]:
    """The biases and weights of a sigmoid unit with parents."""
    for level in range(len(family.bias)):
        of = "" if len(family.bias) == 1 else f" at {family.states[level + 1]}"

        def biased(x: float, level: int = level) -> Family:
            new = family.bias.copy()
            new[level] = x
            return replace(family, bias=new)

        def by_bias(rows: IndexArray, level: int = level) -> FloatArray:
            return _by_input(family, level, rows)

        yield _Number(f"bias of {family.name}{of}", float(family.bias[level]), math.nan, biased, by_bias)
        for k, parent in enumerate(family.parents):
            block = family.weights[k]
            for s in range(block.shape[1]):

                def linked(x: float, k: int = k, where: tuple[int, int] = (level, s)) -> Family:
                    return _replaced(family, k, where, x)

                def by_weight(rows: IndexArray, level: int = level, k: int = k, s: int = s) -> FloatArray:
                    return np.where((rows[:, k] == s + 1)[:, None], _by_input(family, level, rows), 0.0)

                cause = parent if block.shape[1] == 1 else f"{parent} = {family.parent_states[k][s + 1]}"
                title = f"weight {cause} → {family.name}{of}"
                yield _Number(title, float(block[level, s]), math.nan, linked, by_weight)


def _by_input(family: Family, level: int, rows: IndexArray) -> FloatArray:
    """The derivative of P(v = k | parents) by the input x_l of a threshold: P times a_l(k) - c_l(k) sigma(x_l)."""
    state = np.arange(len(family.states))[None, :]
    sure = sigma(family.inputs(rows)[:, level, None])
    change: FloatArray = family.distribution(rows) * ((state > level) * 1.0 - (state >= level) * sure)
    return change
