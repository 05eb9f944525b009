"""Complete states, sixteen side by side: the inputs that follow from them, draws from the network, and ln P."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from sbnet._types import FloatArray, Model, States
from sbnet.kernels import thresholds
from sbnet.kernels.codes import SIGMOID
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.structs import struct
from sbnet.kernels.vector import exp_minus

Record: TypeAlias = Any  # an element of an array of structs

LANES = 64
"""Complete states side by side: enough that loops along them cost more than what leads to them."""


def lanes(*names: str) -> list[Any]:
    """Fields with a number for each lane."""
    return [(name, "f8", LANES) for name in names]


cell_t = struct(("state", "i8", LANES))  # of a variable
input_t = struct(
    *lanes("x"),  # the input of a threshold
    *lanes("arg", "power"),  # room for `vector`
    bits="power",
)
draw_t = struct(
    *lanes("uniform"),  # random numbers
    *lanes("p"),  # probabilities
    ("seed", "u8", LANES),
    ("state", "i8", LANES),
)
_AT_ONCE = 4  # blocks of rows


@inner(fast=True)
def add_weight(out: Record, cell: Record, state: int, weight: float) -> None:
    """Add a weight to x where the parent is in that state."""
    for i in range(LANES):
        out.x[i] += weight if cell.state[i] == state else 0.0


@inner
def set_inputs(model: Model, known: States, v: int, bias: FloatArray, cells: np.ndarray, inputs: np.ndarray) -> int:
    """x of the thresholds of v, by block: biases, and what parents add that are not in them, those with -1 in `known`.

    Cells are variables by blocks, inputs thresholds by blocks. The number of thresholds is returned.
    """
    first, n, n_blocks = model.threshold[v], model.n_states[v] - 1, cells.shape[1]
    for l in range(n):  # noqa: E741 (the letter of the definition)
        for b in range(n_blocks):
            for i in range(LANES):
                inputs[l, b].x[i] = bias[first + l]
        for e in range(model.indptr[v], model.indptr[v + 1]):
            u = model.parent[e]
            if known[u] < 0:
                width = model.n_states[u] - 1
                for c in range(width):
                    weight = model.weight[model.block[e] + l * width + c]
                    for b in range(n_blocks):
                        add_weight(inputs[l, b], cells[u, b], c + 1, weight)
    return n


@inner(fast=True)
def sigmoid(one: Record, sign: float, out: Record) -> None:
    """p = 1 / (1 + e^-x), or with the sign -1 its complement."""
    for i in range(LANES):
        one.arg[i] = abs(one.x[i])
    exp_minus(one)
    for i in range(LANES):
        out.p[i] = (1.0 if sign * one.x[i] >= 0.0 else one.power[i]) / (1.0 + one.power[i])


@inner
def draw(gate: int, inputs: np.ndarray, n: int, b: int, x: FloatArray, out: Record) -> None:
    """A state in each lane of a block, by the uniform numbers there, from the inputs of n thresholds."""
    if gate == SIGMOID and n == 1:
        sigmoid(inputs[0, b], 1.0, out)
        for i in range(LANES):
            out.state[i] = 1 if out.uniform[i] < out.p[i] else 0
    else:
        for i in range(LANES):
            for l in range(n):  # noqa: E741
                x[l] = inputs[l, b].x[i]
            out.state[i] = thresholds.draw(gate, x[:n], out.uniform[i])


@inner
def probability(gate: int, inputs: np.ndarray, n: int, b: int, state: int, out: Record) -> None:
    """p = P(v = state) in each lane of a block, from the inputs of n thresholds."""
    if gate == SIGMOID and n == 1:
        sigmoid(inputs[0, b], 1.0 if state == 1 else -1.0, out)
    else:
        for i in range(LANES):
            log_p = 0.0
            for l in range(n):  # noqa: E741
                log_p += thresholds.log_part(gate, l + 1, state, inputs[l, b].x[i])
            out.p[i] = math.exp(log_p)


@inner
def widest(model: Model) -> int:
    """How many thresholds a variable has at most."""
    n = 1
    for v in range(len(model.n_states)):
        n = max(n, model.n_states[v] - 1)
    return n


@kernel
def ancestral(model: Model, bias: FloatArray, uniform: FloatArray, states: States) -> None:
    """Fill in the entries of `states` that are -1, variable after variable, from eq. (2)."""
    (n_rows, n), most = states.shape, widest(model)
    cells, inputs, draws = np.zeros((n, _AT_ONCE), cell_t), np.zeros((most, _AT_ONCE), input_t), np.zeros(1, draw_t)
    unknown, x = np.full(n, -1, np.int8), np.empty(most)
    for first in range(0, n_rows, _AT_ONCE * LANES):
        for v in range(n):
            width = set_inputs(model, unknown, v, bias, cells, inputs)
            for b in range(_AT_ONCE):
                row, out = first + b * LANES, draws[0]
                used = min(LANES, n_rows - row)
                for i in range(used):
                    out.uniform[i] = uniform[row + i, v]
                draw(model.gate[v], inputs, width, b, x, out)
                for i in range(used):
                    if states[row + i, v] < 0:
                        states[row + i, v] = out.state[i]
                    cells[v, b].state[i] = states[row + i, v]


@kernel
def log_joint_rows(model: Model, bias: FloatArray, states: States, result: FloatArray) -> None:
    """ln P(S) of each row, eq. (6)."""
    (n_rows, n), unknown = states.shape, np.full(states.shape[1], -1, np.int8)
    cells, inputs = np.zeros((n, _AT_ONCE), cell_t), np.zeros((widest(model), _AT_ONCE), input_t)
    for first in range(0, n_rows, _AT_ONCE * LANES):
        used = min(_AT_ONCE * LANES, n_rows - first)
        for i in range(used):
            result[first + i] = 0.0
            for v in range(n):
                cells[v, i // LANES].state[i % LANES] = states[first + i, v]
        for v in range(n):
            for l in range(set_inputs(model, unknown, v, bias, cells, inputs)):  # noqa: E741
                for i in range(used):
                    x = inputs[l, i // LANES].x[i % LANES]
                    result[first + i] += thresholds.log_part(model.gate[v], l + 1, states[first + i, v], x)
