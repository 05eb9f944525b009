"""What to ask next, and what each finding said: two questions of everyone who asks a network for causes.

Both are answered by :func:`sbnet.infer_many` on variations of the evidence: with a finding more, or with one less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from scipy.special import expit, logit

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, IndexArray
from sbnet.decisions.mutual_information import news_of_edges
from sbnet.errors import TooManyHiddenError, not_among, short
from sbnet.exact.probability import entropy_of
from sbnet.inference import PosteriorBatch, Solver, infer_many
from sbnet.inference.solvers.enumeration import Sampled, Sums, best
from sbnet.inference.solvers.weighing import draws
from sbnet.kernels.reduce import live_units
from sbnet.model import roles
from sbnet.model.network import Network
from sbnet.model.ties import tied_rows
from sbnet.questions import batches, printing
from sbnet.questions.batches import OneRow, SomeRows
from sbnet.questions.evidence import OnePattern
from sbnet.questions.printing import Readable, Reading, Terms
from sbnet.questions.question import Part, ask_one

if TYPE_CHECKING:
    import pandas

_NOTHING = 1e-9
"""Nats: what is less than this is the rounding of a solver, and no information."""
_FAR = 0.01
"""What news of a unit next to a candidate counts in the choice of candidates, if it is not one asked about."""
_EDGE, _SAMPLED_EDGE = 1e-12, 1e-3
"""Means nearer to 0 or 1 than this count as this in log-odds; means from samples, which do not go as far."""


class NextQuestion(NamedTuple):
    """A finding that could be asked for: its rank and name, the nats to expect of it, and its chance of a yes."""

    rank: int
    name: str
    information: float
    probability: float


@dataclass(frozen=True, eq=False, repr=False)
class Questions(Readable, Sequence[NextQuestion]):
    """Findings worth asking next, the most informative first.

    ``questions[0]`` is the first, with a rank, a name, its information and its chance of a yes; a slice gives some.

    Attributes
    ----------
    names : tuple of str
    information : ndarray
        Nats that the answer is expected to tell about the units in `about`; see :func:`next_question`.
    probability : ndarray
        The chance that the answer is yes.
    about : tuple of str
        The units that are asked about.
    entropy : float
        Their summed entropies before the answer, in nats: what there is to be told.
    considered : int
        How many units could be asked for; if they are many, only the best of them were worked out.
    exact : bool
        Are the numbers sums over all states, and not those of a solver?
    """

    names: tuple[str, ...]
    information: FloatArray
    probability: FloatArray
    about: tuple[str, ...]
    entropy: float
    considered: int
    exact: bool

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[NextQuestion]:
        return (self[k] for k in range(len(self)))

    @overload
    def __getitem__(self, key: OneRow) -> NextQuestion: ...
    @overload
    def __getitem__(self, key: SomeRows) -> Sequence[NextQuestion]: ...
    def __getitem__(self, key: OneRow | SomeRows) -> NextQuestion | Sequence[NextQuestion]:
        if batches.are_some(key):
            return [self[int(k)] for k in np.arange(len(self))[batches.some(key, len(self))]]
        k = batches.one(key, len(self))
        return NextQuestion(k + 1, self.names[k], float(self.information[k]), float(self.probability[k]))

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row for each question: rank, information, and the chance of a yes."""
        pd = checks.extra("pandas", "to_frame()")
        columns = {
            "rank": np.arange(1, len(self) + 1),
            "information": self.information,
            "probability": self.probability,
        }
        frame: pandas.DataFrame = pd.DataFrame(columns, index=pd.Index(self.names, name="unit"))
        return frame

    def _reading(self) -> Reading:
        who = ", ".join(map(short, self.about)) if len(self.about) <= 3 else f"{len(self.about):,} units"
        head = f"What to ask next about {who or 'nothing'}: of {self.entropy:.4g} nats an answer is expected to tell"
        if not self.names:
            return Reading("What to ask next: there is nothing left to ask for")
        shown = self[: printing.SHOWN]
        rows = [
            (f"{one.rank}", one.name, f"{one.information:.4f} nats", printing.chance(one.probability)) for one in shown
        ]
        how = "sums over all states" if self.exact else "estimates of the solver"
        remarks = [f"information: {how}"]
        if self.considered > len(self):
            remarks.append(f"the best {len(self):,} of {self.considered:,} units were worked out")
        titles = ("", "unit", "information", "P(yes)")
        return Reading(head, (titles, *rows, *printing.more(len(self) - len(shown))), remarks, cuts=(1,))


def next_question(
    network: Network,
    evidence: OnePattern,
    *,
    about: Iterable[str | int] | str | int | None = None,
    among: Iterable[str | int] | str | int | None = None,
    tries: int = 50,
    solver: Solver | None = None,
) -> Questions:
    r"""The findings worth asking next, ranked by the information that their answers are expected to give.

    The information of a unit f about the units A is the sum of the mutual informations between f and each of them,

    .. math:: \sum_{j \in A} I(f; S_j \mid V)
        = \sum_{j \in A} \Big( H\big(\textstyle\sum_s p_s m_{js}\big) - \sum_s p_s H(m_{js}) \Big)

    with :math:`p_s = P(f = s \mid V)`, :math:`m_{js} = P(S_j = 1 \mid V, f = s)` and the entropy H of a binary unit: by
    how much the summed entropies of A are expected to fall when f is known. It is never negative, and zero for a unit
    whose answer changes nothing. Both answers to each question are put to :func:`infer_many`; :math:`p_s` is in
    proportion to :math:`e^{L_s}`, L being the bounds. That is exact where the evidence couples 12 hidden units at most,
    or there are as few positive findings of independent causes, and sums over all states stand in the place of a
    solver; else it is as good as the solver. Where units are states of one variable, or switches of a table, all of it
    is estimated from samples instead.

    Parameters
    ----------
    network : Network
    evidence
        One pattern, as in :func:`infer`.
    about
        The units to learn about. By default the unobserved units of the group "causes", or, if there is none, those
        without parents, hidden ones only if there are no others.
    among
        The units that can be asked for; those that are observed are passed over. By default the unobserved units of the
        group "findings", or, if there is none, all that are not in `about`, nor in the groups "hidden", "switches"
        and "mirrors", whose units nobody can observe.
    tries : int
        How many candidates are worked out. If there are more, those are taken that say most about the units next to
        them if all hidden units were independent, with the means they have now.
    solver
        By default sums over all states where they are small, and :class:`MeanField` elsewhere.

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
         unit      information  P(yes)
      1  sneezing  0.5182 nats  0.2727
      2  aches     0.2325 nats  0.3142
      (information: sums over all states)
    """
    checks.whole("tries", tries, 1)
    found = _findings(network, evidence)
    targets, candidates = _units_asked(network, found, about, among)
    considered = len(candidates)
    if considered > tries:
        candidates = _promising(network, found, candidates, targets, tries)
    told = _told(network, found, candidates, targets, solver)
    order = np.lexsort((candidates, -told.information))
    return Questions(
        tuple(network.names[candidates[k]] for k in order),
        told.information[order],
        told.probability[order],
        tuple(network.names[i] for i in targets),
        told.entropy,
        considered,
        told.exact,
    )


@dataclass(frozen=True, eq=False, repr=False)
class Contributions(Readable):
    """What each finding adds to the log-odds of each unit asked about, in nats; see :func:`contributions`.

    ``contributions["flu"]`` are those of one unit, a mapping from findings to nats.

    Attributes
    ----------
    about : tuple of str
        The units asked about, the likeliest first.
    findings : tuple of str
        What was observed.
    states : tuple
        What each finding was: 0, 1, or the two likelihoods of a report; of several units together, those of all.
    nats : ndarray of shape (len(about), len(findings))
    prior, means : ndarray of shape (len(about),)
        The mean of each unit before anything is observed, and given all findings.
    exact : bool
        Are the numbers sums over all states, and not those of a solver?
    """

    about: tuple[str, ...]
    findings: tuple[str, ...]
    states: tuple[Any, ...]
    nats: FloatArray
    prior: FloatArray
    means: FloatArray
    exact: bool

    def __len__(self) -> int:
        return len(self.about)

    def __getitem__(self, unit: str) -> dict[str, float]:
        """What each finding adds to a unit, the largest first."""
        if not isinstance(unit, str) or unit not in self.about:
            raise not_among(unit, self.about, "the units asked about")
        nats = self.nats[self.about.index(unit)]
        return {self.findings[k]: float(nats[k]) for k in np.argsort(-np.abs(nats), kind="stable")}

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, a row for each unit asked about and a column for each finding, in nats."""
        pd = checks.extra("pandas", "to_frame()")
        frame: pandas.DataFrame = pd.DataFrame(
            self.nats, index=pd.Index(self.about, name="unit"), columns=list(self.findings)
        )
        return frame

    def _reading(self) -> Reading:
        head = f"What {len(self.findings):,} finding{'s' * (len(self.findings) != 1)} add in nats of log-odds"
        shown = self.about[: printing.SHOWN]
        rows = [
            (name, f"{printing.chance(self.prior[k])} → {printing.chance(self.means[k])}", terms(self[name]))
            for k, name in enumerate(shown)
        ]
        more = printing.more(len(self) - len(shown))
        return Reading(head, (("unit", "prior → posterior", "findings"), *rows, *more))


def terms(nats: Mapping[str, float], most: int = 3) -> Terms:
    """The largest contributions to one unit in a line."""
    return Terms(tuple((name, f"{value:+.2f}") for name, value in nats.items() if abs(value) >= 0.005), most)


def contributions(
    network: Network,
    evidence: OnePattern,
    *,
    about: Iterable[str | int] | str | int | None = None,
    together: Mapping[str, Iterable[str]] | None = None,
    solver: Solver | None = None,
) -> Contributions:
    r"""What each finding adds to the log-odds of each cause, in nats.

    That of finding f to unit j is what would be lost without it, everything else being as it is:

    .. math:: \ln \frac{m_j}{1 - m_j} - \ln \frac{m_j'}{1 - m_j'}, \qquad
        m_j = P(S_j = 1 \mid V), \quad m_j' = P(S_j = 1 \mid V \setminus f)

    as far as the solver knows them; both are asked of :func:`infer_many`, and exact where those of
    :func:`next_question` are. Contributions do not add up to the whole
    change where findings say the same thing: each of two that are enough by themselves adds nothing to the other.

    Parameters
    ----------
    network : Network
    evidence
        One pattern, as in :func:`infer`.
    about
        The units to learn about, as in :func:`next_question`; observed units are passed over.
    together : mapping, optional
        Findings that are one, by what to call them: observed units that say it together, such as the steps of a number
        or the states of a variable. By default the units of a variable of several states are one finding, called as it
        is, and any other unit is one by itself.
    solver
        As in :func:`next_question`. With ``sb.MeanField()`` the means are those of :func:`infer` on any network.

    Returns
    -------
    Contributions

    Examples
    --------
    >>> import sbnet as sb
    >>> effects = {("flu", "fever"): 0.9, ("cold", "fever"): 0.2, ("cold", "sneezing"): 0.8, ("flu", "aches"): 0.5}
    >>> net = sb.noisy_or(effects, leak=0.01, prior={"flu": 0.05, "cold": 0.1})
    >>> sb.contributions(net, {"fever": 1, "sneezing": 0})
    What 2 findings add in nats of log-odds
      unit  prior → posterior  findings
      flu   0.0500 → 0.7683    fever +4.14, sneezing +0.73
      cold  0.1000 → 0.0903    sneezing -1.61, fever +1.50
    """
    found = _findings(network, evidence)
    targets = np.array([i for i in _about(network, found, about) if network.names[i] not in found], np.int64)
    groups = _together(network, found, together)
    less = [{name: state for name, state in found.items() if name not in gone} for gone in groups.values()]
    answers = _answers(network, [found, *less, {}], targets, solver)
    means = answers.means
    edge = _SAMPLED_EDGE if answers.sampled else _EDGE
    odds = logit(np.clip(means[:-1], edge, 1.0 - edge))
    order = np.argsort(-means[0], kind="stable")
    return Contributions(
        tuple(network.names[targets[k]] for k in order),
        tuple(groups),
        tuple(
            found[names[0]] if len(names) == 1 else tuple(found[name] for name in names) for names in groups.values()
        ),
        (odds[0] - odds[1:]).T[order],
        means[-1, order],
        means[0, order],
        answers.exact,
    )


_TOGETHER = "give a mapping from what a finding is called to the units that say it, such as {'age': ['age > 3', …]}"


def _is_one(name: Any, found: Mapping[str, Any]) -> bool:
    return isinstance(name, str) and name in found


def _together(
    network: Network, found: Mapping[str, Any], given: Mapping[str, Iterable[str]] | None
) -> dict[str, list[str]]:
    """Observed units by the finding that they belong to, each to one."""
    if given is None:
        groups: dict[str, list[str]] = {}
        for name in found:
            groups.setdefault(network.notes[name].variable or name, []).append(name)
        return {title if len(names) > 1 else names[0]: names for title, names in groups.items()}
    given = checks.mapping("together", given, _TOGETHER)
    listed = {title: checks.listed(f"together[{title!r}]", names, _TOGETHER) for title, names in given.items()}
    chosen = {title: [name for name in names if _is_one(name, found)] for title, names in listed.items()}
    grouped = {name for names in chosen.values() for name in names}
    return {title: names for title, names in chosen.items() if names} | {
        name: [name] for name in found if name not in grouped
    }


# --- which units ------------------------------------------------------------------------------------------------------


def _findings(network: Network, evidence: OnePattern) -> dict[str, Any]:
    """What is known, by name: states, and pairs of likelihoods."""
    question = ask_one(network, evidence, None)
    question.check_possible()
    states = question.states[0]
    found: dict[str, Any] = {network.names[i]: int(states[i]) for i in np.flatnonzero(states != HIDDEN)}
    if isinstance(evidence, Mapping):
        found |= {network.names[network.index(key)]: value for key, value in evidence.items() if np.ndim(value) > 0}
    return found


def _units_asked(network: Network, found: Mapping[str, Any], about: Any, among: Any) -> tuple[IndexArray, IndexArray]:
    """The places of the units to learn about, and of those that can be asked for."""
    targets = _about(network, found, about)
    if among is not None:
        named = [network.index(unit) for unit in checks.units("among", among)]
    else:
        named = roles.findings(network, targets)
    candidates = [i for i in dict.fromkeys(named) if network.names[i] not in found]
    return np.array(targets, np.int64), np.array(candidates, np.int64)


def _about(network: Network, found: Mapping[str, Any], about: Any) -> list[int]:
    if about is not None:
        return list(dict.fromkeys(network.index(unit) for unit in checks.units("about", about)))
    return [i for i in roles.causes(network) if network.names[i] not in found]


# --- information ------------------------------------------------------------------------------------------------------


class _Told(NamedTuple):
    """The summed entropies before the answer; the information of each question, and its probability of a yes."""

    entropy: float
    information: FloatArray
    probability: FloatArray
    exact: bool


def _told(
    network: Network, found: Mapping[str, Any], candidates: IndexArray, targets: IndexArray, solver: Solver | None
) -> _Told:
    """From the answers to both sides of each question; from samples where units are tied and sums are large."""
    rows = [dict(found), *(found | {network.names[f]: state} for f in candidates for state in (0, 1))]  # type: ignore[operator]
    part = ask_one(network, found, None).parts[0]
    tied = solver is None and bool(tied_rows(part.network, part.states)[0])
    try:
        answers = _answers(network, rows, targets, Sums if tied else solver)
    except TooManyHiddenError:
        if not tied:
            raise
        return _drawn(part, candidates, targets)
    information, probability = _information(answers.bound[1:], answers.means[1:])
    return _Told(float(entropy_of(answers.means[0]).sum()), information, probability, answers.exact)


def _drawn(part: Part, candidates: IndexArray, targets: IndexArray) -> _Told:
    """How often states occur together in samples; what chance alone would tell is taken off."""
    total, squares, asked, on, both = 0.0, 0.0, np.zeros(len(candidates)), np.zeros(len(targets)), np.zeros((1, 1))
    for states, weight in draws(part.network, part.states[0]):
        yes = weight[:, None] * states[:, candidates]
        total, squares, asked = total + float(weight.sum()), squares + float(weight @ weight), asked + yes.sum(axis=0)
        on, both = on + weight @ states[:, targets], both + yes.T @ states[:, targets]
    p, mean = asked / total, on / total
    with np.errstate(invalid="ignore", divide="ignore"):
        known = (np.nan_to_num(both / asked[:, None]), np.nan_to_num((on - both) / (total - asked)[:, None]))
    left = p[:, None] * entropy_of(known[0]) + (1.0 - p)[:, None] * entropy_of(known[1])
    chance = 0.5 * len(targets) * squares / total**2  # Miller and Madow's correction of each mutual information
    information = np.maximum((entropy_of(mean) - left).sum(axis=1) - chance, 0.0)
    return _Told(float(entropy_of(mean).sum()), information, p, False)


def _information(bound: FloatArray, means: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The information of each question and its chance of a yes, from the answers to no and yes by turns."""
    yes = expit(bound[1::2] - bound[::2])
    p, no_means, yes_means = yes[:, None], means[::2], means[1::2]
    # An answer that cannot be has no means; it has no weight either.
    no_means, yes_means = np.where(p == 1.0, yes_means, no_means), np.where(p == 0.0, no_means, yes_means)
    mixed = p * yes_means + (1.0 - p) * no_means
    parts = entropy_of(mixed) - p * entropy_of(yes_means) - (1.0 - p) * entropy_of(no_means)
    information = parts.sum(axis=1)
    return np.where(information < _NOTHING, 0.0, information), yes


def _promising(
    network: Network, found: Mapping[str, Any], candidates: IndexArray, targets: IndexArray, tries: int
) -> IndexArray:
    """The candidates that say most about the units next to them, above all about those that are asked about."""
    means = infer_many(network, [found], solver=Sampled(), progress=False).means[0]
    news, graph = news_of_edges(network, means), network.graph
    weight = np.full(network.n_units, _FAR)
    weight[targets] = 1.0
    n, parent, child = network.n_units, graph.parent, graph.child_of_edge
    score = np.bincount(child, news * weight[parent], n) + np.bincount(parent, news * weight[child], n)
    best = np.argsort(-score[candidates], kind="stable")[:tries]
    return np.sort(candidates[best])


# --- answers ----------------------------------------------------------------------------------------------------------


class _Answers(NamedTuple):
    bound: FloatArray
    means: FloatArray  # of the units asked about
    exact: bool
    sampled: bool


def _answers(
    network: Network, rows: list[dict[str, Any]], targets: IndexArray, solver: Solver | type[Sums] | None
) -> _Answers:
    """What :func:`infer_many` says of a few rows; units that none of them has below it are left out, which is exact."""
    named = {name for row in rows for name in row} | {network.names[i] for i in targets}
    seen = np.full(network.n_units, HIDDEN)
    seen[[network.index(name) for name in named]] = 1
    small = network.subnetwork(np.flatnonzero(live_units(network.model, seen) | (seen == 1)).tolist())
    wanted = np.array([small.index(network.names[i]) for i in targets], np.int64)

    def ask(solver: Solver | None) -> PosteriorBatch:
        return infer_many(small, rows, solver=solver, progress=False)

    if solver is Sums:
        batch, exact = ask(Sums(tuple(wanted.tolist()))), True
    else:
        batch, exact = best(ask, tuple(wanted.tolist())) if solver is None else (ask(solver), False)  # type: ignore[arg-type]
    return _Answers(batch.bound, batch.means[:, wanted], exact, batch.error is not None)
