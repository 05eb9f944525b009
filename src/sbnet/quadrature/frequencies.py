"""How many frequencies ln(1 + e^x) takes: see `kernels.terms.exact`."""

from __future__ import annotations

import math

MAX_NODES = 512
"""Frequencies of a factor with the exact term; where it would need more, another term takes its place."""

OMEGA = 5.0  # where the sum over frequencies ends; what is left is bounded and added
MARGIN = 15.0  # aliases of the sum are below e^-15 / 2 for |x| in the expected range
FAR = 20.0  # beyond it ln(1 + e^x) is straight
_BERNSTEIN = 16.0


def nodes(low: float, high: float, mean: float, variance: float, largest: float, squares: float) -> int:
    """How many frequencies give about 1e-7; 0 if x stays far from 0.

    x lies between `low` and `high`, and but for a probability of 2 e^-16 (Bernstein's inequality) within t of its mean,
    t^2 = 2 u (variance + largest t / 3) with u = 16. The weights of a parent's states, 0 among them, have a range:
    `largest` is the largest of these. Aliases are about <e^|x|> e^-s, and that mean is at most
    2 e^(|mean| + squares / 8) (Hoeffding's lemma), `squares` being the sum of the squares of all ranges.
    """
    if low > FAR or high < -FAR:
        return 0
    third = largest * _BERNSTEIN / 3.0
    reach = third + math.sqrt(third * third + 2.0 * variance * _BERNSTEIN)
    low, high = max(low, mean - reach), min(high, mean + reach)
    return math.ceil(OMEGA * (min(max(-low, high, 0.0), abs(mean) + squares / 8.0) + MARGIN) / (2.0 * math.pi))
