"""
An interval closes
==================

How likely is this image, under a network that was learned from 700 threes? Its 32 hidden variables have four billion
states, too many to sum over. Two intervals hold the answer all the same: one for certain, which closes subproblem by
subproblem as long as there is time, and one with 99.9 % confidence, which is narrow after a second.
"""

# %%
# The network, and the image
# --------------------------

import time

import matplotlib.pyplot as plt
import numpy as np

import sbnet as sb
from sbnet.datasets import load_digits

digits = load_digits()
threes = sb.fit(sb.layered((8, 24, 64), rng=0), digits.train[digits.train_target == 3], rng=0).network
image = digits.test[digits.test_target == 3][2]
_ = sb.certify(threes, image, confidence=0.999)  # what has to be compiled is compiled now

# %%
# For certain
# -----------
# Branch and bound splits the states of the hidden variables into subproblems, each time where the two bounds are
# furthest apart. More time never gives a wider interval.

seconds, certain = [], []
for budget in (0.1, 0.5, 1.0, 2.0, 4.0, 8.0):
    start = time.perf_counter()
    certain.append(sb.certify(threes, image, seconds=budget))
    seconds.append(time.perf_counter() - start)
    print(f"{seconds[-1]:>5.2f} s  {certain[-1].lower:.2f} to {certain[-1].upper:.2f}, {certain[-1].upper_from}")
order = np.argsort(seconds)
seconds, certain = np.array(seconds)[order], [certain[k] for k in order]

# %%
# With confidence
# ---------------
# The upper bound is more than a number: it comes with a distribution over the hidden variables from which they can be
# drawn, and which is nowhere below P by more than the bound says. So the weights of the draws are bounded, and their
# mean, which is P, has a confidence interval. ``gap`` says how narrow it is to be.

spent, sure = [], []
for gap in (1.0, 0.3, 0.1, 0.03):
    start = time.perf_counter()
    sure.append(sb.certify(threes, image, confidence=0.999, gap=gap, effort="normal" if gap < 0.1 else "fast"))
    spent.append(time.perf_counter() - start)
    low, high = sure[-1].interval
    print(f"{spent[-1]:>5.2f} s  {low:.2f} to {high:.2f}, {sure[-1].samples:,} samples")
print(sure[2])

# %%
# Both against time
# -----------------
# The certain interval halves, and halves again, at ever higher cost; the one with confidence is where the certain one
# would take very long to come. That is the choice: a proof, or a probability of one in a thousand to be wrong.

fig, (ax, picture) = plt.subplots(1, 2, figsize=(9.0, 4.2), layout="constrained", width_ratios=[4, 1])
green, orange = "#1b7837", "#D55E00"
ax.fill_between(
    seconds, [c.lower for c in certain], [c.upper for c in certain], color=green, alpha=0.25, label="for certain"
)
ax.plot(seconds, [c.lower for c in certain], "o-", color=green, ms=4)
ax.plot(seconds, [c.upper for c in certain], "o-", color=green, ms=4)
ends = np.array([c.interval for c in sure]).T
middle = ends.mean(axis=0)
ax.errorbar(
    spent, middle, np.abs(ends - middle), fmt="none", ecolor=orange, capsize=4, lw=2, label="with 99.9 % confidence"
)
ax.axhline(sure[-1].estimate, color="grey", lw=0.8, ls=":")
ax.set(
    xscale="log", xlabel="seconds", ylabel="ln P(image), in nats", title="What is known of ln P, after so many seconds"
)
ax.xaxis.set_major_formatter("{x:g}")
ax.xaxis.set_minor_formatter("")  # where less than a decade is shown, minor ticks would have labels over each other
ax.legend(frameon=False, loc="upper right")
ax.grid(alpha=0.25)
picture.imshow(image.reshape(8, 8), cmap="gray_r")
picture.set(title="the image", xticks=[], yticks=[])
plt.show()
