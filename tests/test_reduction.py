"""The reduction of a network by evidence, against lists that are made one record at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbnet.questions import reduction
from test_prediction import variables

pytestmark = pytest.mark.small
seeds = st.integers(0, 2**32 - 1)


def live_one_by_one(model, row):
    """Children come after parents: from the last variable to the first, whoever is live makes its parents live."""
    live = row >= 0
    for v in range(len(row) - 1, -1, -1):
        if live[v]:
            live[model.parent[model.indptr[v] : model.indptr[v + 1]]] = True
    return live


def one_by_one(model, row):
    """Records of hidden variables, factors, slots and children, and the known variables, as lists of tuples."""
    live = live_one_by_one(model, row)
    hidden = [v for v in range(len(row)) if live[v] and row[v] < 0]
    column = dict(zip(hidden, np.cumsum([0, *(model.n_states[hidden] - 1)]).tolist(), strict=False))
    factors, slots, children, known, own = [], [], {v: [] for v in hidden}, [], {}
    for v in np.flatnonzero(live).tolist():
        edges = [e for e in range(model.indptr[v], model.indptr[v + 1]) if model.parent[e] in column]
        if not edges:
            known.append(v)
            continue
        own[v] = len(factors)
        for level in range(1, model.n_states[v]):
            first = len(slots)
            for k, e in enumerate(edges):
                u, width = int(model.parent[e]), int(model.n_states[model.parent[e]] - 1)
                children[u].append((len(factors), len(slots), k))
                for s in range(width):
                    place = model.block[e] + (level - 1) * width + s
                    slots.append((model.weight[place], hidden.index(u), column[u] + s, place))
            joint = np.prod(model.n_states[model.parent[edges]].astype(float))
            at, mine = model.threshold[v] + level - 1, hidden.index(v) if v in column else -1
            factors.append((at, v, level, model.gate[v], mine, first, len(slots), len(edges), joint))
    rows = [(v, model.n_states[v], column[v], column[v] + model.n_states[v] - 1, own.get(v, -1)) for v in hidden]
    ends = np.cumsum([0, *(len(children[v]) for v in hidden)])
    rows = [(*row, ends[k], ends[k + 1]) for k, row in enumerate(rows)]
    return rows, factors, slots, [child for v in hidden for child in children[v]], known


def fields(records, *names):
    """Records as tuples of some of their fields."""
    return list(zip(*(records[name].tolist() for name in names), strict=True))


@given(seed=seeds, n=st.integers(1, 12), most_states=st.integers(2, 4), density=st.floats(0.0, 1.0))
def test_problems_have_the_records_that_evidence_leaves(seed, n, most_states, density):
    model, _, states, _ = variables(np.random.default_rng(seed), n, most_states, 1.0, density)
    for row in (*states, np.full(n, -1, np.int8)):
        problem, (hidden, factors, slots, children, known) = reduction.reduce(model, row), one_by_one(model, row)
        names = "variable", "states", "column", "column_end", "own", "child", "child_end"
        assert fields(problem.hidden, *names) == hidden
        names = "threshold", "variable", "level", "gate", "hidden", "slot", "slot_end", "parents", "joint"
        assert fields(problem.factors, *names) == factors
        assert fields(problem.slots, "weight", "parent", "column", "place") == slots
        assert fields(problem.children, "factor", "slot", "place") == children
        assert problem.known.tolist() == known
        assert problem.n_columns == (hidden[-1][3] if hidden else 0)


@pytest.mark.parametrize("generations", [0, 1, reduction._GENERATIONS])
def test_live_variables_are_observed_or_have_an_observed_descendant(generations, monkeypatch):
    monkeypatch.setattr(reduction, "_GENERATIONS", generations)
    for seed in range(50):
        model, _, states, _ = variables(np.random.default_rng(seed), 12, 3, 1.0, 0.15)
        for row in states:
            assert np.array_equal(reduction.live_variables(model, row), live_one_by_one(model, row))


@given(seed=seeds, density=st.floats(0.0, 0.5))
def test_components_are_coupled_by_factors(seed, density):
    model, _, states, _ = variables(np.random.default_rng(seed), 12, 3, 1.0, density)
    for row in states:
        problem = reduction.reduce(model, row)
        group = [{k} for k in range(len(problem.hidden))]
        for factor in problem.factors:
            members = set(problem.slots["parent"][factor["slot"] : factor["slot_end"]].tolist())
            members |= {int(factor["hidden"])} - {-1}
            joined = set().union(*(group[k] for k in members))
            for k in joined:
                group[k] = joined
        first = sorted({min(g) for g in group})
        assert reduction.components(problem).tolist() == [first.index(min(g)) for g in group]
