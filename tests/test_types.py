"""What mypy tells a user: the types of answers, and which arguments cannot be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "typed_script.py"
CONFIG = Path(__file__).parents[1] / "pyproject.toml"

pytest.importorskip("mypy")


def mypy(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", str(CONFIG), *arguments],
        cwd=CONFIG.parent,
        capture_output=True,
        text=True,
    )
    return done.stdout


def test_a_users_script_knows_what_comes_back():
    subprocess.run([sys.executable, str(SCRIPT)], check=True)  # what is claimed of types also runs
    assert mypy(str(SCRIPT)) == "Success: no issues found in 1 source file\n"


def test_words_that_are_not_offered_are_refused(tmp_path):
    script = tmp_path / "script.py"
    wrong = [
        'sb.MeanField(log_term="xy")',
        'sb.estimate(net, {}, method="exact")',
        "sb.fit(net, {}, solver=sb.Gibbs())",
    ]
    script.write_text("\n".join(["import sbnet as sb", 'net = sb.from_edges({("a", "b"): 1.0})', *wrong]))
    found = mypy(str(script)).splitlines()
    for number in (3, 4, 5):
        assert any(f"script.py:{number}: error:" in line for line in found)
    assert found[-1] == "Found 3 errors in 1 file (checked 1 source file)"
