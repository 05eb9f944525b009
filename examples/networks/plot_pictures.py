"""
Pictures of networks and answers
================================

What :mod:`sbnet.plots` can draw of networks. (For tables there are :func:`~sbnet.plots.missing` and
:func:`~sbnet.plots.associations`.) Every function draws into the axes it is given, ``ax=``, or into a new figure, and
returns the axes, so that titles and limits are yours to change.
"""

# %%
# A network
# ---------
# Parents stand above children; blue weights make a child likelier, orange ones less likely. What was observed is
# square, and hidden variables are filled by their means.

import matplotlib.pyplot as plt
import numpy as np

import sbnet as sb
import sbnet.plots
from sbnet.datasets import load_digits
from sbnet.estimators import SBNDensity

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
evidence = {"cough": 1, "wheeze": 0}
post = sb.infer(net, evidence)
sb.plots.network(net, evidence=evidence, means=post)
plt.show()

# %%
# Ranked means
# ------------
# The variables that the evidence moved most come first. A tick is the mean before the evidence, a point the mean given
# it, and whiskers are an interval that is certain to hold the true probability: here it is so short that only one line
# is left of it, and mean field theory lies beside it.

sb.plots.means(post, sb.posterior_intervals(net, evidence))
plt.show()

# %%
# Of many variables only ``n`` are drawn. Forty causes compete for one symptom, and eight of them have an interval:

rng = np.random.default_rng(0)
causes = [f"cause {k}" for k in range(40)]
big = sb.from_edges(
    {(cause, "symptom"): rng.normal(0.5, 0.8) for cause in causes},
    bias={"symptom": -4.0} | {cause: rng.uniform(-3.0, -1.0) for cause in causes},
)
answer = sb.infer(big, {"symptom": 1})
some = sb.posterior_intervals(big, {"symptom": 1}, units=causes[:8])
sb.plots.means(answer, some, n=12)
plt.show()

# %%
# Which numbers matter
# --------------------
# How far the answer moves if the odds of a number of the network are halved or doubled.

sb.plots.tornado(sb.sensitivity(net, evidence, about="flu"))
plt.show()

# %%
# The bound, sweep by sweep and variable by variable
# --------------------------------------------------
# A network of three layers, learned from 700 fives, is shown a five that it has not seen. The bound rises with every
# sweep. It is a sum over variables; those that cost most are drawn, and the legend has the sums over all of them.

digits = load_digits()
fives = digits.train[digits.train_target == 5]
layers = sb.fit(sb.layered((8, 24, 64), rng=0), fives, epochs=5, rng=0, progress=False).network
seen = sb.infer(layers, digits.test[digits.test_target == 5][0])
sb.plots.trace(seen)
plt.show()

# %%
sb.plots.breakdown(seen, n=12)
plt.show()

# %%
# What hidden variables paint
# ---------------------------
# The weights from each variable of the middle layer to the pixels. Where a variable is on, blue pixels are likelier.

sb.plots.receptive_fields(layers, shape=(8, 8))
plt.show()

# %%
# Weights
# -------
# A row for each child, a column for each parent. Blank is no edge, which is another thing than a weight of zero.

sb.plots.weights(net)
plt.show()

# %%
# A network in which every column is a parent of all later ones has too many levels to be drawn in rows. Its weights are
# shown instead, with what was observed and what was found in a stripe at the left.

density = SBNDensity(hidden=8, epochs=3, random_state=0).fit(fives)
upper = {f"x{k}": int(pixel) for k, pixel in enumerate(digits.test[2000][:32])}
sb.plots.network(density.network_, evidence=upper, means=sb.infer(density.network_, upper))
plt.show()
