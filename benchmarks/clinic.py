"""Diagnosis with noisy-OR units: one symptom with many causes, a synthetic clinic, and a public graph of diseases.

The graph is not part of this project. Put ``health_knowledge_graph.csv`` (a line for each disease, with its symptoms
and their probabilities, such as "fever (0.119), chills (0.092)") in a folder and name it in the environment variable
SBNET_TABLES.
"""

from __future__ import annotations

import csv
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import sbnet as sb
from sbnet.datasets import make_clinic

from .report import NONE, Table, race, say, seconds

CAUSES = 200
PRESENT, CASES, TOP = (10, 15, 20, 40), 20, 5
MOST_FOR_QUICKSCORE = 20
SAMPLES, BLOCK = 50_000, 5_000
FILE = "health_knowledge_graph.csv"
PRIOR, LEAK = 0.02, 0.001
DRAWN = 3000  # patients, at most, in search of those with a certain number of symptoms


class Case(NamedTuple):
    """The network of the diseases and the findings that were looked at, what was found, and what it came from."""

    network: sb.Network
    row: np.ndarray
    true: np.ndarray


def table() -> list[Table]:
    return [_one_symptom(), _clinic(), *_graph()]


# One symptom


def _one_symptom() -> Table:
    say(f"one symptom, {CAUSES} causes")
    p = np.random.default_rng(0).uniform(0.05, 0.6, CAUSES)
    net = sb.noisy_or({(f"cause {k}", "symptom"): float(x) for k, x in enumerate(p)}, leak=0.01, prior=0.02)
    rows = np.tile([[np.nan] * CAUSES + [1.0]], (100, 1))
    rows[np.arange(100), np.arange(100)] = 0.0  # one cause excluded in each: no two rows are equal
    ways: dict[str, Callable[[], Any]] = {
        "infer_many, mean field": lambda: sb.infer_many(net, rows, threads=1).bound,
        "log_likelihood, quickscore": lambda: sb.log_likelihood(net, rows, threads=1),
        "upper_bound": lambda: sb.upper_bound(net, rows[:20], settings=sb.solvers.UpperBoundSettings(threads=1)).bound,
    }
    for work in ways.values():
        work()  # compile
    runs = race(ways)
    truth = runs["log_likelihood, quickscore"].result
    lines = [
        (name, f"{np.mean(run.result - truth[: len(run.result)]):+.3f}", seconds(run.processor / len(run.result)))
        for name, run in runs.items()
    ]
    note = "Causes from 0.05 to 0.6, leak 0.01, priors 0.02; the symptom is present, one of the causes is excluded."
    return Table(
        f"clinic: one symptom with {CAUSES} noisy-OR causes", ("", "nats from ln P", "time per row"), lines, (note,)
    )


# A made clinic


def _clinic() -> Table:
    net = make_clinic(rng=0)
    diseases = sum(name.startswith("disease") for name in net.names)
    ways: dict[str, Callable[[Case], Any]] = {
        "mean field": lambda case: sb.infer(case.network, case.row).means,
        "quickscore": _quickscore,
        f"weighting, {SAMPLES:,}": lambda case: weighted(case, diseases, np.random.default_rng(0)),
        "Gibbs, 2 × 100": lambda case: _gibbs(case, 100),
        "Gibbs, 2 × 1,000": lambda case: _gibbs(case, 1000),
    }
    rng = np.random.default_rng(1)
    lines = []
    for present in PRESENT:
        cases = [_draw(net, diseases, present, rng) for _ in range(CASES)]
        some = [name for name in ways if name != "quickscore" or present <= MOST_FOR_QUICKSCORE]
        found = {name: _answers(f"{present} findings: {name}", ways[name], cases) for name in some}
        truth = found["quickscore"][0] if "quickscore" in found else [None] * CASES
        for name, (means, spent) in found.items():
            error = NONE if means is truth else _error(means, truth, diseases)
            lines.append((str(present), name, *_ranking(means, cases, diseases), error, seconds(spent)))
    notes = (
        f"make_clinic(): {diseases} diseases, 4,000 findings. {CASES} patients with three diseases each, drawn evenly, "
        "so that some are rare and hardly show; reported are so many of the findings that are present, and twice as "
        f"many that are absent. first {TOP}: the share of the true diseases that are ranked there; last: the median "
        "rank of the last of the three. error: root mean square over diseases, against quickscore where it answered. "
        "weighting: likelihood weighting, with so many draws; Gibbs: chains and sweeps.",
    )
    columns = ("present", "method", "answered", f"first {TOP}", "last", "error", "time")
    return Table("clinic: true diseases ranked from reported findings", columns, lines, notes)


def _draw(net: sb.Network, diseases: int, present: int, rng: np.random.Generator) -> Case:
    while True:
        true = rng.choice(diseases, 3, replace=False)
        ill = {k: int(k in true) for k in range(diseases)}
        state = sb.sample(net, 1, rng=int(rng.integers(2**31)), do=ill)[0]
        on, off = (np.flatnonzero(state[diseases:] == s) + diseases for s in (1, 0))
        if len(on) >= present:
            break
    seen = np.sort(np.concatenate([rng.choice(on, present, False), rng.choice(off, 2 * present, False)]))
    row = np.concatenate([np.full(diseases, np.nan), state[seen]])
    return Case(net.subnetwork([*range(diseases), *seen.tolist()]), row, true)


def _answers(what: str, work: Callable[[Case], Any], cases: list[Case]) -> tuple[list[Any], float]:
    """The answers to all cases, and the time of one."""
    say(what)
    work(cases[0])  # compile
    start = time.perf_counter()
    return [work(case) for case in cases], (time.perf_counter() - start) / len(cases)


def _quickscore(case: Case) -> Any:
    try:
        return np.asarray(sb.exact_posterior(case.network, case.row, threads=1))
    except sb.errors.TooManyHiddenError:
        return None


def _gibbs(case: Case, samples: int) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.errors.ConvergenceWarning)
        solver = sb.Gibbs(samples=samples, burn_in=samples // 10, chains=2)
        return sb.infer(case.network, case.row, solver=solver).means


def weighted(case: Case, diseases: int, rng: np.random.Generator) -> np.ndarray:
    """Likelihood weighting: draw diseases from their priors, weigh each draw by the probability of what was found.

    Single precision where it does no harm, and one product of matrices for all draws of a block.
    """
    net, row = case.network, case.row[diseases:]
    prior = 1.0 / (1.0 + np.exp(-net.bias[:diseases]))
    theta = net.weight_matrix()[diseases:, :diseases].T.astype(np.float32)
    logs, sums = [], []
    for _ in range(SAMPLES // BLOCK):
        ill = rng.random((BLOCK, diseases), dtype=np.float32) < prior
        x = ill.astype(np.float32) @ theta + net.bias[diseases:]
        log_w = np.where(row == 1, np.log(-np.expm1(-x)), -x).sum(axis=1)
        top = log_w.max()
        w = np.exp(log_w - top)
        logs.append(top + np.log(w.sum()))
        sums.append(w @ ill / w.sum())
    share = np.exp(np.array(logs) - max(logs))
    return share @ np.array(sums) / share.sum()


def _ranking(found: list[Any], cases: list[Case], diseases: int) -> tuple[str, str, str]:
    """How many cases were answered, the share of true diseases ranked first, the median rank of the last of them."""
    ranks = []
    for means, case in zip(found, cases, strict=True):
        if means is not None:
            place = np.empty(diseases, int)
            place[np.argsort(-means[:diseases], kind="stable")] = np.arange(1, diseases + 1)
            ranks.append(np.sort(place[case.true]))
    if not ranks:
        return f"0 of {len(cases)}", NONE, NONE
    near = np.array(ranks)
    return f"{len(near)} of {len(cases)}", f"{np.mean(near <= TOP):.0%}", f"{np.median(near[:, -1]):.0f}"


def _error(found: list[Any], truth: list[Any], diseases: int) -> str:
    apart = [a[:diseases] - b[:diseases] for a, b in zip(found, truth, strict=True) if b is not None]
    return f"{np.sqrt(np.mean(np.square(apart))):.4f}" if apart else NONE


# The public graph


def load_graph() -> sb.Network | None:
    """Diseases above their symptoms, if the file is there."""
    path = Path(os.environ.get("SBNET_TABLES", ".")) / FILE
    if not path.exists():
        return None
    causes = {}
    with path.open(encoding="utf-8", newline="") as lines:
        for disease, symptoms in csv.reader(lines):
            for name, p in re.findall(r"([^,()][^()]*?)\s*\((\d*\.\d+|\d+)\)", symptoms):
                causes[f"disease: {disease.strip()}", f"symptom: {name.strip(' ,')}"] = float(p)
    return sb.noisy_or(causes, leak=LEAK, prior=PRIOR)


def _patients(net: sb.Network, ill: tuple[int, int], counts: Iterable[int]) -> list[tuple[np.ndarray, int]]:
    """For each number of symptoms present, the first patient drawn that has so many."""
    rng, found, wanted = np.random.default_rng(0), {}, set(counts)
    diseases = np.flatnonzero(np.diff(net.graph.indptr) == 0)
    for _ in range(DRAWN):
        true = rng.choice(diseases, rng.integers(ill[0], ill[1] + 1), replace=False)
        state = sb.sample(net, 1, rng=int(rng.integers(2**31)), do={int(k): int(k in true) for k in diseases})[0]
        row = state.astype(np.float64)
        row[diseases] = np.nan
        count = int(np.nansum(row))
        if count in wanted and count not in found:
            found[count] = row
        if len(found) == len(wanted):
            break
    return [(found[count], count) for count in sorted(found)]


def _graph() -> list[Table]:
    net = load_graph()
    if net is None:
        return [Table("clinic: a public graph", ("",), [(f"{FILE} was not found; set SBNET_TABLES to its folder",)])]
    say("public graph: exact sums")
    few = _patients(net, (1, 3), range(1, 14))
    many = _patients(net, (10, 48), range(20, 41, 4))
    sb.log_likelihood(net, few[0][0], threads=1)  # compile
    start = time.process_time()
    truth = np.array([sb.log_likelihood(net, row, threads=1) for row, _ in few])
    spent = (time.process_time() - start) / len(few)
    first, second = [("log_likelihood", "0", "0", seconds(spent))], []
    for name, work in _bounds(net).items():
        say(f"public graph: {name}")
        work(few[0][0])  # compile
        ends, took = _timed(work, [row for row, _ in few])
        first.append((name, _spread(truth - ends[:, 0]), _spread(ends[:, 1] - truth), seconds(took)))
        ends, took = _timed(work, [row for row, _ in many])
        second.append(
            (name, *(_spread(ends[:, k], "{:.1f}") for k in (0, 1)), _spread(ends[:, 1] - ends[:, 0]), seconds(took))
        )
    about = (
        f"{net.n_units} units, {net.n_edges:,} edges; priors {PRIOR}, leaks {LEAK}; all symptoms observed. Mean "
        "(largest) over patients; processor time."
    )
    counts = [", ".join(str(k) for _, k in group) for group in (few, many)]
    return [
        Table(
            "clinic: a public graph of diseases, few symptoms present: nats from ln P",
            ("", "below", "above", "time"),
            first,
            (
                f"{about} One to three diseases; symptoms present: {counts[0]}, one patient each. Bounds do without "
                "exact sums.",
            ),
        ),
        Table(
            "clinic: a public graph of diseases, 20 to 40 symptoms present",
            ("", "lower end", "upper end", "width, nats", "time"),
            second,
            (f"{about} 10 to 48 diseases; symptoms present: {counts[1]}, one patient each.",),
        ),
    ]


def _bounds(net: sb.Network) -> dict[str, Callable[[np.ndarray], tuple[float, float]]]:
    """Ways to bound ln P of the graph, none of which sums over all findings or all causes."""

    def certified(effort: Any) -> Callable[[np.ndarray], tuple[float, float]]:
        def ends(row: np.ndarray) -> tuple[float, float]:
            found = sb.certify(net, row, effort=effort, settings=sb.solvers.CertifySettings(exact_up_to=0, threads=1))
            return found.lower, found.upper

        return ends

    def above(table_up_to: int) -> Callable[[np.ndarray], tuple[float, float]]:
        def ends(row: np.ndarray) -> tuple[float, float]:
            found = sb.upper_bound(
                net, row, exact_up_to=0, table_up_to=table_up_to, settings=sb.solvers.UpperBoundSettings(threads=1)
            )
            return np.nan, found.bound

        return ends

    return {
        "MeanField()": lambda row: (sb.infer(net, row).bound, np.nan),
        "upper_bound, lines": above(0),
        "upper_bound, tables": above(4),
        'certify(effort="fast")': certified("fast"),
        'certify(effort="normal")': certified("normal"),
    }


def _timed(work: Callable[[np.ndarray], tuple[float, float]], rows: list[np.ndarray]) -> tuple[np.ndarray, float]:
    start = time.process_time()
    ends = np.array([work(row) for row in rows])
    return ends, (time.process_time() - start) / len(rows)


def _spread(values: np.ndarray, form: str = "{:.2f}") -> str:
    if np.isnan(values).any():
        return NONE
    return f"{form.format(values.mean())} ({form.format(values[np.abs(values).argmax()])})"
