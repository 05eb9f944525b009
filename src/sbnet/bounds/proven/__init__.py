"""Both bounds of a certificate once more, in ball arithmetic: rounding is covered too.

A ball is a number with a proven error. The parameters that floating point found (means, ξ, slopes, weights of Hölder's
inequality) are taken as exact numbers, which they may be, since the bounds hold for all of them; only the bound itself
is evaluated again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from sbnet.checks import how_to_install
from sbnet.errors import ParameterError

PRECISION = 128
"""Bits of a ball's middle."""


def load() -> Any:
    """The module flint, or an error that says where it is to be had."""
    try:
        import flint
    except ImportError:
        what = "proven=True needs ball arithmetic, from python-flint"
        raise ParameterError(f"{what}; {how_to_install('proven')}") from None
    return flint


_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def balls() -> Iterator[Any]:
    """The module flint, at the right precision.

    The precision of flint is one number for the whole process. So one thread at a time works with balls here; whoever
    comes next waits until the precision is again what it was, and keeps it, even if something was raised in between. If
    somebody else has changed it meanwhile, their number stays. No ball is ever wrong for all that: a precision decides
    how wide balls are, not what they hold.
    """
    flint = load()
    with _ONE_AT_A_TIME:
        before, flint.ctx.prec = flint.ctx.prec, PRECISION
        try:
            yield flint
        finally:
            if flint.ctx.prec == PRECISION:
                flint.ctx.prec = before


def round_down(ball: Any) -> float:
    """A number that is not above anything in the ball."""
    return float(np.nextafter(float(ball.lower()), -np.inf))


def round_up(ball: Any) -> float:
    """A number that is not below anything in the ball."""
    return float(np.nextafter(float(ball.upper()), np.inf))


def softplus(z: Any) -> Any:
    """ln(1 + e^z)."""
    return z + (-z).exp().log1p() if z > 0 else z.exp().log1p()


def log_sum(balls: list[Any]) -> Any:
    """ln of the sum of e^x."""
    top = max(balls, key=float).mid()
    total = sum((x - top).exp() for x in balls)
    return top + total.log()
