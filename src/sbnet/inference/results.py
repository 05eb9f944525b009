"""What inference gives back: one posterior, or a batch of them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray, States
from sbnet.bounds.lower import Breakdown, bound_terms
from sbnet.errors import EvidenceError, ImpossibleWarning, ParameterError
from sbnet.exact.means import ExactPosterior, posterior_table
from sbnet.exact.prior import best_prior, predicted_prior
from sbnet.inference.comparison import Comparison
from sbnet.inference.counting import count_terms, remark
from sbnet.inference.solution import Solution, Status
from sbnet.inference.solvers.protocol import Solver
from sbnet.model.network import Network
from sbnet.questions import printing
from sbnet.questions.batches import NamedBatch, framed
from sbnet.questions.by_state import by_state, by_variable, frame_columns, observed_column
from sbnet.questions.printing import Readable, Reading
from sbnet.questions.question import Question

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Readable):
    """The answer for one pattern of evidence.

    It prints the hidden variables that the evidence moved most, from the prior to the posterior mean; of the bars, █ is
    in both, + was gained and - was lost.

    Attributes
    ----------
    network : Network
    evidence : ndarray of int8, shape (n_units,)
        0, 1, or -1 for a hidden variable.
    solution : Solution
        What the solver answered, for one row; the properties below look it up.
    question : Question or None
        What was asked, if it was more than evidence: interventions or soft evidence.
    solver : Solver or None
        Who answered.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> post = sb.infer(net, {"wet": 1})
    >>> round(post["rain"], 2), round(post.bound, 3), post.converged
    (0.34, -0.318, True)
    """

    network: Network
    evidence: States
    solution: Solution
    question: Question | None = None
    solver: Solver | None = None

    @property
    def means(self) -> FloatArray:
        """Posterior mean of every variable; 0 or 1 for observed ones. Of a variable with K states there are K - 1, the
        probabilities of its states from the second one on; see :attr:`Network.columns`.

        Variables without observed descendants have their prediction, the average of :math:`\\sigma(z)` over their
        parents.
        """
        return _first(self.solution.means)

    @property
    def bound(self) -> float:
        """Lower bound on ln P(evidence), in nats; NaN for a solver that has none."""
        return float(self.solution.bound[0])

    @property
    def xi(self) -> FloatArray:
        """Parameters of the paper's logarithm terms, between 0 and 1; NaN where a term has no such parameter."""
        return _first(_xi(self.solution))

    @property
    def trace(self) -> FloatArray:
        """The bound at the start and after each sweep; it never falls. Empty for a row of a batch."""
        trace = np.empty(0) if self.solution.trace is None else _first(self.solution.trace)
        found: FloatArray = trace[~np.isnan(trace)]
        return found

    @property
    def status(self) -> Status:
        """Why the solver stopped; ``status.value`` says it in words."""
        return _STATUSES[int(self.solution.status[0])]

    @property
    def converged(self) -> bool:
        """Did the solver finish its work?"""
        return self.status.done

    @property
    def sweeps(self) -> int:
        """Number of sweeps done."""
        return int(self.solution.sweeps[0])

    @property
    def error(self) -> FloatArray | None:
        """Monte Carlo error of the means, for a sampler."""
        return None if self.solution.chains is None else _first(self.solution.chains.error)

    @property
    def r_hat(self) -> FloatArray | None:
        """Whether the chains of a sampler agree: near 1 if they do."""
        return None if self.solution.chains is None else _first(self.solution.chains.r_hat)

    @cached_property
    def prior(self) -> FloatArray:
        """Means of all variables before anything is observed, beside which the posterior means are read.

        For a bound that is a sum over variables they are the predictions of mean field theory, so that a variable that
        the evidence says nothing about has not moved; for other solvers exact where that takes no time.
        """
        exact = self.solution.parameters is None or not self.network.is_binary
        return (best_prior if exact else predicted_prior)(self.network)

    @property
    def enumerated(self) -> int:
        """Number of variables whose logarithm term is a sum over all states of their hidden parents, and so exact."""
        return int(self._terms[0])

    @cached_property
    def _terms(self) -> IndexArray:
        (part,) = self._asked.parts  # what was solved: units held are cut out, reports have terms of their own
        return np.asarray(count_terms(part.network, part.states, self.solution.parameters)[0])

    @property
    def _asked(self) -> Question:
        return self.question or Question(self.network, self.evidence[None, :], True)

    @cached_property
    def impossible(self) -> str:
        """Why the evidence is impossible, as a sentence; empty if it is possible."""
        if self.status is not Status.IMPOSSIBLE:
            return ""
        return self._asked.reason()

    def __getitem__(self, unit: str | int) -> Any:
        """Posterior mean of a unit; of one with more than two states a mapping from states to probabilities."""
        i = self.network.index(unit)
        return by_state(self.network.states[self.network.names[i]], self.means[self.network.columns_of(i)])

    def breakdown(self) -> Breakdown:
        """The bound by term (linear terms, logarithm terms, entropy) and by variable.

        A report is part of its unit, and so is what it adds to ln P.

        Returns
        -------
        Breakdown
        """
        if self.impossible:
            raise EvidenceError(f"{self.impossible}; there is no bound to break down")
        if np.isnan(self.bound):
            raise ParameterError("this posterior has no bound to break down; use the MeanField solver")
        terms = self.solution.parameters
        if terms is None:
            raise ParameterError("this bound is not a sum over variables; use the MeanField solver")
        (part,) = self._asked.parts
        wide = part.widened(self.solution.means, 0.5), part.widened(terms.xi.copy(), np.nan)
        parts = [rows[0].copy() for rows in bound_terms(part.network, part.states, *wide, terms.bound)]
        for values in parts:
            np.add.at(values, part.owner, values[part.n_units :])
        linear, log_term, entropy = (values[: part.n_units] for values in parts)
        owners = part.owner if len(part.owner) else np.arange(part.n_units)
        linear[owners[:1]] += part.constant
        return Breakdown(self.network.names, linear, log_term, entropy)

    def compare(self, other: Posterior | ExactPosterior) -> Comparison:
        """What changes from this answer to another one, for other evidence or from another solver.

        Parameters
        ----------
        other : Posterior or ExactPosterior

        Returns
        -------
        Comparison

        Examples
        --------
        >>> import sbnet as sb
        >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
        >>> sb.infer(net, {"wet": 1}).compare(sb.infer(net, {"wet": 1, "sprinkler": 1}))
        Comparison: the bound falls by 0.5273 nats (÷1.69), -0.318167 → -0.845421
          evidence: now sprinkler = 1
          hidden in both  before → after   0 to 0.5
          rain            0.3394 → 0.3040  ████████████--
        """
        if not isinstance(other, Posterior | ExactPosterior):
            raise ParameterError(f"compare() takes another posterior; got {type(other).__name__}")
        log_p = other.bound if isinstance(other, Posterior) else other.log_likelihood
        if self.network.names != other.network.names:
            raise ParameterError("compare() takes a posterior of the same variables; those of the other network differ")
        if self.network.states != other.network.states and not (self.network.is_binary and other.network.is_binary):
            raise ParameterError("compare() takes a posterior of the same states; those of the other network differ")
        if len(other.means) < len(other.network.bias):
            raise ParameterError("compare() takes the means of all variables; leave out units=")
        pairs = (self.evidence, other.evidence), (self.means, other.means), (self.bound, log_p)
        same = self.network == other.network
        return Comparison(self.network, *pairs, same_network=same)

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row for each variable: observed state, mean, and Monte Carlo error if there is one.

        Where some have more than two states: observed state, the likeliest one, its probability, and those of all.

        Returns
        -------
        pandas.DataFrame
        """
        network = self.network
        columns: dict[str, Any] = {"observed": observed_column(network, self.evidence)}
        if network.is_binary:
            columns |= {"mean": self.means}
        else:
            columns |= by_variable(network, range(network.n_units), self.means)
        if self.error is not None and self.r_hat is not None:
            first = network.model.threshold[:-1]
            columns |= {
                "error": np.maximum.reduceat(self.error, first),
                "r_hat": np.maximum.reduceat(self.r_hat, first),
            }
        return framed(columns, units=network.names)

    def _reading(self) -> Reading:
        given = printing.given(self._asked.states[0]) + self._asked.text()
        if self.impossible:
            return Reading(f"No posterior {given}: {self.impossible}")
        sign = "=" if self.status is Status.EXACT else "≥"
        bound = _no_bound(self.solution) if np.isnan(self.bound) else f"ln P {sign} {self.bound:.6g} nats"
        head = f"Posterior {given}: {bound}"
        remarks = (*remark(self._terms, self.solution.parameters), self.status.value)
        table = posterior_table(self.network, self.evidence, self.means, lambda: self.prior, self.error)
        return Reading(head, table, remarks)


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorBatch(NamedBatch[Posterior, Any]):
    """The answers for a table of evidence, one for each row; see :class:`Posterior` for what they are.

    ``batch["rain"]`` are the means of a variable in all rows, or of one with more than two states a mapping from states
    to arrays; ``batch[3]`` is the :class:`Posterior` of row 3; a slice, or an array of row numbers or of truth values,
    gives a batch of those rows.

    Attributes
    ----------
    network : Network
    evidence : ndarray of int8, rows by variables
    solution : Solution
        What the solver answered.
    index : pandas.Index, optional
        The labels of the rows, if the evidence was a pandas table.
    question : Question or None
        What was asked, if it was more than evidence: interventions or soft evidence.
    solver : Solver or None
        Who answered.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> many = sb.infer_many(net, [{"wet": 1}, {"wet": 0}])
    >>> many.bound.round(3), many["rain"].round(2)
    (array([-0.318, -1.312]), array([0.34, 0.07]))
    """

    network: Network
    evidence: States
    solution: Solution
    index: pandas.Index[Any] | None = None
    question: Question | None = None
    solver: Solver | None = None

    _columns = ("solution",)

    @property
    def means(self) -> FloatArray:
        """Posterior means, rows by variables; see :attr:`Posterior.means`."""
        return self.solution.means

    @property
    def bound(self) -> FloatArray:
        """Lower bounds on ln P(evidence), in nats, by row."""
        return self.solution.bound

    @property
    def xi(self) -> FloatArray:
        """Parameters of the paper's logarithm terms, rows by variables; NaN where a term has no such parameter."""
        return _xi(self.solution)

    @property
    def sweeps(self) -> IndexArray:
        """Number of sweeps done, by row."""
        return self.solution.sweeps

    @property
    def status(self) -> list[Status]:
        """Why the solver stopped, for each row."""
        return [_STATUSES[code] for code in self.solution.status.tolist()]

    @property
    def converged(self) -> BoolArray:
        """Did the solver finish its work, for each row?"""
        return self.solution.converged

    @property
    def error(self) -> FloatArray | None:
        """Monte Carlo errors of the means, rows by variables, for a sampler."""
        return None if self.solution.chains is None else self.solution.chains.error

    @property
    def r_hat(self) -> FloatArray | None:
        """Whether the chains of a sampler agree, rows by variables."""
        return None if self.solution.chains is None else self.solution.chains.r_hat

    @property
    def enumerated(self) -> IndexArray:
        """Number of variables whose logarithm term is a sum over all states of their hidden parents, by row."""
        return np.asarray(count_terms(self.network, self.evidence, self.solution.parameters)[:, 0])

    def _unit(self, name: str) -> Any:
        i = self.network.index(name)
        return by_state(self.network.states[self.network.names[i]], self.means[:, self.network.columns_of(i)])

    def _one(self, r: int) -> Posterior:
        row = self._some(slice(r, r + 1))
        return Posterior(row.network, row.evidence[0], row.solution, row.question, row.solver)

    def _some(self, rows: slice | IndexArray) -> Self:
        index = None if self.index is None else self.index[rows]
        question = None if self.question is None else self.question.some(rows)
        return type(self)(self.network, self.evidence[rows], self.solution.rows(rows), index, question, self.solver)

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row for each pattern: its bound, whether it settled, and the mean of every variable.

        Returns
        -------
        pandas.DataFrame
        """
        head = {"bound": self.bound, "converged": self.converged}
        return framed(head, *frame_columns(self.network, range(self.network.n_units), self.means), index=self.index)

    def _reading(self) -> Reading:
        n = len(self)
        head = f"PosteriorBatch: {printing.rows(n)} × {self.network.n_units:,} variables"
        if n == 0:
            return Reading(head)
        done = f"{int(self.converged.sum()):,} of {n:,} settled"
        impossible = self.bound == -np.inf
        if np.isnan(self.bound[~impossible]).all() and not impossible.all():
            gone = f"; {int(impossible.sum()):,} impossible" if impossible.any() else ""
            return Reading(head, summary=(f"{_no_bound(self.solution)}; {done}{gone}",))
        effort = f"{done}, {self.sweeps.mean():.1f} sweeps on average"
        terms = count_terms(self.network, self.evidence[:_COUNTED], self.solution.parameters).sum(axis=0)
        where = "in all rows" if n <= _COUNTED else f"in the first {_COUNTED:,} rows"
        remarks = remark(terms, self.solution.parameters, f" {where}")
        return Reading(head, (), remarks, (f"bound: {printing.spread(self.bound)}", effort))


def warn_of_impossible(batch: PosteriorBatch) -> PosteriorBatch:
    """The batch as it is; of its impossible rows the first is said in words."""
    gone = np.flatnonzero(batch.bound == -np.inf)
    if len(gone):
        rows = "a row is" if len(gone) == 1 else f"{len(gone):,} rows are"
        text = f"{rows} impossible, with ln P = -inf; {batch[gone[0]].impossible}"
        warnings.warn(text, ImpossibleWarning, stacklevel=3)
    return batch


_COUNTED = 1000
"""Rows of which a printed batch counts the terms."""
_STATUSES = tuple(Status)


def _first(rows: FloatArray) -> FloatArray:
    return np.asarray(np.asarray(rows)[0])  # a solver may answer with named means


def _xi(solution: Solution) -> FloatArray:
    return np.full(solution.means.shape, np.nan) if solution.parameters is None else solution.parameters.xi


def _no_bound(solution: Solution) -> str:
    return "no bound" if solution.chains is None else "no bound, means by sampling"
