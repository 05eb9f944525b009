"""Solvers and what a solver of one's own is made of: the protocols, the solution that it returns, its gradient."""

from __future__ import annotations

from sbnet.inference import (
    BoundGradient,
    Conditioned,
    DifferentiableSolver,
    Gibbs,
    MeanField,
    Mixture,
    Solution,
    Solver,
    Structured,
    Xi,
)
from sbnet.inference.solvers.enumeration import Sampled

__all__ = [
    "BoundGradient",
    "Conditioned",
    "DifferentiableSolver",
    "Gibbs",
    "MeanField",
    "Mixture",
    "Sampled",
    "Solution",
    "Solver",
    "Structured",
    "Xi",
]
