"""The records that kernels work on: numba reads them as structs, with a name for every field.

A variable v has K states 0 ... K - 1 and K - 1 *thresholds* l = 1 ... K - 1, each with a linear input

    x_l = h_l + sum over parents u of J_l[u, s_u] ,     J_l[u, 0] = 0 .

Two states have one threshold, and x is the input of the paper's eq. (2). `gates` says what follows from x.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sbnet._types import IndexArray
from sbnet.kernels.kinds import N_KINDS

LANES = 16
"""Factors that are worked on side by side."""


LINE = 64  # bytes of a cache line: records with lanes begin with one, so that no lane is read in two parts


def struct(*fields: Any, **bits_of: str) -> Any:
    """A record of named fields; ``bits="power"`` adds the bits of the numbers `power` as whole numbers, a union."""
    plain = np.dtype(list(fields), align=True)
    named: dict[str, Any] = {name: plain.fields[name][:2] for name in plain.names or ()} if plain.fields else {}
    for bits, name in bits_of.items():
        kind, offset = named[name]
        named[bits] = (np.dtype(("i8", kind.shape)), offset)
    formats, offsets = zip(*named.values(), strict=True)
    size = -(-plain.itemsize // LINE) * LINE if plain.itemsize > LINE else plain.itemsize
    layout: Any = {"names": list(named), "formats": formats, "offsets": offsets, "itemsize": size}
    return np.dtype((np.record, np.dtype(layout, align=True)))


def lanes(*names: str) -> list[Any]:
    """Fields with a number for each lane."""
    return [(name, "f8", LANES) for name in names]


hidden_t = struct(
    ("variable", "i8"),  # its number in the network
    ("states", "i8"),  # how many it has
    ("column", "i8"),  # its first column in Q
    ("column_end", "i8"),
    ("own", "i8"),  # its first factor, or -1
    ("child", "i8"),  # where its children begin, and end
    ("child_end", "i8"),
    ("tile", "i8", N_KINDS),  # where its tiles begin, and end, by kind of term
    ("tile_end", "i8", N_KINDS),
)
factor_t = struct(
    ("threshold", "i8"),  # its number in the network
    ("variable", "i8"),  # likewise
    ("level", "i8"),  # l
    ("gate", "i8"),
    ("hidden", "i8"),  # its hidden variable, or -1 if it is observed
    ("slot", "i8"),  # where its slots begin, and end
    ("slot_end", "i8"),
    ("kind", "i8"),  # which term serves it
    ("block", "i8"),  # where it stands among sixteen
    ("lane", "i8"),
    ("parents", "i8"),  # how many there are
    ("joint", "f8"),  # how many joint states they have
    ("table", "i8"),  # where its numbers begin, if its term keeps a table, and how wide its rows are
    ("width", "i8"),
)
slot_t = struct(
    ("weight", "f8"),
    ("parent", "i8"),  # the hidden variable
    ("column", "i8"),
    ("place", "i8"),  # where its weight stands in the network
)
child_t = struct(
    ("factor", "i8"),
    ("slot", "i8"),  # the first slot of the parent there
    ("place", "i8"),  # which of the factor's parents it is
)


class Problem(NamedTuple):
    """What is left of a network after the exact reductions: evidence absorbed, barren variables dropped.

    It depends on which variables are observed, not on their states. *Hidden* are the variables that are not observed
    and have an observed descendant, parents first. A *factor* is a threshold of a variable, hidden or observed, that
    has hidden parents: only there the input is random. A *column* is a state s >= 1 of a hidden variable; Q has a
    number for each. A *slot* is a column in the input of a factor; those of one parent stand together.
    """

    hidden: np.ndarray  # of hidden_t
    factors: np.ndarray  # of factor_t
    slots: np.ndarray  # of slot_t
    children: np.ndarray  # of child_t
    known: IndexArray  # variables of the network whose parents are all observed
    n_columns: int
