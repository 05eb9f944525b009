"""Networks of variables with states learned from tables, and rows of states completed: against exact answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

import sbnet as sb
from sbnet.inference.solvers.row_completions import complete, log_probabilities
from sbnet.learning.sequential import (
    Cost,
    Design,
    Features,
    Table,
    Threshold,
    lines,
    regress_label,
    regress_variable,
    score_of,
)
from sbnet.learning.state_networks import StateRows, learn_states
from strategies import INTERPRETED

pytestmark = pytest.mark.small


def random_network(rng: np.random.Generator, n: int = 6, *, tables: bool = False) -> sb.Network:
    """Variables of two to four states, edges here and there."""
    names, k = [f"v{i}" for i in range(n)], rng.integers(2, 5, n)
    edges = {
        (names[j], names[i]): 1.5 * rng.normal(size=(k[i] - 1, k[j] - 1))
        for i in range(n)
        for j in range(i)
        if rng.random() < 0.6
    }
    states = {name: [f"s{s}" for s in range(m)] for name, m in zip(names, k, strict=True)}
    bias = {name: rng.normal(size=m - 1) for name, m in zip(names, k, strict=True)}
    network = sb.from_edges(edges, bias=bias, states=states)
    if not tables:
        return network
    both = np.zeros((*(len(network.states[name]) for name in ("v0", "v1")), 2))
    both[..., 0] = 1.0
    both[1:, 1:] = (0.0, 1.0)
    edges |= {("v0", "both"): None, ("v1", "both"): None, ("both", "v5"): rng.normal(size=(k[5] - 1, 1))}
    return sb.from_edges(edges, bias=bias, states=states, tables={"both": both})


def rows_with_holes(network: sb.Network, rng: np.random.Generator, n: int = 40, share: float = 0.4) -> np.ndarray:
    rows = sb.sample(network, n, rng=rng)
    rows[rng.random(rows.shape) < share] = -1
    return rows


@pytest.mark.parametrize("seed", range(6))
def test_few_completions_are_all_of_them_and_answers_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = random_network(rng, tables=seed % 2 == 1)
    rows = rows_with_holes(network, rng)
    found = complete(network, rows, most=10**6)
    exact = sb.exact_posterior(network, rows)
    np.testing.assert_allclose(found.log_p, sb.log_likelihood(network, rows), atol=1e-10)
    for v, name in enumerate(network.names):
        p = found.probabilities(v, int(network.n_states[v]))
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
        np.testing.assert_allclose(p[:, 1:], exact.means[:, network.columns_of(name)], atol=1e-10)


def test_what_nobody_asks_for_stays_missing() -> None:
    network = sb.from_edges({("a", "b"): 1.0, ("a", "c"): 2.0})
    found = complete(network, np.array([[-1, 1, -1]], np.int8), asked=np.array([0]))
    assert set(found.states[:, network.index("c")].tolist()) == {-1}
    np.testing.assert_allclose(found.log_p, sb.log_likelihood(network, {"b": 1}))


def test_estimates_of_p_are_right_in_the_mean() -> None:
    rng = np.random.default_rng(5)
    network = random_network(rng)
    rows = rows_with_holes(network, rng, 12, 0.6)
    estimates = np.array([log_probabilities(network, rows, most=8, seed=s) for s in range(600)])
    ratio = np.exp(estimates - sb.log_likelihood(network, rows))
    error = np.abs(ratio.mean(axis=0) - 1.0)
    assert (error <= 5.0 * ratio.std(axis=0) / np.sqrt(600) + 1e-12).all()
    assert ratio.std(axis=0).max() > 0.01  # they are estimates


def test_states_are_drawn_down_in_proportion() -> None:
    """Independent variables, more completions than are kept: no state of any of them is lost."""
    network = sb.layered((12,), scale=0.0)
    rows = np.full((1, 12), -1, np.int8)
    found = [complete(network, rows, most=64, seed=seed) for seed in range(20)]
    p = np.array([[one.probabilities(v, 2)[0, 1] for v in range(12)] for one in found])
    assert np.abs(p - 0.5).max() <= 0.35
    assert np.abs(p.mean(axis=0) - 0.5).max() <= 0.1


def test_rows_do_not_depend_on_their_neighbours() -> None:
    rng = np.random.default_rng(1)
    network = random_network(rng)
    rows = rows_with_holes(network, rng, 30, 0.6)
    rows = np.concatenate([rows, rows[::-1]])
    together = log_probabilities(network, rows, most=8)
    np.testing.assert_array_equal(together[:30], together[30:][::-1])
    np.testing.assert_array_equal(together[:3], log_probabilities(network, rows[:3], most=8))
    assert len(log_probabilities(network, rows[:0])) == 0


def test_draws_follow_the_posterior() -> None:
    network = sb.from_edges({("a", "b"): 2.0}, bias={"a": -1.0, "b": -1.0})
    rows = np.tile(np.array([[-1, 1]], np.int8), (4000, 1))
    drawn = complete(network, rows).draw(np.random.default_rng(0).random(4000))
    exact = float(sb.exact_posterior(network, {"b": 1})["a"])
    assert abs(drawn[:, 0].mean() - exact) < 4.0 * np.sqrt(0.25 / 4000)
    assert (drawn[:, 1] == 1).all()


def test_evidence_that_a_table_rules_out() -> None:
    rng = np.random.default_rng(3)
    network = random_network(rng, tables=True)
    row = {"v0": "s0", "both": "yes"}
    states = np.full((1, network.n_units), -1, np.int8)
    states[0, network.index("v0")], states[0, network.index("both")] = 0, 1
    assert sb.log_likelihood(network, row) == -np.inf
    assert log_probabilities(network, states)[0] == -np.inf


# --- regressions --------------------------------------------------------------------------------------------------


def a_table(rng: np.random.Generator, n: int = 300) -> Table:
    """Three variables: ordered, unordered, and one that depends on both."""
    a, b = rng.integers(0, 4, n), rng.integers(0, 3, n)
    c = np.clip((a + (b == 1) * 2 + rng.normal(size=n)).round(), 0, 3).astype(int)
    cells = np.column_stack([a, b, c]).astype(np.int8)
    ordered = np.array([True, False, True])
    return Table(cells, cells, np.array([4, 3, 4]), ordered, np.ones(n), np.arange(n) % 5)


@pytest.mark.parametrize("cost", [Cost(4.0), Cost(1.0, 1.0), Cost(0.2)])
def test_coefficients_satisfy_the_conditions_of_an_optimum(cost: Cost) -> None:
    table = a_table(np.random.default_rng(0))
    features = Features.of(table.n_states, table.ordered)
    design = Design.of(table, features, 2)
    ones, y, weight = design.at(2)[:3]
    b = Threshold(design.at(2), 1e-12).solve(cost).coefficients
    x = ones.cell.astype(float)
    residual = weight * (y - 1.0 / (1.0 + np.exp(-(b[:-1] @ x + b[-1]))))
    gradient = x @ residual - cost.l2 * b[:-1]
    assert abs(residual.sum()) < 1e-3
    active = b[:-1] != 0.0
    np.testing.assert_allclose(gradient[active], cost.l1 * np.sign(b[:-1][active]), atol=2e-3 * max(cost.l1, 1.0))
    assert (np.abs(gradient[~active]) <= 1.01 * cost.l1).all()


def test_straight_lines_are_ridge_regressions_on_normal_scores() -> None:
    table = a_table(np.random.default_rng(1))
    features = Features.of(table.n_states, table.ordered)
    design = Design.of(table, features, 2)
    line = lines(design, range(1, 4), score_of(features, design), 3.0)
    score = np.zeros(4)
    share = np.bincount(table.cells[:, 0], minlength=4) / len(table.cells)
    score[:] = norm.ppf(np.cumsum(share) - share / 2.0)
    inputs = np.column_stack([score[table.cells[:, 0]], *(table.cells[:, 1] == s for s in range(3))])
    for level in (1, 2, 3):
        some = table.cells[:, 2] >= level - 1
        peer = LogisticRegression(C=1.0 / 3.0, tol=1e-8).fit(inputs[some], table.cells[some, 2] >= level)
        slope, *of_b = peer.coef_[0]
        np.testing.assert_allclose(line[level - 1, :3], slope * np.diff(score), atol=2e-3)
        np.testing.assert_allclose(line[level - 1, 3:-1], of_b, atol=2e-3)


@pytest.mark.skipif(INTERPRETED, reason="hundreds of regressions")
def test_the_network_is_what_the_regressions_say() -> None:
    """ln P of complete rows by the network, and by thresholds and features written out."""
    rng = np.random.default_rng(2)
    table = a_table(rng)
    features = Features.of(table.n_states, table.ordered)
    found = [*(regress_variable(table, features, v) for v in range(2)), regress_label(table, features, 2)]
    assert found[2].interactions
    from sbnet.learning.sequential import network_of

    network = network_of(features, found, ["a", "b", "c"], [list("0123"), list("xyz"), list("0123")])
    states = np.full((len(table.cells), network.n_units), -1, np.int8)
    states[:, [network.index(name) for name in "abc"]] = table.cells
    expected = np.zeros(len(states))
    for v, one in enumerate(found):
        z = one.coefficients[:, :-1] @ features.read(table.parents, features.before(v)) + one.coefficients[:, -1:]
        for part in one.interactions:
            z[part.level - 1] += part.value[part.state[tuple(table.cells[:, list(part.variables)].T)]]
        for level in range(1, int(table.n_states[v])):
            own = table.cells[:, v]
            sign = np.where(own >= level, 1.0, -1.0)
            expected -= np.where(own >= level - 1, np.logaddexp(0.0, -sign * z[level - 1]), 0.0)
    np.testing.assert_allclose(log_probabilities(network, states), expected, atol=1e-9)


def _rows(cells: np.ndarray, ordered: list[bool], label: int | None = None) -> StateRows:
    names = tuple(f"c{k}" for k in range(cells.shape[1]))
    states = tuple(tuple(f"s{s}" for s in range(max(int(column.max()) + 1, 2))) for column in cells.T)
    return StateRows(cells.astype(np.int8), np.ones(len(cells)), names, states, np.array(ordered), label)


def test_exact_copies_stay_exact() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, 700), rng.integers(0, 5, 700)
    rows = _rows(np.column_stack([a, b, (a + 1) % 3, b]), [False, True, False, True])
    network, _ = learn_states(rows, rng)
    drawn = sb.sample(network, 4000, rng=1)
    c = {name: drawn[:, network.index(name)] for name in network.names}
    assert ((c["c0"] + 1) % 3 != c["c2"]).mean() < 0.01
    assert (c["c1"] != c["c3"]).mean() < 0.01


@pytest.mark.skipif(INTERPRETED, reason="hundreds of regressions")
def test_noise_is_not_learned() -> None:
    rng = np.random.default_rng(0)
    rows = _rows(rng.integers(0, 3, (400, 8)), [False, True] * 4)
    _, report = learn_states(rows, rng)
    assert report.held_out > -8 * np.log(3.0) - 0.05
    assert "held-out ln P" in str(report)


def test_missing_cells_are_not_evidence() -> None:
    """A parent that is often missing still has its full effect: b copies a, of which half is not seen."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 1500)
    b = np.where(rng.random(1500) < 0.9, a, 1 - a)
    c = np.where(rng.random(1500) < 0.9, a, 1 - a)
    cells = np.column_stack([a, b, c])
    holes = cells.copy()
    holes[rng.random(1500) < 0.5, 0] = -1
    network, _ = learn_states(_rows(holes, [False] * 3), rng)
    p = complete(network, np.array([[1, 1, -1]], np.int8)[:, [("c0", "c1", "c2").index(n) for n in network.names]])
    assert abs(p.probabilities(network.index("c2"), 2)[0, 1] - 0.9) < 0.04
    both = np.full((1, 3), -1, np.int8)
    both[0, network.index("c1")] = both[0, network.index("c2")] = 1
    assert abs(complete(network, both).probabilities(network.index("c0"), 2)[0, 1] - 0.988) < 0.02


@pytest.mark.skipif(INTERPRETED, reason="thousands of trees")
def test_a_label_may_depend_on_pairs() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (600, 4))
    cells = np.column_stack([x, x[:, 0] ^ x[:, 1]])
    network, report = learn_states(_rows(cells, [False] * 5, label=4), rng)
    assert report.variables[-1].interactions > 0
    states = np.full((4, network.n_units), -1, np.int8)
    states[:, [network.index("c0"), network.index("c1")]] = [[0, 0], [0, 1], [1, 0], [1, 1]]
    v = network.index("c4")
    p = complete(network, states, asked=np.array([v])).probabilities(v, 2)[:, 1]
    np.testing.assert_allclose(p, [0.0, 1.0, 1.0, 0.0], atol=0.05)
    plain, _ = learn_states(_rows(cells, [False] * 5, label=4), rng, interactions=False)
    assert plain.n_units == 5


def test_degenerate_tables() -> None:
    rng = np.random.default_rng(0)
    for cells in (np.zeros((3, 2)), np.array([[0, 1]]), np.array([[-1, 1], [-1, 0]]), np.full((4, 3), -1)):
        network, _ = learn_states(_rows(cells, [False] * cells.shape[1]), rng)
        states = np.full((1, network.n_units), 0, np.int8)
        assert np.isfinite(log_probabilities(network, states)).all()


@pytest.mark.parametrize("depth", [2, 3])
def test_a_tree_is_fitted_to_gradients_by_the_condition_that_gains_most(depth: int) -> None:
    """One tree beside one that is written out: all conditions on the same half of the rows."""
    from sbnet.kernels.random import GOLDEN, uniforms
    from sbnet.kernels.trees import RATE, Trees, boost
    from sbnet.kernels.trees import Table as Rows

    rng = np.random.default_rng(0)
    states = np.column_stack([rng.integers(0, k, 80) for k in (5, 4)]).astype(np.int8)
    y, weight, z = rng.integers(0, 2, 80).astype(float), rng.integers(0, 3, 80).astype(float), rng.normal(size=80)
    held_out, loss = (weight == 0.0).astype(float), np.zeros(2)
    begin, ordered = np.array([0, 5, 9]), np.array([True, False])
    n = 2**depth - 1
    trees = Trees(np.zeros((1, n), np.int64), np.zeros((1, n), np.int64), np.zeros((1, n + 1)))
    after = z.copy()
    with np.errstate(over="ignore"):
        boost(Rows(states, begin, ordered, y, weight, held_out), after, np.uint64(3), 1.0, loss, trees)
        some = uniforms(np.uint64(3) + np.arange(1, 81, dtype=np.uint64) * GOLDEN) < 0.5
    some &= weight > 0.0
    p = 1.0 / (1.0 + np.exp(-z))
    g, h = weight * (y - p), weight * p * (1.0 - p)

    def worth(rows: np.ndarray) -> float:
        return g[rows].sum() ** 2 / (h[rows].sum() + 1.0)

    def best(rows: np.ndarray) -> tuple[float, np.ndarray]:
        found = [(1e-3, np.zeros(80, bool))]
        for met in [states[:, 0] >= s for s in range(1, 5)] + [states[:, 1] == s for s in range(4)]:
            yes, no = rows & met, rows & ~met
            if min(weight[yes].sum(), weight[no].sum()) >= 5.0:
                found.append((worth(yes) + worth(no) - worth(rows), met))
        return max(found, key=lambda one: one[0])

    expected = z.copy()

    def grown(rows: np.ndarray, left: int) -> None:
        if not left:
            expected[rows] += RATE * g[rows & some].sum() / (h[rows & some].sum() + 1.0)
            return
        met = best(rows & some)[1]
        grown(rows & ~met, left - 1)
        grown(rows & met, left - 1)

    grown(np.ones(80, bool), depth)
    np.testing.assert_allclose(after, expected, atol=1e-12)
    for k, inputs in enumerate((z, expected)):
        assert loss[k] == pytest.approx(held_out @ (np.logaddexp(0.0, inputs) - y * inputs))


@pytest.mark.parametrize("depth", [2, 3])
def test_trees_are_sums_of_functions_of_their_variables(depth: int) -> None:
    """Functional ANOVA: beside the trees gone through row by row, and no function says what one of fewer does."""
    from sbnet.kernels.trees import Trees
    from sbnet.learning.trees import Bins, centred

    rng, n = np.random.default_rng(1), 2**depth - 1
    n_states, ordered = np.array([4, 3, 2, 3]), np.array([True, False, True, True])
    bins = Bins(np.empty((0, 4), np.int8), np.array([0, 4, 7, 9, 12]), ordered)
    parts = []
    for _ in range(2):
        variable = rng.integers(-1, 4, (30, n))
        state = rng.integers(0, 12, (30, n)) % n_states[variable]
        parts.append(Trees(variable, state, rng.normal(size=(30, n + 1))))
    rows = np.array([*np.ndindex(*n_states)])
    expected = np.zeros(len(rows))
    for trees in parts:
        for t in range(20):
            for r, row in enumerate(rows):
                k = 0
                while k < n:
                    v, s = trees.variable[t, k], trees.state[t, k]
                    k = 2 * k + 1 + int(v >= 0 and (row[v] >= s if ordered[v] else row[v] == s))
                expected[r] += trees.leaf[t, k - n] / 2
    shares = [rng.dirichlet(np.ones(k)) for k in n_states]
    functions = centred(bins.functions(parts, 20), shares)
    assert max(map(len, functions)) == depth
    for variables, value in functions.items():
        expected -= value[tuple(rows[:, list(variables)].T)] if variables else value
        for axis, v in enumerate(variables):
            np.testing.assert_allclose(np.tensordot(value, shares[v], (axis, 0)), 0.0, atol=1e-12)
    np.testing.assert_allclose(expected, 0.0, atol=1e-12)


def test_ways_to_leaves_have_three_variables_and_trees_end_where_they_gain_nothing() -> None:
    """A label that nothing tells: every tree fits noise, and held-out rows lose by it."""
    from sbnet.learning.trees import Bins, no_loss

    rng = np.random.default_rng(0)
    states, begin = rng.integers(0, 3, (300, 6)).astype(np.int8), np.arange(0, 19, 3)
    bins, y = Bins(states, begin, np.array([True, False] * 3)), rng.integers(0, 2, 300).astype(float)
    held_out, loss = (np.arange(300) < 100).astype(float), no_loss()
    trees = bins.boosted(y, 1.0 - held_out, held_out, np.zeros(300), 4, 0, loss)
    last = int(np.flatnonzero(trees.leaf.any(axis=1))[-1])
    assert last < 100
    assert int(loss.argmin()) == last - 49
    assert (loss[last + 1 :] == loss[-1]).all()
    assert loss[-1] > loss.min()
    assert max(map(len, bins.functions([trees], last))) == 3


@pytest.mark.skipif(INTERPRETED, reason="thousands of trees")
def test_two_columns_may_turn_around_what_is_said() -> None:
    """An interval of one column turns around what another says; a third does nothing."""
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.integers(0, 2, 3000), rng.integers(0, 6, 3000), rng.integers(0, 3, 3000)])
    y = ((x[:, 1] >= 2) & (x[:, 1] < 5)) ^ (x[:, 0] == 1)
    network, report = learn_states(_rows(np.column_stack([x, y]), [False, True, False, False], label=3), rng)
    assert report.variables[-1].interactions > 0
    states = np.full((200, network.n_units), -1, np.int8)
    states[:, [network.index(f"c{k}") for k in range(3)]] = x[:200]
    v = network.index("c3")
    p = complete(network, states, asked=np.array([v])).probabilities(v, 2)[:, 1]
    np.testing.assert_allclose(p, y[:200], atol=0.1)


@pytest.mark.skipif(INTERPRETED, reason="thousands of trees")
def test_three_columns_may_tell_a_label_together() -> None:
    """No two of them say what all three do: pairs gave every row about the same probability."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, [3, 4, 3], (3000, 3))
    y = (x[:, 0] == 1) ^ (x[:, 1] >= 1) ^ (x[:, 2] == 0)
    network, report = learn_states(_rows(np.column_stack([x, y]), [False, True, False, False], label=3), rng)
    assert "c0 × c1 × c2" in network.names
    assert report.variables[-1].held_out > -0.2
