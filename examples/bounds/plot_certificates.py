"""
How well is P known?
====================

A lower bound says that the evidence is at least so likely. Together with an upper bound it says more: the truth lies
between the two, even where nobody can compute it. This example shows how narrow the interval is, and what
each way to narrow it costs.
"""

# %%
# One certificate
# ---------------
# Forty possible causes of one symptom: :math:`2^{40}` combinations, far too many to sum. The certificate needs a
# fraction of a second.

import time

import matplotlib.pyplot as plt
import numpy as np

import sbnet as sb
from sbnet.datasets import load_digits

causes = {(f"cause {k}", "symptom"): 0.2 + 0.05 * k for k in range(40)}
net = sb.from_edges(causes, bias={"symptom": -4.0} | {f"cause {k}": -3.0 for k in range(40)})
print(sb.certify(net, {"symptom": 1}))

# %%
# More effort, a narrower interval
# --------------------------------

for effort in ("fast", "normal", "high"):
    certificate = sb.certify(net, {"symptom": 1}, effort=effort)
    print(f"{effort:<8}{certificate.lower:.4f} to {certificate.upper:.4f}")

# %%
# The posterior, with guarantees
# ------------------------------
# How likely is the strongest cause, given the symptom? Mean field has a number; the interval holds the truth.

low, high = sb.posterior_intervals(net, {"symptom": 1}, units=["cause 39"], effort="normal")["cause 39"]
mean = sb.infer(net, {"symptom": 1})["cause 39"]
print(f"P(cause 39 | symptom) is between {low:.3f} and {high:.3f}; mean field: {mean:.3f}")

# %%
# Gap against seconds
# -------------------
# Three networks: one small enough to know the truth, one of the paper's, learned from 700 threes, and one whose
# variables have 500 parents. For the last two, the truth is an estimate from annealed samples, good to a few hundredths
# of a nat. Each point is one method: how far it is from the truth, and how long it took.

digits = load_digits()
threes = digits.train[digits.train_target == 3]
networks = {
    "2 × 4 × 6, weights to ±2": sb.layered((2, 4, 6), rng=0, scale=2.0),
    "8 × 24 × 64, learned from threes": sb.fit(sb.layered((8, 24, 64), rng=0), threes, rng=0).network,
    "500 × 20, weights to ±0.3": sb.layered((500, 20), rng=0, scale=0.3),
}


def widest(network, k):
    """The k variables with the largest weights to their children."""
    reach = np.bincount(network.graph.parent, network.weight**2, network.n_units)
    return [int(i) for i in np.argsort(-reach)[:k]]


below = {
    "mean field, the paper's ξ": lambda net, v: sb.infer(net, v, solver=sb.MeanField(log_term="xi")),
    "mean field": sb.infer,
    "4 variables enumerated": lambda net, v: sb.infer(net, v, solver=sb.Conditioned(widest(net, 4))),
    "mixture of 2": lambda net, v: sb.infer(net, v, solver=sb.Mixture(2)),
}
above = {
    "lines": lambda net, v: sb.upper_bound(net, v, exact_up_to=0, table_up_to=0),
    "tables": lambda net, v: sb.upper_bound(net, v, exact_up_to=0, table_up_to=4),
    "tables, 3 variables enumerated": lambda net, v: sb.upper_bound(
        net, v, exact_up_to=0, table_up_to=4, condition=widest(net, 3)
    ),
}
marks = ["o", "s", "D", "^"]
for method in [*below.values(), *above.values()]:
    method(networks["2 × 4 × 6, weights to ±2"], [0] * 6)  # what has to be compiled is compiled now

fig, axes = plt.subplots(1, 3, figsize=(11.0, 4.0), layout="constrained", sharey=True)
for ax, (title, network) in zip(axes, networks.items(), strict=True):
    pattern = sb.sample(network, 1, rng=0)[0, -network.layers[-1] :]
    if title.startswith("2"):
        truth = sb.log_likelihood(network, pattern)
    else:
        truth = sb.estimate(network, pattern, samples=100, method="annealed", rng=0).log_probability
    for methods, colour in ((below, "#1b7837"), (above, "#D55E00")):
        for mark, (name, method) in zip(marks, methods.items(), strict=False):
            start = time.perf_counter()
            bound = method(network, pattern).bound
            spent = time.perf_counter() - start
            side = "from below" if methods is below else "from above"
            ax.plot(spent, abs(bound - truth), mark, color=colour, ms=8, alpha=0.85, label=f"{side}: {name}")
    ax.set(title=title, xlabel="seconds", xscale="log", yscale="log")
    ax.margins(0.1)
    ax.grid(alpha=0.25)
axes[0].set_ylabel("distance from ln P, in nats")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
plt.show()
