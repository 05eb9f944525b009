"""Every exception and warning that sbnet raises.

All of them derive from :class:`SBNetError`, and from the built-in exception a Python programmer would expect.
"""

from __future__ import annotations

import difflib
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from itertools import islice

LONGEST_MESSAGE = 300
_LONGEST_NAME, _MOST_NAMES = 100, 20_000
"""Of names that are compared with a wrong one: a comparison takes the square of their length."""
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, marks that change the direction of writing, other ends of lines, and halves of characters."""


def printable(text: str, kept: str = "\n\t") -> str:
    """The text with escapes, as in ``\\x1b``, in the place of what a terminal would obey; what is `kept` stays."""
    return _UNSEEN.sub(lambda found: found[0] if found[0] in kept else _escape(found[0]), text)


def _escape(character: str) -> str:
    return f"\\x{ord(character):02x}" if ord(character) < 256 else f"\\u{ord(character):04x}"


def in_line(text: str) -> str:
    """A text that stands within a line."""
    return printable(text, kept="")


def cut(text: str, room: int) -> str:
    """A text with its middle left out where it is longer than there is room for: names may differ at either end."""
    if len(text) <= room:
        return text
    end = (room - 1) // 3
    return f"{text[: room - 1 - end]}…{text[len(text) - end :]}"


def short(name: str, room: int = 40) -> str:
    """A name within a sentence."""
    return cut(in_line(name), room)


def width() -> int | None:
    """The width of the terminal; None where standard output is none, and nothing has to be cut."""
    try:
        seen = sys.stdout.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return None
    return shutil.get_terminal_size().columns if seen else None


class SBNetError(Exception):
    """The base of every error raised by sbnet. Its message is short, however long the value that it names, and harmless
    on a terminal, whatever that value is.

    Examples
    --------
    >>> import sbnet as sb
    >>> try:
    ...     sb.infer(sb.from_edges({("rain", "wet"): 2.0}), {"wett": 1})
    ... except sb.errors.SBNetError as error:
    ...     print(f"{type(error).__name__}: {error}")
    UnknownUnitError: evidence names variable 'wett', which is not in the network; did you mean 'wet'?
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(shortened(printable(arg)) if isinstance(arg, str) else arg for arg in args))


class NetworkError(SBNetError, ValueError):
    """A network that cannot be: cycles, duplicate edges, parameters that are not finite, wrong shapes."""


class CycleError(NetworkError):
    """The edges contain a directed cycle; the message shows it. `cycle` begins and ends with the same variable.

    Examples
    --------
    >>> import sbnet as sb
    >>> sb.from_edges({("a", "b"): 1.0, ("b", "a"): 1.0})
    Traceback (most recent call last):
        ...
    sbnet.errors.CycleError: the edges contain a cycle: a -> b -> a
    """

    def __init__(self, text: str = "", cycle: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.cycle = cycle


class UnknownUnitError(SBNetError, KeyError, ValueError):
    """A variable that is not in the network was asked for."""

    def __str__(self) -> str:  # KeyError would print the repr of the message
        return str(self.args[0]) if self.args else ""


class EvidenceError(SBNetError, ValueError):
    """Evidence that names no state of its variable, or does not fit the network."""


class TooManyHiddenError(SBNetError, ValueError):
    """An exact answer would need larger tables, or more terms, than the limit allows."""


class TooRareError(SBNetError, ValueError):
    """Evidence of so low a probability that samples give no answer, where nothing else does."""


class FileFormatError(SBNetError, ValueError):
    """A file that is not a whole, readable network or checkpoint of sbnet."""


class TargetError(SBNetError, OSError, ValueError):
    """A place where no file is written: a device, a pipe or a folder stands there, and would be destroyed."""


class ParameterError(SBNetError, ValueError):
    """An argument outside its range."""


class KindError(ParameterError, TypeError):
    """An argument of a kind that is not taken, such as a number for the name of a file."""


class RowError(SBNetError, IndexError):
    """A row that a batch does not have."""


class TableError(EvidenceError, ParameterError):
    """A table that cannot be read as columns of zeros and ones."""


class WorkerError(SBNetError, RuntimeError):
    """A process of an executor died with work in its hands; the message says what can be done."""


class CodingWarning(UserWarning):
    """A table was read in a way that may surprise; the message names columns that were left out or look odd."""


class ConversionWarning(UserWarning):
    """Probabilities of a table did not add up to one, and were scaled; the message says how far off they were."""


class MissingExtraError(SBNetError, ImportError):
    """A package that this function needs is not installed; the message says how to get it."""


class NearNameWarning(UserWarning):
    """A variable was named that may be a typo: another one has nearly the same name."""


class ImpossibleWarning(UserWarning):
    """Some rows of a table have evidence of probability zero; the message says why."""


class ConvergenceWarning(UserWarning):
    """Some rows stopped before their bound settled; the bounds are valid all the same."""


def shortened(text: str) -> str:
    """The text, or its ends: what is too long is a value, which stands in the middle, before the way out."""
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:160]} … {text[-130:]}"


def enumerated(names: Sequence[str], room: int = 130) -> str:
    """Names for a message, as many as there is room for; the others are counted."""
    shown, used = list[str](), 0
    for name in names:
        used += len(repr(name)) + 2
        if shown and used > room:
            break
        shown.append(repr(name))
    left = len(names) - len(shown)
    if left:
        return f"{', '.join(shown)} and {left:,} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]])) if shown else "none"


def near_name(name: object, names: Iterable[str], likeness: float) -> str | None:
    """The nearest of the names, if one is as like as that; 1 is the same. Long names are no typing errors."""
    wanted = str(name)
    if len(wanted) > _LONGEST_NAME:
        return None
    known = islice((known for known in names if len(known) <= _LONGEST_NAME), _MOST_NAMES)
    by_case = {one.casefold(): one for one in reversed(list(known))}  # case alone is no other name
    near = difflib.get_close_matches(wanted.casefold(), by_case, n=1, cutoff=likeness)
    return by_case[near[0]] if near else None


def hint(name: object, names: Iterable[str], otherwise: str = "", likeness: float = 0.5) -> str:
    """The end of a message about a wrong name: the nearest of those that are known, or else another way out."""
    near = near_name(name, names, likeness)
    return f"; did you mean {near!r}?" if near else f"; {otherwise}" if otherwise else ""


def not_among(name: object, names: Iterable[str], what: str) -> UnknownUnitError:
    """An error for a name that is none of those that are meant, in the network or not: the nearest, or some of them."""
    known = list(names)
    shown = ", ".join(repr(one) for one in known[:4]) + (", …" if len(known) > 4 else "") if known else "none"
    return UnknownUnitError(shortened(f"{name!r} is not one of {what}{hint(name, known, f'these are {shown}')}"))


def unknown_unit(name: object, names: Iterable[str], source: str) -> UnknownUnitError:
    """An error for `name`, with the nearest name in the network, if one is near."""
    return UnknownUnitError(f"{source} names variable {name!r}, which is not in the network{hint(name, names)}")
