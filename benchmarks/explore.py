"""How long a click takes: the page of a large made clinic, asked as a browser asks it, finding after finding; and what
else is done with a network of ten thousand causes and as many findings."""

from __future__ import annotations

import json
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sbnet as sb
from sbnet.datasets import make_clinic
from sbnet.explore import answers
from sbnet.explore.page import document
from sbnet.explore.server import Served, running

from .report import Table, say, seconds

PATIENTS, FINDINGS = 10, 18
STEPS = ((1, 5), (6, 12), (13, 15), (16, 18))


def table() -> list[Table]:
    net = make_clinic(rng=0)
    served = Served(net, document(net, "a made clinic", {}, server=True), 0)
    clicks: dict[int, list[float]] = {k: [] for k in range(1, FINDINGS + 1)}
    later: dict[str, list[float]] = {"questions": [], "reasons": []}
    with running(served) as address:
        for patient, states in enumerate(sb.sample(net, PATIENTS + 1, rng=1)):
            say(f"explore: patient {patient}")  # the first one compiles, and does not count
            found = np.flatnonzero((states == 1) & (np.diff(net.graph.indptr) > 0))[:FINDINGS]
            for k in range(1, len(found) + 1):
                spent = _asked(address, "answer", found[:k], units=list(range(600)))
                if patient:
                    clicks[k].append(spent)
            for verb, spent_on in later.items():
                spent = _asked(address, verb, found[:8], units=[0, 1, 2, 3, 4])
                if patient:
                    spent_on.append(spent)
    rows = [
        _row(f"ranking, {a} to {b} findings present", [s for k in range(a, b + 1) for s in clicks[k]]) for a, b in STEPS
    ]
    rows += [_row(f"{verb}, 8 findings present", spent) for verb, spent in later.items()]
    notes = (
        f"{PATIENTS} sampled patients; processor time of the request and its reply, JSON included. The ranking comes "
        "first; what to ask next and why follow when there is no other click. All are exact.",
    )
    clicks_table = Table("explore: a click, 600 causes × 4,000 findings", ("", "median", "slowest"), rows, notes)
    return [clicks_table, _large()]


def _large(n: int = 10_000, n_links: int = 700_000) -> Table:
    """A network of n causes and n findings, at random."""
    say("explore: a large network")
    rng = np.random.default_rng(0)
    ends, p = rng.integers(0, n, (n_links, 2)).tolist(), rng.uniform(0.05, 0.9, n_links).tolist()
    prior = {f"disease {k}": float(x) for k, x in enumerate(rng.uniform(1e-5, 1e-3, n))}
    links = {(f"disease {i}", f"finding {j}"): x for (i, j), x in zip(ends, p, strict=True)}
    group = dict.fromkeys(prior, "causes") | {f"finding {j}": "findings" for j in range(n)}
    rows = list[tuple[str, ...]]()

    def spent(what: str, do: Callable[[], Any]) -> Any:
        start = time.process_time()
        found = do()
        rows.append((what, seconds(time.process_time() - start)))
        return found

    net = spent("build", lambda: sb.noisy_or(links, leak=0.02, prior=prior, group=group))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "large.toml")
        spent("write as text", lambda: sb.write(net, path))
        spent("read the text", lambda: sb.read(path))
    sb.single_cause(net, {})
    for k in (4, 8, 12):
        present = {f"finding {j}": 1 for j in range(k)}
        asked = {"evidence": {str(net.index(name)): 1 for name in present}, "units": list(range(n))}
        with_so_many = f"{k} findings present"
        spent(f"single_cause, {with_so_many}", lambda found=present: sb.single_cause(net, found))
        spent(f"contributions, {with_so_many}", lambda found=present: sb.contributions(net, found))
        spent(f"next_question, {with_so_many}", lambda found=present: sb.next_question(net, found))
        spent(f"a click on the page, {with_so_many}", lambda asked=asked: answers.answer(net, asked))
    title = f"explore: a network of {n:,} causes and as many findings, {net.n_edges:,} links"
    return Table(title, ("", "processor time"), rows)


def _row(label: str, spent: list[float]) -> tuple[str, ...]:
    return (label, seconds(float(np.median(spent))), seconds(max(spent)))


def _asked(address: str, verb: str, found: np.ndarray[Any, Any], **more: list[int]) -> float:
    body = json.dumps({"evidence": {str(i): 1 for i in found}} | more).encode()
    request = urllib.request.Request(address + verb, body, {"Content-Type": "application/json"})
    start = time.process_time()
    with urllib.request.urlopen(request) as reply:
        json.loads(reply.read())
    return time.process_time() - start
