"""What a solver is: a frozen record of its settings that answers rows; a differentiable one knows the gradient."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from sbnet import checks
from sbnet._types import FloatArray, Model, States
from sbnet.errors import ParameterError
from sbnet.inference.solution import Solution
from sbnet.model.network import Network


class BoundGradient(NamedTuple):
    """The gradient of a weighted sum of bounds, eqs. (34)-(35).

    Attributes
    ----------
    weight : ndarray
        By each weight of the network, in its order.
    bias : ndarray
        By each bias.

    Examples
    --------
    >>> import numpy as np
    >>> import sbnet as sb
    >>> net = sb.layered((2, 3), rng=0)
    >>> solution, found = sb.MeanField().maximise(
    ...     net.model, net.bias, sb.sample(net, 4, rng=0), None, row_weight=np.ones(4)
    ... )
    >>> found.weight.shape, found.bias.shape
    ((6,), (5,))
    """

    weight: FloatArray
    bias: FloatArray


class Solver(Protocol):
    """Anything with this method can be given to :func:`sbnet.infer` and :func:`sbnet.infer_many` as `solver`.

    A solver looks at each row alone: its answer must not depend on the other rows of the block, and equal rows must
    have equal answers. A frozen dataclass of its settings is the natural form; it may be asked by several threads.

    One that says ``knows_states = True`` is also asked about variables with more than two states, and tables: states
    are numbers from 0 on, and means have a column for each state from 1 on, see :attr:`sbnet.Network.columns`.

    Examples
    --------
    One that gives every row its prior, with no bound:

    >>> import numpy as np
    >>> import sbnet as sb
    >>> class Prior:
    ...     def solve(self, network, states, *, start, trace):
    ...         n = len(states)
    ...         means = np.where(states < 0, sb.exact_posterior(network, {}), states)
    ...         return sb.solvers.Solution(np.full(n, np.nan), means, np.zeros(n, np.int8), np.zeros(n, int))
    >>> net = sb.from_edges({("rain", "wet"): 2.0}, bias={"rain": -1.0})
    >>> round(sb.infer(net, {"wet": 1}, solver=Prior())["rain"], 3)
    0.269
    """

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """Answer a block of rows.

        Parameters
        ----------
        network : Network
        states : ndarray of int8, rows by variables
            The states that are observed, or -1.
        start : ndarray, rows by means, or None
            Means to begin with, if someone has given any. A solver that has no use for them may leave them aside.
        trace : bool
            Is the bound on the way asked for? It may be left out as well.

        Returns
        -------
        Solution
        """


class DifferentiableSolver(Solver, Protocol):
    """A solver whose bound has a gradient in weights and biases, so that :func:`sbnet.fit` can learn with it.

    Examples
    --------
    >>> import sbnet as sb
    >>> callable(sb.MeanField().maximise), hasattr(sb.Gibbs(), "maximise")
    (True, False)
    """

    def maximise(
        self,
        model: Model,
        bias: FloatArray,
        states: States,
        start: FloatArray | None,
        *,
        row_weight: FloatArray | None = None,
        trace: bool = False,
    ) -> tuple[Solution, BoundGradient | None]:
        """Solve a block of rows, and with `row_weight` differentiate the weighted sum of their bounds.

        Parameters
        ----------
        model, bias : Model, FloatArray
            The parameters of a network, as its :attr:`~sbnet.Network.model` and :attr:`~sbnet.Network.bias` have them;
            learning changes them at every step, and makes a network of them after an epoch.
        states, start, trace : as in :meth:`Solver.solve`
        row_weight : ndarray of shape (n,), optional
            Without it there is no gradient.

        Returns
        -------
        Solution
        BoundGradient or None
        """


def check_states(solver: object, network: Network) -> None:
    """Does it know variables with more than two states, and tables? A solver says so by ``knows_states = True``."""
    if not getattr(solver, "knows_states", False):
        network.check_binary(f"{type(solver).__name__}()", "MeanField(), Gibbs() and exact_posterior() know them")


def check_solver(solver: object) -> None:
    """Can it answer rows? A class in place of one of its instances cannot."""
    _check(solver, "solve", "give a solver, such as sbnet.MeanField() or sbnet.Gibbs()")


def check_differentiable(solver: object) -> None:
    """Can it answer rows and tell the gradient of its bound?"""
    check_solver(solver)
    _check(solver, "maximise", "learning needs a solver whose bound has a gradient, such as sbnet.MeanField()")


def _check(solver: object, method: str, way_out: str) -> None:
    checks.no_class("solver", solver)
    if not callable(getattr(solver, method, None)):
        raise ParameterError(f"solver is {solver!r}; {way_out}")
