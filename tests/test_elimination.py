"""Variable elimination over variables with two to five states, all gates, against sums over all joint states."""

from __future__ import annotations

import gzip
import itertools
import os
import time
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle
import sbnet as sb
from sbnet.errors import TooManyHiddenError
from sbnet.exact import answers, elimination, passes, sparse
from sbnet.exact.elimination import explain, plan, solve
from sbnet.exact.factors import TABLE, Family, families_of
from sbnet.exact.sparse import Sum
from sbnet.kernels.codes import NOISY_OR, SIGMOID
from strategies import mixed_cases
from test_enumeration import Variables

pytestmark = pytest.mark.small
seeds = st.integers(0, 2**32 - 1)
some = settings(max_examples=60)


# --- random families, and the sum over all joint states ---------------------------------------------------------------


def random_table(rng, shape):
    """Probabilities, three tenths of them zero."""
    table = rng.random(shape) * (rng.random(shape) > 0.3)
    table[..., 0] += table.sum(axis=-1) == 0.0
    return table / table.sum(axis=-1, keepdims=True)


def random_numbers(rng, gate, scale, size):
    """Weights to ±1000; those of noisy-MAX variables are 0 or anything from 1e-9 to 1000."""
    if gate == SIGMOID:
        return rng.uniform(-scale, scale, size) if rng.random() < 0.7 else rng.choice([-1000.0, 1000.0, 0.0], size)
    values = rng.uniform(0.0, scale, size) if rng.random() < 0.8 else 10.0 ** rng.uniform(-9, 3, size)
    return np.where(rng.random(size) < 0.2, 0.0, values)


def random_families(seed, gates, n=6, most=5):
    """Families, and how many states each variable has."""
    rng = np.random.default_rng(seed)
    n_states, density, scale = rng.integers(2, rng.integers(2, most + 1) + 1, n), rng.random(), rng.choice([1.0, 30.0])
    families = []
    for v in range(n):
        parents, gate = tuple(np.flatnonzero(rng.random(v) < density).tolist()), int(rng.choice(gates))
        levels, of_parents = n_states[v] - 1, [n_states[u] for u in parents]
        if gate == TABLE:
            table = random_table(rng, (*of_parents, n_states[v]))
            families.append(Family(v, parents, gate, np.zeros(levels), (), table))
            continue
        weights = tuple(random_numbers(rng, gate, scale, (levels, k - 1)) for k in of_parents)
        families.append(Family(v, parents, gate, random_numbers(rng, gate, scale, levels), weights))
    return families, n_states


def log_p(family, state):
    """ln P(v | parents) in a joint state: the table of DESIGN, one line a gate."""
    k = state[family.variable]
    if family.gate == TABLE:
        return np.log(family.table[tuple(state[u] for u in family.parents)][k])
    x = family.bias + sum(w[:, state[u] - 1] for u, w in zip(family.parents, family.weights, strict=True) if state[u])
    if family.gate == SIGMOID:  # P(v >= l | v >= l - 1) = sigma(x_l)
        return -np.logaddexp(0.0, -x[:k]).sum() - (np.logaddexp(0.0, x[k]) if k < len(x) else 0.0)
    return -x[k:].sum() + (np.log(-np.expm1(-x[k - 1])) if k else 0.0)  # P(v <= k) = exp(-sum of x_l over l > k)


def joint(families, n_states, row, likelihoods):
    """Every joint state that agrees with the evidence, and ln P of each."""
    states = list(itertools.product(*[range(k) if s < 0 else [s] for k, s in zip(n_states, row, strict=True)]))
    with np.errstate(divide="ignore"):
        soft = [sum(np.log(p[state[v]]) for v, p in likelihoods.items()) for state in states]
        logs = [sum(log_p(family, state) for family in families) for state in states]
    return np.array(states), np.array(logs) + soft


def random_rows(rng, n_states, n, share):
    """Evidence on the same variables in all rows."""
    seen = rng.random(len(n_states)) < share
    return np.where(seen, rng.integers(0, n_states, (n, len(n_states))), -1).astype(np.int8)


@st.composite
def cases(draw):
    """Families, numbers of states, rows of evidence on the same variables, and soft evidence."""
    gates = draw(st.sampled_from([(SIGMOID, NOISY_OR, TABLE), (SIGMOID,), (NOISY_OR,), (TABLE,)]))
    families, n_states = random_families(draw(seeds), gates)
    rng = np.random.default_rng(draw(seeds))
    rows = random_rows(rng, n_states, 2, draw(st.sampled_from([0.0, 0.3, 0.6, 1.0])))
    soft = {v: rng.random(k) * (rng.random(k) < 0.8) + 1e-9 for v, k in enumerate(n_states) if rng.random() < 0.2}
    return families, n_states, rows, soft


@settings(max_examples=100)
@given(case=cases(), whole=st.sampled_from([1, 8, 1 << 14]))
def test_sums_and_posteriors_are_those_of_all_joint_states(case, whole):  # eqs. (7) and (8)
    families, n_states, rows, soft = case
    monkeypatch = pytest.MonkeyPatch()
    if whole < 1 << 14:  # states are summed one by one or a few at a time, and few tables are kept
        monkeypatch.setattr(elimination, "_WHOLE", whole)
        monkeypatch.setattr(passes, "ROOM", 1)
    found = solve(plan(families, n_states, rows, soft=soft), rows, soft, None)
    monkeypatch.undo()
    for r, row in enumerate(rows):
        states, logs = joint(families, n_states, row, soft)
        expected = np.logaddexp.reduce(logs)
        if expected == -np.inf:
            assert found.log_p[r] == -np.inf
            assert all(np.isnan(p[r]).all() for p in found.posteriors.values())
            continue
        assert found.log_p[r] == pytest.approx(expected, rel=1e-12, abs=1e-12)
        weight = np.exp(logs - expected)
        assert set(found.posteriors) == set(np.flatnonzero(row < 0).tolist())
        for v, posterior in found.posteriors.items():
            shares = np.bincount(states[:, v], weight, n_states[v])
            assert posterior[r] == pytest.approx(shares, rel=1e-9, abs=1e-11)


@some
@given(case=cases())
def test_the_most_probable_explanation_is_the_largest_term(case):
    families, n_states, rows, soft = case
    value, best = explain(plan(families, n_states, rows, soft=soft, maximum=True), rows, soft)
    for r, row in enumerate(rows):
        logs = joint(families, n_states, row, soft)[1]
        assert value[r] == pytest.approx(logs.max(), rel=1e-12, abs=1e-12)
        if value[r] > -np.inf:
            assert joint(families, n_states, best[r], soft)[1][0] == pytest.approx(logs.max(), rel=1e-12, abs=1e-12)
            assert np.array_equal(best[r][row >= 0], row[row >= 0])


@settings(max_examples=200)
@given(case=cases())
def test_a_row_does_not_depend_on_its_neighbours(case):
    families, n_states, rows, soft = case
    order = plan(families, n_states, rows, soft=soft)
    together = solve(order, rows, soft, None)
    for r in range(len(rows)):
        alone = solve(order, rows[r : r + 1], soft, None)
        assert np.array_equal(alone.log_p, together.log_p[r : r + 1])
        for v, posterior in alone.posteriors.items():
            assert np.array_equal(posterior[0], together.posteriors[v][r], equal_nan=True)


@given(seed=seeds)
def test_families_of_a_network_are_its_conditionals(seed):
    many = Variables(seed)
    hidden = np.flatnonzero(many.states < 0)
    every = Sum(many, many.states[None, :], range(len(many.states)), 25).solve(many.states[None, :], hidden.tolist())
    expected, probabilities = oracle.exact_of_states(many.model, many.bias, many.states)
    assert every.log_p[0] == pytest.approx(expected, abs=1e-10)
    for v in hidden.tolist():
        mine = slice(many.model.threshold[v], many.model.threshold[v + 1])
        assert every.posteriors[v][0, 1:] == pytest.approx(probabilities[mine], abs=1e-10)


def test_a_table_of_a_network_is_given_beside_it():
    many, rng = Variables(5), np.random.default_rng(0)
    model = many.model._replace(gate=np.where(np.arange(6) == 4, TABLE, many.model.gate).astype(np.int8))
    parents = model.parent[model.indptr[4] : model.indptr[5]]
    table = random_table(rng, (*model.n_states[parents], model.n_states[4]))
    families = families_of(model, many.bias, range(6), {4: table})
    assert families[4].table is table
    assert families[4].parents == tuple(parents)
    logs = joint(families, model.n_states, many.states, {})[1]
    found = solve(plan(families, model.n_states, many.states[None, :]), many.states[None, :]).log_p[0]
    assert found == pytest.approx(np.logaddexp.reduce(logs), rel=1e-12)


@settings(max_examples=100)
@given(case=mixed_cases())
def test_networks_of_both_gates_have_the_answers_of_the_equations(case):
    """Leaks of 0 and weights to ±1001 among them."""
    network, evidence = case
    J, h, gate = network.weight_matrix(), network.bias, network.gate
    row = np.where(np.isnan(evidence), -1, evidence).astype(np.int8)[None]
    atol = oracle.rounding(J, h, gate)
    found = Sum(network, row, range(network.n_units), 25).solve(row, None)
    assert found.log_p[0] == pytest.approx(oracle.log_likelihood(J, h, evidence, gate), abs=atol)
    assume(not oracle.is_impossible(J, h, evidence, gate))
    means = oracle.posterior(J, h, evidence, gate)
    for v, posterior in found.posteriors.items():
        assert posterior[0, 1] == pytest.approx(means[v], abs=4 * atol)
    states = oracle.all_states(evidence)
    value, best = Sum(network, row, range(network.n_units), 25, maximum=True).explain(row)
    assert value[0] == pytest.approx(oracle.log_joint(J, h, states, gate).max(), abs=atol)
    assert oracle.log_joint(J, h, best, gate)[0] == pytest.approx(value[0], abs=atol)


# --- noisy-MAX: digits, and cost --------------------------------------------------------------------------------------


def two_levels(rng, causes, findings, *, fan=None, leak=1e-3, prior=0.01, k=2):
    """Causes without parents, and noisy-MAX findings with k states each; how many states each variable has."""
    families = [Family(j, (), SIGMOID, np.log([prior / (1.0 - prior)])) for j in range(causes)]
    for i in range(findings):
        above = tuple(sorted(rng.choice(causes, fan or causes, replace=False).tolist()))
        weights = tuple(-np.log1p(-rng.uniform(0.05, 0.95, (k - 1, 1))) for _ in above)
        families.append(Family(causes + i, above, NOISY_OR, np.full(k - 1, -np.log1p(-leak)), weights))
    return families, [2] * causes + [k] * findings


def exact_sum(families, causes):
    """P(all findings are present), and with the first cause on, to fifty digits: a sum over the states of causes."""
    fails = [[(-Decimal(float(w[0, 0]))).exp() for w in family.weights] for family in families[causes:]]
    prior = [1 / (1 + (-Decimal(float(family.bias[0]))).exp()) for family in families[:causes]]

    def total(j, off):
        if j == causes:
            product = Decimal(1)
            for p in off:
                product *= 1 - p
            return product
        with_it = [p * fail[j] for p, fail in zip(off, fails, strict=True)]
        return (1 - prior[j]) * total(j + 1, off) + prior[j] * total(j + 1, with_it)

    leaks = [(-Decimal(float(family.bias[0]))).exp() for family in families[causes:]]
    first = prior[0] * total(1, [p * fail[0] for p, fail in zip(leaks, fails, strict=True)])
    return first + (1 - prior[0]) * total(1, leaks), first


@pytest.mark.parametrize("patient", [False, True])
def test_no_digit_is_lost_at_twenty_positive_findings(patient, monkeypatch):
    """Signed sums are off by a factor of 1000 here; no term of this one is negative."""
    families, n_states = two_levels(np.random.default_rng(0), 10 if patient else 12, 20)
    causes = len(families) - 20
    if patient:  # a sweep over the causes, whatever it costs
        greedy = elimination.best_order.__globals__["_Greedy"]
        monkeypatch.setattr(greedy, "_score", _patient(greedy._score))
    rows = np.array([[-1] * causes + [1] * 20], np.int8)
    found = solve(plan(families, n_states, rows), rows, wanted=[0])
    with localcontext() as context:
        context.prec = 50
        whole, first = exact_sum(families, causes)
        assert abs(Decimal(float(found.log_p[0])) - whole.ln()) < Decimal("1e-14")
        assert abs(Decimal(float(found.posteriors[0][0, 1])) / (first / whole) - 1) < Decimal("1e-14")


def _patient(score):
    return lambda self, v: (np.inf, 0.0) if v in self.pending else score(self, v)


@pytest.mark.parametrize(("causes", "k"), [(60, 2), (60, 4)])
def test_two_levels_cost_two_to_the_power_of_positive_findings(causes, k):
    families, n_states = two_levels(np.random.default_rng(1), causes, 40, fan=25, k=k)
    rows = np.array([[-1] * causes + [k - 1] * 8 + [0] * 32], np.int8)
    order = plan(families, n_states, rows)
    assert order.bits <= 8
    assert order.work <= 2.0**8 * causes * 2 * (2 * 8 + 10)
    found = solve(order, rows, wanted=None)
    on = np.array([found.posteriors[j][0, 1] for j in range(causes)])
    assert np.all((on > 0.0) & (on < 1.0))


def test_a_family_of_forty_hidden_causes_is_no_table():
    """P(v <= k) is the product over causes of P(no more than k), here with hidden v that something depends on."""
    rng = np.random.default_rng(2)
    families, n_states = two_levels(rng, 40, 1, leak=0.05, prior=0.2, k=3)
    families.append(Family(41, (40,), TABLE, np.zeros(1), (), np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])))
    rows = np.full((1, 42), -1, np.int8)
    order = plan(families, [*n_states, 2], rows)
    assert order.bits < 4
    below = np.array([1.0, 1.0, 1.0])
    for level in range(2):
        theta = [w[level:].sum() for w in families[40].weights]
        below[level] = np.exp(-families[40].bias[level:].sum()) * np.prod(1.0 - 0.2 + 0.2 * np.exp(np.negative(theta)))
    expected = np.diff(below, prepend=0.0)
    found = solve(order, rows, wanted=None)
    assert found.log_p[0] == pytest.approx(0.0, abs=1e-13)
    assert found.posteriors[40][0] == pytest.approx(expected, rel=1e-12)
    assert found.posteriors[41][0, 1] == pytest.approx(expected @ [0.1, 0.5, 0.8], rel=1e-12)


# --- long chains, and the limit ---------------------------------------------------------------------------------------


def test_thousands_of_variables_and_a_very_low_probability():
    """A chain of three states, with an observation on each that has a probability of e^-60 or so: ln P is -1e5."""
    rng, n = np.random.default_rng(3), 2000
    move, seen = rng.dirichlet(np.ones(3), 3), np.exp(-rng.uniform(40.0, 80.0, (n, 3)))
    families = [Family(0, (), TABLE, np.zeros(2), (), np.full(3, 1.0 / 3.0))]
    families += [Family(k, (k - 1,), TABLE, np.zeros(2), (), move) for k in range(1, n)]
    soft, rows = dict(enumerate(seen)), np.full((1, n), -1, np.int8)
    forward, total = np.full(3, 1.0 / 3.0), 0.0
    for k in range(n):
        forward = (forward @ move if k else forward) * seen[k]
        total, forward = total + np.log(forward.sum()), forward / forward.sum()
    found = solve(plan(families, [3] * n, rows, soft=soft), rows, soft, [n - 1])
    assert total < -9e4
    assert found.log_p[0] == pytest.approx(total, rel=1e-13)
    assert found.posteriors[n - 1][0] == pytest.approx(forward, rel=1e-11)


def test_numbers_that_doubles_do_not_span_are_summed_as_logarithms():
    """Two parts that are each all but impossible, e^-900 for one state or the other."""
    against = [np.array([900.0]), np.array([-900.0])]
    families = [Family(0, (), SIGMOID, np.zeros(1))]
    families += [Family(k + 1, (0,), SIGMOID, -x / 2.0, (x[None],)) for k, x in enumerate(against)]
    rows = np.array([[-1, 1, 1]], np.int8)
    found = solve(plan(families, [2, 2, 2], rows), rows, wanted=[0])
    assert found.log_p[0] == pytest.approx(-450.0, rel=1e-14)
    assert found.posteriors[0][0] == pytest.approx([0.5, 0.5], rel=1e-12)


def test_products_that_doubles_do_not_hold_are_summed_as_logarithms():
    """Two leaves are for one state of the centre and two for the other, each by 1e-200: both products are 1e-400."""
    agrees = np.array([[1.0, 1e-200], [1e-200, 1.0]])
    families = [Family(0, (), TABLE, np.zeros(1), (), np.array([0.25, 0.75]))]
    families += [Family(k, (0,), TABLE, np.zeros(1), (), agrees) for k in range(1, 5)]
    soft = {k: np.eye(2)[k % 2] for k in range(1, 5)}
    rows = np.full((1, 5), -1, np.int8)
    order = plan(families, [2] * 5, rows, soft=soft)
    assert solve(order, rows, soft).log_p[0] == pytest.approx(-400.0 * np.log(10.0), rel=1e-14)
    found = solve(order, rows, soft, None)
    assert found.log_p[0] == pytest.approx(-400.0 * np.log(10.0), rel=1e-14)
    assert found.posteriors[0][0] == pytest.approx([0.25, 0.75], rel=1e-12)


def test_a_table_past_the_limit_is_told_before_anything_is_computed():
    rng = np.random.default_rng(0)
    families = [Family(j, (), SIGMOID, np.zeros(1)) for j in range(30)]
    for j in range(1, 30):
        above = tuple(sorted({0, j, j % 29 + 1}))
        families.append(Family(29 + j, above, SIGMOID, np.zeros(1), tuple(rng.normal(size=(3, 1, 1)))))
    rows = np.array([[-1] * 30 + [1] * 29], np.int8)
    names = [f"v{k}" for k in range(59)]
    with pytest.raises(TooManyHiddenError) as caught:
        plan(families, [2] * 59, rows, limit=2, names=names)
    assert "exact elimination needs a table of 2**3 numbers over 3 variables, 'v0', " in str(caught.value)
    assert "the limit is 2. Observe 'v0' to make it smaller, or use infer() for a lower bound instead" in str(
        caught.value
    )
    assert plan(families, [2] * 59, rows, limit=6).bits <= 6


@pytest.mark.parametrize("largest", [0.0, 2.0, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_large_table_is_summed_in_parts(monkeypatch, largest, seed):
    """Variables of either gate have a state in each part, and are observed there in some as 0 and in some as 1."""
    rng, n = np.random.default_rng(seed), 9
    names = [f"u{k}" for k in range(n)]
    edges = {(a, b): float(rng.exponential()) for a, b in itertools.combinations(names, 2) if rng.random() < 0.5}
    gate = {name: str(rng.choice(["noisy-or", "sigmoid"])) for name in names}
    network = sb.from_edges(edges, bias=dict.fromkeys(names, 0.1), gate=gate, names=names)
    row = np.where(rng.random((1, n)) < 0.3, rng.integers(0, 2, (1, n)), -1).astype(np.int8)
    whole = Sum(network, row, range(n), 25).solve(row, None)
    monkeypatch.setattr(sparse, "_LARGEST", largest)
    parts = Sum(network, row, range(n), 25).solve(row, None)
    assert parts.log_p == pytest.approx(whole.log_p, rel=1e-12)
    for v, posterior in whole.posteriors.items():
        assert parts.posteriors[v] == pytest.approx(posterior, rel=1e-10)


# --- networks ---------------------------------------------------------------------------------------------------------


def chain(n, rng):
    """A chain of hidden units with an observed child each, and what was observed."""
    edges = {(f"h{k}", f"h{k + 1}"): float(rng.normal(0.0, 2.0)) for k in range(n - 1)}
    edges |= {(f"h{k}", f"x{k}"): float(rng.normal(0.0, 3.0)) for k in range(n)}
    return sb.from_edges(edges), {f"x{k}": int(rng.random() < 0.5) for k in range(n)}


def forward(network, evidence, n, plus):
    """ln of the sum, or of the largest term, along the chain."""
    J, h = network.weight_matrix(), network.bias

    def log_p(unit, parent, state, above):
        i = network.index(unit)
        x = h[i] + (J[i, network.index(parent)] * above if parent else 0.0)
        return -np.logaddexp(0.0, -x if state else x)

    now = [log_p("h0", None, s, 0) + log_p("x0", "h0", evidence["x0"], s) for s in (0, 1)]
    for k in range(1, n):
        now = [
            plus([now[a] + log_p(f"h{k}", f"h{k - 1}", s, a) for a in (0, 1)])
            + log_p(f"x{k}", f"h{k}", evidence[f"x{k}"], s)
            for s in (0, 1)
        ]
    return plus(now)


def test_sparse_networks_of_many_hidden_units_have_exact_answers():
    network, evidence = chain(200, np.random.default_rng(0))
    expected = forward(network, evidence, 200, np.logaddexp.reduce)
    assert sb.log_likelihood(network, evidence) == pytest.approx(expected, rel=1e-13)
    exact = sb.exact_posterior(network, evidence, units=["h0", "h199"])
    on = sb.log_likelihood(network, evidence | {"h0": 1})
    assert exact["h0"] == pytest.approx(np.exp(on - expected), rel=1e-10)
    best = sb.most_probable(network, evidence)
    assert best.exact
    assert best.log_p == pytest.approx(forward(network, evidence, 200, max), rel=1e-13)
    few = {name: evidence[name] for name in ("x3", "x150")}
    every = sb.exact_posterior(network, few)
    assert np.isfinite(every.means).all()
    assert every["x70"] == pytest.approx(
        np.exp(sb.log_likelihood(network, few | {"x70": 1}) - sb.log_likelihood(network, few)), rel=1e-10
    )


def test_rows_alike_share_their_order(monkeypatch):
    network, _ = chain(20, np.random.default_rng(1))
    rows = sb.sample(network, 100, rng=0).astype(float)
    rows[:, [network.index(f"h{k}") for k in range(20)]] = np.nan
    made = []
    monkeypatch.setattr(sparse, "plan", lambda *given, **options: made.append(1) or plan(*given, **options))
    together = sb.log_likelihood(network, rows)
    assert len(made) == 1
    assert together[:3] == pytest.approx([sb.log_likelihood(network, row) for row in rows[:3]], rel=1e-13)


def test_pairs_from_one_order_are_those_of_sums_for_each(monkeypatch):
    network, evidence = chain(6, np.random.default_rng(2))
    del evidence["x2"], evidence["x4"]
    pairs = sb.exact_pairs(network, evidence)
    monkeypatch.setattr(answers, "_given_each", answers._given_each_apart)
    assert pairs == pytest.approx(sb.exact_pairs(network, evidence), rel=1e-10)


# --- against pyAgrum --------------------------------------------------------------------------------------------------


def families_from(bn):
    """The tables of a network of pyAgrum: families, numbers of states, and its variables in our order."""
    order = list(bn.topologicalOrder())
    number = {v: k for k, v in enumerate(order)}
    families = []
    for own, v in enumerate(order):
        cpt = bn.cpt(v)
        axes = [number[bn.idFromName(name)] for name in reversed(list(cpt.names))]
        table = np.moveaxis(cpt.toarray(), axes.index(own), -1)
        parents = tuple(u for u in axes if u != own)
        families.append(Family(own, parents, TABLE, np.zeros(table.shape[-1] - 1), (), table))
    return families, [bn.variable(v).domainSize() for v in order], order


def compare(gum, bn, share, seed):
    """The largest difference of all posteriors and of ln P; and how long each of the two took."""
    families, n_states, order = families_from(bn)
    rng, n = np.random.default_rng(seed), len(order)
    state = np.full(n, -1, np.int8)
    for family in families:
        p = family.table[tuple(state[u] for u in family.parents)]
        state[family.variable] = rng.choice(len(p), p=p / p.sum())
    row = np.where(rng.random(n) < share, state, -1).astype(np.int8)[None]
    begin = time.perf_counter()
    theirs = gum.LazyPropagation(bn)
    theirs.setEvidence({order[v]: int(row[0, v]) for v in np.flatnonzero(row[0] >= 0)})
    theirs.makeInference()
    posteriors = [theirs.posterior(v).toarray() for v in order]
    middle = time.perf_counter()
    found = solve(plan(families, n_states, row), row, wanted=None)
    seconds = time.perf_counter() - middle, middle - begin
    off = [np.abs(found.posteriors[v][0] - posteriors[v]).max() for v in np.flatnonzero(row[0] < 0)]
    if (row >= 0).any():
        off.append(abs(found.log_p[0] - np.log(theirs.evidenceProbability())) / max(1.0, abs(found.log_p[0])))
    return max(off, default=0.0), seconds


@pytest.mark.parametrize("seed", range(8))
def test_random_networks_of_tables_agree_with_pyagrum(seed):
    gum = pytest.importorskip("pyagrum")
    gum.initRandom(seed + 1)
    bn = gum.randomBN(n=14, ratio_arc=1.6, domain_size=4)
    for share in (0.0, 0.3, 0.6):
        assert compare(gum, bn, share, seed)[0] < 1e-9


@pytest.mark.parametrize("gates", [(SIGMOID, NOISY_OR, TABLE), (NOISY_OR,), (SIGMOID,)])
@pytest.mark.parametrize("seed", [0, 2, 8])
def test_random_networks_of_all_gates_agree_with_pyagrum(seed, gates):
    """Logits and noisy-MAX variables are tables there, and chains of causes here."""
    gum = pytest.importorskip("pyagrum")
    families, n_states = random_families(seed, gates, n=7, most=3)
    bn = gum.BayesNet()
    for v, k in enumerate(n_states.tolist()):
        bn.add(gum.RangeVariable(f"v{v}", "", 0, k - 1))
    with np.errstate(divide="ignore"):
        for family in families:
            for u in family.parents:
                bn.addArc(u, family.variable)
            scope = (*family.parents, family.variable)
            for joint_state in itertools.product(*(range(n_states[v]) for v in scope)):
                state = dict(zip(scope, joint_state, strict=True))
                bn.cpt(family.variable)[{f"v{v}": s for v, s in state.items()}] = np.exp(log_p(family, state))
    theirs, rows = gum.LazyPropagation(bn), np.full((1, len(families)), -1, np.int8)
    rows[0, -1] = 0
    order = plan(families, n_states, rows)
    found = solve(order, rows, wanted=None)
    theirs.setEvidence({len(families) - 1: 0})
    assert found.log_p[0] > -600.0
    theirs.makeInference()
    assert found.log_p[0] == pytest.approx(np.log(theirs.evidenceProbability()), abs=1e-9)
    for v, posterior in found.posteriors.items():
        assert posterior[0] == pytest.approx(theirs.posterior(v).toarray(), abs=1e-9)


FOLDER = Path(os.environ.get("SBNET_TABLES", "."))
NETWORKS = ("asia", "sachs", "alarm", "win95pts", "hepar2")


def network_file(name):
    return next((path for path in FOLDER.glob(f"**/{name}.bif.gz")), None) if os.environ.get("SBNET_TABLES") else None


@pytest.mark.skipif(network_file("asia") is None, reason="SBNET_TABLES names the folder of asia.bif.gz and others")
@pytest.mark.parametrize("name", NETWORKS)
def test_published_networks_agree_with_pyagrum(name, tmp_path):
    gum = pytest.importorskip("pyagrum")
    (tmp_path / f"{name}.bif").write_bytes(gzip.decompress(network_file(name).read_bytes()))
    bn = gum.loadBN(str(tmp_path / f"{name}.bif"))
    both = [compare(gum, bn, share, seed) for share in (0.0, 0.1, 0.4) for seed in range(3)]
    assert max(off for off, _ in both) < 1e-9
    ours, theirs = (sum(times) for times in zip(*(seconds for _, seconds in both), strict=True))
    print(f"{name}: {ours / len(both) * 1e3:.1f} ms, pyAgrum {theirs / len(both) * 1e3:.1f} ms")
