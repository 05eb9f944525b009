"""Settings that every test runs under."""

from __future__ import annotations

import os
import zlib
from typing import Any

os.environ.setdefault("MPLBACKEND", "Agg")

import numpy as np
import pytest
from hypothesis import settings

import sbnet as sb
from sbnet.certificates import enclosure
from sbnet.inference.solvers.enumeration import Sums
from strategies import INTERPRETED

# A first example may compile a kernel, so no example has a deadline.
common = {"deadline": None, "print_blob": True}
settings.register_profile("local", **common, max_examples=5 if INTERPRETED else 60)
settings.register_profile("ci", **common, max_examples=3 if INTERPRETED else 32, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_configure(config: pytest.Config) -> None:
    """Compiled kernels let whole numbers wrap and quotients overflow in silence; so should those that are not."""
    if INTERPRETED:
        config.addinivalue_line("filterwarnings", "ignore:overflow encountered:RuntimeWarning")


class Seeds:
    """In CI, what asks for fresh random numbers gets the same ones every time: a test passes or fails, never both."""

    plain = staticmethod(np.random.default_rng)
    drawn = np.random.SeedSequence(0)

    @classmethod
    def default_rng(cls, seed: Any = None) -> np.random.Generator:
        return cls.plain(cls.drawn.spawn(1)[0] if seed is None else seed)


if os.environ.get("CI"):
    np.random.default_rng = Seeds.default_rng


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if os.environ.get("CI"):
        seed = zlib.crc32(item.nodeid.encode())
        Seeds.drawn = np.random.SeedSequence(seed)
        np.random.seed(seed)  # noqa: NPY002, scikit-learn asks the old generator


@pytest.fixture
def sprinkler() -> sb.Network:
    """The textbook network: rain and a sprinkler wet the lawn, and a wet lawn is slippery."""
    edges = {("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5, ("wet", "slippery"): -0.5}
    return sb.from_edges(edges, bias={"rain": -1.0, "wet": -2.0, "slippery": 0.25})


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, int]]:
    """The evidence of every row that mean field theory or a sum over all states is asked for, by name, as it comes."""
    rows: list[dict[str, int]] = []
    for kind in (sb.MeanField, Sums):

        def solve(self, network, states, *, _plain=kind.solve, **options):
            rows.extend({network.names[i]: int(row[i]) for i in np.flatnonzero(row >= 0)} for row in states)
            return _plain(self, network, states, **options)

        monkeypatch.setattr(kind, "solve", solve)
    return rows


@pytest.fixture
def bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is summed exactly, so that small networks, whose ln P is known, take the way of large ones."""
    for name, effort in enclosure.EFFORTS.items():
        monkeypatch.setitem(enclosure.EFFORTS, name, effort._replace(exact_up_to=0))
    monkeypatch.setattr(enclosure, "_GROUP", 0)
