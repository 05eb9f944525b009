"""A network as people have it in files, asked at once: states exclude one another, and the command agrees."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest

import sbnet as sb
from sbnet.cli import main

WARD = """\
network ward { }
variable asia { type discrete [ 2 ] { yes, no }; }
variable smoking { type discrete [ 3 ] { never, former, current }; }
variable tub { type discrete [ 2 ] { yes, no }; }
variable lung { type discrete [ 3 ] { none, early, late }; }
variable either { type discrete [ 2 ] { yes, no }; }
variable xray { type discrete [ 3 ] { clear, shadow, mass }; }
probability ( asia ) { table 0.01, 0.99; }
probability ( smoking ) { table 0.5, 0.2, 0.3; }
probability ( tub | asia ) { (yes) 0.05, 0.95; (no) 0.01, 0.99; }
probability ( lung | smoking ) { (never) 0.99, 0.007, 0.003; (former) 0.95, 0.03, 0.02; (current) 0.9, 0.06, 0.04; }
probability ( either | tub, lung ) {
  (yes, none) 1.0, 0.0; (yes, early) 1.0, 0.0; (yes, late) 1.0, 0.0;
  (no, none) 0.0, 1.0; (no, early) 1.0, 0.0; (no, late) 1.0, 0.0;
}
probability ( xray | either, lung ) {
  (yes, none) 0.2, 0.7, 0.1; (yes, early) 0.1, 0.6, 0.3; (yes, late) 0.02, 0.18, 0.8;
  (no, none) 0.95, 0.04, 0.01; (no, early) 0.1, 0.6, 0.3; (no, late) 0.02, 0.18, 0.8;
}
"""


@pytest.fixture
def ward(tmp_path):
    (tmp_path / "ward.bif").write_text(WARD)
    return tmp_path / "ward.bif"


def enumerated(network, evidence):
    """Posteriors by a sum over all joint states, from the tables as they stand."""
    total = {name: dict.fromkeys(network.states[name], 0.0) for name in network.names}
    for joint in itertools.product(*(network.states[name] for name in network.names)):
        states = dict(zip(network.names, joint, strict=True))
        if any(states[name] != state for name, state in evidence.items()):
            continue
        p = 1.0
        for name in network.names:
            at = tuple(network.states[u].index(states[u]) for u in (*network.parents(name), name))
            p *= network.tables[name][at]
        for name, state in states.items():
            total[name][state] += p
    whole = sum(total["asia"].values())
    return {name: {state: p / whole for state, p in of.items()} for name, of in total.items()}


@pytest.mark.parametrize("evidence", [{"xray": "mass"}, {"either": "yes", "smoking": "never"}, {"asia": "yes"}])
def test_exclusive_states_sum_to_one_and_agree_with_a_sum_over_all_states(ward, evidence, capsys):
    network = sb.read(ward)
    truth, exact = enumerated(network, evidence), sb.exact_posterior(network, evidence)
    assert main(["infer", str(ward), *(f"{k}={v}" for k, v in evidence.items()), "--json", "--about",
                 *(name for name in network.names if name not in evidence)]) == 0  # fmt: skip
    told = {unit["name"]: unit["mean"] for unit in json.loads(capsys.readouterr().out)["units"]}
    for name in network.names:
        states = network.states[name]
        found = exact[name] if len(states) > 2 else {states[0]: 1.0 - exact[name], states[1]: exact[name]}
        assert sum(found.values()) == pytest.approx(1.0, abs=1e-12)
        assert found == pytest.approx(truth[name], abs=1e-12)
        if name in told:
            asked = told[name] if len(states) > 2 else {states[0]: 1.0 - told[name], states[1]: told[name]}
            assert asked == pytest.approx(truth[name], abs=1e-12)


def test_mean_field_theory_bounds_it_though_a_table_has_zeros(ward):
    network = sb.read(ward)
    for evidence in ({"xray": "mass"}, {"either": "yes"}, {"either": "no", "xray": "mass"}):
        found = sb.infer(network, evidence)
        assert found.bound <= sb.log_likelihood(network, evidence)
        assert sum(found["lung"].values()) == pytest.approx(1.0)
        assert found["lung"]["none"] == pytest.approx(1.0) or evidence.get("either") != "no"
    assert np.isfinite(sb.certify(network, {"xray": "mass"}).lower)


FOLDER = Path(os.environ.get("SBNET_TABLES", ".")) / "networks"


@pytest.mark.skipif(not FOLDER.exists(), reason="SBNET_TABLES names the folder of networks/asia.bif.gz and others")
@pytest.mark.parametrize("name", ["asia", "sachs", "alarm", "win95pts", "hepar2"])
def test_states_of_published_networks_exclude_each_other_whoever_answers(name, capsys):
    path = FOLDER / f"{name}.bif.gz"
    network = sb.read(path)
    rows, rng = sb.sample(network, 3, rng=0), np.random.default_rng(0)
    for row in rows:
        seen = [(own, network.states[own][s]) for own, s in zip(network.names, row, strict=True) if rng.random() < 0.2]
        evidence, exact = dict(seen), sb.exact_posterior(network, dict(seen))
        mean_field = sb.infer(network, evidence)
        assert mean_field.bound <= exact.log_likelihood + 1e-9
        assert main(["infer", str(path), *(f"{own}={state}" for own, state in seen), "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["exact"]
        command = {unit["name"]: unit["mean"] for unit in told["units"]}
        for own in network.names:
            for answer in (exact[own], mean_field[own], command.get(own, 0.0)):
                p = np.array(list(answer.values()) if isinstance(answer, dict) else [1.0 - answer, answer])
                assert np.all(p >= 0.0)
                assert p.sum() == pytest.approx(1.0, abs=1e-9)
