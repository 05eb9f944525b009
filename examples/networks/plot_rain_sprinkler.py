"""
Mean field on wet grass
=======================

Rain or the sprinkler makes the grass wet, and wet shoes follow from wet grass. The network is so small that every
answer can also be had exactly, so it is a good place to see what :func:`sbnet.infer` gives and how close it comes. A
larger network then shows the bound rising, sweep by sweep.
"""

# %%
# One question, two answers
# -------------------------
# The bias of a variable is its log-odds when none of its parents is on; a weight is what a parent adds to them.

import matplotlib.pyplot as plt
import numpy as np

import sbnet as sb
import sbnet.plots

net = sb.from_edges(
    {
        ("rain", "wet grass"): 4.0,
        ("sprinkler", "wet grass"): 3.0,
        ("wet grass", "wet shoes"): 3.0,
    },
    bias={"rain": -1.5, "sprinkler": -1.0, "wet grass": -3.0, "wet shoes": -2.0},
)

post = sb.infer(net, {"wet shoes": 1})
print(post)

# %%
# The bound lies below the exact log-likelihood, as it always does. The means point the right way but go too far: mean
# field treats hidden variables as independent given the evidence. Here they hang together, since rain, sprinkler and
# wet grass are likely to be true together, and independent variables can tell only one such story at a time.

exact = sb.exact_posterior(net, {"wet shoes": 1})
print(f"ln P(wet shoes) = {sb.log_likelihood(net, {'wet shoes': 1}):.4f}, bound {post.bound:.4f}")
for name, mean, true in zip(net.names, post.means, exact, strict=True):
    print(f"{name:<12} mean field {mean:.3f}   exact {true:.3f}")

sb.plots.network(net, evidence={"wet shoes": 1}, means=post)
plt.show()

# %%
# Explaining away
# ---------------
# Rain and sprinkler have no edge between them. Once the grass is known to be wet they compete: a running sprinkler
# explains the water, and rain becomes less likely. When the sprinkler is known to be off, rain has to answer for it.

cases = {
    "nothing": {},
    "grass is wet": {"wet grass": 1},
    "... sprinkler on": {"wet grass": 1, "sprinkler": 1},
    "... sprinkler off": {"wet grass": 1, "sprinkler": 0},
}
found = [sb.infer(net, evidence)["rain"] for evidence in cases.values()]
true = [sb.exact_posterior(net, evidence)[net.index("rain")] for evidence in cases.values()]

fig, ax = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
place = np.arange(len(cases))
ax.barh(place - 0.18, found, 0.34, color="#0072B2", label="mean field")
ax.barh(place + 0.18, true, 0.34, color="#bbbbbb", label="exact")
for y, value in (*zip(place - 0.18, found, strict=True), *zip(place + 0.18, true, strict=True)):
    ax.text(value + 0.01, y, f"{value:.2f}", va="center", size=8)
ax.set(yticks=place, yticklabels=cases, xlim=(0, 1.08), xlabel="probability of rain", title="Explaining away")
ax.invert_yaxis()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper right")
plt.show()

# %%
# Once the grass itself is observed, the two answers are close. With rain as the only unknown above it there is nothing
# left to be independent of, and the last two pairs agree to rounding.

print([f"{abs(a - b):.0e}" for a, b in zip(found, true, strict=True)])

# %%
#
# The bound rises
# ----------------
# On a larger network, 6 variables above 12 above 24 observed ones, all 18 hidden variables can still be enumerated.
# Each sweep updates every mean and every parameter of the bound, and no step can lower it. ``post.trace`` holds the
# bound at the start and after each sweep. The four lines differ in how the mean of :math:`\ln(1 + e^z)` is treated; see
# :doc:`/guide/inference`.

big = sb.layered((6, 12, 24), rng=3, scale=1.5)
x = sb.sample(big, 1, rng=5)[0, -24:]
truth = sb.log_likelihood(big, x)

fig, ax = plt.subplots(figsize=(7.0, 4.0), layout="constrained")
ax.axhline(truth, color="#222222", lw=1, ls="--")
ax.text(24.9, truth + 0.2, "exact log-likelihood", size=9, ha="right")
looks = {"exact": ("#0072B2", "o"), "xi": ("#009E73", "s"), "quadratic": ("#E69F00", "^"), "jensen": ("#D55E00", "D")}
for term, (colour, marker) in looks.items():
    post = sb.infer(big, x, solver=sb.MeanField(log_term=term, enumerate_up_to=0))
    assert np.all(np.diff(post.trace) >= -1e-9)  # it never falls
    assert post.bound <= truth  # and never passes the truth
    label = f"{term}: {post.bound:.2f}, {post.sweeps} sweeps"
    ax.plot(post.trace, color=colour, lw=3 if term == "exact" else 1.5, marker=marker, ms=4, label=label)
ax.set(xlabel="sweep", ylabel="bound (nats)", title=f"Rising towards ln P = {truth:.2f}")
ax.set(xlim=(0, 25), ylim=(truth - 9.0, truth + 0.8))  # the first points lie below
ax.spines[["top", "right"]].set_visible(False)
ax.legend(title="log_term: final bound", frameon=False, loc="lower right")
plt.show()

# %%
# What remains between ``"exact"`` and the dashed line is the price of independence, which no `log_term` can win
# back. ``"xi"`` is the paper's bound.
