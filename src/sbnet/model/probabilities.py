"""Networks from probabilities: for people who know how often a cause shows, and do not think in log-odds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy

from sbnet import checks
from sbnet._types import FloatArray
from sbnet.errors import NetworkError, hint, not_among
from sbnet.kernels import codes as gates
from sbnet.model import gates as array_gates
from sbnet.model import hierarchy
from sbnet.model.build import from_edges, gate_code
from sbnet.model.network import CERTAIN as CERTAIN
from sbnet.model.network import Network
from sbnet.model.notes import NOTHING, Note
from sbnet.model.states import NO_YES, find, shown, states_of
from sbnet.model.suggestions import check_network

Number: TypeAlias = Callable[[str, Any], float]
"""A check that a value of some name is a probability."""
_ROWS = 12  # parents up to which the error of a nearest unit is measured over all their states


def noisy_or(
    causes: Mapping[tuple[str, str], Any],
    *,
    leak: Mapping[str, Any] | float = 0.0,
    prior: Mapping[str, Any] | float | None = None,
    states: Mapping[str, Sequence[str]] | None = None,
    is_a: Mapping[str, Any] | None = None,
    about: Mapping[str, str] | None = None,
    group: Mapping[str, str] | None = None,
) -> Network:
    r"""Build a network of causes and effects from probabilities, with noisy-OR variables.

    An effect is off only if every cause that is present fails to produce it, each on its own, and the leak fails too:

    .. math:: P(\text{effect} = 0 \mid \text{causes}) = (1 - \text{leak}) \prod_{j \text{ present}} (1 - p_j) .

    An effect with more states is a noisy-MAX: each cause that is present, and the leak, brings it to some state, each
    on its own, and it is in the largest of them. A cause in its first state brings it to its first state.

    Parameters
    ----------
    causes : mapping
        A mapping from (cause, effect) to p, the probability that this cause alone produces the effect. An effect may
        be a cause of others. A p of 0 is an edge without influence; a p of 1 never fails: evidence against it is
        impossible, with ln P of minus infinity. Of an effect with more than two states, p is a mapping from its states
        to the probabilities that this cause alone brings it there, or a list of them, of the states from the second one
        on; of a cause with more than two states, a mapping from its states, or a list from the second one on, to such
        a p.
    leak : float or mapping
        The probability of an effect without any of its causes, by name or one for all. Without a leak an effect that
        is observed must have a cause: mean field theory, which takes causes as independent, then has poor bounds. A
        small leak, say 0.001, gives better ones and is often nearer the truth. Of an effect with more than two states,
        probabilities as in `causes`. It is a cause of its own that is always present, apart from all others.
    prior : float or mapping, optional
        The probability of each variable that is only a cause, by name or one for all; of one with more than two states,
        a mapping from its states, or a list.
    states : mapping, optional
        The names of the states of variables that have others than no and yes, in order.
    is_a : mapping, optional
        Effects in a hierarchy: a mapping from effects to what each is a kind of, a name or several, such as
        ``{"focal seizure": "seizure"}``. Causes of an effect are then linked to its relatives too, to vaguer ones with
        0.3 times its probability and to more specific ones as often as their leaks say; see
        :mod:`sbnet.model.hierarchy`. Effects of two states only, and leaks other than zero make sense of it.
    about, group : mapping, optional
        What variables stand for, and groups of them, by name: see :class:`Note`. "causes" and "findings" are the usual
        groups.

    Returns
    -------
    Network
        Variables that are only causes are sigmoid variables without parents; effects are noisy-OR variables.

    Notes
    -----
    A cause that *prevents* an effect has no place in a noisy-OR: give that effect a sigmoid variable
    (:func:`from_probabilities`), or name a variable for the absence of what prevents. A noisy-AND is a noisy-OR of
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
    >>> net = sb.noisy_or(
    ...     causes={("flu", "fever"): {"mild": 0.3, "high": 0.6}, ("cold", "fever"): {"mild": 0.2}},
    ...     leak={"fever": {"mild": 0.01}},
    ...     prior={"flu": 0.05, "cold": 0.2},
    ...     states={"fever": ["none", "mild", "high"]},
    ... )
    >>> net.conditional("fever")
    P(fever), noisy-or, with these parents on:
                           none    mild    high
      none of its parents  0.9900  0.0100  0.0000
      cold                 0.7920  0.2080  0.0000
      flu                  0.0990  0.3010  0.6000
      flu + cold           0.0792  0.3208  0.6000
    """
    if is_a is not None:
        causes = _with_relatives(causes, leak, states, is_a)
    network = from_probabilities(causes, leak=leak, prior=prior, gate="noisy-or", states=states)
    notes: dict[str, Note] = {}
    for what, given in (("about", about), ("group", group)):
        wanted = f"give a mapping from names to texts, such as {what}={{{network.names[0]!r}: …}}"
        for name, text in checks.mapping(what, {} if given is None else given, wanted, NetworkError).items():
            notes[name] = replace(notes.get(name, NOTHING), **{what: text})
    return network.with_notes(notes) if notes else network


def _with_relatives(causes: Any, leak: Any, states: Any, is_a: Any) -> dict[tuple[str, str], float]:
    """Links to the relatives of each effect, where effects are kinds of one another."""
    kinds = hierarchy.checked(is_a)
    for name in hierarchy.members(kinds):
        if isinstance(states, Mapping) and len(states.get(name, NO_YES)) > 2:
            raise NetworkError(f"is_a names {name!r}, which has {len(states[name])} states; it is for effects of two")
    wanted = "a mapping from (cause, effect) to a probability"
    found: dict[tuple[str, str], float] = {}
    for key, p in checks.mapping("causes", causes, f"give {wanted}", NetworkError).items():
        if not (isinstance(key, tuple) and len(key) == 2):
            raise NetworkError(f"the keys of causes are (cause, effect); got {checks.shown(key)}")
        found[key] = checks.probability(f"causes[{key[0]!r}, {key[1]!r}]", p)
    if not isinstance(leak, Mapping):
        every = dict.fromkeys([*(effect for _, effect in found), *hierarchy.members(kinds)])
        leak = dict.fromkeys(every, leak)
    leaks = {name: checks.probability(f"leak[{name!r}]", p) for name, p in leak.items()}
    return hierarchy.links(found, leaks, kinds)


def from_probabilities(
    causes: Mapping[tuple[str, str], Any],
    *,
    leak: Mapping[str, Any] | float = 0.0,
    prior: Mapping[str, Any] | float | None = None,
    gate: Mapping[str, str] | str = "sigmoid",
    states: Mapping[str, Sequence[str]] | None = None,
) -> Network:
    """Build a network of causes and effects from probabilities, for any gate: a word for all effects, or words by name.

    Of a noisy-OR effect, p is the probability that the cause alone produces it, leak apart. Of a sigmoid effect, p is
    the probability of the effect when this cause, and no other, is present, and the leak its probability when none is:
    causes then add up as log-odds, and one with p below the leak prevents. Variables with more than two states have
    probabilities of each, as in :func:`noisy_or`.

    Parameters
    ----------
    causes : mapping
        From (cause, effect) to p.
    leak : mapping or float
        Of effects, by name or one for all.
    prior : mapping or float
        Of variables that are only causes, by name or one for all.
    gate : mapping or str
        "sigmoid" or "noisy-or", by name or one for all effects.
    states : mapping, optional
        The names of states, where they are not no and yes.

    Returns
    -------
    Network

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
    every = tuple(first | effects)
    known = states_of(every, states, dict.fromkeys(every, NOTHING))
    leaks = _by_name("leak", leak, effects, "the effects", known)
    priors = {} if prior is None else _by_name("prior", prior, first, "the variables without causes", known)
    for name in first:
        if name not in priors:
            raise NetworkError(f"{name!r} has no prior; give prior={{{name!r}: 0.05, …}}, or one number for all")
    kinds = _kinds(gate, effects)
    nothing = {effect: np.eye(1, len(known[effect]))[0] for effect in effects}
    base = {
        effect: thresholds_of(leaks.get(effect, nothing[effect]), kinds[effect], nothing[effect][1:])
        for effect in effects
    }
    weights: dict[tuple[str, str], Any] = {}
    for (cause, effect), given in causes.items():
        if len(known[cause]) == len(known[effect]) == 2 and not isinstance(given, Mapping | Sequence | np.ndarray):
            p = checks.probability(f"causes[{cause!r}, {effect!r}]", given)  # there may be many of them
            weights[cause, effect] = never(p) if kinds[effect] == "noisy-or" else log_odds(p) - float(base[effect][0])
            continue
        rows = effects_by_state(f"causes[{cause!r}, {effect!r}]", given, known[cause], known[effect])
        inputs = [thresholds_of(row, kinds[effect], base[effect]) for row in rows]
        if kinds[effect] != "noisy-or":
            inputs = [x - base[effect] for x in inputs]
        weights[cause, effect] = np.stack(inputs, axis=1)
    bias = {name: thresholds_of(priors[name], "sigmoid", np.zeros(len(known[name]) - 1)) for name in first} | base
    own = {name: float(x[0]) if len(x) == 1 else x for name, x in bias.items()}
    return from_edges(weights, bias=own, gate=kinds, states=states)


def effects_by_state(
    what: str, given: Any, cause: Sequence[str], effect: Sequence[str], number: Number = checks.probability
) -> list[FloatArray]:
    """What a cause alone does, in each of its states from the second one on: the distribution of the effect.

    A number will do where both have two states; a cause with more has a mapping from its states, or a list.
    """
    if len(cause) == 2:
        return [distribution(what, given, effect, number)]
    if isinstance(given, Mapping):
        found = _states_named(what, given, cause)
        if 0 in found:
            raise NetworkError(
                f"{what} names {cause[0]!r}, the first state of the cause, which has no effect; leave it out"
            )
        nothing = np.eye(1, len(effect))[0]
        one = {k: distribution(f"{what}[{cause[k]!r}]", value, effect, number) for k, value in found.items()}
        return [one.get(k, nothing) for k in range(1, len(cause))]
    wanted = f"give probabilities by the states {shown(cause[1:])} of the cause, in a mapping or a list"
    if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray) or len(given) != len(cause) - 1:
        raise NetworkError(f"{what} is {checks.shown(given)}; {wanted}")
    return [distribution(f"{what}[{k}]", value, effect, number) for k, value in enumerate(given)]


def distribution(what: str, given: Any, states: Sequence[str], number: Number = checks.probability) -> FloatArray:
    """Probabilities of all states: of the second one of two, by name, or in a list from the second one on, or of all.

    What is left belongs to the first state.
    """
    if len(states) == 2 and not isinstance(given, Mapping | Sequence | np.ndarray):
        second = number(what, given)
        return np.array([1.0 - second, second])
    if isinstance(given, str | bytes) and len(states) == 2:
        number(what, given)
    if isinstance(given, Mapping):
        listed = {k: number(f"{what}[{states[k]!r}]", p) for k, p in _states_named(what, given, states).items()}
    elif isinstance(given, Sequence | np.ndarray) and not isinstance(given, str | bytes):
        first = len(states) - len(given)
        if np.ndim(given) != 1 or first not in (0, 1):
            text = f"give one for each of its states, {shown(states)}, or for all but the first"
            raise NetworkError(f"{what} is {checks.shown(given)}; {text}")
        listed = {first + k: number(f"{what}[{k}]", p) for k, p in enumerate(given)}
    else:
        text = f"give probabilities by state, such as {{{states[1]!r}: 0.3, {states[-1]!r}: 0.6}}"
        raise NetworkError(f"{what} is {checks.shown(given)}; {text}")
    p = np.array([listed.get(k, 0.0) for k in range(len(states))])
    total = float(p.sum())
    if total > 1.0 + 1e-9 or (0 in listed and abs(total - 1.0) > 1e-9):
        more = "they must sum to 1" if 0 in listed else f"what is left to 1 is that of {states[0]!r}"
        raise NetworkError(f"the probabilities of {what} sum to {total:.10g}; {more}")
    if 0 not in listed:
        p[0] = max(0.0, 1.0 - total)
    return p


def _states_named(what: str, given: Mapping[Any, Any], states: Sequence[str]) -> dict[int, Any]:
    """What a mapping says, by the number of the state."""
    found: dict[int, Any] = {}
    for key, value in given.items():
        k = find(states, key)
        if k is None:
            way_out = hint(key, states, f"they are {shown(states)}")
            raise NetworkError(f"{what} names {checks.shown(key)}, which is not one of the states{way_out}")
        if k in found:
            raise NetworkError(f"{what} names the state {states[k]!r} twice")
        found[k] = value
    return found


def thresholds_of(p: FloatArray, gate: str, otherwise: FloatArray) -> FloatArray:
    r"""The inputs of thresholds that give a variable this distribution, :math:`T_l = P(v \ge l)`.

    Of a noisy-MAX, :math:`x_l = \ln P(v \le l) - \ln P(v \le l - 1)`; of sequential logits, the log-odds of
    :math:`T_l / T_{l-1}`, or `otherwise` where no case comes so far. Certainty is a thousand nats.
    """
    tail = np.append(np.cumsum(p[:0:-1])[::-1], 0.0)  # T_1 … T_K; sums that begin with the last state
    tail = np.minimum(tail, 1.0)
    x = np.zeros(len(p) - 1)
    for k in range(len(x)):
        if gate == "noisy-or":
            certain = tail[k] >= 1.0
            x[k] = (CERTAIN if tail[k + 1] < 1.0 else 0.0) if certain else never(tail[k]) - never(tail[k + 1])
        else:
            before = 1.0 if k == 0 else tail[k - 1]
            x[k] = log_odds(min(tail[k] / before, 1.0)) if before > 0.0 else otherwise[k]
    return x


def _kinds(gate: Any, effects: Iterable[str]) -> dict[str, str]:
    """The gate of each effect: one for all, or by name."""
    if isinstance(gate, str):
        given: Mapping[Any, Any] = dict.fromkeys(effects, gate)
    else:
        given = checks.mapping("gate", gate, "give 'sigmoid' or 'noisy-or', or a mapping from effects to these words")
    kinds = {effect: given.get(effect, "sigmoid") for effect in effects}
    for effect, kind in kinds.items():
        if gate_code(kind, "all variables" if isinstance(gate, str) else repr(effect)) == gates.TABLE:
            raise NetworkError(
                f"the gate of {effect!r} is 'table'; from_edges(tables=…) takes the probabilities of one"
            )
    return kinds


def _by_name(
    what: str, given: Any, names: Mapping[str, None], whose: str, states: Mapping[str, Sequence[str]]
) -> dict[str, FloatArray]:
    """Distributions by name; one number is the probability of all that have two states, and zero that of all."""
    if not isinstance(given, Mapping):
        p = checks.probability(what, given)
        more = [name for name in names if len(states[name]) > 2]
        if more and p > 0.0:
            text = f"{more[0]!r} has {len(states[more[0]])} states; give {what}={{{more[0]!r}: {{…}}}} by state"
            raise NetworkError(f"{what} is {p}, one number, and {text}")
        return {name: np.array([1.0 - p, p]) for name in names if name not in more}
    for name in given:
        if not isinstance(name, str) or name not in names:
            raise not_among(name, tuple(names), f"{whose}, which {what} is for")
    return {name: distribution(f"{what}[{name!r}]", p, states[name]) for name, p in given.items()}


def log_odds(p: float) -> float:
    """ln(p / (1 - p)), where certainty is a thousand nats."""
    return float(np.log(p) - np.log1p(-p)) if 0.0 < p < 1.0 else (2.0 * p - 1.0) * CERTAIN


def never(p: float) -> float:
    """-ln(1 - p), where certainty is a thousand nats."""
    return -float(np.log1p(-p)) if p < 1.0 else CERTAIN


class Nearest(NamedTuple):
    """A network with one variable replaced by the nearest of the other gate, and how far off that is.

    Attributes
    ----------
    network : Network
    largest : float
        The largest difference of the two probabilities over all states of the parents (over sampled ones if they are
        many).
    mean : float
        The average difference, if parents are on with the probability that was asked for.
    nats : float
        The average loss of information, KL of the new conditional from the old one.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.noisy_or({("flu", "fever"): 0.9, ("cold", "fever"): 0.2}, leak=0.01, prior=0.1)
    >>> near = sb.convert.nearest(net, "fever", gate="sigmoid")
    >>> round(near.largest, 3)
    0.04
    """

    network: Network
    largest: float
    mean: float
    nats: float


def nearest(network: Network, unit: str | int, *, gate: str, probability: float = 0.5, rng: Any = 0) -> Nearest:
    """Replace a variable by the nearest sigmoid or noisy-OR variable, and say what error that makes.

    Parameters
    ----------
    network : Network
    unit : str or int
        Its name or number.
    gate : str
        ``"sigmoid"`` or ``"noisy-or"``: what it becomes. Nearest in nats, over states of its parents, all of them for
        up to 12 parents, 4,096 random ones for more.
    probability : float
        With which each parent is on in these states.
    rng : int or numpy.random.Generator, optional
        Seed of the random ones.

    Returns
    -------
    Nearest

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.noisy_or({("flu", "fever"): 0.9, ("cold", "fever"): 0.2}, leak=0.01, prior=0.1)
    >>> near = sb.convert.nearest(net, "fever", gate="sigmoid")
    >>> round(near.largest, 3), near.network.gate[2] == net.gate[2]
    (0.04, np.False_)
    """
    check_network(network)
    network.check_binary("the nearest variable of another gate", "subnetwork() leaves such variables out")
    checks.choice("gate", gate, gates.NAMES[:2])
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
    nats = float(share @ (scipy.special.rel_entr(p, q) + scipy.special.rel_entr(1.0 - p, 1.0 - q)))
    return Nearest(other, float(apart.max()), float(share @ apart), nats)


_P: dict[str, Callable[[FloatArray], FloatArray]] = {
    "sigmoid": array_gates.sigma,
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
        lost = (1.0 - p) * x + array_gates.softplus(-x)  # -p ln sigma(x) - (1 - p) ln sigma(-x)
        return float(share @ lost), -inputs.T @ (share * (p - array_gates.sigma(x)))

    start = np.full(inputs.shape[1], 0.5 if sign else 0.0)
    bounds = [(1e-9 if sign else -50.0, 50.0)] + [(0.0 if sign else -50.0, 50.0)] * states.shape[1]
    found: FloatArray = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": 500}).x
    return found
