"""The bound itself, for any given parameters, and where it comes from, term by term and unit by unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sbnet import checks
from sbnet._types import HIDDEN, Bound, FloatArray, States, Stop
from sbnet.errors import EvidenceError, NetworkError
from sbnet.exact.factors import families_of, log_table
from sbnet.exact.probability import entropy_of
from sbnet.kernels.codes import NOISY_OR
from sbnet.kernels.kinds import LOG_TERMS
from sbnet.model.gates import loads, rarity, softplus
from sbnet.model.network import Network
from sbnet.questions import printing
from sbnet.questions.batches import answers, framed
from sbnet.questions.by_state import probabilities
from sbnet.questions.evidence import EvidenceLike, check_means, coerce
from sbnet.questions.printing import Readable, Reading
from sbnet.questions.reduction import absorb, ends_of_weights, live_variables
from sbnet.questions.support import depth, impossible, remote, without_zeros

if TYPE_CHECKING:
    import pandas

__all__ = ["LOG_TERMS", "Breakdown", "lower_bound"]

MAX_ENUMERATED = 12
_LARGEST = 1 << 18  # joint states of the parents of a variable, where some have tables
_NOTHING = 1e-17  # a smaller probability counts as zero
_STILL = 1e-12  # nats: parameters of the terms are best where a step promises less


@dataclass(frozen=True, repr=False)
class Breakdown(Readable):
    r"""A bound, term by term and variable by variable: what each variable adds to it, in nats.

    The bound is the entropy minus the energy, eq. (13): ``entropy - energy`` or ``linear + log_term + entropy``.

    Attributes
    ----------
    names : tuple of str
        The variables.
    linear : ndarray of shape (n_units,)
        :math:`\mu_i \langle z_i \rangle`, the first sums of eq. (16).
    log_term : ndarray of shape (n_units,)
        Minus the bound on :math:`\langle \ln(1 + e^{z_i}) \rangle`, the third sum.
    entropy : ndarray of shape (n_units,)
        The entropy of a hidden variable; zero for an observed one.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> parts = sb.infer(net, {"wet": 1}).breakdown()
    >>> bool(abs(parts.entropy.sum() - parts.energy.sum() - parts.bound) < 1e-12)  # eq. (13)
    True
    """

    names: tuple[str, ...]
    linear: FloatArray
    log_term: FloatArray
    entropy: FloatArray

    @property
    def energy(self) -> FloatArray:
        r"""The mean field energy of each variable, eq. (13): the mean of :math:`-\ln P(S_i \mid \mathrm{pa}(S_i))`."""
        return -(self.linear + self.log_term)

    @property
    def by_unit(self) -> FloatArray:
        """What each variable adds to the bound."""
        return self.linear + self.log_term + self.entropy

    @property
    def by_term(self) -> dict[str, float]:
        """What each term adds to the bound."""
        return {name: float(getattr(self, name).sum()) for name in ("linear", "log_term", "entropy")}

    @property
    def bound(self) -> float:
        """The sum of it all."""
        return float(self.by_unit.sum())

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row for each variable.

        Returns
        -------
        pandas.DataFrame
        """
        columns = {"linear": self.linear, "log_term": self.log_term, "entropy": self.entropy, "total": self.by_unit}
        return framed(columns, units=self.names)

    def _reading(self) -> Reading:
        head = f"The bound is {self.bound:.6g} nats: what each variable adds, those that cost most"
        columns = (self.linear, self.log_term, self.entropy, self.by_unit)
        worst = sorted(np.argsort(self.by_unit)[: printing.SHOWN].tolist())
        rows = [(self.names[i], *(f"{column[i]:.4f}" for column in columns)) for i in worst]
        total = ("all", *(f"{column.sum():.4f}" for column in columns))
        titles = ("variable", "linear", "log term", "entropy", "total")
        return Reading(head, (titles, *rows, *printing.more(len(self.names) - len(worst)), total))


@answers(float, FloatArray)
def lower_bound(
    network: Network,
    evidence: EvidenceLike,
    means: ArrayLike,
    xi: ArrayLike | None = None,
    *,
    log_term: str = "xi",
    enumerate_up_to: int = 0,
) -> float | FloatArray:
    r"""The lower bound on ln P(V) for any given means and xi, eq. (22) with the entropy of eq. (16), in nats.

    .. math::
        \ln P(V) \ge \sum_i \mu_i \langle z_i \rangle
            - \sum_i \Big[ \xi_i \langle z_i \rangle + \ln \langle e^{-\xi_i z_i} + e^{(1-\xi_i) z_i} \rangle \Big]
            - \sum_i \big[ \mu_i \ln \mu_i + (1-\mu_i) \ln(1-\mu_i) \big]

    It holds for every choice of `means` between 0 and 1 and of `xi`, in exact arithmetic: no margin for rounding is
    taken off, as it is from the bounds of solvers. Variables without observed descendants are left out, which is exact.

    Parameters
    ----------
    network : Network
    evidence : mapping, sequence or table
        One pattern or a table of them.
    means : array_like
        The means, one for every variable (and row), or for every state of a variable from the second one on; those of
        observed variables are not used. A mean below 1e-17 counts as 0.
    xi : array_like, optional
        The parameters of the logarithm terms, one for every variable (and row), or threshold, between 0 and 1. NaN,
        or no `xi` at all: the best value for the given means.
    log_term : {"xi", "exact", "quadratic", "jensen"}
        How :math:`\langle \ln(1 + e^{z_i}) \rangle` is bounded; see :class:`sbnet.MeanField`.
    enumerate_up_to : int
        Variables with at most that many hidden parents get their exact term by enumeration.

    Returns
    -------
    float or ndarray of shape (n,)

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> round(sb.bounds.lower_bound(net, {"wet": 1}, means=[0.35, 0.59, 1.0]), 4)
    -0.3235
    """
    states, single = coerce(network, evidence)
    bound = check_log_term(log_term, enumerate_up_to)
    mu = check_means(network, states, means, single)
    parts = bound_terms(network, states, mu, _check_xi(network, states, xi, single), bound)
    total: FloatArray = sum((part.sum(axis=1) for part in parts), np.zeros(len(states)))
    for r in np.flatnonzero(remote(network, total)) if not network.tables else ():
        total[r] = without_zeros(network, states[r], mu[r], total[r])
    total[impossible(network, states)] = -np.inf
    return float(total[0]) if single else total


def bound_terms(
    network: Network, states: States, means: FloatArray, xi: FloatArray, bound: Bound
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Linear terms, minus the logarithm terms, and entropy, rows by units each. Fills in `xi` where it is NaN.

    Where variables have tables, no term is split: the mean of ln P given the parents is the first of the three.
    """
    if network.tables:
        parts = [_means_of_families(network, *row) for row in zip(states, means, strict=True)]
        linear, entropy = np.array(parts).reshape(len(states), 2, network.n_units).swapaxes(0, 1)
        return linear, np.zeros(states.shape), entropy
    if not network.is_binary:
        return _terms_of_states(network, states, means, xi, bound)
    bias = absorb(network, states)
    terms = log_terms(network, bound, states, means, xi)
    live = ~np.isnan(terms)  # barren units have no term
    hidden = np.where(states == HIDDEN, means, 0.0)
    mean_z = bias + (network.sparse_weights() @ hidden.T).T
    mu = np.where(states == HIDDEN, means, states)
    a, c = loads(network.gate, mu)
    linear = np.where(live, a * mean_z, 0.0)
    entropy = np.where(live & (states == HIDDEN), entropy_of(mu), 0.0)
    return linear, np.where(live, -c * terms, 0.0), entropy


def _terms_of_states(
    network: Network, states: States, means: FloatArray, xi: FloatArray, bound: Bound
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The three parts for variables with any number of states, the sum over the thresholds of each."""
    (variable, _), model = network.columns, network.model
    terms, hidden = log_terms(network, bound, states, means, xi), states[:, variable] == HIDDEN
    live = ~np.isnan(terms)
    threshold, column = ends_of_weights(model)
    sent = np.where(hidden, means, 0.0)[:, column] * network.weight
    x = absorb(network, states) + [np.bincount(threshold, row, len(variable)) for row in sent]
    a, c, entropy = np.empty_like(x), np.empty_like(x), np.zeros(states.shape)
    for i in range(network.n_units):
        own, p = network.columns_of(i), probabilities(means[:, network.columns_of(i)])
        at_least = np.cumsum(p[:, ::-1], axis=1)[:, ::-1]  # P(v >= k)
        if network.gate[i] == NOISY_OR:
            a[:, own], c[:, own] = at_least[:, 1:] - 1.0, p[:, 1:]
        else:
            a[:, own], c[:, own] = at_least[:, 1:], np.minimum(at_least[:, :-1], 1.0)
        entropy[:, i] = np.where(hidden[:, own.start] & live[:, own.start], _entropy(p), 0.0)
    linear, log_term = np.where(live, a * x, 0.0), np.where(live, -c * terms, 0.0)
    first = model.threshold[:-1]
    return np.add.reduceat(linear, first, axis=1), np.add.reduceat(log_term, first, axis=1), entropy


def _entropy(p: FloatArray) -> FloatArray:
    """The entropy of distributions along the last axis."""
    total: FloatArray = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=-1)
    return total


def _means_of_families(network: Network, row: States, means: FloatArray) -> tuple[FloatArray, FloatArray]:
    """<ln P(v | parents)> of each variable in one row, a sum over the joint states of a family, and the entropy."""
    energy, entropy = np.zeros(network.n_units), np.zeros(network.n_units)
    tables = {network.index(name): table for name, table in network.tables.items()}
    q = [probabilities(means[network.columns_of(i)]) for i in range(network.n_units)]
    zero = depth(network)  # an entry of zero counts as less than any joint state that can be, as solvers have it
    live = np.flatnonzero(live_variables(network.model, row)).tolist()
    for family in families_of(network.model, network.bias, live, tables):
        i, weight = family.variable, np.ones(())
        for v in (*family.parents, i):
            if row[v] == HIDDEN:
                weight = np.multiply.outer(weight, q[v])
        if weight.size > _LARGEST:
            raise NetworkError(
                f"variable {network.names[i]!r} has {weight.ndim} hidden parents, too many for a sum over their "
                "states, and stands in a network with tables; observe some of them"
            )
        energy[i] = float((weight * np.maximum(log_table(family, row[None, :])[0], -zero)).sum())
        entropy[i] = float(_entropy(q[i])) if row[i] == HIDDEN else 0.0
    return energy, entropy


def log_terms(network: Network, which: Bound, states: States, means: FloatArray, xi: FloatArray) -> FloatArray:
    """The bounds on <t(x)> at given means, rows by thresholds; NaN for barren units.

    The entries of `xi` that are NaN are filled in. It is the solver that makes no sweep. A mean of 1, or of
    less than 1e-17, is treated as an observation.
    """
    model, n = network.model, len(states)
    live = np.array([live_variables(model, row) for row in states], np.bool_).reshape(states.shape)
    variable, level = network.columns
    sure, first = (means >= _NOTHING).astype(np.int64), model.threshold[:-1]
    rest = 1.0 - np.add.reduceat(means, first, axis=1) >= _NOTHING  # of state 0
    certain = live & (states == HIDDEN) & (np.add.reduceat(sure, first, axis=1) + rest == 1)
    known = np.where(certain, np.add.reduceat(sure * level, first, axis=1), states).astype(states.dtype)
    bias = absorb(network, known)
    terms: FloatArray = np.where(network.gate[variable] == NOISY_OR, rarity(bias), softplus(bias))
    terms[~live[:, variable]] = np.nan
    found, start = xi.copy(), means.astype(np.float64)
    from sbnet.bounds.rows import Answers, solve_rows

    answers = Answers(np.empty(n), start, found, np.empty(n, np.int64), np.empty(n, np.bool_), np.empty((n, 0)), terms)
    solve_rows(model, which, Stop(_STILL, 0), known, bias, True, answers)
    np.copyto(xi, found, where=np.isnan(xi))
    return terms


def check_log_term(log_term: str, enumerate_up_to: int) -> Bound:
    """The bound in the codes that kernels use, or an error."""
    code = LOG_TERMS[checks.choice("log_term", log_term, LOG_TERMS)]
    return Bound(code, checks.whole("enumerate_up_to", enumerate_up_to, 0, MAX_ENUMERATED))


def _check_xi(network: Network, states: States, xi: ArrayLike | None, single: bool) -> FloatArray:
    shape = len(states), len(network.bias)
    if xi is None:
        return np.full(shape, np.nan)
    array = checks.numbers("xi", xi)
    expected = shape[1:] if single else shape
    if array.shape != expected:
        whose = "variable" if network.is_binary else "threshold of every variable"
        raise EvidenceError(f"xi has shape {array.shape}; expected {expected}, one for every {whose}")
    if np.any((array < 0.0) | (array > 1.0)):
        bad = array[(array < 0.0) | (array > 1.0)][0]
        raise EvidenceError(f"xi must lie between 0 and 1, where its best value is; got {bad}")
    return array.reshape(shape)
