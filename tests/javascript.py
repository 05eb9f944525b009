"""The scripts of the page in a process of node: lines of JSON in, lines of JSON out."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files

import numpy as np
import pytest

import sbnet as sb
from sbnet.explore.page import contents

DRIVER = """
const local = (net, ids) => new Local(net, ids.causes, ids.findings);
const lines = require("readline").createInterface({ input: process.stdin });
lines.on("line", async line => {
  const { verb, net, rows, ids, units, wanted } = JSON.parse(line), out = [];
  for (const row of rows) {
    let found = null;
    if (verb === "solve") found = Solver.solve(net, row, { tol: 1e-12, maxSweeps: 5000 });
    if (verb === "exact") found = Sums.exact(net, row, wanted);
    if (verb === "impossible") found = Solver.impossible(net, row).length > 0;
    if (verb === "questions") found = await local(net, ids).questions(row);
    if (verb === "reasons") found = await local(net, ids).reasons(row, units);
    if (found && found.means) found.means = Array.from(found.means);
    out.push(found);
  }
  process.stdout.write(JSON.stringify(out) + "\\n");
});
"""


def scripts(*names: str) -> str:
    """The texts of some scripts of the page."""
    return "\n".join((files("sbnet.explore") / name).read_text(encoding="utf-8") for name in names)


class Node:
    """A process that answers one line with another."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def ask(self, verb: str, network: sb.Network, rows, **more) -> list:
        """What the scripts say of each row; NaN or -1 marks what is not observed."""
        listed = [[-1 if np.isnan(s) or s < 0 else int(s) for s in row] for row in rows]
        question = {"verb": verb, "net": contents(network, {}), "rows": listed, **more}
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@contextmanager
def started() -> Iterator[Node]:
    """Node with the scripts loaded; the test is skipped where there is none."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not installed; the browser tests try the same scripts")
    script = scripts("solver.js", "sums.js", "engine.js") + DRIVER
    with subprocess.Popen([program, "-e", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Node(process)
        finally:
            process.stdin.close()
            process.wait(timeout=10)
