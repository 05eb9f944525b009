"""What a unit does when its parents are in given states: its conditional distribution, as a table of probabilities."""

from __future__ import annotations

import html
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnet import checks, errors
from sbnet._types import FloatArray, States
from sbnet.errors import NetworkError, not_among
from sbnet.kernels import array_gates as gates
from sbnet.kernels.codes import LEAST

if TYPE_CHECKING:
    import pandas

_ALL = 5
"""Parents up to which every state is listed: 32 lines fit a screen."""
_WIDE, _NARROW = 120, 16
"""Characters of a line where there is no terminal, and of a label at least."""
_GIVEN = "give a mapping from parents to 0 or 1, or the parents that are on, or a list of either"


@dataclass(frozen=True, eq=False, repr=False)
class Conditional:
    """P(unit = 1) for some states of its parents.

    Attributes
    ----------
    unit : str
    gate : str
        What the unit is: ``"sigmoid"`` or ``"noisy-or"``.
    parents : tuple of str
    states : ndarray of int8, shape (n, number of parents)
    p : ndarray of float, shape (n,)
        The probability that the unit is 1 in each of them.
    """

    unit: str
    gate: str
    parents: tuple[str, ...]
    states: States
    p: FloatArray

    def __len__(self) -> int:
        return len(self.p)

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table: a column for each parent, and the probability."""
        import pandas

        columns: dict[str, Any] = {name: self.states[:, k] for k, name in enumerate(self.parents)}
        return pandas.DataFrame(columns | {f"P({self.unit} = 1)": self.p})

    def _lines(self) -> list[tuple[str, str]]:
        """Which parents are on, and the probability; most are short, and small ones keep their digits."""
        lines = []
        for state, p in zip(self.states, self.p, strict=True):
            on = [name for name, s in zip(self.parents, state, strict=True) if s]
            label = " + ".join(on) or "none of its parents"
            label = f"all {len(on)} parents" if _ALL < len(on) == len(self.parents) else label
            digits = ".4f" if p == 0.0 or 1e-3 <= p <= 0.9995 else ".3g" if p < 0.5 else ".6g"
            lines.append((label, f"{p:{digits}}"))
        return lines

    def __repr__(self) -> str:
        room = (errors.width() or _WIDE) - 4 - max(len(p) for _, p in self._lines())
        lines = [(errors.short(label, max(room, _NARROW)), p) for label, p in self._lines()]
        width = max(len(label) for label, _ in lines)
        head = f"P({errors.short(self.unit)} = 1), {self.gate}, with these parents on:"
        return "\n".join([head, *(f"  {label:<{width}}  {p}" for label, p in lines)])

    def _repr_html_(self) -> str:
        left = "style='text-align:left'"
        rows = "".join(f"<tr><td {left}>{html.escape(label)}</td><td>{p}</td></tr>" for label, p in self._lines())
        head = html.escape(f"P({self.unit} = 1)")
        return f"<table><tr><th {left}>parents that are on ({self.gate})</th><th>{head}</th></tr>{rows}</table>"


def conditional(
    unit: str, gate: int, gate_name: str, parents: tuple[str, ...], weight: FloatArray, bias: float, given: Any
) -> Conditional:
    """The table for the states `given`: all of a few parents, or none, each alone, and all of many."""
    states = _chosen(unit, parents, given)
    x = states @ weight + bias
    p = np.exp(gates.log_p(np.full(len(x), gate, np.int8), 1, x))
    p[p < 2.0 * LEAST] = 0.0  # counts as LEAST, give or take a rounding, and means never
    return Conditional(unit, gate_name, parents, states.astype(np.int8), p)


def _chosen(unit: str, parents: tuple[str, ...], given: Any) -> States:
    """Rows of parent states: those asked for, or those that tell most."""
    n = len(parents)
    if given is None:
        if n <= _ALL:
            return np.array(list(itertools.product((0, 1), repeat=n)), dtype=np.int8).reshape(2**n, n)
        return np.concatenate([np.zeros((1, n)), np.eye(n), np.ones((1, n))]).astype(np.int8)
    rows = [given] if isinstance(given, Mapping) else checks.listed("given", given, _GIVEN)
    states = np.zeros((len(rows), n), dtype=np.int8)
    for r, row in enumerate(rows):
        if isinstance(row, Mapping):
            pairs = list(row.items())
        else:  # parents that are only named are on
            pairs = [(name, 1) for name in ([row] if isinstance(row, str) else checks.listed("given", row, _GIVEN))]
        for name, state in pairs:
            if not isinstance(name, str) or name not in parents:
                raise not_among(name, parents, f"the parents of {unit!r}")
            if not isinstance(state, Real | np.bool_) or state not in (0, 1):
                raise NetworkError(f"parent {name!r} is given as {checks.shown(state)}; units are 0 or 1")
            states[r, parents.index(name)] = state == 1
    return states
