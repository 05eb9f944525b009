"""Learning of variables with states and tables: gradients, expected counts, streams, partitions and checkpoints."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sbnet as sb
from sbnet.errors import NetworkError, ParameterError
from strategies import state_networks, states_of

pytestmark = pytest.mark.small


def ward(rng=0):
    """A hidden variable of three states with a table below it, one of sequential logits and a noisy-MAX."""
    rng = np.random.default_rng(rng)
    return sb.from_edges(
        [("mood", "smile", None), ("mood", "walk", rng.normal(size=(2, 2))), ("mood", "sleep", rng.random((1, 2))),
         ("walk", "sleep", rng.random((1, 2))), ("smile", "talk", None), ("walk", "talk", None)],
        bias={"walk": rng.normal(size=2), "sleep": [0.2]},
        states={"mood": ["bad", "fair", "good"], "walk": ["none", "short", "long"], "talk": ["no", "some", "much"]},
        gate={"sleep": "noisy-or"},
        tables={"mood": rng.dirichlet(np.ones(3)), "smile": rng.dirichlet(np.ones(2), 3),
                "talk": rng.dirichlet(np.ones(3), (2, 3))},
    )  # fmt: skip


def rows(n, missing=0.2):
    X = sb.sample(ward(1), n, rng=2).astype(np.int8)
    X[np.random.default_rng(3).random(X.shape) < missing] = -1
    return X


STATES_ONLY = sb.from_edges(
    {("mood", "smile"): [[1.0, 3.0]], ("mood", "walk"): [[2.0, -1.0], [0.5, 2.0]]},
    bias={"mood": [0.5, -0.5], "smile": -1.0, "walk": [-0.5, 0.2]},
    states={"mood": ["bad", "fair", "good"], "walk": ["none", "short", "long"]},
)  # fmt: skip


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_the_gradient_with_tables_is_that_of_finite_differences(data):
    network = data.draw(state_networks(scales=("tame",), max_units=4, max_states=3))
    assume(network.tables)
    row = data.draw(states_of(network))
    assume(sb.log_likelihood(network, row) > -100.0)
    solver = sb.MeanField(tol=1e-12, max_sweeps=5000)
    found, rng = sb.gradient(network, row[None], solver=solver), np.random.default_rng(0)

    def bound(**changed):
        moved = network.with_parameters(**changed)
        return sb.infer(moved, row, solver=solver, start=found.means[0]).bound

    size = 1e-5
    for what in ("weight", "bias"):
        values, gradient = getattr(network, what), getattr(found, what)
        for k in np.flatnonzero(values > 2.0 * size)[:3]:
            ends = [bound(**{what: np.where(np.arange(len(values)) == k, values + step, values)})
                    for step in (size, -size)]  # fmt: skip
            assert (ends[0] - ends[1]) / (2 * size) == pytest.approx(gradient[k], rel=2e-3, abs=2e-3)
    for name, table in network.tables.items():  # along a line in the logarithms of the entries
        along = rng.normal(size=table.shape)
        ends = []
        for step in (size, -size):
            moved = table * np.exp(step * along)
            ends.append(bound(tables={name: moved / moved.sum(axis=-1, keepdims=True)}))
        counts = found.tables[name]
        slope = (counts * along).sum() - (counts.sum(axis=-1) * (table * along).sum(axis=-1)).sum()
        assert (ends[0] - ends[1]) / (2 * size) == pytest.approx(slope, rel=2e-3, abs=2e-3)


def test_counts_of_complete_rows_are_their_frequencies():
    X = rows(300, missing=0.0)
    net = sb.fit(ward(), X, epochs=1, batch_size=50, pseudo_count=0.0, rng=0).network
    seen = np.array([(X[:, 0] == k).mean() for k in range(3)])
    assert net.tables["mood"] == pytest.approx(seen)
    for k in range(3):
        assert net.tables["smile"][k, 1] == pytest.approx(X[X[:, 0] == k, net.index("smile")].mean())
    smoothed = sb.fit(ward(), X, epochs=1, batch_size=50, pseudo_count=2.0, rng=0).network
    n = np.array([(X[:, 0] == k).sum() for k in range(3)])
    assert smoothed.tables["mood"] == pytest.approx((n + 2.0) / (300 + 6.0))


def test_learning_tables_alone_never_lowers_the_bound():  # variational EM
    net = ward()
    frozen = np.ones(len(net.weight) + len(net.bias), bool)
    solver = sb.MeanField(tol=1e-9)
    found = sb.fit(net, rows(60), epochs=8, batch_size=60, pseudo_count=0.0, frozen=frozen, solver=solver, rng=0)
    assert (np.diff(found.bounds) > -1e-6).all()
    assert found.bounds[-1] > found.bounds[0] + 0.05


def test_zeros_stay_zero_and_frozen_tables_stay():
    net = ward()
    tables = {"smile": [[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]}
    net = net.with_parameters(tables=tables)
    X = rows(40)
    X[:, 0] = -1
    learned = sb.fit(net, X, epochs=2, batch_size=40, rng=0, frozen=["talk"]).network
    assert learned.tables["smile"][0].tolist() == [1.0, 0.0]
    assert np.array_equal(learned.tables["talk"], net.tables["talk"])
    assert not np.array_equal(learned.tables["mood"], net.tables["mood"])
    assert (learned.weight[-2:] >= 0.0).all()
    with pytest.raises(ParameterError, match="'smile' has a table, and edges into it no weight; freeze 'smile' itself"):
        sb.fit(net, X, frozen=[("mood", "smile")])
    with pytest.raises(ParameterError, match="pseudo_count is -1; it must be finite and not negative"):
        sb.fit(net, X, pseudo_count=-1)
    other = type("Other", (), {"solve": print, "maximise": print})()
    with pytest.raises(NetworkError, match=r"'mood' has a table, and learning with Other\(\) knows none; MeanField"):
        sb.fit(net, X, solver=other)


@pytest.mark.parametrize("network", [STATES_ONLY, ward()], ids=["states", "tables"])
def test_streams_partitions_and_checkpoints_know_states(network, tmp_path):
    X = sb.sample(network, 60, rng=0).astype(np.int8)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = -1
    options = {"batch_size": 20, "rng": 0, "optimizer": sb.Adam(0.05), "shuffle": False}
    whole = sb.fit(network, X, epochs=4, **options)
    path = tmp_path / "run.sbn"
    sb.fit(network, X, epochs=2, checkpoint=path, **options)
    again = sb.fit(network, X, epochs=4, checkpoint=path, resume=True, **options)
    assert again.network == whole.network  # to the last bit, tables and warm means included
    np.testing.assert_array_equal(again.bounds, whole.bounds)
    once = sb.fit(network, X, epochs=1, **options)
    assert sb.fit(network, iter([X[:7], X[7:30], X[30:]]), epochs=1, **options).network == once.network
    other = network.with_parameters(bias=np.where(network.bias == 0.0, 0.0, network.bias + 1.0))
    with pytest.raises(ParameterError, match="cannot be resumed with this network"):
        sb.fit(other, X, epochs=4, resume=path, **options)


def test_partitions_learn_states_as_a_table_does(tmp_path):
    da, dask = pytest.importorskip("dask.array"), pytest.importorskip("dask")
    for network in (STATES_ONLY, ward()):
        X = sb.sample(network, 60, rng=0).astype(np.int8)
        X[np.random.default_rng(1).random(X.shape) < 0.2] = -1
        options = {"batch_size": 20, "rng": 0, "optimizer": sb.Adam(0.05), "shuffle": False, "epochs": 3}
        with dask.config.set(scheduler="sync"):
            plain, one = sb.fit(network, X, **options), sb.fit(network, da.from_array(X, chunks=(60, -1)), **options)
            assert one.network.weight == pytest.approx(plain.network.weight, abs=1e-12)
            for name, table in one.network.tables.items():
                assert table == pytest.approx(plain.network.tables[name], abs=1e-12)
            several = da.from_array(X, chunks=((25, 35), -1))
            whole, path = sb.fit(network, several, **options), tmp_path / f"{network.n_units}.sbn"
            sb.fit(network, several, **{**options, "epochs": 1}, checkpoint=path)
            assert sb.fit(network, several, **options, checkpoint=path, resume=True).network == whole.network
