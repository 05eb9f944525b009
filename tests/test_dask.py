"""Dask: a real cluster over TCP, whose workers are killed on the way; partitions of every odd kind; lazy answers."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import sbnet as sb
from sbnet.errors import EvidenceError, ParameterError, TableError, UnknownUnitError
from sbnet.learning import partitions

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

NETWORK = sb.layered((2, 6, 12), rng=0, scale=0.5)
ROWS = sb.sample(sb.layered((2, 6, 12), rng=1, scale=3.0), 200, rng=1)[:, -12:].astype(float)
ROWS[np.random.default_rng(2).random(ROWS.shape) < 0.1] = np.nan
CHUNKS = ((60, 0, 1, 79, 60), (5, 7))
SETTINGS = {"epochs": 3, "batch_size": 50, "optimizer": sb.Adam(0.02), "rng": 0}
QUIET = {**os.environ, "DASK_DISTRIBUTED__WORKER__DAEMON": "False", "PYTHONWARNINGS": "ignore"}


def table(chunks=CHUNKS):
    return da.from_array(ROWS, chunks=chunks)


def bits(result):
    return result.network.weight.tobytes(), result.network.bias.tobytes(), result.bounds.tobytes()


@pytest.fixture(scope="module")
def alone():
    """What there is to learn, without a cluster."""
    with dask.config.set(scheduler="sync"):
        return sb.fit(NETWORK, table(), **SETTINGS)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A scheduler and four workers, started from the shell, on loopback."""
    folder = tmp_path_factory.mktemp("cluster")
    place = str(folder / "scheduler.json")
    here = {"cwd": folder, "env": QUIET, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    processes = [subprocess.Popen([*command, "--scheduler-file", place, "--dashboard-address", "127.0.0.1:0"], **here)]
    while not os.path.exists(place):
        assert processes[0].poll() is None
        time.sleep(0.05)
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", place, "--nthreads", "1"]
    options = ["--no-nanny", "--no-dashboard", "--memory-limit", "2GB", "--death-timeout", "120"]
    processes += [subprocess.Popen([*worker, *options], **here) for _ in range(4)]
    try:
        with distributed.Client(scheduler_file=place, timeout="60s") as client:
            client.wait_for_workers(4, timeout=120)
            yield client
    finally:
        for process in processes:
            process.kill()
            process.wait()


def worker_pids(client):
    return dict(client.run(os.getpid))


class Killing:
    """An optimiser during whose steps, at one of them, a worker dies."""

    def __init__(self, optimizer, at, client):
        self.optimizer, self.at, self.client, self.steps, self.killed = optimizer, at, client, 0, None
        self.init = optimizer.init

    def step(self, gradient, state, epoch):
        self.steps += 1
        if self.steps == self.at:
            self.killed = sorted(worker_pids(self.client).items())[0]
            os.kill(self.killed[1], signal.SIGKILL)
        return self.optimizer.step(gradient, state, epoch)


def suicidal(flag):
    """A solver that kills the first worker that asks it."""

    class Suicidal:  # defined here, so that it travels by value
        def solve(self, network, states, *, start, trace):
            import os
            import signal

            import sbnet as sb

            try:  # one call, so that two workers at once do not both find nothing there
                os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
            return sb.MeanField().solve(network, states, start=start, trace=trace)

    return Suicidal()


def test_a_cluster_gives_the_same_bits_though_workers_are_killed(cluster, alone, tmp_path):
    """Four workers, three of them killed one by one, and the last alone."""
    assert bits(sb.fit(NETWORK, table(), **SETTINGS)) == bits(alone)
    killer = Killing(SETTINGS["optimizer"], 7, cluster)  # in the middle of the second epoch
    assert bits(sb.fit(NETWORK, table(), **{**SETTINGS, "optimizer": killer})) == bits(alone)
    assert killer.killed is not None
    assert killer.killed[0] not in worker_pids(cluster)
    once = sb.infer_many(NETWORK, ROWS)
    lazy = sb.infer_many(NETWORK, table(), solver=suicidal(str(tmp_path / "flag")))
    bound, means = dask.compute(lazy.bound, lazy.means)
    assert (tmp_path / "flag").exists()
    np.testing.assert_array_equal(bound, once.bound)
    np.testing.assert_array_equal(means, once.means)
    assert len(worker_pids(cluster)) == 2
    assert bits(sb.fit(NETWORK, table(), **SETTINGS)) == bits(alone)
    executor = sb.infer_many(NETWORK, ROWS, executor=cluster.get_executor(), solver=suicidal(str(tmp_path / "other")))
    np.testing.assert_array_equal(executor.bound, once.bound)
    assert len(worker_pids(cluster)) == 1
    assert bits(sb.fit(NETWORK, table(), **SETTINGS)) == bits(alone)
    assert bits(sb.fit(NETWORK, ROWS, executor=cluster, **SETTINGS)) == bits(sb.fit(NETWORK, ROWS, **SETTINGS))


def test_a_local_cluster_of_processes_goes_on_when_a_worker_has_no_memory(alone):
    """One of two workers is given less memory than Python takes: it is paused, and the other does the work."""
    quiet = {"silence_logs": 50, "dashboard_address": "127.0.0.1:0", "threads_per_worker": 1}
    with (
        distributed.LocalCluster(n_workers=1, memory_limit="2GB", **quiet) as cluster,
        distributed.Client(cluster) as client,
    ):
        command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address, "--nthreads", "1"]
        full = ["--no-nanny", "--no-dashboard", "--memory-limit", "20MB", "--name", "full"]
        poor = subprocess.Popen([*command, *full], env=QUIET, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            client.wait_for_workers(2, timeout=60)
            while not any(w["status"] == "paused" for w in client.scheduler_info(n_workers=-1)["workers"].values()):
                time.sleep(0.1)
            assert bits(sb.fit(NETWORK, table(), **SETTINGS)) == bits(alone)
        finally:
            poor.kill()
            poor.wait()


@pytest.fixture
def here():
    with dask.config.set(scheduler="sync"):
        yield


def test_answers_are_lazy_arrays_partitioned_as_the_table(here):
    once, lazy = sb.infer_many(NETWORK, ROWS), sb.infer_many(NETWORK, table())
    assert isinstance(lazy, sb.results.LazyPosteriors)
    assert lazy.bound.chunks == (CHUNKS[0],)
    assert lazy.means.shape == once.means.shape
    for name in ("bound", "means", "sweeps", "converged"):
        np.testing.assert_array_equal(getattr(lazy, name).compute(), getattr(once, name))
    np.testing.assert_array_equal(lazy["x3"].compute(), once["x3"])
    np.testing.assert_array_equal(lazy.persist().compute().means, once.means)
    assert "200 rows in 5 partitions" in repr(lazy)


def test_frames_may_have_columns_in_another_order_and_rows_nobody_has_counted(here):
    import pandas as pd

    frame = pd.DataFrame(ROWS, columns=list(NETWORK.names[-12:]), index=np.arange(200) + 5)
    other = dd.from_pandas(frame[frame.columns[::-1]], npartitions=3)
    lazy, once = sb.infer_many(NETWORK, other), sb.infer_many(NETWORK, frame)
    np.testing.assert_array_equal(lazy.bound.compute(), once.bound)
    assert np.isnan(lazy.bound.shape[0])
    pd.testing.assert_frame_equal(lazy.to_frame().compute(), once.to_frame())
    assert list(lazy.compute().index) == list(frame.index)
    few = {**SETTINGS, "epochs": 1}
    unknown = dd.from_pandas(frame, npartitions=3).to_dask_array()
    assert np.isnan(unknown.shape[0])
    assert bits(sb.fit(NETWORK, other, **few)) == bits(sb.fit(NETWORK, unknown, **few))


def test_rows_without_a_cell_and_partitions_without_a_row(here):
    rows = ROWS.copy()
    rows[20:60] = np.nan
    odd = da.from_array(rows, chunks=((20, 40, 0, 140), (12,)))
    once = sb.infer_many(NETWORK, rows)
    np.testing.assert_array_equal(sb.infer_many(NETWORK, odd).bound.compute(), once.bound)
    assert np.isfinite(sb.fit(NETWORK, odd, **SETTINGS).bounds).all()
    with pytest.raises(ParameterError, match="there are no rows to learn from"):
        sb.fit(NETWORK, da.from_array(rows[:0], chunks=(1, 12)), **SETTINGS)


@pytest.mark.parametrize("batch_size", [1, 7, 50, 1000])
@pytest.mark.parametrize("sizes", [(20,), (7, 0, 1, 12), (1,) * 20, (19, 1)])
def test_every_row_takes_part_once_in_an_epoch(batch_size, sizes):
    n = sum(sizes)
    steps = -(-n // batch_size)
    counts = np.zeros((steps, len(sizes)), int)
    for p, size in enumerate(sizes):
        cuts = [partitions._share(size, p, len(sizes), step, steps) for step in range(steps)]
        assert cuts[0].start == 0
        assert cuts[-1].stop == size
        assert all(before.stop == after.start for before, after in itertools.pairwise(cuts))
        counts[:, p] = [cut.stop - cut.start for cut in cuts]
    assert counts.sum() == n
    taking_turns = len(set(sizes)) == 1  # partitions of one size never all give their odd row to the same step
    assert counts.sum(axis=1).max() <= batch_size + (0 if taking_turns else len(sizes))


def test_one_partition_learns_as_a_table_does_where_rows_are_not_shuffled(here):
    settings = {**SETTINGS, "shuffle": False}
    result, plain = sb.fit(NETWORK, table((200, 12)), **settings), sb.fit(NETWORK, ROWS, **settings)
    np.testing.assert_allclose(result.network.weight, plain.network.weight, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.bounds, plain.bounds, rtol=1e-12)


@pytest.mark.parametrize("validation", [0.3, ROWS[:30], "lazy"])
def test_rows_are_held_out_weights_count_and_checkpoints_go_on(here, tmp_path, validation):
    validation = da.from_array(ROWS[:30], chunks=10) if isinstance(validation, str) else validation
    weights = np.random.default_rng(0).random(200)
    settings = {**SETTINGS, "validation": validation, "sample_weight": weights, "log_likelihood": True}
    path = tmp_path / "run.sbn"
    whole = sb.fit(NETWORK, table(), **settings)
    assert len(whole.held_out) == len(whole.log_likelihood) == 3
    assert (whole.bounds <= whole.log_likelihood + 1e-9).all()
    sb.fit(NETWORK, table(), **{**settings, "epochs": 1}, checkpoint=path)
    again = sb.fit(NETWORK, table(), **settings, checkpoint=path, resume=True)
    assert bits(again) == bits(whole)
    np.testing.assert_array_equal(again.held_out, whole.held_out)
    lazy = {**settings, "sample_weight": da.from_array(weights, chunks=(CHUNKS[0],))}
    assert bits(sb.fit(NETWORK, table(), **lazy)) == bits(whole)
    with pytest.raises(ParameterError, match="cannot be resumed with this table"):
        sb.fit(NETWORK, table((100, 12)), **settings, resume=path)


def test_means_start_afresh_when_their_history_grows_long(here, monkeypatch, tmp_path):
    straight = sb.fit(NETWORK, table(), **SETTINGS)
    monkeypatch.setattr(partitions, "_HISTORY", 1000)
    fresh = sb.fit(NETWORK, table(), **SETTINGS)
    assert bits(fresh) != bits(straight)
    np.testing.assert_allclose(fresh.bounds, straight.bounds, atol=0.01)
    assert bits(sb.fit(NETWORK, table(), **SETTINGS, checkpoint=tmp_path / "run.sbn")) == bits(straight)


def test_what_cannot_be_is_refused_at_once_or_by_the_worker(here):
    import pandas as pd

    with pytest.raises(UnknownUnitError, match="variable 'snow', which is not in the network"):
        sb.infer_many(NETWORK, dd.from_pandas(pd.DataFrame({"snow": [0, 1]}), npartitions=1))
    with pytest.raises(EvidenceError, match="evidence has 30 columns"):
        sb.fit(NETWORK, da.zeros((4, 30), chunks=2))
    with pytest.raises(TableError, match="has rows and columns; this one has 1 dim"):
        sb.infer_many(NETWORK, da.zeros(4, chunks=2))
    guessed = sb.infer_many(NETWORK, da.from_array(ROWS + 1.0, chunks=(50, 12)))
    with pytest.raises(EvidenceError, match="holds 2.0 in row 0; variables are binary"):
        guessed.bound.compute()
    with pytest.raises(ParameterError, match="sample_weight has 1 partitions, X has 5"):
        sb.fit(NETWORK, table(), sample_weight=da.ones(200, chunks=200))


IMPORTS = """
import sys
import numpy as np
import sbnet as sb
net = sb.layered((2, 3), rng=0)
sb.infer_many(net, np.zeros((2, 3)))
sb.fit(net, np.zeros((2, 3)), epochs=1)
print([name for name in sys.modules if name.split(".")[0] in ("dask", "distributed", "loky", "cloudpickle", "pyarrow")])
"""


def test_nothing_of_dask_is_imported_for_a_plain_table():
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- estimators -------------------------------------------------------------------------------------------------------

QUICK = {"epochs": 2, "prior": None, "hidden": 2, "random_state": 0}


def frame_of(rows, kind=float):
    import pandas as pd

    return pd.DataFrame(rows, columns=[f"c{k}" for k in range(rows.shape[1])]).astype(kind)


@pytest.mark.parametrize("frames", [False, True])
def test_estimators_are_lazy_where_the_table_is(here, frames):
    from sbnet.estimators import SBNClassifier, SBNDensity, SBNImputer, SBNOutlier

    rows, target = ROWS[:, :5], (np.arange(200) % 3 == 0).astype(int)
    X = frame_of(rows) if frames else rows
    D = dd.from_pandas(X, npartitions=3) if frames else da.from_array(rows, chunks=((90, 0, 110), (5,)))
    density = SBNDensity(**QUICK)
    small = {"density": SBNDensity(epochs=2, prior=None), "hidden": 2, "random_state": 0}
    cases = {
        density: ("score_samples", "transform", "impute"),
        SBNClassifier(**small): ("predict", "predict_proba", "decision_function"),
        SBNImputer(**small): ("transform",),
        SBNOutlier(**small): ("score_samples", "predict"),
    }
    for estimator, methods in cases.items():
        lazy = estimator.fit(D, da.from_array(target, chunks=100))
        answers = [getattr(lazy, name)(D[D.columns[::-1]] if frames else D) for name in methods]
        assert all(dask.is_dask_collection(answer) for answer in answers)
        found = dask.compute(*answers)
        plain = estimator.fit(X, target)  # so few rows are learned from as if they were in memory
        for name, answer in zip(methods, found, strict=True):
            np.testing.assert_array_equal(np.asarray(answer), np.asarray(getattr(plain, name)(X)))
    assert isinstance(density.score(D), float)


def test_estimators_go_on_over_all_rows_from_what_a_sample_has_shown(here, monkeypatch):
    from sbnet.estimators import SBNClassifier, SBNDensity, _large

    monkeypatch.setattr(_large, "LIMIT", 60)
    monkeypatch.setattr(_large, "CELLS", 0)
    D, target = da.from_array(ROWS, chunks=((90, 0, 110), (12,))), np.arange(200) % 2
    density = SBNDensity(**QUICK).fit(D)
    assert density.n_iter_ == 4
    assert density.n_samples_seen_ == 200
    again = SBNDensity(**QUICK).fit(D)
    assert again.network_ == density.network_
    words = np.where(ROWS == 1, "yes", np.where(ROWS == 0, "no", None))
    spoken = SBNDensity(**QUICK).fit(da.from_array(words, chunks=((90, 0, 110), (12,))))
    assert spoken.network_ == density.network_
    classifier = SBNClassifier(density=SBNDensity(epochs=2, prior=None), hidden=2, random_state=0).fit(D, target)
    assert 0.0 <= classifier.score(D, target) <= 1.0
    assert classifier.n_iter_ == 4


def test_minus_one_is_missing_in_any_part_of_a_table(here):
    import pandas as pd

    names = NETWORK.names[-2:]
    signs = pd.DataFrame(np.tile([[1, -1], [-1, 1]], (10, 1)), columns=list(names))
    found = sb.infer_many(NETWORK, dd.from_pandas(signs, npartitions=2)).bound.compute()
    assert np.array_equal(found, sb.infer_many(NETWORK, signs.replace(-1, np.nan)).bound)


def test_draws_differ_from_partition_to_partition(here):
    from sbnet.estimators import SBNImputer

    rows = ROWS[:, :5].astype(float)
    imputer = SBNImputer(strategy="sample", hidden=2, random_state=0).fit(rows)
    nothing = da.from_array(np.full((80, 5), np.nan), chunks=(40, 5))
    first, second = np.split(np.asarray(imputer.transform(nothing)), 2)
    assert (first != second).any()
    np.testing.assert_array_equal(np.asarray(imputer.transform(nothing))[:40], first)


def test_what_partitions_cannot_learn_together_is_refused_at_once(here, monkeypatch):
    from sbnet.estimators import SBNClassifier, SBNDensity, SBNImputer, _large

    D, target = da.from_array(ROWS, chunks=(100, 12)), np.arange(200) % 2
    with pytest.raises(ParameterError, match="multiple= draws rows of the whole table"):
        SBNImputer(multiple=2).fit(D)
    monkeypatch.setattr(_large, "LIMIT", 60)
    monkeypatch.setattr(_large, "CELLS", 0)
    for estimator in (SBNDensity(orders=2), SBNClassifier(density=SBNDensity(orders=2))):
        with pytest.raises(
            ParameterError, match="a mixture is learned from 60 rows at most of a Dask table; set order"
        ):
            estimator.fit(D, target)
    with pytest.raises(ParameterError, match="set tune=None"):
        SBNClassifier(tune="discriminative").fit(D, target)


def test_transformers_stay_lazy_when_asked_for_frames(here):
    """scikit-learn's set_output would compute a lazy answer to put it into a frame."""
    import pandas as pd

    from sbnet.estimators import SBNDensity, SBNImputer

    rows = pd.DataFrame(ROWS[:, :5].astype(float)).add_prefix("x")
    rows.iloc[::7, 2] = np.nan
    table = dd.from_pandas(rows, npartitions=3)
    settings = {"hidden": 2, "random_state": 0}
    for estimator in (SBNDensity(epochs=2, prior=None, **settings), SBNImputer(**settings)):
        estimator.set_output(transform="pandas").fit(rows)
        lazy_one = estimator.transform(table)
        assert isinstance(lazy_one, dd.DataFrame)
        pd.testing.assert_frame_equal(lazy_one.compute(), estimator.transform(rows))
        assert isinstance(estimator.fit_transform(table), dd.DataFrame)
