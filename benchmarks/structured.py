"""Where trees inside Q pay: hidden chains that are seen together, step after step, beside the other lower bounds."""

from __future__ import annotations

import itertools
import time

import numpy as np
from scipy.special import logsumexp

import sbnet as sb

from .report import Table, say, seconds

STEPS, CHAINS, OUTPUTS = 50, 3, 6
ROWS = 3
SOLVERS = {
    "factorial": sb.MeanField(),
    "factorial, 20 restarts": sb.MeanField(restarts=20),
    "6 units enumerated, chosen by gain": sb.Conditioned(6),
    "mixture of 3 components": sb.Mixture(3),
    "structured, each chain a group": None,
    "structured, auto": sb.Structured(),
}


def network(strength: float, rng: np.random.Generator) -> sb.Network:
    """Chains that keep their states, and outputs at each step that depend on all of them."""
    edges, bias = {}, {}
    weight = rng.normal(0.0, strength, (OUTPUTS, CHAINS))
    for t, k in itertools.product(range(STEPS), range(CHAINS)):
        bias[f"c{k}.{t}"] = -strength
        if t:
            edges[f"c{k}.{t - 1}", f"c{k}.{t}"] = 2.0 * strength
    for t, o in itertools.product(range(STEPS), range(OUTPUTS)):
        bias[f"x{o}.{t}"] = -0.5 * weight[o].sum()
        edges |= {(f"c{k}.{t}", f"x{o}.{t}"): weight[o, k] for k in range(CHAINS)}
    return sb.from_edges(edges, bias=bias)


def log_likelihood(net: sb.Network, evidence: dict[str, int]) -> float:
    """ln P by the forward algorithm over the joint states of the chains."""
    J, h = net.weight_matrix(), net.bias
    states = np.array(list(itertools.product((0, 1), repeat=CHAINS)))
    alpha, before = np.zeros(1), []
    for t in range(STEPS):
        now = [net.index(f"c{k}.{t}") for k in range(CHAINS)]
        seen = [net.index(f"x{o}.{t}") for o in range(OUTPUTS)]
        x = np.array([evidence[f"x{o}.{t}"] for o in range(OUTPUTS)])
        z = (states if t else np.zeros((1, 0))) @ J[np.ix_(now, before)].T + h[now]
        alpha = logsumexp(alpha[:, None] + _log_p(states[None, :, :], z[:, None, :]).sum(2), axis=0)
        alpha += _log_p(x, states @ J[np.ix_(seen, now)].T + h[seen]).sum(1)
        before = now
    return float(logsumexp(alpha))


def _log_p(state: np.ndarray, z: np.ndarray) -> np.ndarray:
    return state * z - np.logaddexp(0.0, z)


def table() -> list[Table]:
    columns: dict[str, list[str]] = {name: [] for name in SOLVERS}
    for strength in (1.0, 2.0):
        rng = np.random.default_rng(0)
        net = network(strength, rng)
        outputs = [name for name in net.names if name.startswith("x")]
        drawn = sb.sample(net, ROWS, rng=rng)
        rows = [{name: int(row[net.index(name)]) for name in outputs} for row in drawn]
        truth = [log_likelihood(net, row) for row in rows]
        for name, given in SOLVERS.items():
            chains = [[f"c{k}.{t}" for t in range(STEPS)] for k in range(CHAINS)]
            solver = sb.Structured(chains) if given is None else given
            sb.infer(net, rows[0] | {f"c0.{t}": 0 for t in range(STEPS - 2)}, solver=solver)  # compile
            start = time.process_time()
            gap = [exact - sb.infer(net, row, solver=solver).bound for row, exact in zip(rows, truth, strict=True)]
            spent = (time.process_time() - start) / ROWS
            assert min(gap) >= 0.0
            say(f"structured: {name}, couplings {2 * strength:g}: {np.mean(gap):.3f} nats, {spent:.3g} s")
            columns[name] += [f"{np.mean(gap):.3f}", seconds(spent)]
    note = (
        f"{CHAINS} hidden chains of {STEPS} steps, {OUTPUTS} observed units at each step that depend on all three; "
        f"means of {ROWS} drawn patterns. ln P is exact, by a sum over the joint states of the chains."
    )
    heads = ("", "nats below ln P, couplings 2", "processor", "couplings 4", "processor")
    rows_of = [(name, *values) for name, values in columns.items()]
    return [Table("structured: lower bounds for a dynamic network", heads, rows_of, (note,))]
