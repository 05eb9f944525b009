"""Bounds on ln P(evidence): from below for any means, from above, and both once more with rounding covered."""

from __future__ import annotations

from sbnet.bounds.lower import Breakdown, lower_bound
from sbnet.bounds.upper import UpperBound, UpperBounds, UpperBoundSettings, upper_bound

__all__ = ["Breakdown", "UpperBound", "UpperBoundSettings", "UpperBounds", "lower_bound", "upper_bound"]
