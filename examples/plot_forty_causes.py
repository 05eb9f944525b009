"""
A symptom with forty causes
===========================

Fatigue can come from almost anything. A library that stores conditional probabilities in tables needs an entry for
every combination of causes. Here a unit with 40 parents takes 41 numbers, and the answer a few thousandths of
a second. The network is invented for the example: it is not medical knowledge.
"""

# %%
# What a table would cost
# -----------------------

import matplotlib.pyplot as plt
import numpy as np

import sbnet as sb
import sbnet.plots

entries = 2**40
print(f"{entries:,} combinations of 40 causes; at 8 bytes each, {8 * entries / 1e12:.1f} terabytes")

# %%
# Building it
# -----------
# Forty causes, a few of which are common. All of them can bring about fatigue; every other symptom has its own share of
# them, with weights drawn at random. Biases are log-odds: a cause with bias -3 is present in one person of 21.

rng = np.random.default_rng(4)
causes = [f"cause {k:02d}" for k in range(1, 41)]
symptoms = {"fatigue": 40, "fever": 9, "cough": 8, "headache": 12, "rash": 6, "nausea": 10, "joint pain": 7}

bias = {cause: round(rng.uniform(-4.5, -2.0), 1) for cause in causes}
edges = {}
for symptom, n_causes in symptoms.items():
    chosen = causes if n_causes == 40 else rng.choice(causes, n_causes, replace=False)
    for cause in chosen:
        low, high = (0.3, 1.5) if symptom == "fatigue" else (1.5, 4.0)
        edges[cause, symptom] = round(rng.uniform(low, high), 1)
    bias[symptom] = -3.0

net = sb.from_edges(edges, bias=bias, names=[*causes, *symptoms])
print(net)

# %%
# What the patient reports
# ------------------------
# Fatigue, fever and a rash; no cough. Nobody asked about the rest, and what was not asked is simply left out: a symptom
# without an answer has no effect on the others.

evidence = {"fatigue": 1, "fever": 1, "rash": 1, "cough": 0}
post = sb.infer(net, evidence)
print(f"ln P(evidence) is at least {post.bound:.4f} nats; {post.sweeps} sweeps")
print(post.status.value)

# %%
# Exact enumeration would need too many terms, and says so:

try:
    sb.log_likelihood(net, evidence)
except sb.errors.TooManyHiddenError as error:
    print(error)

# %%
# Which causes?
# -------------
# Gibbs sampling draws from the posterior itself and makes no systematic error once its chains have settled, so it
# can serve as a check. It tells the error of its means, but has no bound.

chains = sb.infer(net, evidence, solver=sb.Gibbs(samples=5_000, burn_in=500, rng=0))
prior = 1.0 / (1.0 + np.exp(-net.bias[:40]))
order = np.argsort(chains.means[:40])[::-1][:12]

fig, ax = plt.subplots(figsize=(7.0, 4.6), layout="constrained")
place = np.arange(len(order))
ax.barh(place, post.means[order], 0.62, color="#74c476", label="mean field")
spread = 2 * chains.error[order]
ax.errorbar(chains.means[order], place, xerr=spread, fmt="o", color="#222222", ms=4, label="Gibbs ± 2 errors")
ax.plot(prior[order], place, "|", color="#D55E00", ms=13, mew=2, label="before the evidence")
ax.set(yticks=place, yticklabels=[net.names[i] for i in order])
ax.set(xlabel="probability", title="The twelve likeliest causes")
ax.invert_yaxis()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower right")
plt.show()

difference = np.abs(post.means[:40] - chains.means[:40])
worst = int(difference.argmax())
print(f"largest difference: {difference[worst]:.3f} ({net.names[worst]}), on average {difference.mean():.4f}")

# %%
# Where the two differ, causes compete for the same symptom: mean field takes hidden units to be independent, leans on
# the explanation that serves two symptoms at once, and gives others somewhat less than they deserve.
#
# A picture of the competition
# ----------------------------
# The five likeliest causes, and what was asked.

shown = [*(net.names[i] for i in order[:5]), *evidence]
part = net.subnetwork(shown)
sb.plots.network(part, evidence=evidence, means={name: post[name] for name in shown})
plt.show()

# %%
# Where the bound comes from
# --------------------------
# The bound is a sum over units; the ten that cost most are shown. Causes that the report does not touch cost next to
# nothing. Unexpected symptoms cost most, together with the causes that are needed to explain them.

print(post.breakdown())

# %%
# What to ask next
# ----------------
# Units that were not observed have a mean too: for a symptom, how likely it is given the report. Symptoms that were not
# asked about have no part in the bound.

for name in symptoms:
    if name not in evidence:
        print(f"{name:<12}{post[name]:.2f}")
