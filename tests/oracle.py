"""The equations of Saul, Jaakkola & Jordan (1996) in slow, obvious NumPy: one equation per line.

Everything is a pure function of dense arrays: J[i, j] is the weight from parent j to child i, h[i] the bias, `evidence`
one pattern with NaN for hidden units, mu and xi one number per unit. There are no reductions and no shortcuts: every
sum runs over all states. Averages of exponentials are kept as logarithms, so that weights of ±1000 do no harm.

Functions that take `gate` know noisy-OR units, where it is 1, as in the paper's appendix A.

Functions `…_of_states` know variables with any number of states: `model` says which (n_states, threshold, block and the
edges), `h` has the biases of thresholds, `evidence` the number of a state or -1, `tables` the tables of variables by
number, and `Q` the probabilities of all states of each variable.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.special import expit, logsumexp, xlogy

LEAST = 1e-300  # of a chance that rounding is in proportion to


def log_some(x):
    """ln(1 - e^-x), that something works: minus infinity at 0."""
    with np.errstate(divide="ignore"):
        return np.log(-np.expm1(-np.maximum(x, 0.0)))


def magnitude(J, h, gate=None):
    """The size of the terms of ln P(S), eq. (6): rounding errors are in proportion to it."""
    return len(h) + np.abs(h).sum() + np.abs(J).sum() - np.log(LEAST) * np.sum(0 if gate is None else gate)


def rounding(J, h, gate=None):
    """How far apart two right answers may lie, in nats."""
    return 1e-13 * magnitude(J, h, gate)


def inputs(J, h, S):
    """z_i = sum_j J_ij S_j + h_i."""
    return S @ J.T + h


def log_of_units(J, h, S, gate=None):
    """ln P(S_i | pa(S_i)) of every unit, eq. (2), or (A1) of a noisy-OR unit with J = -ln(1 - p)."""
    x = inputs(J, h, S)
    sigmoid = S * x - np.logaddexp(0, x)
    if gate is None:
        return sigmoid
    return np.where(gate == 1, np.where(S == 1, log_some(x), -x), sigmoid)


def cannot_be(J, h, S, gate):
    """Is a noisy-OR unit on without a leak and without a cause? Of each row of states."""
    return np.any((gate == 1) & (S == 1) & (inputs(J, h, S) == 0.0), axis=-1)


def is_impossible(J, h, evidence, gate):
    """Is P(V) zero? (Of biases that are not exactly ±1000, and weights that are not exactly 1000.)"""
    return bool(cannot_be(J, h, all_states(evidence), gate).all())


def log_joint(J, h, S, gate=None):
    """ln P(S), eq. (6)."""
    return np.sum(log_of_units(J, h, S, gate), axis=-1)


def all_states(evidence):
    """Every state of all units that agrees with the evidence, one per row."""
    return np.array(list(itertools.product(*[(0.0, 1.0) if np.isnan(e) else (e,) for e in evidence])))


def absorbed(model, h, states):
    """Biases of thresholds, with the weights of the states of observed parents added."""
    h = np.array(h)
    for v, K in enumerate(model.n_states):
        for e in range(model.indptr[v], model.indptr[v + 1]):
            u = model.parent[e]
            if model.block[e] == model.block[e + 1]:  # into a table
                continue
            J = model.weight[model.block[e] : model.block[e + 1]].reshape(K - 1, model.n_states[u] - 1)
            if states[u] > 0:
                h[model.threshold[v] : model.threshold[v + 1]] += J[:, states[u] - 1]
    return h


def parents_of(model, v):
    """The parents of a variable."""
    return model.parent[model.indptr[v] : model.indptr[v + 1]]


def loads_of_states(gate, K):
    """a_l(k) and c_l(k), states by thresholds."""
    k, l = np.arange(K)[:, None], np.arange(1, K)  # noqa: E741
    return (1.0 * (k >= l), 1.0 * (k >= l - 1)) if gate == 0 else (-1.0 * (l > k), 1.0 * (l == k))


def t_of_states(gate, x):
    """The function whose mean is hard: ln(1 + e^x), or -ln(1 - e^-x)."""
    return np.logaddexp(0, x) if gate == 0 else -log_some(x)


def log_of_states(model, h, S, tables=None):
    """ln P(v | pa(v)) of every variable: sum over thresholds of a_l(k) x_l - c_l(k) t(x_l), or by its table."""
    x, parts = absorbed(model, h, S), np.zeros(len(model.n_states))
    for v, K in enumerate(model.n_states):
        if tables and v in tables:
            with np.errstate(divide="ignore"):
                parts[v] = np.log(tables[v][(*(S[u] for u in parents_of(model, v)), S[v])])
            continue
        inputs, (a, c) = x[model.threshold[v] : model.threshold[v + 1]], loads_of_states(model.gate[v], K)
        used = c[S[v]] != 0
        parts[v] = np.sum(a[S[v]] * inputs) - np.sum(t_of_states(model.gate[v], inputs)[used])  # c is 0 or 1
    return parts


def log_joint_of_states(model, h, S, tables=None):
    """ln P(S), eq. (6), of variables with any number of states."""
    return np.sum(log_of_states(model, h, S, tables))


def cannot_be_of_states(model, h, S, tables=None):
    """Does a state have the probability zero: by a table, or of a noisy-OR without a leak and a cause?"""
    x = absorbed(model, h, S)
    for v, k in enumerate(S):
        if tables and v in tables:
            if tables[v][(*(S[u] for u in parents_of(model, v)), k)] == 0.0:
                return True
        elif model.gate[v] == 1 and k > 0 and x[model.threshold[v] + k - 1] == 0.0:
            return True
    return False


def joint_states(model, evidence):
    """Every state of all variables that agrees with the evidence, one per row."""
    return list(
        itertools.product(*[range(K) if e < 0 else (e,) for K, e in zip(model.n_states, evidence, strict=True)])
    )


def weights_of_states(model, h, evidence, do=None, likelihoods=None, tables=None):
    """Joint states that agree with evidence and do, and ln of P(S | do) times the likelihoods of reports.

    The truncated product: variables in `do` have no conditional. `likelihoods` are arrays over states, by variable.
    """
    do = np.full(len(model.n_states), -1) if do is None else np.asarray(do)
    S = joint_states(model, np.where(do < 0, evidence, do))
    with np.errstate(divide="ignore"):
        reports = {v: np.log(of_state) for v, of_state in (likelihoods or {}).items()}
    log_p = [np.sum(log_of_states(model, h, s, tables)[do < 0]) + sum(r[s[v]] for v, r in reports.items()) for s in S]
    return np.array(S), np.array(log_p)


def exact_of_states(model, h, evidence, do=None, likelihoods=None, tables=None):
    """ln P(V), eq. (8), and the posterior probability of each state from 1 on, variable after variable.

    Those of impossible evidence are NaN.
    """
    S, log_p = weights_of_states(model, h, evidence, do, likelihoods, tables)
    p = np.full(len(S), np.nan) if np.all(log_p == -np.inf) else np.exp(log_p - logsumexp(log_p))
    columns = [S[:, v] == k for v, K in enumerate(model.n_states) for k in range(1, K)]
    return logsumexp(log_p), np.array(columns) @ p


def mean_log_of_states(model, h, Q, v, tables=None):
    """<ln P(v | pa(v))> under independent variables, by a sum over v and the joint states of its parents."""
    own, total = [*parents_of(model, v), v], 0.0
    for states in itertools.product(*[range(model.n_states[u]) for u in own]):
        q = np.prod([Q[u][s] for u, s in zip(own, states, strict=True)])
        S = np.zeros(len(model.n_states), int)
        S[own] = states
        total += q * log_of_states(model, h, S, tables)[v] if q > 0 else 0.0
    return total


def bound_of_states(model, h, Q, tables=None):
    """Eq. (16) for any number of states: sum of <ln P(v | pa(v))>, each exact, and the entropy of Q."""
    entropy = -sum(np.sum(xlogy(q, q)) for q in Q)
    return sum(mean_log_of_states(model, h, Q, v, tables) for v in range(len(Q))) + entropy


def xi_bound_of_states(model, h, Q, v, l, xi):  # noqa: E741
    """The right-hand side of eq. (20) for one threshold: <t(x_l)> <= xi <x_l> + ln(<e^(-xi x)> + <e^((1-xi) x)>)."""
    k = model.threshold[v] + l - 1
    mean, logs = h[k], np.array([-xi, 1 - xi]) * h[k]
    for e in range(model.indptr[v], model.indptr[v + 1]):
        u = model.parent[e]
        J = model.weight[model.block[e] : model.block[e + 1]].reshape(model.n_states[v] - 1, model.n_states[u] - 1)
        J = np.append(0.0, J[l - 1])  # nothing in state 0
        mean += Q[u] @ J
        with np.errstate(divide="ignore"):
            logs += [logsumexp(np.log(Q[u]) + w * J) for w in (-xi, 1 - xi)]
    return xi * mean + np.logaddexp(*logs)


def log_likelihood(J, h, evidence, gate=None):
    """ln P(V), eq. (8)."""
    return logsumexp(log_joint(J, h, all_states(evidence), gate))


def log_posterior(J, h, evidence, gate=None):
    """ln P(H | V) of each row of `all_states`, eq. (7)."""
    return log_joint(J, h, all_states(evidence), gate) - log_likelihood(J, h, evidence, gate)


def posterior(J, h, evidence, gate=None):
    """P(S_i = 1 | V) of every unit."""
    return np.exp(log_posterior(J, h, evidence, gate)) @ all_states(evidence)


def slopes(J, h, evidence):
    """The gradient of ln P(V) in J and h: posterior means of (S_i - P(S_i = 1 | pa)) S_j, and without S_j."""
    S = all_states(evidence)
    p, off = np.exp(log_posterior(J, h, evidence)), S - expit(inputs(J, h, S))
    return (p[:, None] * off).T @ S, p @ off


def posterior_pairs(J, h, evidence, gate=None):
    """P(S_i = 1, S_j = 1 | V) of every pair of units."""
    S = all_states(evidence)
    return (S * np.exp(log_posterior(J, h, evidence, gate))[:, None]).T @ S


def clamp(evidence, mu):
    """mu with the means of observed units set to their values, as below eq. (16)."""
    return np.where(np.isnan(evidence), mu, evidence)


def q_of_states(evidence, mu):
    """Q(H | V) of each row of `all_states`, eq. (15)."""
    S, m = all_states(evidence), clamp(evidence, mu)
    return np.prod(np.where(S == 1, m, 1 - m), axis=1)


def kl(J, h, evidence, mu, gate=None):
    """KL(Q || P), eq. (12)."""
    q = q_of_states(evidence, mu)
    return np.sum(xlogy(q, q) - q * log_posterior(J, h, evidence, gate))


def entropy(mu):
    """The second line of eq. (16)."""
    return -np.sum(xlogy(mu, mu) + xlogy(1 - mu, 1 - mu))


def mean_log1pexp(J, h, mu):
    """<ln(1 + e^z_i)> of every unit, by summing over the states of its parents."""
    result = np.empty(len(h))
    for i, weights in enumerate(J):
        pa = np.flatnonzero(weights)
        S = all_states(np.full(len(pa), np.nan))
        q = np.prod(np.where(S == 1, mu[pa], 1 - mu[pa]), axis=1)
        result[i] = np.sum(q * np.logaddexp(0, S @ weights[pa] + h[i]))
    return result


def mean_sigmoid(J, h, mu):
    """<sigma(z_i)> of every unit, by summing over the states of its parents."""
    result = np.empty(len(h))
    for i, weights in enumerate(J):
        pa = np.flatnonzero(weights)
        S = all_states(np.full(len(pa), np.nan))
        q = np.prod(np.where(S == 1, mu[pa], 1 - mu[pa]), axis=1)
        result[i] = np.sum(q * expit(S @ weights[pa] + h[i]))
    return result


def lattice_distribution(steps, mu):
    """Values and probabilities of sum_j steps_j S_j for whole numbers `steps`: one convolution for each parent."""
    low, p = 0, np.ones(1)
    for step, m in zip(steps, mu, strict=True):
        low += min(step, 0)
        on, off = np.zeros((2, len(p) + abs(step)))
        on[max(step, 0) : max(step, 0) + len(p)] = p
        off[max(-step, 0) : max(-step, 0) + len(p)] = p
        p = (1 - m) * off + m * on
    return low + np.arange(len(p)), p


def quadratic_log1pexp(J, h, mu):
    """An upper bound on <ln(1 + e^z_i)>: a parabola that touches ln(1 + e^z) at z = c and -c, with c^2 = <z^2>."""
    c = np.sqrt((J @ mu + h) ** 2 + J**2 @ (mu * (1 - mu)))
    return np.logaddexp(0, c) + (J @ mu + h - c) / 2


def exact_average_bound(J, h, mu):
    """Eq. (16): the bound with <ln(1 + e^z)> exact."""
    return mu @ J @ mu + h @ mu - mean_log1pexp(J, h, mu).sum() + entropy(mu)


def log_average(J, mu, t):
    """ln <e^(t_i sum_j J_ij S_j)> of every unit, the products of eqs. (30) and (31)."""
    with np.errstate(divide="ignore"):  # ln 0 = -inf is what is meant
        return np.logaddexp(np.log1p(-mu), np.log(mu) + t[:, None] * J).sum(axis=1)


def log_moments(J, h, mu, xi):
    """ln <e^(-xi z)>, eq. (30), and ln <e^((1-xi) z)>, eq. (31)."""
    return -xi * h + log_average(J, mu, -xi), (1 - xi) * h + log_average(J, mu, 1 - xi)


def log1pexp_bound(J, h, mu, xi):
    """The right-hand side of eq. (20), an upper bound on <ln(1 + e^z_i)>."""
    return xi * (J @ mu + h) + np.logaddexp(*log_moments(J, h, mu, xi))


def bound(J, h, mu, xi):
    """The mean field bound of eq. (22), with the entropy in the sign of eq. (16)."""
    return mu @ J @ mu + h @ mu - log1pexp_bound(J, h, mu, xi).sum() + entropy(mu)


def tightest_xi(J, h, mu):
    """The xi that minimise eq. (20), by golden section: it is convex in xi, with its minimum in [0, 1]."""
    low, high, golden = np.zeros(len(h)), np.ones(len(h)), (np.sqrt(5) - 1) / 2
    for _ in range(80):
        a, b = high - golden * (high - low), low + golden * (high - low)
        left = log1pexp_bound(J, h, mu, a) < log1pexp_bound(J, h, mu, b)
        low, high = np.where(left, low, a), np.where(left, b, high)
    return (low + high) / 2


def phi(J, h, mu, xi):
    """Eq. (32)."""
    a, b = log_moments(J, h, mu, xi)
    return np.exp(b - np.logaddexp(a, b))


def tilted(J, mu, t):
    """mu_j e^(t_i J_ij) / (1 - mu_j + mu_j e^(t_i J_ij)), the fractions in eqs. (33) and (34)."""
    with np.errstate(divide="ignore"):
        on, off = np.log(mu) + t[:, None] * J, np.log1p(-mu)
    return np.exp(on - np.logaddexp(on, off))


def K(J, h, mu, xi):
    """Eq. (33), for 0 < mu < 1: (1 - e^t) / (1 - mu + mu e^t) = (mu - tilted) / (mu (1 - mu))."""
    a, b, f = tilted(J, mu, -xi), tilted(J, mu, 1 - xi), phi(J, h, mu, xi)[:, None]
    return ((1 - f) * (mu - a) + f * (mu - b)) / (mu * (1 - mu))


def mean_field(J, h, mu, xi):
    """The right-hand side of eq. (24), for 0 < mu < 1."""
    return expit(J @ mu + h + J.T @ (mu - xi) + np.sum(K(J, h, mu, xi) * (J != 0), axis=0))


def gradient_weight(J, h, mu, xi):
    """dL/dJ_ij, eq. (34); it has a meaning where there is an edge."""
    a, b, f, x = tilted(J, mu, -xi), tilted(J, mu, 1 - xi), phi(J, h, mu, xi)[:, None], xi[:, None]
    return -(x - mu[:, None]) * mu + (1 - f) * x * a - f * (1 - x) * b


def gradient_bias(J, h, mu, xi):
    """dL/dh_i, eq. (35)."""
    return mu - phi(J, h, mu, xi)


def log_weights(J, h, evidence, do, likelihoods, gate=None):
    """ln of P(S | do) times the likelihoods of the reports, for every state S that agrees with evidence and do.

    The truncated product: units in `do` have no conditional. `likelihoods` are pairs, one for each unit.
    """
    S = all_states(np.where(np.isnan(do), evidence, do))
    with np.errstate(divide="ignore"):
        reports = np.log(np.where(S == 1, likelihoods[:, 1], likelihoods[:, 0]))
    return S, np.sum(np.where(np.isnan(do), log_of_units(J, h, S, gate), 0.0) + reports, axis=-1)


def single_cause(model, h, evidence, causes, tables=None):
    """ln P(d | V) of "d is present and no other cause": by a sum over all joint states with exactly one cause on.

    By cause and state from 1 on, in the order of the causes; minus infinity where it cannot be, NaN if none can.
    """
    S = [s for s in joint_states(model, evidence) if sum(s[d] > 0 for d in causes) == 1]
    S = [s for s in S if not cannot_be_of_states(model, h, s, tables)]
    pairs = [(d, k) for d in causes for k in range(1, model.n_states[d])]
    terms = [[log_joint_of_states(model, h, s, tables) for s in S if s[d] == k] for d, k in pairs]
    log_p = np.array([logsumexp(own) if own else -np.inf for own in terms])
    return log_p - logsumexp(log_p) if S else np.full(len(pairs), np.nan)
