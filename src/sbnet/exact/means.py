"""Exact posterior means: arrays that also know their units, what was observed, and how likely that was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.errors import UnknownUnitError
from sbnet.exact.prior import MOST_EDGES, best_prior
from sbnet.model.network import Network
from sbnet.questions import printing
from sbnet.questions.batches import NamedBatch, framed
from sbnet.questions.by_state import by_state, by_variable, columns_at, frame_columns, probabilities, state_value
from sbnet.questions.printing import Bar, Readable, Reading
from sbnet.questions.support import IMPOSSIBLE

if TYPE_CHECKING:
    import pandas


class _Means(Readable, np.ndarray[Any, np.dtype[np.float64]]):
    """An array of means with names. What is computed from it is a plain array, and so is a part of the variables."""

    network: Network
    evidence: States
    units: IndexArray  # whose means these are
    _log_p: Any
    _impossible: str
    __array_priority__: ClassVar[float] = -1.0  # others decide what comes of the two

    @classmethod
    def of(
        cls, network: Network, evidence: States, units: IndexArray, means: FloatArray, log_p: Any, impossible: str = ""
    ) -> Self:
        """The means of some variables for evidence in its internal form; why it is impossible, if one row is."""
        new = means.view(cls)
        new.network, new.evidence, new.units, new._log_p, new._impossible = network, evidence, units, log_p, impossible
        return new

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar or array.ndim == 0 else np.asarray(array)

    def __reduce__(self) -> Any:
        if not hasattr(self, "network"):
            return self.means.__reduce__()
        return type(self).of, (self.network, self.evidence, self.units, self.means, self._log_p, self._impossible)

    def copy(self, order: Any = "C") -> Self:
        """A copy that keeps the names."""
        return self.of(self.network, self.evidence, self.units, self.means.copy(order), self._log_p, self._impossible)

    def __deepcopy__(self, memo: Any) -> Self:
        return self.copy()

    def __repr__(self) -> str:
        return super().__repr__() if hasattr(self, "network") else repr(self.means)

    __str__ = __repr__

    @property
    def means(self) -> FloatArray:
        """The plain array."""
        return np.asarray(self)

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that the means are of."""
        return tuple(self.network.names[i] for i in self.units)

    def _named(self, name: str) -> Any:
        """The mean of a unit, or the probabilities of its states by name."""
        place = np.flatnonzero(self.units == self.network.index(name))
        if not len(place):
            raise UnknownUnitError(f"there is no mean of variable {name!r}; ask for it with units=[{name!r}, ...]")
        begin = int((self.network.n_states[self.units[: place[0]]] - 1).sum())
        states = self.network.states[self.network.names[self.units[place[0]]]]
        return by_state(states, self.means[..., begin : begin + len(states) - 1])


class ExactPosterior(_Means):
    """Exact posterior means for one pattern: an array of shape (n_units,), with names.

    ``exact["rain"]`` is the mean of a variable; of one with more than two states it is a mapping from states to
    probabilities, and the array has a number for each state from the second one on. All that takes an array takes this
    one.

    Attributes
    ----------
    network : Network
    evidence : ndarray of int8, shape (n_units,)
        0, 1, or -1 for a hidden variable.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> exact = sb.exact_posterior(net, {"wet": 1})
    >>> round(exact["rain"], 3), round(exact.log_likelihood, 3)
    (0.341, -0.314)
    """

    @property
    def log_likelihood(self) -> float:
        """Exact ln P(evidence), in nats."""
        return float(self._log_p)

    @property
    def prior(self) -> FloatArray:
        """The means before anything is observed: exact for small networks, predictions of mean field theory else."""
        return best_prior(self.network)[columns_at(self.network, self.units)]

    def __getitem__(self, key: Any) -> Any:
        return self._named(key) if isinstance(key, str) else self.means[key]

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row per variable: observed state, prior and posterior mean; where some have more than
        two states, the likeliest state, its probability, and those of all states.

        Returns
        -------
        pandas.DataFrame
        """
        if not self.network.is_binary:
            observed = [state_value(self.network, i, self.evidence[i]) for i in self.units]
            table = by_variable(self.network, self.units, self.means)
            prior = by_variable(self.network, self.units, self.prior)["distribution"]
            return framed({"observed": observed, "prior": prior, **table}, units=self.names)
        given = self.evidence[self.units]
        known = np.where(given == HIDDEN, np.nan, given)
        return framed({"observed": known, "prior": self.prior, "mean": self.means}, units=self.names)

    @property
    def impossible(self) -> str:
        """Why the evidence is impossible, as a sentence; empty if it is possible."""
        return (self._impossible or IMPOSSIBLE) if self.log_likelihood == -np.inf else ""

    def _reading(self) -> Reading:
        if self.impossible:
            return Reading(f"No posterior {printing.given(self.evidence)}: {self.impossible}")
        head = f"Exact posterior {printing.given(self.evidence)}: ln P = {self.log_likelihood:.6g} nats"
        means, shown = np.full(len(self.network.bias), np.nan), np.zeros_like(self.evidence)
        means[columns_at(self.network, self.units)], shown[self.units] = self.means, self.evidence[self.units]
        return Reading(head, posterior_table(self.network, shown, means, lambda: best_prior(self.network), None))


class ExactPosteriors(NamedBatch[ExactPosterior, Any], _Means):  # type: ignore[misc]
    """Exact posterior means for a table: an array of shape (n, n_units), with names.

    ``exact["rain"]`` are the means of a variable in all rows, or of one with more than two states a mapping from states
    to arrays; ``exact[3]`` is the :class:`ExactPosterior` of row 3; a slice, or an array of row numbers or of truth
    values, gives those of some rows. Other keys are those of an array.

    Attributes
    ----------
    network : Network
    evidence : ndarray of int8, rows by variables

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> exact = sb.exact_posterior(net, [{"wet": 1}, {"wet": 0}])
    >>> exact["rain"].round(3)
    array([0.341, 0.074])
    """

    _columns = ("means",)

    @property
    def log_likelihood(self) -> FloatArray:
        """Exact ln P(evidence) of each row, in nats."""
        return np.asarray(self._log_p)

    if not TYPE_CHECKING:  # its types are those of every batch; it is an array as well, and has the keys of one

        def __getitem__(self, key):
            chosen = isinstance(key, tuple) or key is None or key is Ellipsis or np.ndim(key) > 1  # not whole rows
            return self.means[key] if chosen or not hasattr(self, "network") else super().__getitem__(key)

        def __iter__(self):
            return (self[r] for r in range(len(self)))

    def _unit(self, name: str) -> Any:
        return self._named(name)

    def _one(self, r: int) -> ExactPosterior:
        return ExactPosterior.of(self.network, self.evidence[r], self.units, self.means[r], self._log_p[r])

    def _some(self, rows: slice | IndexArray) -> Self:
        return self.of(self.network, self.evidence[rows], self.units, self.means[rows], self._log_p[rows])

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row for each pattern: ln P, and the mean of every variable.

        Returns
        -------
        pandas.DataFrame
        """
        return framed({"log_likelihood": self.log_likelihood}, *frame_columns(self.network, self.units, self.means))

    def _reading(self) -> Reading:
        n = len(self)
        head = f"Exact posteriors: {printing.rows(n)} × {len(self.names):,} variables"
        return Reading(head, summary=(f"ln P: {printing.spread(self.log_likelihood)}",) if n else ())


def posterior_table(
    network: Network, evidence: States, means: FloatArray, prior: Callable[[], FloatArray], errors: FloatArray | None
) -> list[Sequence[str | Bar]]:
    """Hidden units, those that the evidence moved most first; in their own order if the network is very large."""
    hidden = np.flatnonzero(evidence == HIDDEN)
    if network.n_edges <= MOST_EDGES:
        return printing.moved_variables(network, prior(), means, hidden, errors)
    shown = []
    for i in hidden[: printing.SHOWN]:
        own, states = network.columns_of(int(i)), network.states[network.names[i]]
        error = None if errors is None else errors[own].max(keepdims=True)
        text = printing.states_told(states, probabilities(means[own]))
        shown.append((network.names[i], f"{text}{printing.plus_minus(error, 0)}"))
    return [
        ("variable", "posterior (no prior: over a million edges)"),
        *shown,
        *printing.more(len(hidden) - len(shown)),
    ]
