"""What a network says before anything is observed: the prior means, beside which posterior means are read."""

from __future__ import annotations

import contextlib
from weakref import WeakKeyDictionary

import numpy as np

from sbnet._types import HIDDEN, FloatArray
from sbnet.errors import TooManyHiddenError
from sbnet.exact.enumeration import Effort, enumerate_states
from sbnet.exact.of_states import means_of_states
from sbnet.exact.probability import sample
from sbnet.exact.sparse import Sum
from sbnet.model.graph import read_only
from sbnet.model.network import Network
from sbnet.questions.prediction import predict_rows
from sbnet.questions.reduction import absorb

MOST_EDGES = 1_000_000
"""Larger networks are printed without their prior, which would take longer than anyone waits for a line of text."""
DRAWS, _AT_ONCE = 1 << 14, 1 << 11
"""Samples for a prior of variables with states, in all and at once."""
_COUPLED, _UNITS = 12, 200  # for an exact prior: 2**12 terms, for each of 200 units
_JOINT = 16
"""The logarithm to base 2 of the largest table of an exact prior of variables with states."""

_Kept = WeakKeyDictionary[Network, FloatArray]
_exact: _Kept = WeakKeyDictionary()
_predicted: _Kept = WeakKeyDictionary()
_drawn: _Kept = WeakKeyDictionary()


def predicted_prior(network: Network) -> FloatArray:
    """The predictions of mean field theory: probabilities if parents were independent, parents first.

    Units that the evidence says nothing about have the same prediction in a mean field posterior, to the last digit.
    """
    if not network.is_binary:
        return best_prior(network)
    if network not in _predicted:
        nothing, means = np.full((1, network.n_units), HIDDEN), np.full((1, network.n_units), np.nan)
        predict_rows(network.model, nothing, absorb(network, nothing), means)
        _predicted[network] = read_only(means[0])
    return _predicted[network]


def best_prior(network: Network) -> FloatArray:
    """P(S_i = 1) where the sums behind it are small; else the predictions of mean field theory, or of variables with
    states the means of samples.
    """
    if network not in _exact:
        if not network.is_binary:
            nothing = np.full((1, network.n_units), HIDDEN, np.int8)
            try:
                _exact[network] = read_only(means_of_states(network, nothing, Effort(_JOINT, 1, progress=False))[1][0])
            except TooManyHiddenError:
                _exact[network] = _drawn[network] = read_only(_draw(network))
            return _exact[network]
        try:
            _exact[network] = read_only(_enumerate(network))
        except TooManyHiddenError:
            return predicted_prior(network)
    return _exact[network]


def is_sampled(network: Network) -> bool:
    """Is the best prior the mean of samples?"""
    return network in _drawn and best_prior(network) is _drawn[network]


def _draw(network: Network) -> FloatArray:
    """Means of states that are drawn from the network: standard errors are 0.004 at most."""
    rng, (variable, state) = np.random.default_rng(0), network.columns
    sums = np.zeros(len(variable))
    for _ in range(0, DRAWS, _AT_ONCE):
        sums += (sample(network, _AT_ONCE, rng=rng)[:, variable] == state).sum(axis=0)
    return sums / DRAWS


def _enumerate(network: Network) -> FloatArray:
    n = network.n_units
    every = np.full((1, n), HIDDEN)
    with contextlib.suppress(TooManyHiddenError):
        found = Sum(network, every, range(n), _COUPLED).solve(every, None)
        return np.array([found.posteriors[i][0, 1] for i in range(n)])
    if n > _UNITS:
        raise TooManyHiddenError(f"the exact prior of {n} variables takes too long to be shown")
    on = np.full((n, n), HIDDEN)
    np.fill_diagonal(on, 1)
    log_p, _ = enumerate_states(network, on, Effort(_COUPLED, None, progress=False))
    return np.exp(np.minimum(log_p, 0.0))
