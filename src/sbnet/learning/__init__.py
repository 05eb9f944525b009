"""Learning: gradient ascent on the bound, from tables, streams and partitions; regressions; wake-sleep."""

from __future__ import annotations

from sbnet.learning.ascent import fit
from sbnet.learning.gradients import Gradient, gradient
from sbnet.learning.optimizers import SGD, Adam
from sbnet.learning.priors import Gaussian, Laplace
from sbnet.learning.recognition import WakeSleepResult, wake_sleep
from sbnet.learning.results import FitResult

__all__ = [
    "SGD",
    "Adam",
    "FitResult",
    "Gaussian",
    "Gradient",
    "Laplace",
    "WakeSleepResult",
    "fit",
    "gradient",
    "wake_sleep",
]
