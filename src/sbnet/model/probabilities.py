"""Networks from probabilities: for people who know how often a cause shows, and do not think in log-odds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_expit, xlogy

from sbnet import checks
from sbnet._types import FloatArray
from sbnet.errors import NetworkError, not_among
from sbnet.kernels import codes as gates
from sbnet.model.build import from_edges, gate_code
from sbnet.model.network import CERTAIN as CERTAIN
from sbnet.model.network import Network
from sbnet.model.suggestions import check_network

_ROWS = 12  # parents up to which the error of a nearest unit is measured over all their states


def noisy_or(
    causes: Mapping[tuple[str, str], float],
    *,
    leak: Mapping[str, float] | float = 0.0,
    prior: Mapping[str, float] | float | None = None,
) -> Network:
    r"""Build a network of causes and effects from probabilities, with noisy-OR units.

    An effect is off only if every cause that is present fails to produce it, each on its own, and the leak fails too:

    .. math:: P(\text{effect} = 0 \mid \text{causes}) = (1 - \text{leak}) \prod_{j \text{ present}} (1 - p_j) .

    Parameters
    ----------
    causes
        A mapping from (cause, effect) to p, the probability that this cause alone produces the effect. An effect may
        be a cause of others. A p of 0 is an edge without influence; a p of 1 never fails: evidence against it is
        impossible, with ln P of minus infinity.
    leak
        The probability of an effect without any of its causes, by name or one for all. Without a leak an effect that
        is observed must have a cause: mean field theory, which takes causes as independent, then has poor bounds. A
        small leak, say 0.001, gives better ones and is often nearer the truth.
    prior
        The probability of each unit that is only a cause, by name or one for all.

    Returns
    -------
    Network
        Units that are only causes are sigmoid units without parents; effects are noisy-OR units.

    Notes
    -----
    A cause that *prevents* an effect has no place in a noisy-OR: give that effect a sigmoid unit
    (:func:`from_probabilities`), or name a unit for the absence of what prevents. A noisy-AND is a noisy-OR of
    absences: "does not start" has the causes "no fuel" and "no spark".

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.noisy_or(
    ...     causes={("flu", "fever"): 0.9, ("cold", "fever"): 0.2, ("cold", "cough"): 0.6},
    ...     leak={"fever": 0.01, "cough": 0.05},
    ...     prior={"flu": 0.05, "cold": 0.2},
    ... )
    >>> print(f"{sb.exact_posterior(net, {'fever': 1, 'cough': 0})[net.index('flu')]:.2f}")
    0.63
    """
    return from_probabilities(causes, leak=leak, prior=prior, gate="noisy-or")


def from_probabilities(
    causes: Mapping[tuple[str, str], float],
    *,
    leak: Mapping[str, float] | float = 0.0,
    prior: Mapping[str, float] | float | None = None,
    gate: Mapping[str, str] | str = "sigmoid",
) -> Network:
    """Build a network of causes and effects from probabilities, for any gate: a word for all effects, or words by name.

    Of a noisy-OR effect, p is the probability that the cause alone produces it, leak apart. Of a sigmoid effect, p is
    the probability of the effect when this cause, and no other, is present, and the leak its probability when none is:
    causes then add up as log-odds, and one with p below the leak prevents.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_probabilities({("rain", "wet"): 0.9, ("roof", "wet"): 0.01}, leak={"wet": 0.05}, prior=0.2)
    >>> net.conditional("wet")
    P(wet = 1), sigmoid, with these parents on:
      none of its parents  0.0500
      roof                 0.0100
      rain                 0.9000
      rain + roof          0.6333
    """
    if not isinstance(causes, Mapping):
        raise NetworkError(f"causes is a mapping from (cause, effect) to a probability; got {type(causes).__name__}")
    for key in causes:
        if not (isinstance(key, tuple) and len(key) == 2):
            raise NetworkError(f"the keys of causes are (cause, effect); got {key!r}")
    effects = dict.fromkeys(effect for _, effect in causes)
    first = dict.fromkeys(cause for cause, _ in causes if cause not in effects)
    leaks = _by_name("leak", leak, effects, "the effects")
    priors = {} if prior is None else _by_name("prior", prior, first, "the units without causes")
    for name in first:
        if name not in priors:
            raise NetworkError(f"{name!r} has no prior; give prior={{{name!r}: 0.05, …}}, or one number for all")
    kinds = _kinds(gate, effects)
    noisy = {effect for effect, kind in kinds.items() if kind == "noisy-or"}
    base = {effect: (never if effect in noisy else log_odds)(leaks.get(effect, 0.0)) for effect in effects}
    weights = {}
    for (cause, effect), given in causes.items():
        p = checks.probability(f"causes[{cause!r}, {effect!r}]", given)
        weights[cause, effect] = never(p) if effect in noisy else log_odds(p) - base[effect]
    bias = {name: log_odds(priors[name]) for name in first} | base
    return from_edges(weights, bias=bias, gate=kinds)


def _kinds(gate: Any, effects: Iterable[str]) -> dict[str, str]:
    """The gate of each effect: one for all, or by name."""
    if isinstance(gate, str):
        gate_code(gate, "all units")
        return dict.fromkeys(effects, gate)
    given = checks.mapping("gate", gate, "give 'sigmoid' or 'noisy-or', or a mapping from effects to these words")
    kinds = {effect: given.get(effect, "sigmoid") for effect in effects}
    for effect, kind in kinds.items():
        gate_code(kind, repr(effect))
    return kinds


def _by_name(what: str, given: Any, names: Mapping[str, None], whose: str) -> dict[str, float]:
    """Probabilities by name; one number is that of all."""
    if not isinstance(given, Mapping):
        return dict.fromkeys(names, checks.probability(what, given))
    for name in given:
        if not isinstance(name, str) or name not in names:
            raise not_among(name, tuple(names), f"{whose}, which {what} is for")
    return {name: checks.probability(f"{what}[{name!r}]", p) for name, p in given.items()}


def log_odds(p: float) -> float:
    """ln(p / (1 - p)), where certainty is a thousand nats."""
    return float(np.log(p) - np.log1p(-p)) if 0.0 < p < 1.0 else (2.0 * p - 1.0) * CERTAIN


def never(p: float) -> float:
    """-ln(1 - p), where certainty is a thousand nats."""
    return -float(np.log1p(-p)) if p < 1.0 else CERTAIN


class Nearest(NamedTuple):
    """A network with one unit replaced by the nearest of the other gate, and how far off that is.

    `largest` is the largest difference of the two probabilities over all states of the parents (over sampled ones if
    they are many), `mean` the average if parents are on with the probability that was asked for, `nats` the average
    loss of information, KL of the new unit from the old one.
    """

    network: Network
    largest: float
    mean: float
    nats: float


def nearest(network: Network, unit: str | int, *, gate: str, probability: float = 0.5, rng: Any = 0) -> Nearest:
    """Replace a unit by the nearest sigmoid or noisy-OR unit, and say what error that makes.

    Parameters
    ----------
    network : Network
    unit
        Its name or number.
    gate
        ``"sigmoid"`` or ``"noisy-or"``: what it becomes. Nearest in nats, over states in which each parent is on with
        `probability`, all of them for up to 12 parents, 4,096 random ones for more.
    """
    check_network(network)
    checks.choice("gate", gate, gates.NAMES)
    generator = checks.generator(rng)
    probability = checks.fraction("probability", probability)
    i, old = network.index(unit), gates.NAMES[int(network.gate[network.index(unit)])]
    edges = slice(network.graph.indptr[i], network.graph.indptr[i + 1])
    weight, bias = network.weight[edges], float(network.bias[i])
    states, share = _states(len(weight), probability, generator)
    p = _P[old](states @ weight + bias)
    if gate == old:
        return Nearest(network, 0.0, 0.0, 0.0)
    found = _fitted(gate, states, share, p)
    q = _P[gate](states @ found[1:] + found[0])
    apart = np.abs(p - q)
    weights, biases, codes = network.weight.copy(), network.bias.copy(), network.gate.copy()
    weights[edges], biases[i], codes[i] = found[1:], found[0], gates.NAMES.index(gate)
    other = replace(network, weight=weights, bias=biases, gate=codes)
    nats = float(share @ (xlogy(p, p / q) + xlogy(1.0 - p, (1.0 - p) / (1.0 - q))))
    return Nearest(other, float(apart.max()), float(share @ apart), nats)


_P: dict[str, Callable[[FloatArray], FloatArray]] = {
    "sigmoid": lambda x: np.asarray(expit(x)),
    "noisy-or": lambda x: -np.expm1(-np.maximum(x, 0.0)),
}


def _states(n: int, p: float, generator: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """States of the parents, and the share of each."""
    if n <= _ROWS:
        states = ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(np.float64)
        return states, np.prod(np.where(states == 1, p, 1.0 - p), axis=1)
    states = (generator.random((4096, n)) < p).astype(np.float64)
    return states, np.full(len(states), 1.0 / len(states))


def _fitted(gate: str, states: FloatArray, share: FloatArray, p: FloatArray) -> FloatArray:
    """Bias and weights that lose the fewest nats: a smooth problem, convex for the sigmoid."""
    from scipy.optimize import minimize  # slow to import, and needed here only

    inputs = np.column_stack([np.ones(len(states)), states])
    sign = gate == "noisy-or"

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        x = inputs @ theta
        if sign:
            y = np.maximum(x, 1e-12)
            log_on, gradient = np.log(-np.expm1(-y)), p / np.expm1(y) - (1.0 - p)
            return -float(share @ (p * log_on - (1.0 - p) * y)), -inputs.T @ (share * gradient)
        return -float(share @ (p * log_expit(x) + (1.0 - p) * log_expit(-x))), -inputs.T @ (share * (p - expit(x)))

    start = np.full(inputs.shape[1], 0.5 if sign else 0.0)
    bounds = [(1e-9 if sign else -50.0, 50.0)] + [(0.0 if sign else -50.0, 50.0)] * states.shape[1]
    found: FloatArray = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": 500}).x
    return found
