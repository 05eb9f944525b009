"""What an SBNDensity chooses by itself: scales of its prior, hidden units, switches; on rows that are held out.

Lateral weights come first. Their regressions are convex, so a path of scales, each started from the last, costs little
more than one of them. Hidden units and switches are then tried on top of the best, and stay if they pay.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from sbnet._types import FloatArray, States
from sbnet.build import add_switches
from sbnet.estimators._rows import Rows, columns, place
from sbnet.graph import Graph
from sbnet.inference import MeanField, infer_many
from sbnet.learning import Adam, FitResult, Laplace, fit
from sbnet.learning.priors import ByEdge
from sbnet.learning.regressions import Design, Regressions, regress_columns, without_edges
from sbnet.network import Network
