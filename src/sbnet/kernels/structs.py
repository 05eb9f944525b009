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

LANES = 16  # factors that are worked on side by side
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


def aligned(shape: int | tuple[int, ...], kind: Any) -> np.ndarray:
    """Zeros that begin with a cache line: lanes that lie in two lines take half as long again."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    raw = np.zeros(size + LINE, np.uint8)
    first = -raw.ctypes.data % LINE
    return raw[first : first + size].view(kind).reshape(shape)


def lanes(*names: str) -> list[Any]:
    """Fields with a number for each lane."""
    return [(name, "f8", LANES) for name in names]


hidden_t = struct(
    ("variable", "i8"),  # its number in the network
    ("states", "i8"),  # how many it has
    ("column", "i8"), ("column_end", "i8"),  # its columns in Q
    ("own", "i8"),  # its first factor, or -1
    ("child", "i8"), ("child_end", "i8"),  # its children
    ("tile", "i8", N_KINDS), ("tile_end", "i8", N_KINDS),  # its tiles, by kind of term
)  # fmt: skip
factor_t = struct(
    ("threshold", "i8"),  # its number in the network
    ("variable", "i8"),  # likewise
    ("level", "i8"), ("gate", "i8"),  # l; the gate of the variable
    ("hidden", "i8"),  # its hidden variable, or -1 if it is observed
    ("slot", "i8"), ("slot_end", "i8"),  # its slots
    ("kind", "i8"),  # which term serves it
    ("block", "i8"), ("lane", "i8"),  # where it stands among sixteen
    ("parents", "i8"), ("joint", "f8"),  # how many there are, and how many joint states they have
    ("table", "i8"), ("width", "i8"),  # where its numbers begin, if its term keeps a table; how wide its rows are
)  # fmt: skip
slot_t = struct(
    ("weight", "f8"),
    ("parent", "i8"), ("column", "i8"),  # the hidden variable, and the column
    ("place", "i8"),  # where its weight stands in the network
)  # fmt: skip
child_t = struct(
    ("factor", "i8"),
    ("slot", "i8"),  # the first slot of the parent there
    ("place", "i8"),  # which of the factor's parents it is
)

block_t = struct(
    *lanes(
        "x",  # <x>, the mean input
        "t",  # the bound on <t(x)>
        "a", "c",  # <a> and <c> of the threshold, see `thresholds`
        "h",  # the bias
        "low", "high",  # the range of x
        "below", "above",  # how far it reaches from the bias
        # of the paper's term
        "xi",  # the parameter of eq. (19)
        "free",  # 1 if it may move, 0 if it is held
        "share_a", "share_b",  # 1 - phi and phi of eq. (32); in a sweep their sum need not be 1
        "product_a", "product_b",  # the products of f_A and f_B, times 2^-exponent
        "exponent_a", "exponent_b",
        "mean_a", "mean_b",  # <x> - low under the two tilted distributions, and the variances there
        "variance_a", "variance_b",
        "gain",  # what the next step of Newton's method promises
        "next_xi",  # where it would have xi
        "old_xi",  # xi before the step that is being tried
        "limit",  # the term there, which it must not exceed after the step
        "f_a", "f_b",  # of a parent with several states
        # of the quadratic and the exact term
        "second",  # <x^2>
        "straight", "curve", "constant",  # t <= constant + straight <x> + curve <x^2> - the sum over frequencies
        "largest", "squares",  # of the weights: the largest, and the sum of their squares
        "alive",  # 0 where x stays so far from 0 that t is straight
        # scratch
        "arg", "power", "power_a", "power_b",
    ),
    ("factor", "i8", LANES),  # -1 in empty lanes
    ("lanes", "i8"),  # sixteen, which the compiler must not know: it would unroll short loops, not make vectors of them
    ("kind", "i8"), ("width", "i8"),  # which term serves it; lanes that are taken
    ("asked", "i8"),  # lanes whose mean input is asked for in a sweep: those of hidden variables
    ("pair", "i8"), ("group", "i8"),  # its first tile from a parent with two states, its first group from others; or -1
    # of the exact term: see `terms.frequencies`
    ("slot", "i8"), ("slot_end", "i8"),  # of its first factor
    ("used", "i8"), ("places", "i8"), ("kept", "i8"),  # places that count, that it has, and that it has room for
    ("first", "i8"),  # where they begin
    ("by", "f8"),  # what the weights of the frequencies are multiplied by
)  # fmt: skip
tile_t = struct(
    *lanes(
        "weight",
        "e_a", "e_b",  # of the paper's term: E_A and E_B
        "mantissa", "exponent",  # e^-W = mantissa 2^exponent, which never underflows
        "e_half",  # e^{-W/2}
        "from_least", "from_most",  # of a state of a parent with more than two: J_s - least, most - J_s
    ),
    ("slot", "i8", LANES),  # of each edge; -1 where there is none
    ("block", "u4"),
    ("parent", "u4"),  # the hidden variable
    ("column", "u4"),  # its first column in Q
    ("states", "i8"),  # how many it has
    ("state", "i8"),  # which of them this tile is for, in a group; 1 for a pair
    ("after", "i8"),  # the next tile of the same block, or the first of the next group; -1 at the end
)  # fmt: skip


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
