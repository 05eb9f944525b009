"""What a solver is: a frozen record of its settings, with one method that answers a block of rows."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from sbnet._types import BoolArray, FloatArray, IndexArray, Settings, States
from sbnet.network import Network


class Solution(NamedTuple):
    """The answers of a solver for a block of rows."""

    bound: FloatArray
    means: FloatArray
    xi: FloatArray
    sweeps: IndexArray
    converged: BoolArray
    trace: FloatArray
    error: FloatArray | None = None
    r_hat: FloatArray | None = None


class Solver(Protocol):
    """Anything with these two can be given to :func:`sbnet.infer` as `solver`.

    A solver looks at each row alone: its answer must not depend on the other rows of the block.
    """

    @property
    def settings(self) -> Settings | None:
        """Which bound the solver climbs, or None if it has no bound."""

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """Answer a block of rows, from the given starting means; keep the trace of the bounds if asked."""
