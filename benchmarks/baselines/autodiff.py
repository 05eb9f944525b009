"""The bound of sbnet, maximised by a general optimiser on automatic gradients (PyTorch, on the CPU).

What someone would write first: logits of all means and of all xi for a batch of rows, Adam or L-BFGS, until the mean
bound comes within `gap` of a target, say the mean bound that coordinate ascent found.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch.nn.functional import logsigmoid, softplus

from sbnet import Network


class Block(NamedTuple):
    """Units with the same hidden parents: a dense matrix of weights, and the places of both ends."""

    parents: torch.Tensor | slice
    units: torch.Tensor | slice
    weight: torch.Tensor  # (units, parents)


class Ascent(NamedTuple):
    """Bounds in nats (n,), seconds of the ascent after a warm-up, steps taken, and whether the target was reached."""

    bounds: NDArray[np.float64]
    seconds: float
    steps: int
    reached: bool


def maximise(
    network: Network,
    X: ArrayLike,
    target: float,
    gap: float = 0.01,
    *,
    optimizer: str = "lbfgs",
    rate: float = 0.3,
    max_steps: int = 500,
    max_seconds: float = 300.0,
    threads: int = 1,
    dtype: torch.dtype = torch.float64,
) -> Ascent:
    """Maximise the bound of all rows together until its mean is at least ``target - gap``.

    The observed units are the last ones of the network, as many as X has columns. `optimizer` is ``"lbfgs"``, the
    faster one on digits by far, or ``"adam"``, whose step is `rate`. A step is one evaluation of bound and gradient.
    The bound has many maxima, so on some rows it settles on another one than coordinate ascent, higher or lower, and a
    small gap may never be reached: look at `reached` before comparing times.
    """
    if optimizer not in ("adam", "lbfgs"):
        raise ValueError(f"optimizer is {optimizer!r}; it is 'adam' or 'lbfgs'")
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        x = torch.as_tensor(np.asarray(X), dtype=dtype)
        problem = Problem(network, x)
        logits = torch.zeros(len(x), problem.n_hidden + network.n_units, dtype=dtype, requires_grad=True)
        # The first step in a process loads half of PyTorch; it is taken on a copy and not counted.
        _ascend(problem, logits.detach().clone().requires_grad_(), np.inf, optimizer, rate, 1, max_seconds)
        start = time.perf_counter()
        steps, reached = _ascend(problem, logits, target - gap, optimizer, rate, max_steps, max_seconds)
        seconds = time.perf_counter() - start
        with torch.no_grad():
            bounds = problem.bounds(logits).double().numpy()
    finally:
        torch.set_num_threads(before)
    return Ascent(bounds, seconds, steps, reached)


def train(
    network: Network, X: ArrayLike, batch_size: int, steps: int, *, rate: float = 0.05, threads: int = 1
) -> float:
    """Seconds for one epoch of learning: `steps` steps of L-BFGS on the logits of a batch, then one on the weights."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        table = torch.as_tensor(np.asarray(X), dtype=torch.float64)
        J = torch.as_tensor(network.weight_matrix()).requires_grad_()
        h = torch.as_tensor(np.array(network.bias)).requires_grad_()
        edges = torch.as_tensor(network.weight_matrix() != 0)
        begin = time.perf_counter()
        for start in range(0, len(table), batch_size):
            x = table[start : start + batch_size]
            problem = Problem(network, x, J.detach(), h.detach())
            logits = torch.zeros(len(x), problem.n_hidden + network.n_units, dtype=x.dtype, requires_grad=True)
            _ascend(problem, logits, np.inf, "lbfgs", 1.0, steps, np.inf)
            gradients = torch.autograd.grad(Problem(network, x, J, h).bounds(logits.detach()).mean(), (J, h))
            with torch.no_grad():
                J += rate * gradients[0] * edges
                h += rate * gradients[1]
        return time.perf_counter() - begin
    finally:
        torch.set_num_threads(before)


class Problem:
    """Rows of evidence for one network, and the bound as a differentiable function of the logits."""

    def __init__(self, network: Network, x: torch.Tensor, J: torch.Tensor | None = None, h: torch.Tensor | None = None):
        self.x = x
        self.n_hidden = network.n_units - x.shape[1]
        J = torch.as_tensor(network.weight_matrix(), dtype=x.dtype) if J is None else J
        h = torch.as_tensor(np.array(network.bias), dtype=x.dtype) if h is None else h
        self.shifted = h + x @ J[:, self.n_hidden :].T  # observed parents are absorbed
        self.blocks, self.settled = _blocks(network, self.n_hidden, J)

    def bounds(self, logits: torch.Tensor) -> torch.Tensor:
        """Eq. (22) with the entropy of eq. (16), for every row."""
        logit, xi = logits[:, : self.n_hidden], torch.sigmoid(logits[:, self.n_hidden :])
        mu = torch.sigmoid(logit)
        means = torch.cat([mu, self.x], dim=1)
        entropy = -(mu * logsigmoid(logit) + (1 - mu) * logsigmoid(-logit)).sum(1)
        z = self.shifted[:, self.settled]
        result = entropy + (means[:, self.settled] * z - softplus(z)).sum(1)
        for block in self.blocks:
            h, x, own = self.shifted[:, block.units], xi[:, block.units], means[:, block.units]
            lp, J = logit[:, block.parents], block.weight
            z = h + mu[:, block.parents] @ J.T
            # ln(1 - mu + mu e^t) = softplus(l + t) - softplus(l), with l the logit of mu
            at_a = lp[:, None, :] - x[:, :, None] * J
            rest = softplus(lp).sum(1, keepdim=True) + x * h
            log_A = softplus(at_a).sum(2) - rest  # eq. (30)
            log_B = softplus(at_a + J).sum(2) + h - rest  # eq. (31)
            result = result + ((own - x) * z - torch.logaddexp(log_A, log_B)).sum(1)
        return result


def _blocks(network: Network, n_hidden: int, J: torch.Tensor) -> tuple[list[Block], torch.Tensor]:
    """Runs of units with equal hidden parents; and the units that have none."""
    runs: list[tuple[tuple[int, ...], list[int]]] = []
    settled = []
    for i in range(network.n_units):
        edges = slice(network.graph.indptr[i], network.graph.indptr[i + 1])
        parents = tuple(j for j in network.graph.parent[edges].tolist() if j < n_hidden)
        if not parents:
            settled.append(i)
        elif runs and runs[-1][0] == parents:
            runs[-1][1].append(i)
        else:
            runs.append((parents, [i]))
    blocks = []
    for parents, units in runs:
        rows, columns = torch.tensor(units), torch.tensor(parents)
        blocks.append(Block(_place(parents), _place(units), J[rows][:, columns].contiguous()))
    return blocks, torch.tensor(settled, dtype=torch.long)


def _place(units: Sequence[int]) -> torch.Tensor | slice:
    """Neighbours as a slice, whose gradient is cheap; others as they are."""
    first, last = units[0], units[-1]
    return slice(first, last + 1) if last - first + 1 == len(units) else torch.tensor(units)


def _ascend(
    problem: Problem,
    logits: torch.Tensor,
    goal: float,
    optimizer: str,
    rate: float,
    max_steps: int,
    max_seconds: float,
) -> tuple[int, bool]:
    steps, mean = 0, -np.inf
    end = time.perf_counter() + max_seconds
    ascent: torch.optim.Optimizer
    if optimizer == "adam":
        ascent = torch.optim.Adam([logits], lr=rate)
    else:
        ascent = torch.optim.LBFGS([logits], lr=1.0, max_iter=5, history_size=10, line_search_fn="strong_wolfe")

    def evaluate() -> torch.Tensor:
        nonlocal steps, mean
        ascent.zero_grad()
        descent = -problem.bounds(logits).sum()
        descent.backward()
        steps += 1
        mean = -descent.item() / len(problem.x)
        return descent

    while steps < max_steps and time.perf_counter() < end:
        if optimizer == "adam":
            evaluate()
            if mean >= goal:
                return steps, True  # the step is not taken: the logits are those that were evaluated
            ascent.step()
        else:
            ascent.step(evaluate)
            with torch.no_grad():
                mean = problem.bounds(logits).mean().item()
            if mean >= goal:
                return steps, True
    return steps, False
