"""A small clinic written by hand, to try things on."""

from __future__ import annotations

from pathlib import Path

from sbnet.files import read
from sbnet.model.network import Network


def clinic_path() -> Path:
    """Where the file of the small clinic stands: a TOML text to read, to copy and to change.

    It has fifteen causes and thirty findings. All its numbers are made up: nothing in it is medical knowledge.

    Examples
    --------
    >>> from sbnet.datasets import clinic_path
    >>> print(clinic_path().read_text(encoding="utf-8").split("\\n")[0])
    # A made-up clinic: fifteen causes and thirty findings of a walk-in practice.
    """
    return Path(__file__).with_name("clinic.toml")


def example_clinic() -> Network:
    """The small clinic: fifteen causes and thirty findings, with notes. All its numbers are made up.

    Examples
    --------
    >>> from sbnet.datasets import example_clinic
    >>> clinic = example_clinic()
    >>> clinic.notes["short-breath"].about
    'shortness of breath'
    """
    return read(clinic_path())
