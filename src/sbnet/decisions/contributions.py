"""What each finding contributes: by how much the log-odds of a cause would change without it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray
from sbnet.decisions.answers import Present, answers, units_about
from sbnet.errors import not_among
from sbnet.inference import Posterior, Solver
from sbnet.model.network import Network
from sbnet.questions import printing
from sbnet.questions.batches import framed
from sbnet.questions.by_state import frame_columns
from sbnet.questions.evidence import OnePattern
from sbnet.questions.printing import Readable, Reading, Terms

if TYPE_CHECKING:
    import pandas

_EDGE, _SAMPLED_EDGE = 1e-12, 1e-3
"""Means nearer to 0 or 1 than this count as this in log-odds; means from samples, which do not go as far."""


@dataclass(frozen=True, eq=False, repr=False)
class Contributions(Readable):
    """What each finding adds to the log-odds of each variable asked about, in nats; see :func:`contributions`.

    ``contributions["flu"]`` are those of one variable, a mapping from findings to nats; of a variable with more than
    two states, a mapping from states to such mappings.

    Attributes
    ----------
    about : tuple of str
        The variables asked about, the likeliest first; each state of a variable with more than two, as ``fever =
        high``.
    findings : tuple of str
        What was observed.
    states : tuple
        What each finding was: 0, 1, the name of a state where there are more, or the likelihoods of a report; of
        several variables together, those of all.
    nats : ndarray of shape (len(about), len(findings))
    prior, means : ndarray of shape (len(about),)
        The mean of each variable before anything is observed, and given all findings.
    exact : bool
        Are the numbers sums over all states, and not those of a solver?

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> reasons = sb.contributions(net, {"wet": 1}, about=["rain"])
    >>> reasons.to_frame().shape
    (1, 1)
    """

    about: tuple[str, ...]
    findings: tuple[str, ...]
    states: tuple[Any, ...]
    nats: FloatArray
    prior: FloatArray
    means: FloatArray
    exact: bool

    @property
    def odds(self) -> FloatArray:
        """By which factor each finding multiplies the odds of each variable: e to the power of its nats."""
        factor: FloatArray = np.exp(self.nats)
        return factor

    def __len__(self) -> int:
        return len(self.about)

    def __getitem__(self, unit: str) -> Any:
        """What each finding adds to a unit, the largest first; by state, where there are more than two."""
        if not isinstance(unit, str) or unit not in self.about:
            states = [title for title in self.about if title.startswith(f"{unit} = ")]
            if not isinstance(unit, str) or not states:
                raise not_among(unit, self.about, "the variables asked about")
            return {title.removeprefix(f"{unit} = "): self[title] for title in states}
        nats = self.nats[self.about.index(unit)]
        return {self.findings[k]: float(nats[k]) for k in np.argsort(-np.abs(nats), kind="stable")}

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, a row for each variable asked about and a column for each finding, in nats.

        Returns
        -------
        pandas.DataFrame
        """
        return framed({}, self.nats, self.findings, units=self.about)

    def _reading(self) -> Reading:
        n = len(self.findings)
        head = f"What {n:,} finding{'s' * (n != 1)} add in nats of log-odds, and times the odds"
        shown = self.about[: printing.SHOWN]
        rows = [
            (name, f"{printing.probability(self.prior[k])} → {printing.probability(self.means[k])}", terms(self[name]))
            for k, name in enumerate(shown)
        ]
        more = printing.more(len(self) - len(shown))
        return Reading(head, (("variable", "prior → posterior", "findings"), *rows, *more))


def terms(nats: Mapping[str, float]) -> Terms:
    """The largest contributions to one unit in a line: nats, and by what they multiply its odds."""
    told = ((name, f"{value:+.2f} ({printing.factor(value)})") for name, value in nats.items() if abs(value) >= 0.005)
    return Terms(tuple(told))


def contributions(
    network: Network,
    evidence: OnePattern | Posterior,
    *,
    about: Iterable[str | int] | str | int | None = None,
    together: Mapping[str, Iterable[str]] | None = None,
    solver: Solver | None = None,
) -> Contributions:
    r"""What each finding adds to the log-odds of each cause, in nats.

    That of finding f to variable j is what would be lost without it, everything else being as it is:

    .. math:: \ln \frac{m_j}{1 - m_j} - \ln \frac{m_j'}{1 - m_j'}, \qquad
        m_j = P(S_j = 1 \mid V), \quad m_j' = P(S_j = 1 \mid V \setminus f)

    where a variable with more than two states counts as many variables, each of which says whether it is in one of
    them; as far as the solver knows them; both are asked of :func:`infer_many`, and exact where those of
    :func:`next_question` are. Contributions do not add up to the whole change where findings say the same thing: each
    of two that are enough by themselves adds nothing to the other.

    Parameters
    ----------
    network : Network
    evidence : mapping, sequence or Posterior
        One pattern, as in :func:`infer`; or the :class:`~sbnet.results.Posterior` of it, which is then not solved for
        again.
    about : str, int or sequence of these, optional
        The variables to learn about, as in :func:`next_question`; observed variables are passed over.
    together : mapping, optional
        Findings that count as one, by what to call them, as in ``{"blood": ["crp", "leucocytes"]}``. By default each
        is one by itself.
    solver : Solver, optional
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
    What 2 findings add in nats of log-odds, and times the odds
      variable  prior → posterior  findings
      flu       0.0500 → 0.7683    fever +4.14 (×63), sneezing +0.73 (×2.1)
      cold      0.1000 → 0.0903    sneezing -1.61 (÷5), fever +1.50 (×4.5)
    """
    present = Present.of(network, evidence)
    found, states = present.findings, present.question.states[0]
    targets = np.array([i for i in units_about(present, about) if states[i] == HIDDEN], np.int64)
    groups = _together(found, together)
    less = [{name: state for name, state in found.items() if name not in gone} for gone in groups.values()]
    solved = answers(present, [*less, {}], targets, solver)
    means, titles = frame_columns(network, targets.tolist(), solved.means)
    values = [tuple(found[name] for name in names) for names in groups.values()]
    edge = _SAMPLED_EDGE if solved.sampled else _EDGE
    kept = np.clip(means[:-1], edge, 1.0 - edge)
    odds = np.log(kept) - np.log1p(-kept)
    order = np.argsort(-means[0], kind="stable")
    return Contributions(
        tuple(titles[k] for k in order),
        tuple(groups),
        tuple(given[0] if len(given) == 1 else given for given in values),
        (odds[0] - odds[1:]).T[order],
        means[-1, order],
        means[0, order],
        solved.exact,
    )


_TOGETHER = "give a mapping from what a finding is called to the variables that say it, such as {'blood': ['crp', …]}"


def _together(found: Mapping[str, Any], given: Mapping[str, Iterable[str]] | None) -> dict[str, list[str]]:
    """Observed units by the finding that they belong to, each to one."""
    given = checks.mapping("together", {} if given is None else given, _TOGETHER)
    listed = {title: checks.listed(f"together[{title!r}]", names, _TOGETHER) for title, names in given.items()}
    chosen: dict[str, list[str]] = {}
    for title, names in listed.items():
        if own := [name for name in names if isinstance(name, str) and name in found]:
            chosen[title] = own
    grouped = {name for names in chosen.values() for name in names}
    return chosen | {name: [name] for name in found if name not in grouped}
