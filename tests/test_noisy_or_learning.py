"""Learning noisy-OR units: gradients, ascent, weights that stay what they may be, and truths that are found again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sbnet as sb

pytestmark = pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning")
CAUSES = {("a", "x"): 0.8, ("b", "x"): 0.3, ("b", "y"): 0.7, ("c", "y"): 0.5, ("c", "z"): 0.9, ("a", "z"): 0.2}


def truth():
    return sb.noisy_or(CAUSES, leak=0.05, prior={"a": 0.3, "b": 0.4, "c": 0.2})


def start():
    return sb.noisy_or(dict.fromkeys(CAUSES, 0.5), leak=0.2, prior=0.5)


def deep():
    """Noisy-OR units over noisy-OR units over sigmoid units, with a sigmoid unit below."""
    edges = {("a", "x"): 1.0, ("b", "x"): 0.2, ("b", "y"): 2.0, ("x", "z"): 1.5, ("y", "z"): 0.3, ("z", "w"): -1.0}
    bias = {"a": -0.5, "b": 0.5, "x": 0.05, "y": 0.2, "z": 0.01, "w": 0.3}
    return sb.from_edges(edges, bias=bias, gate=dict.fromkeys("xyz", "noisy-or"))


def with_holes(network, n, share, rng=0):
    X = sb.sample(network, n, rng=rng).astype(float)
    X[np.random.default_rng(rng).random(X.shape) < share] = np.nan
    return X


@pytest.mark.parametrize("up_to", [0, 4])
@pytest.mark.parametrize("log_term", ["exact", "quadratic"])
def test_gradients_are_slopes_of_the_bound(log_term, up_to):
    net = deep()
    X = with_holes(net, 12, 0.4)
    solver = sb.MeanField(log_term=log_term, enumerate_up_to=up_to, tol=1e-11, max_sweeps=5000)
    found = sb.gradient(net, X, solver=solver)

    def bound(**changed):
        return sb.infer_many(net.with_parameters(**changed), X, solver=solver).bound.sum()

    for name in ("weight", "bias"):
        for k, value in enumerate(getattr(net, name)):
            step = 1e-4 * max(abs(value), 0.01)
            high, low = (getattr(net, name).copy() for _ in range(2))
            high[k] += step
            low[k] -= step
            slope = (bound(**{name: high}) - bound(**{name: low})) / (2 * step)
            assert getattr(found, name)[k] == pytest.approx(slope, rel=2e-3, abs=2e-3), (name, k)


def test_small_steps_raise_the_bound_and_no_weight_becomes_negative():
    net = start()
    X = with_holes(truth(), 200, 0.3)
    seen = []
    result = sb.fit(
        net,
        X,
        epochs=15,
        optimizer=sb.SGD(0.3),
        batch_size=len(X),
        rng=0,
        callbacks=[lambda *given: seen.append(given)],
    )
    assert np.all(np.diff(result.bounds) > 0.0)
    assert result.network.gate.tolist() == net.gate.tolist()
    assert len(seen) == 15


def test_wild_steps_keep_weights_what_they_may_be():
    net = sb.noisy_or({("a", "x"): 0.5, ("b", "x"): 0.0, ("a", "y"): 1.0}, leak={"x": 0.0, "y": 0.01}, prior=0.5)
    X = with_holes(sb.noisy_or({("a", "x"): 0.01, ("a", "y"): 0.9}, leak=0.3, prior=0.9), 60, 0.2)
    columns = {"a": X[:, 0], "x": X[:, 1], "y": X[:, 2]}
    table = np.column_stack([columns.get(name, np.full(60, np.nan)) for name in net.names])
    result = sb.fit(net, table, epochs=20, optimizer=sb.SGD(20.0), batch_size=5, rng=0)
    noisy = result.network.gate == 1
    assert result.network.weight.min() >= 0.0
    assert result.network.bias[noisy].min() >= 0.0
    assert np.all(np.isfinite(result.bounds))
    ends = {(a, b): w for a, b, w in result.network.edges()}
    assert ends["b", "x"] == 0.0  # a cause that never works has no slope to learn by
    assert result.network.bias[net.index("x")] == 0.0


def test_parameters_are_found_again():
    """Causes observed: no unit is hidden, and the likelihood itself is climbed; the error is that of the sample."""
    true, n = truth(), 3000
    X = sb.sample(true, n, rng=1).astype(float)
    begin = start()
    X = X[:, [true.index(name) for name in begin.names]]
    result = sb.fit(begin, X, epochs=60, optimizer=sb.Adam(0.05, until=60), batch_size=300, rng=0)
    found = {(a, b): -np.expm1(-w) for a, b, w in result.network.edges()}
    for pair, p in CAUSES.items():
        assert found[pair] == pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / (0.1 * n))), pair
    leak = -np.expm1(-result.network.bias[result.network.gate == 1])
    assert leak == pytest.approx(np.full(3, 0.05), abs=0.03)
    assert result.bounds[-1] >= sb.log_joint(true, sb.sample(true, n, rng=1)).mean() - 1e-3


def test_learning_with_hidden_causes_and_holes_nears_the_truth():
    true = truth()
    X = sb.sample(true, 600, rng=2).astype(float)
    X[:, [true.index(name) for name in "abc"]] = np.nan
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    begin = start()
    X = X[:, [true.index(name) for name in begin.names]]
    result = sb.fit(begin, X, epochs=15, optimizer=sb.Adam(0.05), batch_size=100, rng=0)
    before, after, best = (
        sb.log_likelihood(net, X[:, [begin.index(name) for name in net.names]]).mean()
        for net in (begin, result.network, true)
    )
    assert after > before
    assert after > best - 0.05


def test_a_run_goes_on_from_a_checkpoint_as_if_it_had_not_stopped(tmp_path):
    X = with_holes(truth(), 80, 0.2)
    options = {"optimizer": sb.Adam(0.05), "batch_size": 20, "rng": 0}
    whole = sb.fit(start(), X, epochs=4, **options)
    sb.fit(start(), X, epochs=2, checkpoint=tmp_path / "run.sbn", **options)
    resumed = sb.fit(start(), X, epochs=4, checkpoint=tmp_path / "run.sbn", resume=True, **options)
    assert resumed.network == whole.network
    assert resumed.network.gate.tolist() == start().gate.tolist()
    sigmoid = replace(start(), gate=np.zeros(start().n_units, np.int8))
    with pytest.raises(sb.errors.SBNetError, match="network"):
        sb.fit(sigmoid, X, epochs=4, checkpoint=tmp_path / "run.sbn", resume=True, **options)
