"""The network as samplers read it, and draws from it, one complete state after another."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sbnet._types import FloatArray, Model, States
from sbnet.kernels.codes import SIGMOID
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.structs import struct
from sbnet.kernels.thresholds import sigmoid

variable_t = struct(
    ("gate", "i8"),
    ("states", "i8"),  # how many it has
    ("threshold", "i8"),  # its first one
    ("parent", "i8"), ("parent_end", "i8"),  # its parents
    ("edge", "i8"), ("edge_end", "i8"),  # its edges to its children: for `chains`
)  # fmt: skip
parent_t = struct(
    ("variable", "i8"),
    ("block", "i8"),  # its first weight: thresholds of the child by states of the parent from 1 on
    ("width", "i8"),  # weights of each threshold
)


def generative(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """The variables, and the parents of all of them."""
    variables, parents = np.zeros(len(model.gate), variable_t), np.zeros(len(model.parent), parent_t)
    parents["variable"], parents["block"] = model.parent, model.block[:-1]
    parents["width"] = model.n_states[model.parent] - 1
    variables["gate"], variables["states"], variables["threshold"] = model.gate, model.n_states, model.threshold[:-1]
    variables["parent"], variables["parent_end"] = model.indptr[:-1], model.indptr[1:]
    return variables, parents


@inner
def _input(
    one: Any, level: int, parents: np.ndarray, weight: FloatArray, bias: FloatArray, states: States, r: int
) -> float:
    """x of a threshold in row r."""
    x = bias[one.threshold + level - 1]
    for e in range(one.parent, one.parent_end):
        parent = parents[e]
        s = states[r, parent.variable]
        if s > 0:
            x += weight[parent.block + (level - 1) * parent.width + s - 1]
    return x


@kernel
def draw_rows(
    variables: np.ndarray, parents: np.ndarray, weight: FloatArray, bias: FloatArray, uniform: FloatArray,
    states: States,
) -> None:  # fmt: skip
    """Fill in the entries of `states` that are -1, one variable after another: k or more if below P(v >= k)."""
    for r in range(len(states)):
        for v in range(len(variables)):
            one, k, p, x = variables[v], 0, 1.0, 0.0
            if states[r, v] >= 0:
                continue
            if one.gate == SIGMOID:  # P(v >= k) is a product over thresholds, from the first one on
                for l in range(1, one.states):  # noqa: E741 (the letter of the definition)
                    p *= sigmoid(_input(one, l, parents, weight, bias, states, r)) if k == l - 1 else 0.0
                    k = l if uniform[r, v] < p else k
            else:  # of a noisy-OR variable 1 - e^-x, with the sum of the inputs from the last one to k
                for l in range(one.states - 1, 0, -1):  # noqa: E741
                    x += max(_input(one, l, parents, weight, bias, states, r), 0.0)
                    k = l if k == 0 and uniform[r, v] < -math.expm1(-x) else k
            states[r, v] = k
