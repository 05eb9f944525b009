"""One symptom with eight causes, as a noisy-OR unit and as a sigmoid unit of the same probabilities."""

import matplotlib.pyplot as plt
import numpy as np

import sbnet as sb

causes = {(f"cause {k}", "symptom"): 0.3 for k in range(8)}
noisy = sb.from_probabilities(causes, leak=0.02, prior=0.1, gate="noisy-or")
same = sb.from_probabilities(causes, leak=0.02, prior=0.1, gate="sigmoid")
near = sb.convert.nearest(noisy, "symptom", gate="sigmoid", probability=0.1).network
nets = {
    "noisy-OR": (noisy, "#222222", "o-"),
    "sigmoid, equal up to one cause": (same, "#D55E00", "s-"),
    "nearest sigmoid": (near, "#0072B2", "^--"),
}

count = np.arange(9)
names = [f"cause {k}" for k in range(8)]
fig, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.5), layout="constrained")
for label, (net, color, style) in nets.items():
    probability = net.conditional("symptom", [names[:n] for n in count]).p
    others = [{"symptom": 1} | dict.fromkeys(names[1 : n + 1], 1) for n in count[:-1]]
    blame = [sb.exact_posterior(net, evidence)["cause 0"] for evidence in others]
    left.plot(count, probability, style, color=color, ms=5, label=label)
    right.plot(count[:-1], blame, style, color=color, ms=5)
left.set(xlabel="causes present", ylabel="P(symptom)", ylim=(0, 1.03), title="What causes do together")
right.axhline(0.1, color="#999999", lw=1, ls=":")
right.annotate(
    "before the symptom", (6.9, 0.1), (0, -4), textcoords="offset points", ha="right", va="top", color="#777777"
)
right.set(xlabel="other causes known to be present", ylabel="P(one more cause | symptom)", ylim=(0, None))
right.set_title("How they explain each other away")
left.legend(frameon=False, loc="lower right", fontsize=9, handlelength=1.6, borderaxespad=0.1)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
