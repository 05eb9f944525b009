"""What a solver is: a frozen record of its settings that answers rows; a differentiable one knows the gradient."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from sbnet import checks
from sbnet._types import FloatArray, Model, States
from sbnet.errors import ParameterError
from sbnet.inference.solution import Solution
from sbnet.model.network import Network


class BoundGradient(NamedTuple):
    """The gradient of a weighted sum of bounds: a number for each edge, and one for each unit."""

    weight: FloatArray
    bias: FloatArray


class Solver(Protocol):
    """Anything with this method can be given to :func:`sbnet.infer` and :func:`sbnet.infer_many` as `solver`.

    A solver looks at each row alone: its answer must not depend on the other rows of the block, and equal rows must
    have equal answers. A frozen dataclass of its settings is the natural form; it may be asked by several threads.

    One that says ``knows_states = True`` is also asked about variables with more than two states, and tables: states
    are numbers from 0 on, and means have a column for each state from 1 on, see :attr:`sbnet.Network.columns`.
    """

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """Answer a block of rows, rows by units: 0, 1, or -1 for a unit that is not observed.

        `start` are means to begin with, rows by units, if someone has given any; `trace` asks for the bounds on the
        way. A solver that has no use for them may leave them aside.
        """


class DifferentiableSolver(Solver, Protocol):
    """A solver whose bound has a gradient in weights and biases, so that :func:`sbnet.fit` can learn with it."""

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

        `model` and `bias` are the parameters of a network, as its :attr:`~sbnet.Network.model` and
        :attr:`~sbnet.Network.bias` have them; learning changes them at every step, and makes a network of them after
        an epoch. Without `row_weight` there is no gradient.
        """


def check_states(solver: object, network: Network) -> None:
    """Does it know variables with more than two states, and tables? A solver says so by ``knows_states = True``."""
    if not getattr(solver, "knows_states", False):
        network.check_binary(f"{type(solver).__name__}()", "exact_posterior() knows them")


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
