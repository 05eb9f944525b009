"""Solvers, what a solver of one's own is made of, and the settings of functions that have many."""

from __future__ import annotations

from sbnet.bounds import UpperBoundSettings
from sbnet.certificates import CertifySettings
from sbnet.inference import (
    BoundGradient,
    Conditioned,
    DifferentiableSolver,
    EstimateSettings,
    Gibbs,
    MeanField,
    Mixture,
    Solution,
    Solver,
    Structured,
    Xi,
)

__all__ = [
    "BoundGradient",
    "CertifySettings",
    "Conditioned",
    "DifferentiableSolver",
    "EstimateSettings",
    "Gibbs",
    "MeanField",
    "Mixture",
    "Solution",
    "Solver",
    "Structured",
    "UpperBoundSettings",
    "Xi",
]
