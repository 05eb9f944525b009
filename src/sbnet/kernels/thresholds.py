"""What a variable is: its distribution given the inputs of its thresholds. The only place that knows all gates.

    ln P(v = k | x) = sum over thresholds l of a_l(k) x_l - c_l(k) t(x_l)

    gate        a_l(k)      c_l(k)          t(x)            in words
    sigmoid     [k >= l]    [k >= l - 1]    ln(1 + e^x)     P(v >= l | v >= l - 1) = sigma(x_l), sequential logits
    noisy-or    -[k < l]    [k = l]         -ln(1 - e^-x)   P(v <= k) = exp(-sum of x_l over l > k), noisy-MAX

a and c depend on the state alone: under a factorial distribution the mean is <a> <x> - <c> <t(x)>. With two states,
a = S and c = 1 for a sigmoid variable, a = S - 1 and c = S for a noisy-OR.

Inputs of noisy-OR variables are never negative. Without a leak and a cause x = 0, and the state cannot be; so that no
sum meets an infinity, its probability counts as LEAST there. An unknown gate gives NaN, which shows at once.
"""

import math

from sbnet.kernels.codes import LEAST, NOISY_OR, SIGMOID
from sbnet.kernels.compiling import inner


@inner
def softplus(x):
    """ln(1 + e^x)."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@inner
def sigmoid(x):
    """1 / (1 + e^-x), without overflow."""
    t = math.exp(-abs(x))
    return 1.0 / (1.0 + t) if x >= 0.0 else t / (1.0 + t)


@inner
def rarity(x):
    """-ln(1 - e^-x), which is minus the logarithm of the probability that some cause works."""
    y = max(x, LEAST)
    return -math.log(-math.expm1(-y)) if y < 0.6931471805599453 else -math.log1p(-math.exp(-y))


@inner
def t(gate, x):
    """The function whose mean is hard."""
    return softplus(x) if gate == SIGMOID else rarity(x) if gate == NOISY_OR else math.nan


@inner
def dt(gate, x):
    """Its derivative."""
    if gate == SIGMOID:
        return sigmoid(x)
    return -1.0 / math.expm1(min(max(x, LEAST), 700.0)) if gate == NOISY_OR else math.nan


@inner
def loads(gate, level, state):
    """a and c of a threshold for a state of its variable."""
    if gate == SIGMOID:
        return 1.0 if state >= level else 0.0, 1.0 if state >= level - 1 else 0.0
    if gate == NOISY_OR:
        return -1.0 if state < level else 0.0, 1.0 if state == level else 0.0
    return math.nan, math.nan


@inner(fast=True)
def mean_loads(gate, level, q, first, end):
    """Their means, where columns `first` to `end` of Q are the probabilities of the states from 1 on."""
    at_least = 0.0
    for k in range(first + level - 1, end):
        at_least += q[k]
    if gate == SIGMOID:
        return at_least, at_least + q[first + level - 2] if level > 1 else 1.0
    return (at_least - 1.0, q[first + level - 1]) if gate == NOISY_OR else (math.nan, math.nan)


@inner
def log_part(gate, level, state, x):
    """a x - c t(x) of one threshold, without loss of digits where the probability is near 1."""
    if gate == SIGMOID:
        if state >= level:
            return -softplus(-x)
        return -softplus(x) if state == level - 1 else 0.0
    if gate != NOISY_OR:
        return math.nan
    return -rarity(x) if state == level else -max(x, 0.0) if state < level else 0.0


@inner
def log_odds(gate, state, x):
    """ln P(v = state) - ln P(v = 0); that of a sigmoid variable with two states is its input, to the digit."""
    total = 0.0 if gate in (SIGMOID, NOISY_OR) else math.nan
    for k in range(state):
        total += x[k] if gate == SIGMOID else max(x[k], 0.0)
        if gate == SIGMOID and k + 1 < len(x):  # of the next threshold, which counts for all states but 0
            total -= softplus(x[k + 1])
    return total - rarity(x[state - 1]) if gate == NOISY_OR and state > 0 else total
