"""Mirrors: evidence on a unit that says the opposite of its parent is evidence on the parent."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import sbnet as sb
from sbnet.model.mirrors import SURE, mirrors
from strategies import mixed_cases

pytestmark = pytest.mark.small


def with_mirrors(network: sb.Network) -> sb.Network:
    """A mirror for each unit, and for the first one a copy too."""
    edges = [*network.edges(), *((name, f"not {name}", -2.0 * SURE) for name in network.names)]
    edges.append((network.names[0], "copy", 2.0 * SURE))
    bias = dict(zip(network.names, network.bias.tolist(), strict=True))
    bias |= {f"not {name}": SURE for name in network.names} | {"copy": -SURE}
    gate = {name: ("sigmoid", "noisy-or")[code] for name, code in zip(network.names, network.gate, strict=True)}
    return sb.from_edges(
        edges, bias=bias, gate=gate, names=[*network.names, *(f"not {n}" for n in network.names), "copy"]
    )


@given(mixed_cases(max_units=5, scales=("tame",)))
def test_evidence_on_mirrors_is_evidence_on_their_parents(case):
    network, row = case
    given_ = {name: int(state) for name, state in zip(network.names, row, strict=True) if not np.isnan(state)}
    turned = {f"not {name}": 1 - state for name, state in given_.items()}
    larger = with_mirrors(network)
    assert len(mirrors(larger).unit) == network.n_units + 1
    plain, mirrored = sb.exact_posterior(network, given_), sb.exact_posterior(larger, turned)
    assert mirrored.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-9)
    for name in network.names:
        assert mirrored[name] == pytest.approx(plain[name], abs=1e-9)
        assert mirrored[f"not {name}"] == pytest.approx(1.0 - plain[name], abs=1e-9)
    assert sb.infer(larger, turned).bound <= plain.log_likelihood + 1e-8


def test_quickscore_sees_through_mirrors():
    rng = np.random.default_rng(0)
    causes = {(f"c{k}", f"f{j}"): float(rng.random()) for k in range(40) for j in range(3)}
    network = sb.noisy_or(causes, leak=0.01, prior=0.05)
    exact = sb.exact_posterior(with_mirrors(network), {"not f0": 0, "not f1": 1, "not c3": 1})
    plain = sb.exact_posterior(network, {"f0": 1, "f1": 0, "c3": 0})
    assert exact["c7"] == pytest.approx(plain["c7"], abs=1e-12)
    assert exact["not f2"] == pytest.approx(1.0 - plain["f2"], abs=1e-12)


def test_an_intervention_on_a_mirror_tells_nothing_about_its_parent():
    network = with_mirrors(sb.from_edges({}, bias={"a": -1.0}))
    assert sb.exact_posterior(network, {}, do={"not a": 1})["a"] == pytest.approx(1 / (1 + np.e))
    assert sb.exact_posterior(network, {"not a": 1})["a"] == 0.0
    assert sb.log_likelihood(network, {"not a": 0}, do={"a": 1}) == pytest.approx(0.0, abs=1e-9)
    assert sb.log_likelihood(network, {"not a": 1}, do={"a": 1}) == pytest.approx(-SURE, rel=1e-6)


def test_a_contradiction_is_as_unlikely_as_it_is():
    network = with_mirrors(sb.from_edges({}, bias={"a": 0.0}))
    assert sb.log_likelihood(network, {"a": 1, "not a": 1}) == pytest.approx(-SURE, rel=1e-6)


def test_what_others_could_outweigh_is_no_mirror():
    assert len(mirrors(sb.from_edges({("a", "b"): -2.0 * SURE}, bias={"a": 3.0 * SURE, "b": SURE})).unit) == 0
    assert len(mirrors(sb.from_edges({("a", "b"): -80.0}, bias={"b": 40.0})).unit) == 0
