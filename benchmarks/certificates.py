"""How wide the interval for ln P is, by method and by time: three networks of different kinds."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import sbnet as sb
from sbnet.bounds import upper_bound
from sbnet.certificates import certify
from sbnet.datasets import load_digits

from .report import NONE, Table, say, seconds

CASES = ("2 × 4 × 6, ±2", "8 × 24 × 64, learned from threes", "500 × 20, ±0.3")
Method = Callable[[sb.Network, np.ndarray], float]
LOWER: dict[str, Method] = {
    "mean field, the paper's ξ": lambda net, v: sb.infer(net, v, solver=sb.MeanField(log_term="xi")).bound,
    "mean field": lambda net, v: sb.infer(net, v).bound,
    "4 units enumerated": lambda net, v: sb.infer(net, v, solver=sb.Conditioned(_widest(net, 4))).bound,
    "7 units enumerated": lambda net, v: sb.infer(net, v, solver=sb.Conditioned(_widest(net, 7))).bound,
    "mixture of 2": lambda net, v: sb.infer(net, v, solver=sb.Mixture(2)).bound,
}
UPPER: dict[str, dict[str, Any]] = {
    "upper bound, lines": {"table_up_to": 0},
    "upper bound, tables of 4": {"table_up_to": 4},
    "upper bound, 4 units enumerated": {"table_up_to": 4, "condition": 4},
}


def table() -> list[Table]:
    return [_distances(), _certificates()]


def _widest(network: sb.Network, k: int) -> list[int]:
    """The k units with the largest weights to their children."""
    reach = np.bincount(network.graph.parent, network.weight**2, network.n_units)
    return [int(i) for i in np.argsort(-reach)[:k]]


@cache
def _cases() -> list[tuple[str, sb.Network, np.ndarray]]:
    """Two random networks and a sample of each; one that was learned as in the paper, and a test image."""
    digits = load_digits()
    small, wide = sb.layered((2, 4, 6), rng=0, scale=2.0), sb.layered((500, 20), rng=0, scale=0.3)
    threes = sb.fit(sb.layered((8, 24, 64), rng=0), digits.train[digits.train_target == 3], rng=0).network
    patterns = [sb.sample(small, 1, rng=0)[0, -6:], digits.test[digits.test_target == 3][0]]
    return list(zip(CASES, (small, threes, wide), [*patterns, sb.sample(wide, 1, rng=0)[0, -20:]], strict=True))


def _truth(network: sb.Network, pattern: np.ndarray) -> float:
    """ln P, or a guess at it that is much better than any bound."""
    try:
        return float(sb.log_likelihood(network, pattern, limit=20))
    except sb.errors.TooManyHiddenError:
        return float(sb.estimate(network, pattern, samples=200, method="annealed", steps=300).log_probability)


def _bound(network: sb.Network, pattern: np.ndarray, method: str) -> float:
    if method in LOWER:
        return LOWER[method](network, pattern)
    options = dict(UPPER[method])
    if "condition" in options:  # by name: choosing the units costs more than the bound
        options["condition"] = _widest(network, options["condition"])
    return float(upper_bound(network, pattern, exact_up_to=0, **options).bound)


def _distances() -> Table:
    cells: dict[str, list[str]] = {name: [] for name in [*LOWER, *UPPER]}
    _, network, pattern = _cases()[0]
    for method in cells:  # compile
        _bound(network, pattern, method)
    for name, network, pattern in _cases():
        truth = _truth(network, pattern)
        for method, found in cells.items():
            say(f"certificates: {name}, {method}")
            start = time.perf_counter()
            value = _bound(network, pattern, method)
            found.append(f"{abs(value - truth):.3f}; {seconds(time.perf_counter() - start)}")
    return Table(
        "certificates: distance of each bound from ln P, in nats, and its time",
        ("", *CASES),
        [(name, *values) for name, values in cells.items()],
        ("One pattern each. ln P of the two large networks is an estimate by annealed sampling.",),
    )


def _certificates() -> Table:
    rows = []
    _, network, pattern = _cases()[0]
    certify(network, pattern, proven=True)  # compile
    for effort in ("fast", "normal", "high"):
        for proven in (False, True):
            cells = []
            for name, network, pattern in _cases():
                if proven and effort == "high":
                    cells.append(NONE)
                    continue
                say(f"certificates: {name}, {effort}")
                start = time.perf_counter()
                gap = certify(network, pattern, effort=effort, proven=proven).gap
                cells.append(f"{gap:.3g}; {seconds(time.perf_counter() - start)}")
            rows.append((f"{effort}, proven" if proven else effort, *cells))
    return Table(
        "certificates: gap of certify() in nats, and its time",
        ("effort", *CASES),
        [row for row in rows if set(row[1:]) != {NONE}],
        ("The first network is small enough to be summed. Samples for the guess are included.",),
    )
