"""
Causes and symptoms
===================

A small network made by hand: two illnesses, a habit that makes one of them likelier, and three symptoms. We build it,
look at what it believes before anything is known, and watch that belief change as symptoms are reported.
"""

# %%
# Building it
# -----------
# An edge runs from a cause to its effect. A positive weight makes the effect likelier, a negative one less likely. The
# bias of a unit says how likely it is when none of its parents is on: it is the log-odds of that probability.

import matplotlib.pyplot as plt

import sbnet as sb
import sbnet.plots

net = sb.from_edges(
    {
        ("smoker", "bronchitis"): 1.5,
        ("flu", "fever"): 3.5,
        ("flu", "cough"): 1.5,
        ("bronchitis", "cough"): 3.0,
        ("bronchitis", "wheeze"): 2.5,
    },
    bias={
        "smoker": -1.0,
        "flu": -2.5,
        "bronchitis": -3.0,
        "fever": -3.5,
        "cough": -2.5,
        "wheeze": -3.0,
    },
)
print(net)

# %%
# Before anything is known
# ------------------------
# With no evidence, the means are prior probabilities.

prior = sb.exact_posterior(net, {})
sb.plots.network(net, means=prior)
plt.show()

# %%
# After a cough
# -------------
# Both illnesses become likelier, and so does the habit, two steps up. The fever does too: it would follow from flu.

posterior = sb.exact_posterior(net, {"cough": 1})
sb.plots.network(net, evidence={"cough": 1}, means=posterior)
plt.show()

for name, before, after in zip(net.names, prior, posterior, strict=True):
    print(f"{name:<12}{before:6.2f} -> {after:.2f}")

# %%
# Explaining away
# ---------------
# The two illnesses are independent causes. Once the cough is known they compete to explain it: evidence for flu, here a
# fever, makes bronchitis less likely, though no edge joins the two. A wheeze brings it back.

reports = [{}, {"cough": 1}, {"cough": 1, "fever": 1}, {"cough": 1, "fever": 1, "wheeze": 1}]
for evidence in reports:
    mean = sb.exact_posterior(net, evidence)[net.index("bronchitis")]
    print(f"{mean:.2f} after {', '.join(evidence) or 'nothing'}")

# %%
# How surprising is it?
# ---------------------
# The log-likelihood of the evidence, in nats, tells how much the network expected what was seen. A fever with a cough
# is a commoner story than a fever with a wheeze.

for evidence in ({"fever": 1, "cough": 1}, {"fever": 1, "wheeze": 1}):
    print(f"ln P({', '.join(evidence)}) = {sb.log_likelihood(net, evidence):.2f}")
