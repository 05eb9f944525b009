"""Files: a network in an open, safe format; all that is written is written whole, and all that is read is checked."""

from sbnet.files.formats import read, write
from sbnet.files.network import load, save

__all__ = ["load", "read", "save", "write"]
