"""Networks of other libraries, and of their files: networkx, pgmpy, pyAgrum; how near a table is to a unit."""

from __future__ import annotations

from sbnet.files import from_pgmpy, from_pyagrum, to_pgmpy, to_pyagrum
from sbnet.model.build import from_networkx, to_networkx
from sbnet.model.probabilities import nearest

__all__ = [
    "from_networkx",
    "from_pgmpy",
    "from_pyagrum",
    "nearest",
    "to_networkx",
    "to_pgmpy",
    "to_pyagrum",
]
