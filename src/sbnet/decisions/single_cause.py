"""Which cause, if there is exactly one: a closed form, whatever the number of causes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.errors import EvidenceError, not_among
from sbnet.exact.answers import LIMIT, log_likelihood
from sbnet.kernels.codes import NOISY_OR, TABLE
from sbnet.model import roles
from sbnet.model.gates import log_part
from sbnet.model.network import Network
from sbnet.questions import printing
from sbnet.questions.batches import framed
from sbnet.questions.by_state import by_state
from sbnet.questions.evidence import OnePattern
from sbnet.questions.printing import Readable, Reading
from sbnet.questions.question import ask_one
from sbnet.questions.reduction import absorb_rows, ends_of_weights, live_variables, stretches
from sbnet.questions.support import impossible

if TYPE_CHECKING:
    import pandas

Cause: TypeAlias = "str | tuple[str, str]"
_NONE = (
    "no single cause explains the evidence; give the findings a leak, leave one out, "
    "or allow several causes with infer() or exact_posterior()"
)


@dataclass(frozen=True, eq=False, repr=False)
class SingleCause(Readable):
    """The probability of each cause if exactly one is present; see :func:`single_cause`.

    ``found["flu"]`` is that of a cause with two states; of one with more, a mapping from its states to theirs.

    Attributes
    ----------
    network : Network
    causes : tuple
        The causes, in the order of the network: names, or pairs of a name and a state where there are more than two.
    log_odds : ndarray of shape (len(causes),)
        ln p - ln(1 - p) of each, which tells apart what is near 0 or 1; infinite for what is excluded or certain.
    prior, probability : ndarray of shape (len(causes),)
        The probability of each before anything else is observed, and given the evidence. Each of them sums to one.
    n_observed : int
        How many variables were observed.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.noisy_or({("flu", "fever"): 0.9, ("cold", "fever"): 0.2}, leak=0.01, prior={"flu": 0.05, "cold": 0.1})
    >>> found = sb.single_cause(net, {"fever": 1})
    >>> found.ranked, round(found["flu"], 2)
    (('flu', 'cold'), 0.67)
    """

    network: Network
    causes: tuple[Cause, ...]
    log_odds: FloatArray
    prior: FloatArray
    probability: FloatArray
    n_observed: int

    def __len__(self) -> int:
        return len(self.causes)

    def __getitem__(self, cause: Cause) -> Any:
        """The probability of a cause, by its name or by its name and state."""
        if isinstance(cause, str) and cause not in self.causes:
            own = [k for k, pair in enumerate(self.causes) if isinstance(pair, tuple) and pair[0] == cause]
            if own:
                return by_state(self.network.states[cause], self.probability[own])
        if not isinstance(cause, str | tuple) or cause not in self.causes:
            raise not_among(cause, [one if isinstance(one, str) else one[0] for one in self.causes], "the causes")
        return float(self.probability[self.causes.index(cause)])

    @property
    def ranked(self) -> tuple[Cause, ...]:
        """The causes, the likeliest first."""
        return tuple(self.causes[k] for k in self._order())

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, a row for each cause, the likeliest first.

        Returns
        -------
        pandas.DataFrame
        """
        order = self._order()
        columns = {"prior": self.prior, "probability": self.probability, "log_odds": self.log_odds}
        names = [cause_name(self.causes[k]) for k in order]
        return framed({key: column[order] for key, column in columns.items()}, units=names)

    def _order(self) -> IndexArray:
        return np.argsort(-self.log_odds, kind="stable")

    def _reading(self, most: int = printing.SHOWN) -> Reading:
        shown, p = self._order()[:most], printing.probability
        top = printing.scale(self.prior[shown], self.probability[shown])
        names = [cause if isinstance(cause, str) else cause[0] for cause in (self.causes[k] for k in shown)]
        about = [self.network.notes[name].about for name in names]
        rows: list[list[Any]] = [
            ["cause", "prior → posterior", f"0 to {top:g}", "log-odds (odds)", *["about"] * any(about)]
        ]
        for k, words in zip(shown, about, strict=True):
            prior, posterior = float(self.prior[k]), float(self.probability[k])
            odds = f"{self.log_odds[k]:+.2f} ({printing.odds(self.log_odds[k])})"
            numbers = f"{p(prior)} → {p(posterior)}", printing.Move(prior, posterior, top), odds
            rows.append([cause_name(self.causes[k]), *numbers, *[words] * any(about)])
        head = f"If exactly one of {len(self):,} causes is present, given {self.n_observed:,} observed; exact:"
        return Reading(head, [*rows, *printing.more(len(self) - len(shown))], cuts=(0, 4) if any(about) else (0,))


def cause_name(cause: Cause) -> str:
    """A cause in words: its name, and its state where there are more than two."""
    return cause if isinstance(cause, str) else f"{cause[0]} = {cause[1]}"


def single_cause(
    network: Network,
    evidence: OnePattern,
    *,
    about: Iterable[str | int] | str | int | None = None,
    limit: int = LIMIT,
) -> SingleCause:
    r"""The posterior probability of each cause, given that exactly one of them is present.

    With d for "cause d is present, and no other one", the probability of d is in proportion to

    .. math:: \frac{P(d)}{1 - P(d)} \prod_{f} P(f \mid d)

    over the findings f that were observed: a closed form where all their parents are causes or observed themselves,
    for any gate. It takes milliseconds for ten thousand causes, and no cause is ruled out by rounding. Ask this where
    one cause is what one looks for, as one disease of a catalogue: under :func:`infer` thousands of rare causes share
    the findings out among them. Where several causes may well be present at once, ask :func:`exact_posterior` or
    :func:`infer`.

    Parameters
    ----------
    network : Network
    evidence : mapping or sequence
        One pattern, as in :func:`infer`, soft evidence included. A cause that is observed as absent is excluded; one
        that is observed as present is the one.
    about : str, int or sequence of these, optional
        The causes. By default the variables of the group "causes", or, if there is none, those without parents.
    limit : int
        As in :func:`log_likelihood`, which is asked once for each cause where hidden variables stand between causes and
        findings.

    Returns
    -------
    SingleCause
        A cause with more than two states is present in each of its states but the first one, and has a probability
        for each.

    Examples
    --------
    >>> import sbnet as sb
    >>> effects = {("flu", "fever"): 0.9, ("cold", "fever"): 0.2, ("cold", "sneezing"): 0.8, ("flu", "aches"): 0.5}
    >>> net = sb.noisy_or(effects, leak=0.01, prior={"flu": 0.05, "cold": 0.1})
    >>> sb.single_cause(net, {"fever": 1, "sneezing": 0})
    If exactly one of 2 causes is present, given 2 observed; exact:
      cause  prior → posterior  0 to 1              log-odds (odds)
      flu    0.3214 → 0.9112    ██████++++++++++++  +2.33 (10 to 1)
      cold   0.6786 → 0.0888    ██------------      -2.33 (1 to 10)
    """
    part = ask_one(network, evidence, None).parts[0]
    causes = _causes(network, about)
    states, variable, state = part.states[0].copy(), *(array[causes.columns] for array in network.columns)
    observed = states[variable]
    on = (observed == state) & (observed > 0)
    if on.sum() > 1:
        names = [network.names[i] for i in variable[on][:2]]
        raise EvidenceError(f"causes {names[0]!r} and {names[1]!r} are both observed as present, and one is to be")
    free = on if on.any() else observed == HIDDEN
    before = np.full_like(states, HIDDEN)
    states[variable], before[variable] = 0, 0  # and then each of them present in turn
    score = _log_weights(part.network, causes.columns, states, free, limit)
    if not np.isfinite(score.max(initial=-np.inf)):
        raise EvidenceError(_NONE)
    prior, _ = _normal(_log_weights(part.network, causes.columns, before, free, limit))
    probability, log_odds = _normal(score)
    return SingleCause(network, causes.names, log_odds, prior, probability, int((part.states[0] != HIDDEN).sum()))


class _Causes(NamedTuple):
    """The columns of the causes, and what to call each."""

    columns: IndexArray
    names: tuple[Cause, ...]


def _causes(network: Network, about: Any) -> _Causes:
    """All causes, observed ones included; those of the network itself are found once."""
    if about is None and _Causes in network._cache:
        known: _Causes = network._cache[_Causes]
        return known
    chosen = roles.causes(network)
    if about is not None:
        chosen = sorted({network.index(unit) for unit in checks.units("about", about)})
        if not chosen:
            raise EvidenceError("about is empty; name the causes, one of which is present")
    columns, names = stretches(network.model.threshold, np.array(chosen, np.int64))[0], list[Cause]()
    for i in chosen:
        name, states = network.names[i], network.states[network.names[i]]
        names += [name] if len(states) == 2 else [(name, one) for one in states[1:]]
    found = _Causes(columns, tuple(names))
    if about is None:
        network._cache[_Causes] = found
    return found


def _normal(score: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Probabilities and their log-odds; that of the likeliest from the sum of all others, which keeps its digits."""
    best = int(np.argmax(score))
    others = np.delete(score, best) - score[best]
    second = float(others.max(initial=-np.inf))
    log_others = second + np.log(np.exp(others - second).sum()) if second > -np.inf else -np.inf
    total = float(np.logaddexp(0.0, log_others))
    p: FloatArray = np.exp(score - score[best] - total)
    with np.errstate(divide="ignore"):
        log_odds: FloatArray = score - score[best] - total - np.log1p(-p)
    log_odds[best] = -log_others
    return p, log_odds


def _log_weights(network: Network, columns: IndexArray, states: States, free: BoolArray, limit: int) -> FloatArray:
    """ln P of the known states with each column's cause present, up to a constant: minus infinity where it cannot be.

    `states` are those with no cause present; `free` says which columns may be the one that is present.
    """
    if not (live_variables(network.model, states) & (states == HIDDEN)).any():
        score = np.where(free, _changes(network, states, columns), -np.inf)
        best = int(np.argmax(score)) if len(score) else 0
        # Certainties are a thousand nats in sums; if the best cause is possible, they do no harm.
        if score[best] > -np.inf and not impossible(network, _present(network, states, columns[[best]]))[0]:
            return score
    score, some = np.full(len(columns), -np.inf), np.flatnonzero(free)
    score[some] = log_likelihood(network, _present(network, states, columns[some]), limit=limit, progress=False)
    return score


def _present(network: Network, states: States, columns: IndexArray) -> States:
    """A row for each column: that cause in that state, and no other one."""
    rows = np.repeat(states[None, :], len(columns), axis=0)
    variable, state = network.columns
    rows[np.arange(len(columns)), variable[columns]] = state[columns]
    return rows


def _changes(network: Network, states: States, columns: IndexArray) -> FloatArray:
    """What each column's state adds to ln P(S), by its own conditional and those of its children; all others stay.

    A weight stands between one threshold of a child and one column of a parent, so one sum has them all.
    """
    model, (variable, state), n = network.model, network.columns, len(network.bias)
    threshold, column = _ends(network)
    on = np.flatnonzero(states > 0)
    above = bool((model.child_indptr[on + 1] > model.child_indptr[on]).any())  # findings have no children, as a rule
    x = absorb_rows(model, network.bias, states[None, :])[0] if above else network.bias
    known = np.flatnonzero(states != HIDDEN)
    weights, _ = stretches(model.block[model.indptr], known)
    t, c, w = threshold[weights], column[weights], model.weight[weights]
    change = np.zeros(n)
    straight = (network.gate[variable[t]] == NOISY_OR) & (states[variable[t]] == 0)  # ln P is -x there
    if straight.any():
        change -= np.bincount(c[straight], w[straight], n)
        t, c, w = t[~straight], c[~straight], w[~straight]
    old = _log(network, t, states[variable[t]], x[t])
    new = _log(network, t, states[variable[t]], x[t] + w)
    own, begins = stretches(model.threshold, variable[columns])  # all thresholds of its variable for each column
    k = np.repeat(np.arange(len(columns)), np.diff(begins))
    off, there = _log(network, own, 0, x[own]), _log(network, own, state[columns][k], x[own])
    every, _ = stretches(model.threshold, known)
    zeros = _log(network, every, states[variable[every]], x[every]).zero.sum()
    change = (change + np.bincount(c, new.finite - old.finite, n))[columns]
    change = change + np.bincount(k, there.finite - off.finite, len(columns))
    left = zeros + np.bincount(c, new.zero.astype(float) - old.zero, n)[columns]
    left = left + np.bincount(k, there.zero.astype(float) - off.zero, len(columns))
    for name in network.tables:
        if states[network.index(name)] != HIDDEN:
            more = _of_table(network, name, states, columns)
            change, left = change + more.finite, left + more.zero
    return np.where(left > 0, -np.inf, change)


def _of_table(network: Network, name: str, states: States, columns: IndexArray) -> _Log:
    """The change of ln P of a variable with a table, by column, and how many factors of it are zero then."""
    v = network.index(name)
    axes = [*network.graph.parent[network.graph.indptr[v] : network.graph.indptr[v + 1]].tolist(), v]
    at, table = tuple(states[axes].tolist()), network.tables[name]
    variable, state = (array[columns] for array in network.columns)
    p = np.full(len(columns), table[at])
    for axis, u in enumerate(axes):
        mine = np.flatnonzero(variable == u)
        p[mine] = table[(*at[:axis], slice(None), *at[axis + 1 :])][state[mine]]
    log = np.log(np.where(p > 0.0, p, 1.0))
    return _Log(log if table[at] == 0.0 else log - np.log(table[at]), p == 0.0)


class _Log(NamedTuple):
    """ln of probabilities: what is finite of it, and where it is minus infinity."""

    finite: FloatArray
    zero: BoolArray


def _log(network: Network, threshold: IndexArray, state: Any, x: FloatArray) -> _Log:
    """a x - c t(x) of thresholds of variables in some states; a noisy-OR without input is never on."""
    variable, level = (array[threshold] for array in network.columns)
    gate = network.gate[variable]
    zero = (gate == NOISY_OR) & (state == level) & (x <= 0.0)
    log = np.where(gate == TABLE, 0.0, log_part(np.where(gate == TABLE, 0, gate), level, state, x))
    return _Log(np.where(zero, 0.0, log), zero)


def _ends(network: Network) -> tuple[IndexArray, IndexArray]:
    """The threshold and the column of each weight, worked out once."""
    if "ends of weights" not in network._cache:
        network._cache["ends of weights"] = ends_of_weights(network.model)
    found: tuple[IndexArray, IndexArray] = network._cache["ends of weights"]
    return found
