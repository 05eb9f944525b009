"""A variable with four states as sequential logits: what one parent does to it."""

import matplotlib.pyplot as plt
import numpy as np

import sbnet as sb

effort = np.linspace(-4.0, 4.0, 81)
shares = []
for h in effort:
    net = sb.from_edges([], names=["grade"], bias={"grade": [h + 2.0, h, h - 2.0]}, states={"grade": list("DCBA")})
    shares.append(list(sb.exact_posterior(net, {})["grade"].values()))
fig, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
colors, hatches = ("#BBBBBB", "#56B4E9", "#009E73", "#E69F00"), ("", "//", "..", "xx")
parts = ax.stackplot(effort, np.transpose(shares), labels=list("DCBA"), colors=colors, edgecolor="white")
for part, hatch in zip(parts, hatches, strict=True):
    part.set_hatch(hatch)
ax.set(xlabel="what parents add to every threshold", ylabel="probability", xlim=(-4, 4), ylim=(0, 1))
ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), reverse=True)
