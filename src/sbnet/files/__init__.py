"""Files: a network in an open, safe format; all that is written is written whole, and all that is read is checked."""

from sbnet.files.agrum import from_pyagrum, to_pyagrum
from sbnet.files.formats import kind_of, read, write
from sbnet.files.pgmpy import from_pgmpy, to_pgmpy

load, save = read, write

__all__ = [
    "from_pgmpy",
    "from_pyagrum",
    "kind_of",
    "load",
    "read",
    "save",
    "to_pgmpy",
    "to_pyagrum",
    "write",
]
