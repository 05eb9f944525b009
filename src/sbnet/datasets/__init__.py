"""Data that comes with the package, the paper's handwritten digits, and synthetic networks."""

from __future__ import annotations

from sbnet.datasets.clinic import car_path, clinic_path, example_car, example_clinic, make_clinic
from sbnet.datasets.digits import Digits, load_digits

__all__ = ["Digits", "car_path", "clinic_path", "example_car", "example_clinic", "load_digits", "make_clinic"]
