"""Learning: climbing the bound."""

from __future__ import annotations

from sbnet.learning.fit import fit
from sbnet.learning.gradients import Gradient, gradient
from sbnet.learning.optimizers import SGD, Adam, Gaussian, Laplace
from sbnet.learning.results import FitResult
from sbnet.learning.wake_sleep import WakeSleepResult, wake_sleep

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
