"""The gates: numbers for them, their names, and the least probability that a noisy-OR has. `thresholds` says the rest.

This module does without the compiler, as `structs` and `kinds` do.
"""

from __future__ import annotations

SIGMOID, NOISY_OR, TABLE = 0, 1, 2
NAMES = ("sigmoid", "noisy-or", "table")
"""The gates by their codes."""

LEAST = 1e-300
"""The smallest probability of a state other than 0 that a noisy-OR variable has; smaller ones count as this."""
