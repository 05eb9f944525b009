"""The records of `columns`: what is known of a network, and what stands side by side while rows are gone through."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from sbnet._types import FloatArray, IndexArray, States
from sbnet.kernels.compiling import inner
from sbnet.kernels.structs import lanes, struct

PLAIN, FRACTION, SUM = range(3)
Record: TypeAlias = Any
"""One record; many are an array."""

group_t = struct(
    ("first", "i8"),  # its first slot
    ("width", "i8"),  # slots of its columns, and of the first, second ... mixture variables of each: a multiple of 16
    ("columns", "i8"),  # how many there are
    ("mixtures", "i8"),  # how many mixture variables each of them has
)
slot_t = struct(
    ("variable", "i8"),  # -1 if nobody has it
    ("level", "i8"),  # l of its threshold
    ("threshold", "i8"),  # where its bias stands
    ("edge", "i8"),  # where its edges from columns begin,
    ("latent_edge", "i8"),  # those from shared latent variables,
    ("edge_end", "i8"),  # and where they end
    ("strength", "i8"),  # of a mixture variable: where its weight to its column stands, else -1
)
edge_t = struct(
    ("parent", "i8"),  # which feature, or which shared latent variable
    ("place", "i8"),  # where its weight stands
)
feature_t = struct(("variable", "i8"), ("state", "i8"))  # a column is in that state

# Sixteen rows side by side
# Of a slot: input; e^-x; is the cell 1? what it adds to exponents
cell_t = struct(*lanes("x", "a", "on", "cost"), bits="a")
# Lost: a missing cell, or inputs that are too large
row_t = struct(*lanes("weight", "lost", "top", "total"), power="top")
# P(row, s) = num / den 2^power
state_t = struct(*lanes("num", "den", "scale"), num_bits="num", den_bits="den", power="scale")
# Sixteen slots side by side
# Of s: e^-(what it contributes to x), and the sum over rows of gradients in x
above_t = struct(*lanes("d", "gradient"))
side_t = struct(*lanes("a", "on", "gradient", "posterior"))  # of a row; P(mixture variable is on, given the row)
# Of a mixture variable with weight J to its column: e^-J, the gradient in J
strength_t = struct(*lanes("k", "gradient"))
# Either
mixed_t = struct(*lanes("p", "k", "u"))  # of m: its probability, product of k of the variables that are on, P(1 | m)


class Columns(NamedTuple):
    """What is known of a network before its parameters are: see the records."""

    groups: np.ndarray  # of group_t
    slots: np.ndarray  # of slot_t
    edges: np.ndarray  # of edge_t
    features: np.ndarray  # of feature_t
    latents: IndexArray  # the thresholds of the shared latent variables


class Task(NamedTuple):
    """Rows of states by variable, and what to do with them.

    States with a share below `least` are left out of gradients and of means of mixture variables. If `careful`,
    columns are multiplied one by one, and those with one mixture variable are treated as those with several: slower,
    but for larger inputs. What becomes of a row does not depend on the rows beside it.
    """

    rows: States
    weight: FloatArray
    least: float
    differentiates: bool
    careful: bool


class Answer(NamedTuple):
    """What is found: ln P of each row, NaN if it was lost; the posterior of joint states of shared latent variables;
    means by slot; gradients of the weighted sum of ln P.
    """

    log_p: FloatArray
    share: FloatArray
    mean: FloatArray
    weight: FloatArray
    bias: FloatArray


class Room(NamedTuple):
    """Where rows are worked on: sixteen of them, but for the first three."""

    on: FloatArray  # features by rows, and a last one that all rows have
    x: FloatArray  # slots by rows: inputs, then the gradients in them
    d: FloatArray  # slots by joint states s: e^-(what s contributes to x)
    most: FloatArray  # by slot: the most that a joint state contributes, up or down
    cells: np.ndarray  # of cell_t, by slot; the last is nobody's
    heads: np.ndarray  # of cell_t: what each latent variable that is on adds to exponents of numerators, after the rest
    states: np.ndarray  # of state_t, by s
    above: np.ndarray  # of above_t, s by slots; the last s is none
    sides: np.ndarray  # of side_t, rows by slots
    strengths: np.ndarray  # of strength_t, by slot
    mixed: np.ndarray  # of mixed_t, by m; the last is for sums
    kept: IndexArray  # the joint states that count in a row
    own: FloatArray  # and their shares


@inner
def form_of(group: Record, careful: bool) -> int:
    """How P of its columns is written: as one sigmoid, as a fraction, or as a sum over states of mixture variables."""
    if group.mixtures == 0:
        return PLAIN
    return FRACTION if group.mixtures == 1 and not careful else SUM
