"""Pictures, with matplotlib: networks, their weights, and what inference answers.

Each function draws into the axes it is given, or into a new figure, and returns the axes. sbnet itself never draws, and
imports matplotlib only here.
"""

from __future__ import annotations

from sbnet.plots.associations import associations
from sbnet.plots.layout import RADIUS
from sbnet.plots.missing import missing
from sbnet.plots.networks import network
from sbnet.plots.parameters import receptive_fields, weights
from sbnet.plots.posteriors import breakdown, means, trace
from sbnet.plots.style import INK, MEANS, NEGATIVE, POSITIVE, WEIGHTS
from sbnet.plots.tornado import tornado

__all__ = [
    "INK",
    "MEANS",
    "NEGATIVE",
    "POSITIVE",
    "RADIUS",
    "WEIGHTS",
    "associations",
    "breakdown",
    "means",
    "missing",
    "network",
    "receptive_fields",
    "tornado",
    "trace",
    "weights",
]
