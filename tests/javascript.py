"""The scripts of the page in a process of node: lines of JSON in, lines of JSON out."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files

import pytest

import sbnet as sb
from sbnet.explore.page import contents

DRIVER = """
const lines = require("readline").createInterface({ input: process.stdin });
const numbered = known => new Map(Object.entries(known).map(([i, s]) => [Number(i), s]));
lines.on("line", async line => {
  const { verb, net, rows, units } = JSON.parse(line), engine = new Local(net), out = [];
  for (const row of rows)
    try {
      out.push(await (units ? engine[verb](numbered(row), units) : engine[verb](numbered(row))));
    } catch (error) {
      out.push({ error: error.constructor.name, message: error.message });
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

    def ask(
        self, verb: str, network: sb.Network, rows: list[dict[int, object]], units: list[int] | None = None
    ) -> list:
        """What the page says of each row of evidence, variables and states by number."""
        question = {"verb": verb, "net": contents(network, {}), "rows": rows, "units": units}
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@contextmanager
def started() -> Iterator[Node]:
    """Node with the scripts loaded; the test is skipped where there is none."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not installed; the browser tests try the same scripts")
    script = scripts("firing.js", "elimination.js", "engine.js") + DRIVER
    with subprocess.Popen([program, "-e", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Node(process)
        finally:
            process.stdin.close()
            process.wait(timeout=10)
