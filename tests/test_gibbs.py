"""Gibbs sampling: means agree with the exact posterior within their error, and chains say if they disagree."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import sbnet as sb

# The error is estimated from the spread of the chains; with sixteen of them it is itself known to a fifth.
CHAINS = 16


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sizes", [(2, 4, 6), (5, 8), (1, 2, 2, 3)])
def test_means_are_those_of_the_exact_posterior_within_their_error(sizes, seed):
    network = sb.layered(sizes, rng=seed, scale=1.5, autoregressive=seed % 2 == 1)
    evidence = np.full(network.n_units, np.nan)
    evidence[-sizes[-1] :] = np.random.default_rng(seed).choice([0.0, 1.0, np.nan], sizes[-1], p=[0.4, 0.4, 0.2])
    post = sb.infer(network, evidence, solver=sb.Gibbs(samples=2000, chains=CHAINS, rng=seed))
    exact = sb.exact_posterior(network, evidence)
    assert np.all(np.abs(post.means - exact) <= 5 * post.error + 1e-12)
    assert np.all(post.error < 0.02)
    assert np.all(post.r_hat < 1.02)
    assert post.status is sb.results.Status.MIXED


def test_the_error_is_that_of_the_mean():
    network = sb.layered((3, 6), rng=0, scale=2.0)
    exact = sb.exact_posterior(network, np.zeros(6))[:3]
    posts = [sb.infer(network, np.zeros(6), solver=sb.Gibbs(samples=200, chains=CHAINS, rng=k)) for k in range(60)]
    scaled = np.array([(post.means[:3] - exact) / post.error[:3] for post in posts])
    assert 0.8 < scaled.std() < 1.3
    short, long = (
        sb.infer(network, np.zeros(6), solver=sb.Gibbs(samples=n, chains=64)).error[:3].mean() for n in (100, 6400)
    )
    assert 5 < short / long < 13  # the error falls with the square root of the number of samples


@pytest.mark.parametrize("weight", [12.0, 20.0])
def test_chains_that_do_not_mix_are_flagged(weight):
    # "a equals b" is certain, and both states are likely; no single flip leads from one to the other.
    edges = {("a", "x"): weight, ("b", "x"): -weight, ("a", "y"): -weight, ("b", "y"): weight}
    pair = sb.from_edges(edges, bias={"x": weight / 2, "y": weight / 2})
    evidence = {"x": 1, "y": 1}
    with pytest.warns(sb.errors.ConvergenceWarning) as caught:
        post = sb.infer(pair, evidence, solver=sb.Gibbs(samples=200))
    text = "in 1 of 1 row the chains disagree (R-hat is 1.05 or more); draw more samples"
    assert [str(w.message) for w in caught] == [text]
    assert caught[0].filename == __file__
    assert post.status is sb.results.Status.NOT_MIXED
    assert not post.converged
    assert post.r_hat[:2].min() > 1.5
    with pytest.warns(sb.errors.ConvergenceWarning, match="^in 1 of 2 rows the chains disagree"):
        batch = sb.infer_many(pair, [evidence, {}], solver=sb.Gibbs(samples=200))
    assert batch.status == [sb.results.Status.NOT_MIXED, sb.results.Status.MIXED]


def test_barren_units_are_drawn_from_their_parents():
    edges = {("h", "x"): 2.0, ("h", "b"): 3.0, ("b", "c"): -2.0, ("x", "d"): 1.5}
    network = sb.from_edges(edges, bias={"h": 0.2, "b": -1.0})
    post = sb.infer(network, {"x": 1}, solver=sb.Gibbs(samples=4000, chains=CHAINS))
    exact = sb.exact_posterior(network, {"x": 1})
    assert np.all(np.abs(post.means - exact) <= 5 * post.error + 1e-12)
    assert abs(post["d"] - expit(1.5)) < 1e-12  # its parent is observed: no noise
    # mean field knows no correlation between b and h; the sampler must not be fooled by that
    assert abs(post["c"] - exact[network.index("c")]) < 0.01


def test_hostile_weights_do_no_harm():
    network = sb.from_edges({("a", "b"): 1000.0, ("b", "c"): -1000.0}, bias={"a": 500.0, "b": -500.0, "c": 500.0})
    post = sb.infer(network, {"c": 0}, solver=sb.Gibbs(samples=50))
    assert np.array_equal(post.means, [1.0, 1.0, 0.0])
    assert np.all(post.r_hat == 1.0)


def test_there_is_no_bound_and_it_says_so(sprinkler):
    solver = sb.Gibbs(samples=500)
    post = sb.infer(sprinkler, {"wet": 1}, solver=solver)
    assert np.isnan(post.bound)
    assert len(post.trace) == 0
    assert repr(post).splitlines()[0] == "Posterior given 1 of 4 variables: no bound, means by sampling"
    assert f"{post['rain']:.4f} ± {post.error[0]:.3f}" in repr(post)
    assert list(post.to_frame().columns) == ["observed", "mean", "error", "r_hat"]
    batch = sb.infer_many(sprinkler, [{"wet": 1}] * 3, solver=solver)
    assert repr(batch).splitlines()[1] == "  no bound, means by sampling; 3 of 3 settled"
    for answer in (post, batch[0]):
        with pytest.raises(sb.errors.ParameterError) as caught:
            answer.breakdown()
        assert str(caught.value) == "this posterior has no bound to break down; use the MeanField solver"


@pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning")  # so few samples
def test_answers_follow_from_the_rng(sprinkler):
    def means(**options):
        return sb.infer(sprinkler, {"wet": 1}, solver=sb.Gibbs(samples=20, **options)).means

    first = means(rng=7)
    assert np.array_equal(first, means(rng=7))
    assert np.array_equal(first, means(rng=np.random.default_rng(7)))
    assert not np.array_equal(first, means(rng=8))


@pytest.mark.small
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"samples": 1}, "samples is 1; it must be a whole number, 2 or more"),
        ({"samples": 10.0}, "samples is 10.0; it must be a whole number, 2 or more"),
        ({"burn_in": -1}, "burn_in is -1; it must be a whole number, zero or more"),
        ({"chains": 1}, "chains is 1; it must be a whole number, 2 or more"),
        ({"chains": True}, "chains is True; it must be a whole number, 2 or more"),
    ],
)
def test_settings_that_cannot_be_are_refused(arguments, text):
    with pytest.raises(sb.errors.ParameterError) as caught:
        sb.Gibbs(**arguments)
    assert str(caught.value) == text
