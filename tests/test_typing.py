"""What comes back is known before anything runs: mypy --strict reads a user's script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")

SCRIPT = """
from typing import Any, assert_type

import numpy as np
import pandas
from numpy.typing import NDArray

import sbnet as sb

Floats = NDArray[np.float64]
net = sb.from_edges({("rain", "wet"): 2.0})
one = {"wet": 1}
half = [0.5, 0.5]
frame = pandas.DataFrame({"wet": [1, 0]})
array = np.zeros((3, 2))
rows: list[Floats] = [np.zeros(2)]

assert_type(sb.log_joint(net, {"rain": 0, "wet": 1}), float)
assert_type(sb.log_joint(net, [0, 1]), float)
assert_type(sb.log_joint(net, [[0, 1], [1, 1]]), Floats)
assert_type(sb.log_joint(net, array), float | Floats)
assert_type(sb.log_likelihood(net, one, limit=3), float)
assert_type(sb.log_likelihood(net, [None, 1]), float)
assert_type(sb.log_likelihood(net, frame), Floats)
assert_type(sb.log_likelihood(net, [one, one], threads=1), Floats)
assert_type(sb.log_likelihood(net, rows), Floats)
assert_type(sb.log_likelihood(net, array), float | Floats)
assert_type(sb.kl(net, one, half), float)
assert_type(sb.kl(net, [one], [half]), Floats)
assert_type(sb.exact_posterior(net, one), sb.results.ExactPosterior)
assert_type(sb.exact_posterior(net, one).log_likelihood, float)
assert_type(sb.exact_posterior(net, frame, limit=3), sb.results.ExactPosteriors)
assert_type(sb.exact_posterior(net, frame)["rain"], Any)
assert_type(sb.exact_posterior(net, frame)[0], sb.results.ExactPosterior)
assert_type(sb.exact_posterior(net, frame)[:1], sb.results.ExactPosteriors)
assert_type(sb.exact_posterior(net, array), sb.results.ExactPosterior | sb.results.ExactPosteriors)
means: Floats = sb.exact_posterior(net, one)
assert_type(sb.posterior_intervals(net, one), sb.results.PosteriorIntervals)
assert_type(sb.posterior_intervals(net, one)["rain"], Any)
assert_type(sb.infer(net, one).compare(sb.infer(net, {})), sb.results.Comparison)
assert_type(sb.infer(net, one).enumerated, int)
assert_type(sb.upper_bound(net, frame)[:1], sb.results.UpperBounds)
assert_type(sb.certify(net, frame)[[0]], sb.results.Certificates)
assert_type(sb.estimate(net, frame)[0:1], sb.results.Estimates)
sb.plots.network(net)
sb.estimators.SBNDensity()
sb.datasets.load_digits()
assert_type(sb.exact_pairs(net, frame), Floats)
assert_type(sb.bounds.lower_bound(net, one, half, log_term="exact"), float)
assert_type(sb.bounds.lower_bound(net, [one], [half]), Floats)
assert_type(sb.bounds.lower_bound(net, array, array), float | Floats)
assert_type(sb.upper_bound(net, one, condition=1), sb.results.UpperBound)
assert_type(sb.upper_bound(net, one).bound, float)
assert_type(sb.upper_bound(net, frame), sb.results.UpperBounds)
assert_type(sb.upper_bound(net, array).bound, float | Floats)
assert_type(sb.estimate(net, one, samples=10), sb.results.Estimate)
assert_type(sb.estimate(net, one).error, float)
assert_type(sb.estimate(net, [one]).lower, Floats)
assert_type(sb.estimate(net, array), sb.results.Estimate | sb.results.Estimates)
assert_type(sb.log_likelihood(net, one, do={"rain": 1}), float)
assert_type(sb.log_likelihood(net, [{"wet": (0.1, 0.9)}], do=one), Floats)
assert_type(sb.upper_bound(net, one, do={"rain": 1}), sb.results.UpperBound)
assert_type(sb.estimate(net, one, do={"rain": 1}), sb.results.Estimate)
assert_type(sb.certify(net, one, do={"rain": 1}), sb.results.Certificate)
assert_type(sb.most_probable(net, one), sb.results.MostProbable)
assert_type(sb.most_probable(net, one)["rain"], Any)
assert_type(sb.most_probable(net, frame, limit=3).log_p, Floats)
assert_type(sb.most_probable(net, array), sb.results.MostProbable | sb.results.MostProbableBatch)
assert_type([step.bound for step in sb.steps(net, one, do={"rain": 1})], list[float])
assert_type(sb.infer(net, one, do={"rain": 1}), sb.results.Posterior)
assert_type(sb.certify(net, one, effort="high"), sb.results.Certificate)
assert_type(sb.certify(net, frame), sb.results.Certificates)
assert_type(sb.certify(net, one, confidence=0.999, seconds=10, gap=0.5), sb.results.Certificate)
assert_type(sb.certify(net, one, confidence=0.999).interval, tuple[float, float])
assert_type(sb.certify(net, frame, confidence=0.999).interval, tuple[Floats, Floats])
assert_type(sb.certify(net, array), sb.results.Certificate | sb.results.Certificates)
sb.certify(net, one, effort="most")  # type: ignore[call-overload]
sb.log_likelihood(net, object())  # type: ignore[call-overload]
"""


def mypy(path):
    """What mypy says of a script, by the strict rules of the project, and with what it has read of it already."""
    command = [sys.executable, "-m", "mypy", "--config-file=pyproject.toml", str(path)]
    found = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    return found.stdout + found.stderr


def test_mypy_knows_what_comes_back_to_a_user(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    assert mypy(tmp_path / "script.py").startswith("Success")


def test_a_script_with_a_solver_of_its_own_is_typed_and_runs():
    script = Path(__file__).parent / "typed_script.py"
    assert mypy(script).startswith("Success")
    subprocess.run([sys.executable, str(script)], check=True)


def test_words_and_solvers_that_are_not_offered_are_refused(tmp_path):
    script = tmp_path / "script.py"
    wrong = [
        'sb.MeanField(log_term="xy")',
        'sb.estimate(net, {}, method="exact")',
        "sb.fit(net, [], solver=sb.Gibbs())",
    ]
    script.write_text("\n".join(["import sbnet as sb", 'net = sb.from_edges({("a", "b"): 1.0})', *wrong]))
    found = mypy(script)
    for number in (3, 4, 5):
        assert f"script.py:{number}: error:" in found
    assert "Found 3 errors in 1 file" in found
