"""What every solver promises, whatever its method: the same checks for all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pkgutil import resolve_name

import numpy as np
import pytest
from hypothesis import given, settings

import sbnet as sb
from sbnet._types import HIDDEN
from strategies import INTERPRETED, LOG_TERMS, tables

pytestmark = pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning")

MEAN_FIELDS = [
    pytest.param(sb.MeanField(log_term=name, enumerate_up_to=k), id=f"{name}-{k}", marks=pytest.mark.small)
    for name in LOG_TERMS
    for k in (0, sb.MeanField().enumerate_up_to)
]
RESTARTED = pytest.param(sb.MeanField(log_term="xi", restarts=3), id="restarts")
GIBBS = pytest.param(sb.Gibbs(samples=40, burn_in=5), id="gibbs")  # interpreted, its random numbers overflow
CONDITIONED = [
    pytest.param(sb.Conditioned(on="roots"), id="conditioned-roots"),
    pytest.param(sb.Conditioned(on=2, solver=sb.MeanField(log_term="xi")), id="conditioned-2"),
]
MIXTURE = pytest.param(sb.Mixture(3, sb.MeanField(log_term="xi", tol=1e-4)), id="mixture-3")
STRUCTURED = pytest.param(sb.Structured(), id="structured")
OTHERS: tuple[str, ...] = ()
OWN = [pytest.param(resolve_name(name)(), id=name, marks=pytest.mark.small) for name in OTHERS]
every_solver = pytest.mark.parametrize(
    "solver", [*MEAN_FIELDS, RESTARTED, GIBBS, *CONDITIONED, MIXTURE, STRUCTURED, *OWN]
)


def same(one, other):
    return np.array_equal(one, other, equal_nan=True)


def samples(solver):
    return isinstance(solver, sb.Gibbs)


def equal(one, other):
    """Two batches, bit by bit."""
    names = ("evidence", "means", "bound", "xi", "sweeps", "converged", "error", "r_hat")
    pairs = [(getattr(one, name), getattr(other, name)) for name in names]
    return all((a is None and b is None) or same(a, b) for a, b in pairs)


def check(batch, rows, solver):
    """What holds for every answer."""
    n, shape = len(rows), batch.evidence.shape
    assert isinstance(batch, sb.results.PosteriorBatch)
    assert batch.means.shape == batch.xi.shape == shape == (n, batch.network.n_units)
    assert batch.bound.shape == batch.sweeps.shape == batch.converged.shape == (n,)
    assert (batch.means.dtype, batch.bound.dtype, batch.converged.dtype) == (float, float, bool)
    assert np.all((batch.means >= 0.0) & (batch.means <= 1.0))
    assert np.all(np.isnan(batch.xi) | ((batch.xi >= 0.0) & (batch.xi <= 1.0)))
    observed = batch.evidence != HIDDEN
    assert np.array_equal(batch.means[observed], batch.evidence[observed])
    assert np.all(np.isnan(batch.bound)) if samples(solver) else np.all(batch.bound <= 1e-9)
    assert len(batch) == len(batch.status) == n
    for status, converged in zip(batch.status, batch.converged, strict=True):
        assert converged == (status in (sb.results.Status.CONVERGED, sb.results.Status.MIXED))
    if samples(solver):
        assert batch.error.shape == batch.r_hat.shape == shape
        assert np.all(batch.error >= 0.0)
    else:
        assert batch.error is None
        assert batch.r_hat is None
        assert np.all(batch.sweeps <= getattr(getattr(solver, "solver", solver), "max_sweeps", np.inf))


# --- any network, any evidence --------------------------------------------------------------------------------------


@every_solver
@settings(max_examples=3 if INTERPRETED else 40)
@given(table=tables(max_units=8))
def test_answers_have_the_right_form_and_each_row_its_own(solver, table):
    network, rows = table
    batch = sb.infer_many(network, rows, solver=solver)
    check(batch, rows, solver)
    backwards = sb.infer_many(network, rows[::-1], solver=solver)
    for r, row in enumerate(rows):
        post = sb.infer(network, row, solver=solver)
        assert isinstance(post, sb.results.Posterior)
        assert type(post.bound) is float
        assert same(post.means, batch.means[r])
        assert same(post.xi, batch.xi[r])
        assert same(post.bound, batch.bound[r])
        assert post.status is batch.status[r]
        assert post.converged == batch.converged[r]
        assert same(backwards.means[-1 - r], batch.means[r])
        assert same(backwards.bound[-1 - r], batch.bound[r])


# --- rows and threads -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long_table():
    """Runs of rows with equal masks and other values, as in a data set, and rows with masks of their own."""
    network, rng = sb.layered((2, 5, 7), rng=0, scale=3.0, autoregressive=True), np.random.default_rng(0)
    n = 8 if INTERPRETED else 90
    rows = rng.integers(0, 2, (n, 14)).astype(float)
    rows[: n // 2, :7] = np.nan
    rows[n // 2 :][rng.random((n - n // 2, 14)) < 0.6] = np.nan
    rows[-3:] = np.array([[np.nan], [1.0], [np.nan]])
    return network, rows


@every_solver
def test_rows_do_not_depend_on_their_neighbours(solver, long_table):
    network, rows = long_table
    batch = sb.infer_many(network, rows, solver=solver)
    check(batch, rows, solver)
    order = np.random.default_rng(1).permutation(len(rows))
    shuffled = sb.infer_many(network, rows[order], solver=solver)
    assert same(shuffled.means, batch.means[order])
    assert same(shuffled.bound, batch.bound[order])
    twice = sb.infer_many(network, np.repeat(rows[:3], 2, axis=0), solver=solver)
    assert same(twice.means[::2], twice.means[1::2])
    for r in range(0, len(rows), 5):
        alone = sb.infer(network, rows[r], solver=solver)
        assert same(alone.means, batch.means[r])
        assert same(alone.bound, batch.bound[r])


@every_solver
def test_threads_and_blocks_do_not_change_a_bit(solver, long_table, monkeypatch):
    network, rows = long_table
    whole = sb.infer_many(network, rows, solver=solver, threads=1)
    monkeypatch.setattr("sbnet.inference._BLOCK", 5 * network.n_units)  # five rows to a block
    for threads in (1, 2, None):
        assert equal(sb.infer_many(network, rows, solver=solver, threads=threads, progress=False), whole)
    start = np.random.default_rng(0).random(rows.shape)
    from_start = [sb.infer_many(network, rows, solver=solver, threads=k, start=start) for k in (1, 2)]
    assert equal(*from_start)
    assert same(sb.infer(network, rows[5], solver=solver, start=start[5]).means, from_start[0].means[5])


@every_solver
def test_answers_are_deterministic(solver, long_table):
    network, rows = long_table
    assert equal(*(sb.infer_many(network, rows[:5], solver=solver) for _ in range(2)))


# --- special tables and networks ------------------------------------------------------------------------------------


@every_solver
def test_an_empty_table(solver, sprinkler):
    batch = sb.infer_many(sprinkler, np.empty((0, 4)), solver=solver)
    check(batch, [], solver)
    assert list(batch) == []


@every_solver
def test_complete_rows_and_empty_rows(solver, sprinkler):
    complete = sb.infer(sprinkler, [1, 0, 1, 0], solver=solver)
    assert np.array_equal(complete.means, [1, 0, 1, 0])
    assert complete.converged
    empty = sb.infer(sprinkler, {}, solver=solver)
    prior = sb.exact_posterior(sprinkler, {})
    assert np.all(np.abs(empty.means - prior) < (0.1 if samples(solver) else 0.02))
    if not samples(solver):
        assert abs(complete.bound - sb.log_joint(sprinkler, [1, 0, 1, 0])) < 1e-12
        assert empty.bound == 0.0


@every_solver
@pytest.mark.parametrize("evidence", [{}, {"a": 1}])
def test_a_single_unit(solver, evidence):
    network = sb.from_edges({}, bias={"a": 0.7})
    post = sb.infer(network, evidence, solver=solver)
    sigma = 1 / (1 + np.exp(-0.7))
    assert abs(post["a"] - evidence.get("a", sigma)) < 1e-14
    if not samples(solver):
        assert abs(post.bound - (np.log(sigma) if evidence else 0.0)) < 1e-13


@every_solver
def test_roots_only(solver):
    network = sb.from_edges({}, bias={"a": -1.0, "b": 0.0, "c": 2.0})
    post = sb.infer(network, {"b": 1}, solver=solver)
    assert np.allclose(post.means, [1 / (1 + np.e), 1.0, 1 / (1 + np.exp(-2.0))], rtol=0, atol=1e-14)


@every_solver
def test_parts_that_are_not_connected_do_not_touch(solver):
    left = {("a", "b"): 1.5, ("c", "b"): -1.0}
    right = {("p", "q"): 2.0, ("r", "q"): 0.5}
    if isinstance(solver, sb.MeanField):  # each part stops when both have settled: let them settle well
        solver = sb.MeanField(log_term=solver.log_term, enumerate_up_to=solver.enumerate_up_to, tol=1e-13)
    elif isinstance(solver, sb.Conditioned):
        solver = replace(solver, solver=sb.MeanField(tol=1e-13))
    both = sb.infer(sb.from_edges({**left, **right}), {"b": 1, "q": 0}, solver=solver)
    parts = (
        sb.infer(sb.from_edges(left), {"b": 1}, solver=solver),
        sb.infer(sb.from_edges(right), {"q": 0}, solver=solver),
    )
    for name in "acpr":
        part = parts[0] if name in "ac" else parts[1]
        assert abs(both[name] - part[name]) < (1e-5 if part.error is None else 0.2)
    if not samples(solver):
        assert abs(both.bound - parts[0].bound - parts[1].bound) < 1e-6


# --- looking up -----------------------------------------------------------------------------------------------------


@every_solver
def test_means_by_name_and_number(solver, sprinkler):
    post = sb.infer(sprinkler, {"wet": 1}, solver=solver)
    batch = sb.infer_many(sprinkler, [{"wet": 1}, {}], solver=solver)
    assert post["rain"] == post[0] == post.means[0] == batch["rain"][0]
    assert type(post["rain"]) is float
    for answer in (post, batch):
        with pytest.raises(
            sb.errors.UnknownUnitError, match="'rian', which is not in the network; did you mean 'rain'"
        ):
            answer["rian"]


@every_solver
def test_one_pattern_and_a_table_are_not_confused(solver, sprinkler):
    with pytest.raises(sb.errors.EvidenceError) as caught:
        sb.infer(sprinkler, np.zeros((2, 4)), solver=solver)
    assert str(caught.value) == "one pattern was expected, but the evidence has 2 rows; use infer_many()"
    with pytest.raises(sb.errors.EvidenceError) as caught:
        sb.infer_many(sprinkler, {"wet": 1}, solver=solver)
    assert str(caught.value) == "a table of patterns was expected, but the evidence is one pattern; use infer()"
    with pytest.raises(sb.errors.ParameterError, match="threads is 0; it must be a whole number, one or more"):
        sb.infer_many(sprinkler, np.zeros((2, 4)), solver=solver, threads=0)


# --- equal rows -----------------------------------------------------------------------------------------------------


@every_solver
def test_equal_rows_have_the_answers_they_would_have_alone(solver, long_table):
    network, rows = long_table
    rng = np.random.default_rng(2)
    table = rows[rng.integers(0, len(rows), 2 * len(rows))]  # some rows often, some not at all, in any order
    batch = sb.infer_many(network, table, solver=solver)
    check(batch, table, solver)
    for r in range(0, len(table), 7):
        assert equal(batch[r : r + 1], sb.infer_many(network, table[r : r + 1], solver=solver))


@dataclass(frozen=True)
class Counting:
    """Mean field, with the rows it was asked for."""

    asked: list

    def solve(self, network, states, *, start, trace):
        self.asked.extend(states.tolist())
        return sb.MeanField().solve(network, states, start=start, trace=trace)


@pytest.mark.small
def test_equal_rows_are_solved_once_and_equal_masks_stand_together(sprinkler):
    rows = [[1, -1, 0, -1], [-1, -1, -1, 1], [0, -1, 1, -1], [1, -1, 0, -1], [-1, -1, -1, 1], [-1, -1, -1, 0]]
    counting = Counting([])
    batch = sb.infer_many(sprinkler, rows, solver=counting, threads=1)
    assert sorted(counting.asked) == sorted([rows[0], rows[1], rows[2], rows[5]])
    masks = [[state < 0 for state in row] for row in counting.asked]
    assert sum(one != next_ for one, next_ in pairwise(masks)) == 1
    assert same(batch.bound[:2], batch.bound[3:5])
    counting.asked.clear()
    sb.infer_many(sprinkler, rows, solver=counting, start=np.random.default_rng(0).random((6, 4)))
    assert len(counting.asked) == 6  # equal evidence, other starting points


@pytest.mark.small
def test_a_collision_of_hashes_does_no_harm(sprinkler, monkeypatch):
    rows = np.random.default_rng(0).integers(-1, 2, (30, 4))
    wanted = sb.infer_many(sprinkler, rows)
    monkeypatch.setattr("sbnet.inference.equal_rows._hashes", lambda table: np.zeros(len(table), np.uint64))
    assert equal(sb.infer_many(sprinkler, rows), wanted)


# --- a solver of one's own ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Guess:
    """The least a solver can be: all means one half."""

    bound: float = np.nan

    def solve(self, network, states, *, start, trace):
        n, half = len(states), np.full(states.shape, 0.5)
        means = np.where(states == HIDDEN, half if start is None else start, states)
        status = np.full(n, sb.results.Status.CONVERGED.code)
        return sb.solvers.Solution(np.full(n, self.bound), means, status, np.ones(n, np.int64))


@pytest.mark.small
@pytest.mark.parametrize("solver", [Guess(), Guess(-1e9)], ids=["no bound", "bound"])
def test_anything_that_follows_the_protocol_is_a_solver(solver, sprinkler):
    mine: sb.solvers.Solver = solver
    post = sb.infer(sprinkler, {"wet": 1}, solver=mine)
    assert np.array_equal(post.means, [0.5, 0.5, 1.0, 0.5])
    assert post.converged
    assert post.error is None
    assert np.all(np.isnan(post.xi))
    assert len(post.trace) == 0
    batch = sb.infer_many(sprinkler, [{"wet": 1}, {"rain": 0}], solver=mine, start=np.full((2, 4), 0.25))
    assert np.array_equal(batch.means, [[0.25, 0.25, 1.0, 0.25], [0.0, 0.25, 0.25, 0.25]])
    assert same(batch.bound, [post.bound] * 2)
    assert batch.error is None
    assert batch.r_hat is None
    assert len(sb.infer_many(sprinkler, np.empty((0, 4)), solver=mine)) == 0
    assert "no bound" in repr(post) if np.isnan(post.bound) else "ln P ≥ -1e+09 nats" in repr(post)
    assert "sampling" not in repr(post) + repr(batch)


@dataclass(frozen=True)
class Both:
    """The bound and its parameters from mean field theory, the means and their errors from chains."""

    def solve(self, network, states, *, start, trace):
        field = sb.MeanField().solve(network, states, start=start, trace=trace)
        chains = sb.Gibbs(samples=40).solve(network, states, start=start, trace=False)
        return replace(field, means=chains.means, status=chains.status, chains=chains.chains)


@pytest.mark.skipif(INTERPRETED, reason="thousands of samples")
@pytest.mark.small
def test_a_solver_with_a_bound_and_an_error_loses_neither(sprinkler):
    rows = [{"wet": 1}, {"slippery": 1}, {"wet": 1}, {}]
    batch = sb.infer_many(sprinkler, rows, solver=Both())
    field = sb.infer_many(sprinkler, rows)
    chains = sb.infer_many(sprinkler, rows, solver=sb.Gibbs(samples=40))
    assert same(batch.bound, field.bound)
    assert same(batch.xi, field.xi)
    assert same(batch.error, chains.error)
    assert same(batch.r_hat, chains.r_hat)
    assert batch.status == chains.status
    for r, row in enumerate(rows):
        one = sb.infer(sprinkler, row, solver=Both())
        for post in (one, batch[r]):
            assert same(post.error, chains.error[r])
            assert post.bound == field.bound[r]
        assert one.trace[-1] == one.bound


def test_warnings_tell_of_the_status_and_not_of_the_kind_of_solver(sprinkler):
    @dataclass(frozen=True)
    class Unsure:
        def solve(self, network, states, *, start, trace):
            codes = [
                sb.results.Status.MAX_SWEEPS.code,
                sb.results.Status.NOT_MIXED.code,
                sb.results.Status.CONVERGED.code,
            ]
            solution = sb.MeanField().solve(network, states, start=start, trace=trace)
            return replace(solution, status=np.array(codes)[states.argmax(axis=1)])

    with pytest.warns(sb.errors.ConvergenceWarning) as caught:
        batch = sb.infer_many(sprinkler, np.eye(4)[:3], solver=Unsure())
    texts = [str(warning.message) for warning in caught]
    assert len(texts) == 2
    assert texts[0].startswith("1 of 3 rows reached max_sweeps=")
    assert texts[1] == "in 1 of 3 rows the chains disagree (R-hat is 1.05 or more); draw more samples"
    assert batch.status == [sb.results.Status.MAX_SWEEPS, sb.results.Status.NOT_MIXED, sb.results.Status.CONVERGED]
    assert batch.converged.tolist() == [False, False, True]


@pytest.mark.small
def test_a_class_in_place_of_a_solver_is_told_apart(sprinkler):
    for call in (
        lambda: sb.infer(sprinkler, {}, solver=sb.Gibbs),
        lambda: sb.fit(sprinkler, [[0, 1, 1, 0]], solver=sb.Gibbs),
        lambda: sb.gradient(sprinkler, {}, solver=sb.Gibbs),
        lambda: sb.estimate(sprinkler, {}, solver=sb.Gibbs),
        lambda: sb.Conditioned(1, solver=sb.Gibbs),
        lambda: sb.Mixture(2, solver=sb.Gibbs),
        lambda: sb.Structured(solver=sb.Gibbs),
    ):
        with pytest.raises(sb.errors.ParameterError) as caught:
            call()
        assert str(caught.value) == "solver is the class Gibbs; write solver=sb.Gibbs()"
