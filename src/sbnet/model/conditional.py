"""What a variable does when its parents are in given states: its conditional distribution, in tables."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnet import checks, errors
from sbnet._types import FloatArray, IndexArray, States
from sbnet.errors import NetworkError, hint, not_among
from sbnet.kernels.codes import LEAST, NAMES
from sbnet.model import gates
from sbnet.model.states import NO_YES, find, shown

if TYPE_CHECKING:
    import pandas

_ALL = 5
"""Parents up to which every state is listed: 32 lines fit a screen."""
_COLUMNS = 8
"""States that are printed side by side."""
_WIDE, _NARROW = 120, 16
"""Characters of a line where there is no terminal, and of a label at least."""
_GIVEN = "give a mapping from parents to 0 or 1, or the parents that are on, or a list of either"


@dataclass(frozen=True, eq=False)
class Family:
    """A variable and its parents: names of states, and the numbers of its conditional distribution.

    `bias` has a number for each threshold; `weights` has an array for each parent, thresholds by states of the parent
    from 1 on. A variable with a `table` has none: an axis for each parent, and a last one for its own states.
    """

    name: str
    states: tuple[str, ...]
    gate: int
    parents: tuple[str, ...]
    parent_states: tuple[tuple[str, ...], ...]
    bias: FloatArray
    weights: tuple[FloatArray, ...]
    table: FloatArray | None = None

    def inputs(self, given: States | IndexArray) -> FloatArray:
        """The inputs of all thresholds for states of the parents, rows by parents."""
        x = np.repeat(self.bias[None, :], len(given), axis=0)
        for k, weight in enumerate(self.weights):
            x += np.hstack([np.zeros((len(weight), 1)), weight]).T[given[:, k]]
        return x

    def distribution(self, given: States | IndexArray) -> FloatArray:
        """The probabilities of all states, rows by states, for states of the parents, rows by parents."""
        if self.table is not None:
            rows: FloatArray = self.table[tuple(given.T)] if self.parents else np.tile(self.table, (len(given), 1))
            return rows
        x = self.inputs(given)
        level = np.broadcast_to(np.arange(1, len(self.states)), x.shape)
        p = np.empty((len(x), len(self.states)))
        for k in range(len(self.states)):
            p[:, k] = np.exp(gates.log_part(np.full(x.shape, self.gate, np.int8), level, k, x).sum(axis=1))
        p[p < 2.0 * LEAST] = 0.0  # counts as LEAST, give or take a rounding, and means never
        return p

    def every_row(self) -> IndexArray:
        """All joint states of the parents, the last one's changing fastest."""
        sizes = [len(states) for states in self.parent_states]
        return np.indices(sizes).reshape(len(sizes), math.prod(sizes)).T


@dataclass(frozen=True, eq=False, repr=False)
class Conditional:
    """The distribution of a variable for some states of its parents; ``np.asarray`` gives rows by states.

    Attributes
    ----------
    unit : str
    gate : str
        What the unit is: ``"sigmoid"``, ``"noisy-or"`` or ``"table"``.
    parents : tuple of str
    states : ndarray of int8, shape (n, number of parents)
    p : ndarray of float, shape (n,), or (n, K) for a variable of more than two states
        The probability that the unit is 1 in each of them, or that of each of its states.
    names : tuple of str
        The states of the variable.
    parent_states : tuple of tuples of str
        Those of its parents.
    """

    unit: str
    gate: str
    parents: tuple[str, ...]
    states: States
    p: FloatArray
    names: tuple[str, ...] = NO_YES
    parent_states: tuple[tuple[str, ...], ...] = ()

    def __len__(self) -> int:
        return len(self.p)

    @property
    def probabilities(self) -> FloatArray:
        """The probabilities of all states, rows by states."""
        return self.p if self.p.ndim == 2 else np.column_stack([1.0 - self.p, self.p])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.probabilities, dtype=dtype)

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table: a column for each parent, and the probability, or one for each state."""
        import pandas

        columns: dict[str, Any] = {}
        for k, name in enumerate(self.parents):
            own = self.states[:, k]
            columns[name] = own if len(self.parent_states[k]) == 2 else [self.parent_states[k][s] for s in own]
        if self.p.ndim == 1:
            return pandas.DataFrame(columns | {f"P({self.unit} = 1)": self.p})
        return pandas.DataFrame(
            columns | {f"P({self.unit} = {name})": self.p[:, k] for k, name in enumerate(self.names)}
        )

    @property
    def _on(self) -> bool:
        """Have all parents two states, so that one can say which are on?"""
        return all(len(states) == 2 for states in self.parent_states)

    def _label(self, row: States) -> str:
        """What the parents are, in words."""
        if self._on:
            on = [name for name, s in zip(self.parents, row, strict=True) if s]
            label = " + ".join(on) or "none of its parents"
            return f"all {len(on)} parents" if _ALL < len(on) == len(self.parents) else label
        few = len(self.parents) <= _ALL
        told = [
            f"{name} = {states[s]}"
            for name, states, s in zip(self.parents, self.parent_states, row, strict=True)
            if s or few
        ]
        return ", ".join(told) or "all parents in their first state"

    def _lines(self) -> list[tuple[str, list[str]]]:
        """What the parents are, and the probabilities; most are short, and small ones keep their digits."""
        p = self.p[:, None] if self.p.ndim == 1 else self.p[:, :_COLUMNS]
        return [(self._label(row), list(map(_digits, own))) for row, own in zip(self.states, p.tolist(), strict=True)]

    def _titles(self) -> list[str]:
        if self.p.ndim == 1:
            return []
        left = len(self.names) - _COLUMNS
        return [*self.names[:_COLUMNS], *([f"… {left} more"] if left > 0 else [])]

    def __repr__(self) -> str:
        titles = [errors.short(title, _NARROW) for title in self._titles()]
        lines = ([("", titles)] if titles else []) + self._lines()
        sizes = [max(len(row[k]) for _, row in lines if k < len(row)) for k in range(max(len(row) for _, row in lines))]
        room = (errors.width() or _WIDE) - 4 - sum(sizes) - 2 * (len(sizes) - 1)
        lines = [(errors.short(label, max(room, _NARROW)), row) for label, row in lines]
        width = max(len(label) for label, _ in lines)
        what = f"P({errors.short(self.unit)}{' = 1' if self.p.ndim == 1 else ''})"
        head = f"{what}, {self.gate}, {'with these parents on' if self._on else 'for these states of its parents'}:"
        told = [(label, "  ".join(f"{text:<{sizes[k]}}" for k, text in enumerate(row))) for label, row in lines]
        return "\n".join([head, *(f"  {label:<{width}}  {text}".rstrip() for label, text in told)])

    def _repr_html_(self) -> str:
        left = "style='text-align:left'"
        rows = "".join(
            f"<tr><td {left}>{html.escape(label)}</td>{''.join(f'<td>{p}</td>' for p in row)}</tr>"
            for label, row in self._lines()
        )
        heads = [f"P({self.unit} = 1)"] if self.p.ndim == 1 else [f"P({self.unit} = {name})" for name in self._titles()]
        head = "".join(f"<th>{html.escape(text)}</th>" for text in heads)
        whose = "parents that are on" if self._on else "parents"
        return f"<table><tr><th {left}>{whose} ({self.gate})</th>{head}</tr>{rows}</table>"


def _digits(p: float) -> str:
    digits = ".4f" if p == 0.0 or 1e-3 <= p <= 0.9995 else ".3g" if p < 0.5 else ".6g"
    return f"{p:{digits}}"


def conditional(family: Family, given: Any) -> Conditional:
    """The table for the states `given`: all of a few parents, or none, each alone, and all of many."""
    states, kinds = _chosen(family, given), (family.states, family.parent_states)
    if len(family.states) > 2 or family.table is not None:
        p = family.distribution(states)
        p = p if len(family.states) > 2 else p[:, 1].copy()
        return Conditional(family.name, NAMES[family.gate], family.parents, states, p, *kinds)
    if all(len(names) == 2 for names in family.parent_states):
        x = states @ np.array([weight[0, 0] for weight in family.weights]) + float(family.bias[0])
    else:
        x = family.inputs(states)[:, 0]
    p = np.exp(gates.log_p(np.full(len(x), family.gate, np.int8), 1, x))
    p[p < 2.0 * LEAST] = 0.0  # counts as LEAST, give or take a rounding, and means never
    return Conditional(family.name, NAMES[family.gate], family.parents, states, p, *kinds)


def _chosen(family: Family, given: Any) -> States:
    """Rows of parent states: those asked for, or those that tell most."""
    n, sizes = len(family.parents), [len(states) for states in family.parent_states]
    if given is None:
        if math.prod(sizes) <= 2**_ALL:
            return np.array(list(itertools.product(*map(range, sizes))), dtype=np.int8).reshape(math.prod(sizes), n)
        alone = [[s if k == j else 0 for k in range(n)] for j in range(n) for s in range(1, sizes[j])]
        return np.array([[0] * n, *alone, [size - 1 for size in sizes]], dtype=np.int8)
    rows = [given] if isinstance(given, Mapping) else checks.listed("given", given, _GIVEN)
    states = np.zeros((len(rows), n), dtype=np.int8)
    for r, row in enumerate(rows):
        if isinstance(row, Mapping):
            pairs = list(row.items())
        else:  # parents that are only named are on
            pairs = [(name, True) for name in ([row] if isinstance(row, str) else checks.listed("given", row, _GIVEN))]
        for name, state in pairs:
            if not isinstance(name, str) or name not in family.parents:
                raise not_among(name, family.parents, f"the parents of {family.name!r}")
            k = family.parents.index(name)
            states[r, k] = _state(family.parent_states[k], name, state)
    return states


def _state(names: tuple[str, ...], parent: str, state: Any) -> int:
    """The number of a state of a parent, by its name or, of two, by its number."""
    found = find(names, state)
    if found is None:
        known = "variables are 0 or 1" if names == NO_YES else f"its states are {shown(names)}"
        near = hint(state, names) if isinstance(state, str) else ""
        raise NetworkError(f"parent {parent!r} is given as {checks.shown(state)}; {known}{near}")
    return found
