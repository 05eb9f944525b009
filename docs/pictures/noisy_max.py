"""A noisy-MAX: the fever that flu and cold bring about alone and together."""

import matplotlib.pyplot as plt
import numpy as np

import sbnet as sb

states = ["none", "mild", "high"]
net = sb.noisy_or(
    {("flu", "fever"): {"mild": 0.3, "high": 0.6}, ("cold", "fever"): {"mild": 0.5, "high": 0.1}},
    leak={"fever": {"mild": 0.02}},
    prior=0.1,
    states={"fever": states},
)
cases = {"neither": {}, "cold": {"cold": 1}, "flu": {"flu": 1}, "both": {"flu": 1, "cold": 1}}
fig, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
left = np.zeros(len(cases))
for state, color, hatch in zip(states, ("#DDDDDD", "#56B4E9", "#D55E00"), ("", "//", "xx"), strict=True):
    p = np.array([sb.exact_posterior(net, {"flu": 0, "cold": 0} | case)["fever"][state] for case in cases.values()])
    ax.barh(list(cases), p, left=left, color=color, hatch=hatch, edgecolor="white", label=state)
    left += p
ax.set(xlabel="probability of each state of fever", xlim=(0, 1))
ax.invert_yaxis()
ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
ax.spines[["top", "right"]].set_visible(False)
