"""Learning: the gradient of the bound."""

from __future__ import annotations

from sbnet.learning.gradients import Gradient, gradient

__all__ = ["Gradient", "gradient"]
