"""What a solver answers with: bounds, means and a status for each row, and named parts that only some solvers have."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sbnet import checks
from sbnet._types import BoolArray, Bound, FloatArray, IndexArray, States
from sbnet.errors import EvidenceError, ParameterError
from sbnet.model.network import Network
from sbnet.parallel.blocks import row_blocks

Rows: TypeAlias = "slice | IndexArray | BoolArray"


class Status(Enum):
    """Why a solver stopped; the value says it in words.

    A :class:`Solution` holds one for each row, as its :attr:`code`: ``np.full(n, Status.CONVERGED.code)``.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> sb.infer(net, {"wet": 1}).status.name
    'CONVERGED'
    """

    CONVERGED = "the bound rose by less than `tol` in the last sweep"
    MAX_SWEEPS = "`max_sweeps` was reached before the bound settled; it is still valid"
    MIXED = "the chains agree: R-hat is below 1.05 for every variable"
    NOT_MIXED = "the chains disagree: R-hat is 1.05 or more for some variable; draw more samples"
    IMPOSSIBLE = "the evidence is impossible: its probability is 0, and there is no posterior"
    NO_STATE = "no state of positive probability was found to start from: the bound is minus infinity"
    EXACT = "sums over all states: ln P and the means are exact"

    @property
    def code(self) -> np.int8:
        """Its place among the statuses, from 0: the form in which arrays hold it."""
        return _CODES[self]

    @property
    def done(self) -> bool:
        """Did the solver finish its work?"""
        return self in (Status.CONVERGED, Status.MIXED, Status.IMPOSSIBLE, Status.EXACT)


_CODES = {status: np.int8(code) for code, status in enumerate(Status)}
_DONE = np.array([status.done for status in Status])


_PARTS = ("bound", "means", "status", "sweeps")
"""What every solution has."""


def codes(good: BoolArray, yes: Status, no: Status) -> States:
    """The codes of rows of which some are good."""
    return np.where(good, yes.code, no.code)


@dataclass(frozen=True, eq=False)
class Xi:
    """Which bound was maximised, one that is a sum over variables, and the parameters of its logarithm terms.

    Attributes
    ----------
    bound : Bound
        How the logarithm terms are bounded.
    xi : ndarray, rows by variables
        The parameter of the paper's term, between 0 and 1; NaN where a term has none.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.layered((6, 2), rng=0)
    >>> post = sb.infer(net, {6: 1, 7: 0}, solver=sb.MeanField(log_term="xi"))
    >>> post.solution.parameters.xi.round(2)[:, 6:]
    array([[0.48, 0.51]])
    """

    bound: Bound
    xi: FloatArray


@dataclass(frozen=True, eq=False)
class Chains:
    """What a sampler knows of its means.

    Attributes
    ----------
    error, r_hat : ndarray, rows by variables
        Monte Carlo error, and R-hat: near 1 where the chains agree.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> post = sb.infer(net, {"wet": 1}, solver=sb.Gibbs(samples=2000, rng=0))
    >>> bool(post.r_hat[0] < 1.05)
    True
    """

    error: FloatArray
    r_hat: FloatArray


@dataclass(frozen=True, eq=False)
class Solution:
    """The answers of a solver for a block of rows; the last three parts only where it has them.

    Attributes
    ----------
    bound : ndarray of shape (n,)
        Lower bounds on ln P(evidence), in nats; NaN for a solver that has none.
    means : ndarray of shape (n, n_units)
        Those of observed variables are their states.
    status : ndarray of int8, shape (n,)
        The :attr:`Status.code` of each row.
    sweeps : ndarray of int, shape (n,)
    parameters : Xi or None
        The parameters of the bound, if it is a sum over variables and can be broken down.
    chains : Chains or None
        The error of the means, if they were sampled.
    trace : ndarray of shape (n, longest) or None
        The bounds at the start and after each sweep, if they were asked for; NaN after the last sweep of a row.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> solution = sb.infer(net, {"wet": 1}).solution
    >>> len(solution), solution.means.shape
    (1, (1, 3))
    """

    bound: FloatArray
    means: FloatArray
    status: States
    sweeps: IndexArray
    parameters: Xi | None = None
    chains: Chains | None = None
    trace: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.bound)

    @property
    def converged(self) -> BoolArray:
        """For each row: did the solver finish its work?"""
        done: BoolArray = _DONE[self.status]
        return done

    def rows(self, which: Rows) -> Solution:
        return _assemble({name: array[which] for name, array in self._arrays().items()}, self._sum())

    def draft(self) -> Solution:
        """A copy of the parts that every solution has, for a solver that goes on from here and fills in its own."""
        return Solution(self.bound.copy(), self.means.copy(), self.status.copy(), self.sweeps.copy())

    def where(self, better: BoolArray, other: Solution) -> Solution:
        """These answers, with those of `other` in the rows where it is better."""
        whole = Gather(*self.means.shape)
        whole.put(slice(None), self)
        whole.put(better, other.rows(better))
        return whole.solution()

    def ruled_out(self, impossible: BoolArray, known: FloatArray) -> Solution:
        """These answers, with none in the rows whose evidence is impossible: ln P is minus infinity, means are NaN.

        `known` are the means of what was observed, and NaN.
        """
        if not impossible.any():
            return self
        found = {name: np.array(array) for name, array in self._arrays().items()}
        for name, value in (("bound", -np.inf), ("status", Status.IMPOSSIBLE.code), ("sweeps", 0)):
            found[name][impossible] = value
        for name in found.keys() - {"bound", "status", "sweeps"}:
            found[name][impossible] = np.nan
        found["means"][impossible] = known[impossible]
        return _assemble(found, self._sum())

    def _arrays(self) -> dict[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = {name: getattr(self, name) for name in _PARTS}
        found |= {} if self.parameters is None else {"xi": self.parameters.xi}
        found |= {} if self.chains is None else {"error": self.chains.error, "r_hat": self.chains.r_hat}
        return found if self.trace is None else found | {"trace": self.trace}

    def _sum(self) -> Bound | None:
        return None if self.parameters is None else self.parameters.bound


def _assemble(arrays: dict[str, NDArray[Any]], bound: Bound | None) -> Solution:
    xi = None if bound is None else Xi(bound, arrays["xi"])
    chains = Chains(arrays["error"], arrays["r_hat"]) if "error" in arrays else None
    bound_of_rows, means, status, sweeps = (arrays[name] for name in _PARTS)
    return Solution(bound_of_rows, means, status, sweeps, xi, chains, arrays.get("trace"))


@dataclass
class Gather:
    """One solution for all rows, filled in block by block: it has every part that some block has, NaN elsewhere."""

    n_rows: int
    n_units: int
    _whole: dict[str, NDArray[Any]] = field(default_factory=dict)
    _bound: Bound | None = None
    _begun: bool = False

    def put(self, rows: Rows, part: Solution) -> None:
        bound = part._sum()
        if None not in (bound, self._bound) and bound != self._bound:
            raise ParameterError(f"the rows of one table have two bounds, {self._bound} and {bound}; a solver has one")
        self._bound = self._bound if bound is None else bound
        found = part._arrays()
        for name, array in found.items():
            whole = self._room(name, array)
            if array.shape[1:] == whole.shape[1:]:
                whole[rows] = array
            else:  # a shorter trace
                whole[rows] = np.nan
                whole[rows, : array.shape[1]] = array
        for name in self._whole.keys() - found.keys():
            self._whole[name][rows] = np.nan
        self._begun = True

    def copy(self, rows: IndexArray, source: IndexArray) -> None:
        """The answers of the rows `source` for other rows, which equal them."""
        for block in row_blocks(len(rows), self.n_units):
            for array in self._whole.values():
                array[rows[block]] = array[source[block]]

    def solution(self) -> Solution:
        return _assemble(self._whole, self._bound)

    def _room(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """Where such an array goes; what blocks before this one did not have is NaN."""
        whole, shape = self._whole.get(name), (self.n_rows, *array.shape[1:])
        if whole is None or whole.shape[1:] < shape[1:]:
            room = np.full(shape, np.nan) if self._begun else np.empty(shape, array.dtype)
            if whole is not None:
                room[:, : whole.shape[1]] = whole
            self._whole[name] = whole = room
        return whole


def equal_shares(network: Network) -> FloatArray:
    """Means of states that are equally likely: a number for each column."""
    return 1.0 / network.n_states[network.columns[0]]


def check_start(network: Network, known: FloatArray, start: ArrayLike | None) -> FloatArray | None:
    """Starting means for every row and column, or an error; `known` has the means of what was observed, NaN else.

    NaN stands for equal probabilities of all states.
    """
    if start is None:
        return None
    array = checks.numbers("start", start)
    if array.shape not in (known.shape, known.shape[1:]):
        raise EvidenceError(f"start has shape {array.shape}; expected {known.shape}, a mean for every variable")
    point = np.array(np.broadcast_to(array, known.shape))
    used = point[np.isnan(known)]
    if np.any((used < 0.0) | (used > 1.0)):
        raise EvidenceError("starting means must lie between 0 and 1; NaN stands for one half")
    return np.where(np.isnan(point), equal_shares(network), point)
