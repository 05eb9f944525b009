"""Any executor: the same bits as in threads, networks that travel once, and a word when a worker dies."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import random
import signal
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

import sbnet as sb
from sbnet.errors import ParameterError, WorkerError
from sbnet.estimators import SBNClassifier, SBNDensity, SBNImputer, SBNOutlier, Training
from sbnet.parallel import parcels
from sbnet.parallel.blocks import RowBlocks, map_blocks

NETWORK = sb.layered((3, 10, 30), rng=0, scale=1.0)
ROWS = sb.sample(NETWORK, 300, rng=1)[:, -30:].astype(float)
ROWS[np.random.default_rng(2).random(ROWS.shape) < 0.1] = np.nan


class Posted(Executor):
    """Another process, as far as bytes are concerned: all that goes to it and comes back is pickled, and counted.

    Workers are told apart by what they keep; with several, tasks end in any order.
    """

    def __init__(self, workers=1, seed=None):
        self._max_workers, self.sent, self.kept = workers, [], [parcels.OrderedDict() for _ in range(workers)]
        self.random, self.held, self.thread = random.Random(seed), [], ThreadPoolExecutor(1)

    def submit(self, fn, /, *args, **kwargs):
        message, future = pickle.dumps((fn, args, kwargs)), Future()
        self.sent.append(len(message))
        self.held.append((message, future))
        self.thread.submit(self.release)
        return future

    def release(self):
        """One of the messages that are under way arrives."""
        message, future = self.held.pop(self.random.randrange(len(self.held)) if self._max_workers > 1 else 0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(parcels, "_kept", self.random.choice(self.kept))
            fn, args, kwargs = pickle.loads(message)
            try:
                future.set_result(pickle.loads(pickle.dumps(fn(*args, **kwargs))))
            except Exception as error:
                future.set_exception(error)


def ask(name, executor):
    """Everything that takes an executor, as bytes."""
    rows = ROWS[:4]
    if name == "infer_many":
        answer = sb.infer_many(NETWORK, ROWS, executor=executor)
        return answer.bound.tobytes(), answer.means.tobytes(), answer.xi.tobytes(), answer.sweeps.tobytes()
    if name == "fit":
        settings = {"epochs": 2, "batch_size": 120, "rng": 0, "validation": 0.2, "optimizer": sb.Adam(0.01)}
        result = sb.fit(NETWORK, ROWS, executor=executor, **settings)
        return result.network.weight.tobytes(), result.network.bias.tobytes(), result.held_out.tobytes()
    if name == "certify":
        return repr(list(sb.certify(NETWORK, rows, settings=sb.solvers.CertifySettings(executor=executor))))
    if name == "upper_bound":
        return sb.upper_bound(
            NETWORK, rows, settings=sb.solvers.UpperBoundSettings(max_steps=5, executor=executor)
        ).bound.tobytes()
    if name == "estimate":
        return sb.estimate(
            NETWORK, rows, settings=sb.solvers.EstimateSettings(executor=executor)
        ).log_probability.tobytes()
    if name == "posterior_intervals":
        return repr(
            dict(
                sb.posterior_intervals(
                    NETWORK, rows[0], units=[0, 1], settings=sb.solvers.CertifySettings(executor=executor)
                )
            )
        )
    if name == "most_probable":
        return sb.most_probable(NETWORK, rows, executor=executor).log_p.tobytes()
    assert name == "gradient"
    return sb.gradient(NETWORK, ROWS, executor=executor).weight.tobytes()


NAMES = (
    "infer_many",
    "fit",
    "certify",
    "upper_bound",
    "estimate",
    "posterior_intervals",
    "most_probable",
    "gradient",
)


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_the_same_bits_whatever_the_executor_and_the_order(name, processes):
    alone = ask(name, None)
    assert ask(name, processes) == alone
    for workers in (1, 3):
        assert ask(name, Posted(workers, seed=workers)) == alone
    with ThreadPoolExecutor(3) as threads:
        assert ask(name, threads) == alone


def test_loky_and_forked_processes_give_the_same_bits():
    loky = pytest.importorskip("loky")
    alone = ask("infer_many", None)
    assert ask("infer_many", loky.get_reusable_executor(1)) == alone
    loky.get_reusable_executor().shutdown(kill_workers=True)


def network_size(network):
    return len(pickle.dumps(network))


def test_a_network_travels_once_and_rows_travel_in_blocks():
    post, network, solver = Posted(), sb.layered((100, 200, 30), rng=0, scale=0.01), sb.MeanField("xi", tol=0.1)
    large = network_size(network)
    sb.infer_many(network, ROWS, solver=solver, executor=post)
    assert len(post.sent) > 2
    assert post.sent[0] > large > 2 * len(ROWS) * network.n_units
    assert max(post.sent[1:]) < large / 2
    before = len(post.sent)
    sb.infer_many(network, ROWS, solver=solver, executor=post)  # another call: nobody knows who has it still
    assert sum(size > large / 2 for size in post.sent[before:]) <= 1


def test_edges_stay_with_workers_while_weights_change():
    post, network = Posted(), sb.layered((20, 100, 30), rng=0, scale=0.1)
    sb.fit(network, ROWS, epochs=3, batch_size=150, executor=post, rng=0)
    parameters, sent = 8 * (network.n_edges + network.n_units), np.array(post.sent).reshape(6, 3)  # steps by blocks
    more = sent[:, 0] - sent[:, 1]
    assert (more > parameters).all()  # the first block of a step brings the new parameters
    assert (more > 2 * parameters).tolist() == [True] + 5 * [False]  # and once the edges
    assert (sent[:, 1] == sent[:, 2]).all()
    assert sent[:, 1].max() < 50 * network.n_units * 10  # rows, and the means to start from


def test_a_worker_that_knows_nothing_is_sent_what_it_lacks():
    workers = Posted(4, seed=1)
    sb.infer_many(NETWORK, ROWS, executor=workers)
    for kept in workers.kept:
        kept.clear()  # all were started anew
    again = sb.infer_many(NETWORK, ROWS, executor=workers)
    np.testing.assert_array_equal(again.bound, sb.infer_many(NETWORK, ROWS).bound)


def rows_of(block):
    return block.columns[0].tolist()


def test_workers_forget_the_parts_that_are_not_asked_for():
    post = Posted()
    for k in range(40):
        map_blocks(partial(weighed, np.full(1000, float(k))), RowBlocks(np.arange(5), most=2), executor=post)
    assert len(post.kept[0]) <= 16


def weighed(weights, block):
    return weights[0] * len(block)


def test_a_class_of_the_script_itself_travels_too(processes):
    solver = _own_solver()
    own = sb.infer_many(NETWORK, ROWS[:20], solver=solver, executor=processes)
    np.testing.assert_array_equal(own.bound, sb.infer_many(NETWORK, ROWS[:20]).bound - 1.0)


def _own_solver():
    class Lower:
        def solve(self, network, states, *, start, trace):
            from dataclasses import replace

            found = sb.MeanField().solve(network, states, start=start, trace=trace)
            return replace(found, bound=found.bound - 1.0)

    return Lower()


def die(block):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_dies_is_told_of():
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        with pytest.raises(WorkerError, match="worker process ended before .* make a new executor"):
            map_blocks(die, [range(1)] * 3, executor=pool)
        with pytest.raises(WorkerError, match="make a new executor"):  # it stays broken
            map_blocks(rows_of, RowBlocks(np.arange(3), most=1), executor=pool)


def test_errors_of_tasks_come_through():
    with pytest.raises(ZeroDivisionError):
        map_blocks(partial(divided, 0), [range(1)], executor=Posted())


def divided(by, block):
    return len(block) / by


@pytest.mark.parametrize("executor", ["dask", 4, ThreadPoolExecutor, ProcessPoolExecutor])
def test_what_is_no_executor_is_refused(executor):
    with pytest.raises(ParameterError, match=r"executor is .*; give a concurrent\.futures\.Executor"):
        sb.infer_many(NETWORK, ROWS, executor=executor)
    with pytest.raises(ParameterError, match="executor is"):
        sb.fit(NETWORK, ROWS, executor=executor)


SMALL = {"hidden": 2, "random_state": 0, "density": SBNDensity(epochs=2, prior=None)}


def fitted(kind, executor):
    settings = {"hidden": 2, "random_state": 0, "epochs": 2, "prior": None} if kind is SBNDensity else SMALL
    target = np.arange(len(ROWS)) % 2
    return kind(settings=Training(executor=executor), **settings).fit(
        ROWS[:, :6], *([target] if kind is SBNClassifier else [])
    )


@pytest.mark.parametrize("kind", [SBNDensity, SBNClassifier, SBNImputer, SBNOutlier])
def test_estimators_work_through_executors(kind):
    post, X = Posted(), ROWS[:40, :6]
    alone, away = fitted(kind, None), fitted(kind, post)
    assert len(post.sent) > 2  # learning, and more
    method = {SBNClassifier: "predict_proba", SBNImputer: "transform"}.get(kind, "score_samples")
    before = len(post.sent)
    np.testing.assert_array_equal(getattr(away, method)(X), getattr(alone, method)(X))
    assert len(post.sent) > before
    copy = clone(away)
    assert copy.settings.executor is post
    saved = pickle.loads(pickle.dumps(away))
    assert saved.settings.executor is None
    np.testing.assert_array_equal(getattr(saved, method)(X), getattr(alone, method)(X))
