"""Data that comes with the package: the paper's handwritten digits."""

from __future__ import annotations

from sbnet.datasets.digits import Digits, load_digits

__all__ = ["Digits", "load_digits"]
