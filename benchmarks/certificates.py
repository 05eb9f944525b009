"""How wide the interval for ln P is, by method and by time: three networks of different kinds."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import sbnet as sb
from sbnet.bounds import upper_bound
from sbnet.bounds.margins import log_sum_above, log_sum_below
from sbnet.certificates import branching, certify
from sbnet.certificates.enclosure import How, in_lines
from sbnet.datasets import load_digits
from sbnet.exact.enumeration import Reduced
from sbnet.questions import evidence

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


MARKS = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Seconds of processor time at which branch and bound is looked at."""
DIGITS = 10
"""Test images of each digit."""


def table() -> list[Table]:
    return [_distances(), _certificates(), _closing(), _confidence()]


def _widest(network: sb.Network, k: int) -> list[int]:
    """The k units with the largest weights to their children."""
    reach = np.bincount(network.graph.parent, network.weight**2, network.n_units)
    return [int(i) for i in np.argsort(-reach)[:k]]


def _learned(digit: int) -> sb.Network:
    """A network of the paper's size, learned from 700 images of a digit."""
    digits = load_digits()
    return sb.fit(sb.layered((8, 24, 64), rng=0), digits.train[digits.train_target == digit], rng=0).network


@cache
def _cases() -> list[tuple[str, sb.Network, np.ndarray]]:
    """Two random networks and a sample of each; one that was learned as in the paper, and a test image."""
    digits = load_digits()
    small, wide = sb.layered((2, 4, 6), rng=0, scale=2.0), sb.layered((500, 20), rng=0, scale=0.3)
    threes = _learned(3)
    patterns = [sb.sample(small, 1, rng=0)[0, -6:], digits.test[digits.test_target == 3][0]]
    return list(zip(CASES, (small, threes, wide), [*patterns, sb.sample(wide, 1, rng=0)[0, -20:]], strict=True))


def _truth(network: sb.Network, pattern: np.ndarray) -> float:
    """ln P, or an estimate of it that is much better than any bound."""
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
    subproblems: dict[str, list[str]] = {name: [] for name in [*LOWER, *UPPER]}
    _, network, pattern = _cases()[0]
    for method in subproblems:  # compile
        _bound(network, pattern, method)
    for name, network, pattern in _cases():
        truth = _truth(network, pattern)
        for method, found in subproblems.items():
            say(f"certificates: {name}, {method}")
            start = time.perf_counter()
            value = _bound(network, pattern, method)
            found.append(f"{abs(value - truth):.3f}; {seconds(time.perf_counter() - start)}")
    return Table(
        "certificates: distance of each bound from ln P, in nats, and its time",
        ("", *CASES),
        [(name, *values) for name, values in subproblems.items()],
        ("One pattern each. ln P of the two large networks is an estimate by annealed sampling.",),
    )


def _certificates() -> Table:
    rows = []
    _, network, pattern = _cases()[0]
    certify(network, pattern, proven=True)  # compile
    for effort in ("fast", "normal", "high"):
        for proven in (False, True):
            subproblems = []
            for name, network, pattern in _cases():
                if proven and effort == "high":
                    subproblems.append(NONE)
                    continue
                say(f"certificates: {name}, {effort}")
                start = time.perf_counter()
                gap = certify(network, pattern, effort=effort, proven=proven).gap
                subproblems.append(f"{gap:.3g}; {seconds(time.perf_counter() - start)}")
            rows.append((f"{effort}, proven" if proven else effort, *subproblems))
    return Table(
        "certificates: gap of certify() in nats, and its time",
        ("effort", *CASES),
        [row for row in rows if set(row[1:]) != {NONE}],
        ("The first network is small enough to be summed. Samples for the estimate are included.",),
    )


def _processor(network: sb.Network, pattern: np.ndarray, **options: Any) -> tuple[sb.results.Certificate, float]:
    """A certificate, and the processor time that it took."""
    start = time.process_time()
    found: sb.results.Certificate = certify(network, list(pattern), **options)
    return found, time.process_time() - start


def _curve(network: sb.Network, pattern: np.ndarray) -> list[str]:
    """The gap of branch and bound at each mark, and the number of subproblems; where it ended before, at its end."""
    row, start = evidence.coerce(network, pattern)[0][0], time.process_time()
    first = sb.MeanField().solve(network, row[None, :], start=None, trace=False)
    low, high, now, subproblems = -np.inf, 0.0, "", list[str]()
    for partition in branching.branch(in_lines(Reduced(network, row), first, How("fast", False, 0))):
        while now and len(subproblems) < len(MARKS) and time.process_time() - start > MARKS[len(subproblems)]:
            subproblems.append(now)
        if len(subproblems) == len(MARKS):
            break
        leaves = partition.subproblems()
        low = max(low, log_sum_below(np.array([leaf.lower for leaf in leaves])))
        high = min(high, log_sum_above(np.array([leaf.upper for leaf in leaves])))
        now = f"{high - low:.3g}; {len(leaves):,}"
    return [*subproblems, *[now] * (len(MARKS) - len(subproblems))]


def _closing() -> Table:
    columns = []
    for name, network, pattern in _cases():
        say(f"certificates: branch and bound, {name}")
        if not columns:  # compile
            _curve(network, pattern)
            _processor(network, pattern, confidence=0.999, settings=sb.solvers.CertifySettings(exact_up_to=0))
        column = []
        for effort in ("fast", "normal", "high"):
            found, spent = _processor(
                network, pattern, effort=effort, settings=sb.solvers.CertifySettings(exact_up_to=0, threads=1)
            )
            column.append(f"{found.gap:.3g}; {seconds(spent)}")
        found, spent = _processor(
            network, pattern, confidence=0.999, settings=sb.solvers.CertifySettings(exact_up_to=0, threads=1)
        )
        sure = f"{found.interval[1] - found.interval[0]:.3g}; {seconds(spent)}"
        columns.append([*column, *_curve(network, pattern), sure])
    marks = [f"branch and bound, {mark:g} s" for mark in MARKS]
    names = ["effort fast", "effort normal", "effort high", *marks, "with 99.9 % confidence"]
    return Table(
        "certificates: gap in nats, and the time of each effort, the subproblems and the time of samples",
        ("", *CASES),
        [(name, *row) for name, row in zip(names, zip(*columns, strict=True), strict=True)],
        ("Processor time. Nothing is summed exactly here (exact_up_to=0); by default the first network is.",),
    )


def _confidence() -> Table:
    digits, rows, widths, times = load_digits(), [], list[float](), list[float]()
    _processor(*_cases()[1][1:], confidence=0.999)  # compile
    for digit in range(10):
        say(f"certificates: with confidence, digit {digit}")
        network, mine = _learned(digit), []
        for image in digits.test[digits.test_target == digit][:DIGITS]:
            found, spent = _processor(network, image, confidence=0.999, settings=sb.solvers.CertifySettings(threads=1))
            mine.append((found.interval[1] - found.interval[0], spent, found.gap, found.samples))
        width, spent, gap, samples = np.array(mine).T
        widths, times = [*widths, *width], [*times, *spent]
        numbers = (f"{gap.mean():.2f}", f"{width.mean():.3f}", f"{width.max():.3f}", f"{np.median(samples):,.0f}")
        rows.append((str(digit), *numbers, seconds(spent.mean()), seconds(spent.max())))
    within = np.mean((np.array(widths) <= 0.3) & (np.array(times) <= 2.0))
    return Table(
        f"certificates: 99.9 % confidence, {DIGITS} test images of each digit, 8 × 24 × 64 learned from that digit",
        ("digit", "certain gap", "width", "widest", "samples", "time", "longest"),
        rows,
        (f"At most 0.3 nats wide in at most 2 s of processor time: {100 * within:.0f} % of the images.",),
    )
