"""Every exception and warning that sbnet raises.

All of them derive from :class:`SBNetError`, and from the built-in exception a Python programmer would expect.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LONGEST_MESSAGE = 300


class SBNetError(Exception):
    """The base of every error raised by sbnet. Its message is short, however long the value that it names."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(shortened(arg) if isinstance(arg, str) else arg for arg in args))


class NetworkError(SBNetError, ValueError):
    """A network that cannot be: cycles, duplicate edges, parameters that are not finite, wrong shapes."""


class CycleError(NetworkError):
    """The edges contain a directed cycle; the message shows it."""


class UnknownUnitError(SBNetError, KeyError, ValueError):
    """A unit that is not in the network was asked for."""

    def __str__(self) -> str:  # KeyError would print the repr of the message
        return str(self.args[0]) if self.args else ""


class EvidenceError(SBNetError, ValueError):
    """Evidence that is not binary, or does not fit the network."""


class TooManyHiddenError(SBNetError, ValueError):
    """Exact enumeration would need more terms than the limit allows."""


class TooRareError(SBNetError, ValueError):
    """Evidence of so low a probability that samples give no answer, where nothing else does."""


class FileFormatError(SBNetError, ValueError):
    """A file that is not a whole, readable network or checkpoint of sbnet."""


class TargetError(SBNetError, OSError, ValueError):
    """A place where no file is written: a device, a pipe or a folder stands there, and would be destroyed."""


class ParameterError(SBNetError, ValueError):
    """An argument outside its range."""


class TableError(EvidenceError, ParameterError):
    """A table that cannot be read as columns of zeros and ones."""


class WorkerError(SBNetError, RuntimeError):
    """A process of an executor died with work in its hands; the message says what can be done."""


class CodingWarning(UserWarning):
    """A column holds two values other than 0 and 1 or words for them; the message says how they were read."""


class ConversionWarning(UserWarning):
    """A table was read as a unit that is not quite what it says; the message says how far off it is."""


class MissingExtraError(SBNetError, ImportError):
    """A package that this function needs is not installed; the message says how to get it."""


class NearNameWarning(UserWarning):
    """A unit was named that may be a slip of the pen: another one has nearly the same name."""


class ConvergenceWarning(UserWarning):
    """Some rows stopped before their bound settled; the bounds are valid all the same."""


class ApproximationWarning(UserWarning):
    """Means of mean field theory were read where they say nothing: units are states of one variable, or switches."""


def shortened(text: str) -> str:
    """The text, or its ends: what is too long is a value, which stands in the middle, before the way out."""
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:160]} … {text[-130:]}"


def near_name(name: object, names: Iterable[str], likeness: float) -> str | None:
    """The nearest of the names, if one is as like as that; 1 is the same."""
    near = difflib.get_close_matches(str(name), list(names), n=1, cutoff=likeness)
    return near[0] if near else None


def not_among(name: object, names: Iterable[str], what: str) -> UnknownUnitError:
    """An error for a unit that is none of those that are meant, in the network or not: the nearest, or some of them."""
    known = list(names)
    near = near_name(name, known, 0.5)
    shown = ", ".join(repr(one) for one in known[:4]) + (", …" if len(known) > 4 else "")
    hint = f"did you mean {near!r}?" if near else f"these are {shown or 'none'}"
    return UnknownUnitError(shortened(f"{name!r} is not one of {what}; {hint}"))


def unknown_unit(name: object, names: Iterable[str], source: str) -> UnknownUnitError:
    """An error for `name`, with the nearest name in the network, if one is near."""
    near = near_name(name, names, 0.5)
    hint = f"; did you mean {near!r}?" if near else ""
    return UnknownUnitError(f"{source} names unit {name!r}, which is not in the network{hint}")
