"""The wake-sleep algorithm (Hinton, Dayan, Frey & Neal 1995), with which the paper compares itself in Table 2."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, Model, RngLike, States
from sbnet.errors import EvidenceError, NetworkError, ParameterError
from sbnet.kernels.codes import SIGMOID
from sbnet.kernels.compiling import announce
from sbnet.kernels.wake_sleep import Regressions, wake_sleep_rows
from sbnet.model.network import Network
from sbnet.parallel.blocks import Bar, row_blocks
from sbnet.questions.evidence import EvidenceLike, coerce_many
from sbnet.questions.reduction import live_variables


class Recognition(NamedTuple):
    """A factorial approximation of the posterior, R(H | V), from the bottom up: sigmoid variables given their children.

    Attributes
    ----------
    weight : ndarray of shape (n_weights,)
        As in the network, in its order. An edge with a hidden parent is read backwards, from child to parent; one from
        an observed parent to a hidden child forwards. Edges between observed variables have no use: 0.
    bias : ndarray of shape (n_thresholds,)
        As in the network; 0 for variables that are observed or have no observed descendant.
    """

    weight: FloatArray
    bias: FloatArray


@dataclass(frozen=True, eq=False)
class WakeSleepResult:
    """What wake-sleep learning has come to.

    Attributes
    ----------
    network : Network
    recognition : Recognition
        The recognition network: ``weight``, one number per edge of the network, and ``bias``, one per variable.
    estimates : ndarray
        For each epoch the mean over the rows of ln P(H, V) - ln R(H | V), in nats, one H drawn from R for each row
        while the weights were moving. Its expectation lies below the mean log-likelihood, but the number itself is
        noisy, and is no bound; :func:`sbnet.infer_many` gives one for the network.
    interrupted : bool
        Was it stopped by Ctrl-C?
    seconds : float

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.layered((2, 4), rng=0)
    >>> sb.wake_sleep(net, sb.sample(net, 20, rng=0)[:, 2:], epochs=2, rng=0).network.layers
    (2, 4)
    """

    network: Network
    recognition: Recognition
    estimates: FloatArray
    interrupted: bool
    seconds: float

    def __repr__(self) -> str:
        if not len(self.estimates):
            return "WakeSleepResult: no epoch was finished"
        text = f"{len(self.estimates)} epochs in {self.seconds:.1f} s, mean estimate {self.estimates[-1]:.6g} nats"
        return f"WakeSleepResult: {text}" + (" (interrupted)" if self.interrupted else "")


def wake_sleep(
    network: Network,
    X: EvidenceLike,
    *,
    epochs: int = 5,
    rate: float = 0.05,
    shuffle: bool = True,
    rng: RngLike = None,
    callbacks: Sequence[Callable[[int, Network, float], Any]] = (),
    progress: bool | None = None,
) -> WakeSleepResult:
    r"""Learn weights and biases from complete rows, with the help of a recognition network.

    Awake, the hidden variables of a row are drawn from the recognition network, from the bottom up, and the network
    learns to make what was drawn. Asleep, all variables are drawn from the network, and the recognition network learns
    to tell the hidden ones from the others. Both learn by the delta rule, one row and one dream at a time:

    .. math:: \Delta J_{ij} = \eta \, (S_i - \sigma(z_i)) \, S_j

    This needs no inference, so an epoch is quick; but it takes many, maximises no bound, and need not end at a
    maximum of the likelihood. :func:`sbnet.fit` maximises a bound, and takes rows with missing values.

    Parameters
    ----------
    network : Network
        Where to start; its graph stays as it is. The recognition network starts with zeros.
    X : table
        Rows by variables. Variables that no row observes, or that have no column, are hidden; fewer columns than
        variables mean the last variables, the bottom layer. All other variables must be observed in every row.
    epochs : int
        How often to go through the table.
    rate : float
        The learning rate η of both networks.
    shuffle : bool
        Go through the rows in a new random order in each epoch; otherwise in that of the table.
    rng : int or numpy.random.Generator, optional
        Seed or generator. Equal seeds give equal weights.
    callbacks : sequence of callables
        Called after each epoch with its number, the network, and the mean estimate (see `WakeSleepResult`).
    progress : bool, optional
        As in :func:`sbnet.infer_many`.

    Returns
    -------
    WakeSleepResult
        Ctrl-C ends learning early and returns what has been reached.

    Notes
    -----
    The recognition network turns the edges round: a hidden variable is recognised from its children, hidden or not,
    which are drawn before it, and from those of its parents that are observed. In a network of layers this is the
    algorithm of Hinton and others. Hidden variables without an observed descendant have no say in the data, and do not
    learn.

    References
    ----------
    G. E. Hinton, P. Dayan, B. J. Frey and R. M. Neal, "The wake-sleep algorithm for unsupervised neural networks",
    Science 268 (1995), 1158-1161.

    Examples
    --------
    >>> import sbnet as sb
    >>> truth = sb.layered((2, 8), rng=0, scale=3)
    >>> X = sb.sample(truth, 500, rng=1)[:, 2:]
    >>> result = sb.wake_sleep(sb.layered((2, 8), rng=2), X, epochs=20, rng=0)
    >>> bool(result.estimates[-1] > result.estimates[0])
    True
    """
    begin = time.monotonic()
    checks.whole("epochs", epochs, 1)
    rate, shuffle = checks.positive("rate", rate), checks.flag("shuffle", shuffle)
    callbacks = checks.callbacks(callbacks)
    states = coerce_many(network, X)
    _check_gates(network)
    _check_complete(network, states)
    generator = checks.generator(rng)
    live = live_variables(network.model, states[0])
    net = Regressions(network.model.indptr, network.model.parent, network.weight.copy(), network.bias.copy())
    hidden = states[0] == HIDDEN
    guess, place = _nothing_recognised(network.model, hidden)
    hidden &= live
    estimates: list[float] = []
    interrupted = False
    announce(wake_sleep_rows)
    bar = Bar("learning", epochs * len(states), progress)
    try:
        for epoch in range(epochs):
            order = generator.permutation(len(states)) if shuffle else np.arange(len(states))
            total = 0.0
            for rows in row_blocks(len(order), 2 * network.n_units):
                uniform = generator.random((rows.stop - rows.start, 2, network.n_units))
                total += wake_sleep_rows(net, guess, live, hidden, np.maximum(states[order[rows]], 0), uniform, rate)
                bar.update(epoch * len(states) + rows.stop)
            estimates.append(total / len(states))
            bar.describe(f"epoch {epoch + 1} of {epochs}, estimate {estimates[-1]:.4g}")
            for callback in callbacks:
                callback(epoch + 1, network.with_parameters(weight=net.weight, bias=net.bias), estimates[-1])
    except KeyboardInterrupt:
        interrupted = True
    finally:
        bar.close()
    recognition = Recognition(np.zeros(len(network.weight)), guess.bias)
    recognition.weight[place] = guess.weight
    for array in recognition:
        array.setflags(write=False)
    learned = network.with_parameters(weight=net.weight, bias=net.bias)
    return WakeSleepResult(learned, recognition, np.array(estimates), interrupted, time.monotonic() - begin)


def _check_gates(network: Network) -> None:
    """The delta rule keeps no weight from becoming negative, which those of a noisy-OR unit may not be."""
    network.check_binary("wake_sleep()", "fit() learns them")
    noisy = np.flatnonzero(network.gate != SIGMOID)
    if len(noisy):
        raise NetworkError(
            f"variable {network.names[noisy[0]]!r} is a noisy-OR variable; wake_sleep() is for sigmoid variables. "
            "Use fit(), which learns both"
        )


def _check_complete(network: Network, states: States) -> None:
    if not len(states):
        raise ParameterError("there are no rows to learn from")
    missing = states == HIDDEN
    partly = missing & ~missing.all(axis=0)
    if partly.any():
        row, unit = (int(k) for k in np.argwhere(partly)[0])
        raise EvidenceError(
            f"variable {network.names[unit]!r} has no value in row {row}, but one in other rows; wake_sleep() needs "
            "complete rows. Use fit(), which takes missing values"
        )


def _nothing_recognised(model: Model, hidden: BoolArray) -> tuple[Regressions, IndexArray]:
    """R, all of it zero, and where each of its weights stands in the network: one with a hidden parent is turned."""
    child = np.repeat(np.arange(len(hidden)), np.diff(model.indptr))
    back, forth = np.flatnonzero(hidden[model.parent]), np.flatnonzero(hidden[child] & ~hidden[model.parent])
    owner, other = np.append(model.parent[back], child[forth]), np.append(child[back], model.parent[forth])
    order = np.argsort(owner, kind="stable")
    begin, other = np.searchsorted(owner[order], np.arange(len(hidden) + 1)), other[order]
    for array in (begin, other):
        array.setflags(write=False)  # as those of a network: one kernel serves both
    return Regressions(begin, other, np.zeros(len(order)), np.zeros(len(hidden))), np.append(back, forth)[order]
