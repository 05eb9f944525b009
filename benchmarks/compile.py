"""What the first calls after installation cost: processor time that goes into compiling, each in a new process.

``python -m benchmarks.compile step ...`` is one such process: it takes the steps and prints what each took.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .report import NONE, Table, before, before_note, say, seconds

IMPORT, README, LAYERED = "import sbnet", "infer, two causes", "infer, 8 × 24 × 64"
MORE = ("fit", "certify", "Gibbs")
BUDGET = {README: 6.0, LAYERED: 10.0} | dict.fromkeys(MORE, 4.0)


def table() -> list[Table]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        imported, small = _process(folder / "readme", README)
        rows = [_row(IMPORT, imported), _row(README, small), _row(LAYERED, _process(folder / "layered", LAYERED)[1])]
        for step in MORE:
            shutil.copytree(folder / "layered", folder / step)
            rows.append(_row(step, _process(folder / step, LAYERED, step)[2], label=f"{step}, after that infer"))
        rows.append(_row("warm", sum(_process(folder / "layered", LAYERED)), label="import and infer, later processes"))
    notes = (
        "Processor time of the first call in a new process; the folder for compiled kernels is empty, or holds what "
        f"the same {LAYERED.partition(', ')[0]} left there. Nothing is recorded meanwhile.",
        before_note("compile"),
    )
    return [Table("compile: ready to answer", ("", "time", "budget", "before"), rows, notes)]


def _row(step: str, spent: float, *, label: str | None = None) -> tuple[str, ...]:
    shown = (seconds(value) if value else NONE for value in (BUDGET.get(step), before("compile", step)))
    return (label or step, seconds(spent), *shown)


def _process(folder: Path, *steps: str) -> list[float]:
    """Processor time of importing and of each step, in a new process."""
    say(f"compile: {', '.join(steps)}")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-m", "benchmarks.compile", *steps]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [float(spent) for spent in json.loads(done.stdout)]


def _take(steps: list[str]) -> list[float]:
    start = time.process_time()
    import sbnet as sb

    taken = [time.process_time() - start]
    for step in steps:
        net, evidence = _problem(sb, step)
        calls = {
            "fit": lambda net=net: sb.fit(net, [[0, 1] * 32] * 2, epochs=1, rng=0),
            "certify": lambda net=net, evidence=evidence: sb.certify(net, evidence),
            "Gibbs": lambda net=net, evidence=evidence: sb.infer(net, evidence, solver=sb.Gibbs(samples=4, burn_in=1)),
        }
        start = time.process_time()
        calls.get(step, lambda net=net, evidence=evidence: sb.infer(net, evidence))()
        taken.append(time.process_time() - start)
    return taken


def _problem(sb: Any, step: str) -> tuple[Any, dict[str, int]]:
    if step == README:
        edges = {("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}
        return sb.from_edges(edges, bias={"rain": -1.0, "wet": -2.0}), {"wet": 1}
    return sb.layered((8, 24, 64), rng=0, scale=0.1), {f"x{k}": k % 2 for k in range(64)}


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")  # four samples are few
    print(json.dumps(_take(sys.argv[1:])))
