r"""How an answer moves with each number of a network: priors, links, leaks, entries of tables.

P(evidence) and P(cause, evidence) are straight lines in each probability :math:`\theta` of the network, so that the
answer is :math:`(a + b\theta) / (c + d\theta)` (Castillo, Gutiérrez & Hadi 1997). A weight of a sigmoid
unit moves several entries of its distribution, by the chain rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, IndexArray
from sbnet.decisions.answers import Present
from sbnet.decisions.curves import Curve, Sums
from sbnet.decisions.numbers import Number, numbers_of
from sbnet.errors import EvidenceError, ParameterError, not_among, short
from sbnet.exact.answers import LIMIT
from sbnet.model import roles
from sbnet.model.network import Network
from sbnet.questions import printing
from sbnet.questions.batches import framed
from sbnet.questions.by_state import columns_at
from sbnet.questions.evidence import OnePattern
from sbnet.questions.printing import Readable, Reading
from sbnet.questions.reduction import live_variables
from sbnet.questions.support import refusal

if TYPE_CHECKING:
    import pandas

_MOST = 30_000
"""Numbers that are worked out."""
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
    present = Present.of(network, evidence)
    named, chosen = present.findings, set(roles.causes(network))
    seen = np.full(network.n_units, HIDDEN)
    seen[[network.index(name) for name in named]] = 0
    target = None if about is None else _column(network, about)
    chosen |= set() if target is None else {int(network.columns[0][target])}
    hidden = sorted(i for i in chosen if present.question.states[0, i] == HIDDEN)
    if not hidden or (target is not None and int(network.columns[0][target]) not in hidden):
        raise EvidenceError("the cause is observed; there is nothing to move. Ask about one that is hidden")
    seen[hidden] = 0
    small = network.subnetwork(np.flatnonzero(live_variables(network.model, seen)).tolist())
    causes = [network.names[i] for i in hidden]
    now = Sums.of(small, named, causes, limit)
    if now.log_p == -math.inf:
        raise refusal()
    place = int(np.argmax(now.means))
    if target is not None:
        variable, state = (int(array[target]) for array in network.columns)
        columns = columns_at(small, [small.index(name) for name in causes])
        wanted = small.columns_of(network.names[variable]).start + state - 1
        place = int(np.flatnonzero(columns == wanted)[0])
    return _ranked(now, place, _names_of(small, network, of))


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


def _ranked(now: Sums, place: int, names: list[str]) -> Sensitivity:
    """All numbers, those with the widest swing first."""
    families = [now.network.family(name) for name in names]
    numbers = [list(numbers_of(family)) for family in families]
    if (n := sum(map(len, numbers))) > _MOST:
        raise ParameterError(f"there are {n:,} numbers, more than {_MOST:,}; name variables: of=[…]")
    leader, found, titles = int(np.argmax(now.means)), list[Influence](), list[str]()
    for family, own in zip(families, numbers, strict=True):
        curve = Curve.of(now, family)
        for number in own:
            of = _of_probability if number.derivative is None else _of_weight
            found.append(of(now, curve, place, leader, number))
            titles.append(number.title)
    rows = np.array(found).reshape(-1, len(Influence._fields))
    order: IndexArray = np.argsort(-np.abs(rows[:, 3] - rows[:, 2]), kind="stable") if len(rows) else np.arange(0)
    ranked = tuple(titles[k] for k in order)
    return Sensitivity(now.labels[place], float(now.means[place]), now.labels[leader], ranked, *rows[order].T)


def _of_probability(now: Sums, curve: Curve | None, place: int, leader: int, number: Number) -> Influence:
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


def _of_weight(now: Sums, curve: Curve | None, place: int, leader: int, number: Number) -> Influence:
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
