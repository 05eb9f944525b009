"""The most probable state: the best of all states where they can be tried, and an upper bound that holds elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oracle
import sbnet as sb
import sbnet.inference.maximum as maximum
from sbnet.questions.reduction import absorb
from strategies import INTERPRETED, questions

any_fixture = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=4 if INTERPRETED else 20
)


@pytest.fixture(params=[0, 12], ids=["branch-and-bound", "enumeration"])
def enumerated(request, monkeypatch):
    """Small groups are searched as large ones are, or all their states are tried."""
    monkeypatch.setattr(maximum, "_ENUMERATED", request.param)


def check(network, arrays, best):
    """What every answer promises; gives the value of the best state."""
    evidence, do, _ = arrays
    J, h = network.weight_matrix(), network.bias
    S, weight = oracle.log_weights(J, h, *arrays)
    rounding = 10 * oracle.rounding(J, h) + 1e-12
    given_ = np.where(np.isnan(do), evidence, do)
    assert np.array_equal(best.state[~np.isnan(given_)], given_[~np.isnan(given_)])
    own = weight[np.flatnonzero((best.state == S).all(axis=1))]
    if len(own):  # a state that the reports do not rule out
        assert abs(best.log_p - own[0]) <= rounding
    assert best.upper >= weight.max()
    assert best.upper >= best.log_p
    assert best.log_p <= weight.max() + rounding
    return weight.max(), rounding


@any_fixture
@pytest.mark.small
@given(case=questions())
def test_the_best_of_all_states_is_found(enumerated, case):
    network, evidence, do, arrays = case
    best = sb.most_probable(network, evidence, do=do)
    value, rounding = check(network, arrays, best)
    assert best.exact
    assert best.log_p >= value - rounding
    assert best.gap <= 1e-9 + 1e2 * rounding


@any_fixture
@pytest.mark.small
@given(case=questions(), parts=st.integers(0, 3))
def test_a_search_that_is_cut_short_still_bounds_the_best(monkeypatch, case, parts):
    monkeypatch.setattr(maximum, "_ENUMERATED", 0)
    monkeypatch.setattr(maximum, "_BATCH", 1)
    network, evidence, do, arrays = case
    best = sb.most_probable(network, evidence, do=do, limit=0, parts=parts)
    value, rounding = check(network, arrays, best)
    assert not best.exact or best.log_p >= value - rounding


@pytest.mark.slow
def test_many_hostile_questions(monkeypatch):
    monkeypatch.setattr(maximum, "_ENUMERATED", 0)
    counts = {"exact": 0, "cut": 0}

    @settings(max_examples=1500, database=None)
    @given(questions(max_units=11, scales=("hostile", "strong")), st.booleans())
    def run(case, cut):
        network, evidence, do, arrays = case
        best = sb.most_probable(network, evidence, do=do, **({"limit": 0, "parts": 1} if cut else {}))
        value, rounding = check(network, arrays, best)
        assert not best.exact or best.log_p >= value - rounding
        counts["cut" if cut else "exact"] += 1

    run()
    print(f"\nmost probable states: {counts['exact']} searched to the end, {counts['cut']} cut short, no bound too low")


def test_lines_bound_every_part_and_are_exact_where_nothing_is_free():
    network = sb.layered((3, 4, 5), rng=2, scale=4.0)
    row = np.r_[np.full(7, -1), np.ones(5)].astype(np.int8)
    (group,), known = maximum.groups_of(network, row, absorb(network, row[None, :])[0], np.zeros(12, bool))
    assert not len(known)
    rng = np.random.default_rng(0)
    states = np.where(rng.random((50, 12)) < 0.5, rng.integers(0, 2, (50, 12)), row).astype(np.int8)
    states[:, 7:] = 1
    slope = rng.uniform(-1, 1, (50, 12))
    lines = maximum._by_lines(group, states, slope, *group.inputs(states))
    for r, part in enumerate(states):
        inside = oracle.all_states(np.where(part < 0, np.nan, part))
        exact = oracle.log_joint(network.weight_matrix(), network.bias, inside)
        assert lines.value[r] >= exact.max() - 1e-12
    full = sb.sample(network, 50, rng=0, do=row)
    lines = maximum._by_lines(group, full, slope, *group.inputs(full))
    assert np.allclose(lines.value, sb.log_joint(network, full), rtol=0, atol=1e-12)


def test_a_network_of_digits_is_searched_to_the_end():
    network = sb.layered((8, 24, 64), rng=0, scale=0.5)
    row = sb.sample(network, 1, rng=1)[0]
    best = sb.most_probable(network, row[32:])
    assert best.exact
    assert best.gap < 1e-8
    assert best.log_p == pytest.approx(sb.log_joint(network, best.state), abs=1e-9)
    assert best.log_p >= sb.log_joint(network, row)
    flipped = np.repeat(best.state[None, :], 32, axis=0)
    flipped[np.arange(32), np.arange(32)] ^= 1
    assert sb.log_joint(network, flipped).max() <= best.log_p + 1e-9


def test_wide_networks_have_an_honest_interval():
    network = sb.layered((40, 60), rng=0, scale=3.0)
    row = sb.sample(network, 1, rng=1)[0]
    best = sb.most_probable(network, row[40:], parts=20)
    more = sb.most_probable(network, row[40:], parts=100)
    assert sb.log_joint(network, row) <= best.log_p <= more.log_p <= more.upper <= best.upper
    assert best.log_p <= sb.upper_bound(network, row[40:]).bound + 1e-9


def test_units_without_observed_descendants_are_maximised_not_dropped(sprinkler):
    best = sb.most_probable(sprinkler, {"rain": 0})
    states = np.array([[0, a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)])
    assert best.log_p == pytest.approx(sb.log_joint(sprinkler, states).max(), abs=1e-12)


def test_held_units_and_reports_are_in_the_answer(sprinkler):
    best = sb.most_probable(sprinkler, {"wet": (1e-3, 1.0), "slippery": 1}, do={"rain": 1})
    assert best.states == {"rain": 1, "sprinkler": 1, "wet": 1, "slippery": 1}
    by_hand = sb.log_joint(sprinkler, best.state) - sb.log_likelihood(sprinkler, {"rain": 1})
    assert best.log_p == pytest.approx(by_hand, abs=1e-12)


def test_a_table_gives_a_batch_of_the_same_answers(sprinkler):
    rows, held = [{"wet": 1}, {"wet": (0.5, 0.2)}, {}, {"slippery": 0}], [{}, {"rain": 1}, {"wet": 0}, {}]
    batch = sb.most_probable(sprinkler, rows, do=held)
    assert len(batch) == 4
    for one, row, do in zip(batch, rows, held, strict=True):
        alone = sb.most_probable(sprinkler, row, do=do)
        assert np.array_equal(one.state, alone.state)
        assert (one.log_p, one.upper, one.exact) == (alone.log_p, alone.upper, alone.exact)
        assert type(one.log_p) is float
    assert batch["wet"].tolist() == [one["wet"] for one in batch]
    assert batch.to_frame()["rain"].tolist() == batch["rain"].tolist()
    assert np.array_equal(batch.gap, batch.upper - batch.log_p)
    empty = sb.most_probable(sprinkler, np.empty((0, 4)))
    assert (len(empty), empty.state.shape) == (0, (0, 4))
    assert repr(empty) == "MostProbableBatch: 0 rows × 4 variables"
    assert repr(batch).endswith("the best there is in 4 of 4")
    assert batch._repr_html_().startswith("<pre>MostProbableBatch: 4 rows")


def test_what_a_person_sees(sprinkler):
    best = sb.most_probable(sprinkler, {"wet": 1})
    head = "Most probable state: ln P = -2.55643 nats, the best there is"
    assert repr(best) == f"{head}\n  on:  sprinkler\n  off: rain, slippery"
    assert "the best there is" in best._repr_html_()
    assert best.to_frame().loc["wet", "observed"] == 1
    assert best.to_frame()["state"].tolist() == best.state.tolist()
    network = sb.layered((40, 60), rng=0, scale=3.0)
    text = repr(sb.most_probable(network, [1] * 60, parts=1))
    assert text.startswith("Best state found: ln P = ")
    assert "; the best is at most " in text
    assert " more" in text


@pytest.mark.small
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"limit": -1}, "limit is -1; it must be a whole number from 0 to 60"),
        ({"parts": 0.5}, "parts is 0.5; it must be a whole number, zero or more"),
    ],
)
def test_settings_that_cannot_be_are_refused(sprinkler, options, text):
    with pytest.raises(sb.errors.ParameterError) as caught:
        sb.most_probable(sprinkler, {}, **options)
    assert str(caught.value) == text


@pytest.mark.skipif(INTERPRETED, reason="2**16 states one by one")
def test_equal_weights_make_many_equal_states():
    # 16 causes alike: any state with as many of them on is as good, and the search must not try them all
    edges = {(f"c{k}", "s"): 2.0 for k in range(16)}
    network = sb.from_edges(edges, bias={"s": -7.0} | {f"c{k}": -1.0 for k in range(16)})
    best = sb.most_probable(network, {"s": 1})
    values = [sb.log_joint(network, [1] * k + [0] * (16 - k) + [1]) for k in range(17)]
    assert best.exact
    assert best.log_p == pytest.approx(max(values), abs=1e-10)
