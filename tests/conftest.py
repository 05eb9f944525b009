"""Settings that every test runs under."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

# Compiled kernels are cached by the file they stand in; a kernel they call may have changed in another. So the tests
# keep a cache for each state of the kernels.
_ROOT = Path(__file__).parents[1]
_SOURCES = sorted((_ROOT / "src/sbnet/kernels").glob("*.py"))
_STATE = hashlib.sha256(b"".join(path.read_bytes() for path in [*_SOURCES, _ROOT / "src/sbnet/_types.py"])).hexdigest()
os.environ.setdefault("NUMBA_CACHE_DIR", str(_ROOT / ".cache" / f"numba-{_STATE[:12]}"))

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

import sbnet as sb  # noqa: E402
from strategies import INTERPRETED  # noqa: E402

# A first example may compile a kernel, so no example has a deadline.
common = {"deadline": None, "print_blob": True, "max_examples": 5 if INTERPRETED else 100}
settings.register_profile("local", **common)
settings.register_profile("ci", **common, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture
def sprinkler() -> sb.Network:
    """The textbook network: rain and a sprinkler wet the lawn, and a wet lawn is slippery."""
    edges = {("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5, ("wet", "slippery"): -0.5}
    return sb.from_edges(edges, bias={"rain": -1.0, "wet": -2.0, "slippery": 0.25})
