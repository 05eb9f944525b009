"""The records that questions are answered with. Nobody has to make one; they are here for type hints and isinstance."""

from __future__ import annotations

from sbnet.bounds import UpperBound, UpperBounds
from sbnet.certificates import Certificate, Certificates, PosteriorIntervals
from sbnet.decisions import Contributions, Influence, NextQuestion, Questions, Sensitivity, SingleCause
from sbnet.exact.means import ExactPosterior, ExactPosteriors
from sbnet.inference import (
    Chains,
    Comparison,
    Estimate,
    Estimates,
    LazyPosteriors,
    MostProbable,
    MostProbableBatch,
    Posterior,
    PosteriorBatch,
    Status,
    Step,
)
from sbnet.learning import FitResult, WakeSleepResult
from sbnet.model.probabilities import Nearest

__all__ = [
    "Certificate",
    "Certificates",
    "Chains",
    "Comparison",
    "Contributions",
    "Estimate",
    "Estimates",
    "ExactPosterior",
    "ExactPosteriors",
    "FitResult",
    "Influence",
    "LazyPosteriors",
    "MostProbable",
    "MostProbableBatch",
    "Nearest",
    "NextQuestion",
    "Posterior",
    "PosteriorBatch",
    "PosteriorIntervals",
    "Questions",
    "Sensitivity",
    "SingleCause",
    "Status",
    "Step",
    "UpperBound",
    "UpperBounds",
    "WakeSleepResult",
]
