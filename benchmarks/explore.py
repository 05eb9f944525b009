"""How long a click takes: the page of a large made clinic, asked as a browser asks it, finding after finding."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any

import numpy as np

import sbnet as sb
from sbnet.datasets import make_clinic
from sbnet.explore.page import document
from sbnet.explore.server import Served, running

from .report import Table, say, seconds

PATIENTS, FINDINGS = 10, 15
STEPS = ((1, 5), (6, 12), (13, 15))


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
        f"{PATIENTS} sampled patients; from the request to the end of the reply, JSON included. The ranking comes "
        "first; what to ask next and why follow when there is no other click. All are exact.",
    )
    return [Table("explore: a click, 600 causes × 4,000 findings", ("", "median", "slowest"), rows, notes)]


def _row(label: str, spent: list[float]) -> tuple[str, ...]:
    return (label, seconds(float(np.median(spent))), seconds(max(spent)))


def _asked(address: str, verb: str, found: np.ndarray[Any, Any], **more: list[int]) -> float:
    body = json.dumps({"evidence": {str(i): 1 for i in found}} | more).encode()
    request = urllib.request.Request(address + verb, body, {"Content-Type": "application/json"})
    start = time.perf_counter()
    with urllib.request.urlopen(request) as reply:
        json.loads(reply.read())
    return time.perf_counter() - start
