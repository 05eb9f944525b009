"""
A symptom with forty causes
===========================

Fatigue can come from almost anything. A library that stores conditional probabilities in tables needs an entry for
every combination of causes. Here a variable with 40 parents takes 41 numbers, and the answer a few thousandths of
a second, whether causes act each on their own (noisy-OR) or add up (sigmoid). The network is invented for
the example: it is not medical knowledge.
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
# Building it, twice
# ------------------
# Forty causes, a few of which are common. All of them can bring about fatigue; every other symptom has its own share of
# them. The numbers are probabilities: of a cause to be there, of a symptom when one cause is there, and the leak, of a
# symptom without any of them.

rng = np.random.default_rng(4)
causes = [f"cause {k:02d}" for k in range(1, 41)]
symptoms = {"fatigue": 40, "fever": 9, "cough": 8, "headache": 12, "rash": 6, "nausea": 10, "joint pain": 7}

prior = {cause: round(rng.uniform(0.01, 0.12), 3) for cause in causes}
p = {}
for symptom, n_causes in symptoms.items():
    chosen = causes if n_causes == 40 else sorted(rng.choice(causes, n_causes, replace=False))
    low, high = (0.06, 0.3) if symptom == "fatigue" else (0.2, 0.7)
    p |= {(cause, symptom): round(rng.uniform(low, high), 2) for cause in chosen}

noisy = sb.noisy_or(p, leak=0.03, prior=prior)
sigmoid = sb.from_probabilities(p, leak=0.03, prior=prior, gate="sigmoid")
print(noisy)
print(sigmoid)

# %%
# What the gates make of several causes
# -------------------------------------
# With no cause or one, both gates say (almost) the same: that is how they were built. They part where causes meet.
# Under the noisy-OR each cause has its own try, and fatigue is absent if all fail. Under the sigmoid log-odds add up,
# and five causes that are weak alone are strong together.

some = [causes[:n] for n in range(13)]
fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for net, color, marker in ((noisy, "#222222", "o"), (sigmoid, "#D55E00", "s")):
    table = net.conditional("fatigue", some)
    ax.plot(range(13), table.p, marker=marker, color=color, ms=5, label=table.gate)
ax.set(xlabel="causes present", ylabel="P(fatigue)", ylim=(0, 1.03), title="The same causes, two gates")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower right")
plt.show()

near = sb.convert.nearest(noisy, "fatigue", gate="sigmoid", probability=0.06)
print(f"the nearest sigmoid is off by {near.mean:.3f} on average, {near.largest:.2f} at most")

# %%
# Which of the two is right is a question about the world. Diseases that know nothing of each other speak for the
# noisy-OR; influences that pile up, or that prevent, for the sigmoid.
#
# What the patient reports
# ------------------------
# Fatigue, fever and a rash; no cough. Nobody asked about the rest, and what was not asked is simply left out: a symptom
# without an answer has no effect on the others.

evidence = {"fatigue": 1, "fever": 1, "rash": 1, "cough": 0}
posts = {"noisy-or": sb.infer(noisy, evidence), "sigmoid": sb.infer(sigmoid, evidence)}
for gate, post in posts.items():
    print(f"{gate}: ln P(evidence) is at least {post.bound:.4f} nats; {post.sweeps} sweeps")

# %%
# A sum over all states of the sigmoid network has too many terms, and says so. The noisy-OR has a short cut: symptoms
# that are absent factorise, and what remains is a sum over the subsets of those that are present, eight of them here.
# It is taken without asking.

print(f"noisy-or: ln P(evidence) is {sb.log_likelihood(noisy, evidence):.4f} nats")
try:
    sb.log_likelihood(sigmoid, evidence)
except sb.errors.TooManyHiddenError as error:
    print(f"sigmoid: {error}")

# %%
# Which causes?
# -------------
# For the noisy-OR network the bars can be checked against the exact answer. For the sigmoid network Gibbs sampling
# serves: it draws from the posterior itself and makes no systematic error once its chains have settled, but it has no
# bound.

exact = np.asarray(sb.exact_posterior(noisy, evidence))
chains = sb.infer(sigmoid, evidence, solver=sb.Gibbs(samples=5_000, burn_in=500, rng=0))
checks = {"noisy-or": (exact, "exact"), "sigmoid": (chains.means, "Gibbs sampling")}
order = [noisy.index(name) for name in sorted(causes, key=lambda name: -exact[noisy.index(name)])[:12]]

fig, axes = plt.subplots(1, 2, figsize=(9.6, 4.4), sharey=True, sharex=True, layout="constrained")
place = np.arange(len(order))
for ax, (gate, post), color in zip(axes, posts.items(), ("#9e9ac8", "#fdae6b"), strict=True):
    truth, label = checks[gate]
    mine = [post.network.index(noisy.names[i]) for i in order]
    ax.barh(place, post.means[mine], 0.62, color=color, label="mean field")
    ax.plot(truth[mine], place, "o", color="#222222", ms=4, label=label)
    ax.plot(
        [prior[noisy.names[i]] for i in order], place, "|", color="#222222", ms=13, mew=2, label="before the evidence"
    )
    ax.set(xlabel="probability", title=gate)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="lower right")
axes[0].set(yticks=place, yticklabels=[noisy.names[i] for i in order])
axes[0].invert_yaxis()
plt.show()

for gate, post in posts.items():
    apart = np.abs(post.means - checks[gate][0])
    print(f"{gate}: mean field is off by {apart.max():.3f} at most ({post.network.names[int(apart.argmax())]})")

# %%
# Both networks blame the same causes first. Where mean field is off, causes compete for the same symptom: it takes
# hidden variables to be independent, leans on the explanation that serves two symptoms at once, and gives others
# somewhat less than they deserve.
#
# A picture of the competition
# ----------------------------
# The five likeliest causes in the noisy-OR network, and what was asked. The weight of a cause with probability p is
# -ln(1 - p): 0.69 is a half.

post = posts["noisy-or"]
shown = [*(noisy.names[i] for i in order[:5]), *evidence]
part = noisy.subnetwork(shown)
sb.plots.network(part, evidence=evidence, means={name: post[name] for name in shown})
plt.show()

# %%
# Where the bound comes from
# --------------------------
# The bound is a sum over variables; the ten that cost most are shown. Causes that the report does not touch cost next
# to nothing. Unexpected symptoms cost most, together with the causes that are needed to explain them.

print(post.breakdown())

# %%
# What to ask next
# ----------------
# Variables that were not observed have a mean too: for a symptom, how likely it is given the report. Symptoms that were
# not asked about have no part in the bound.

for name in symptoms:
    if name not in evidence:
        print(f"{name:<12}{posts['noisy-or'][name]:.2f} noisy-or  {posts['sigmoid'][name]:.2f} sigmoid")
