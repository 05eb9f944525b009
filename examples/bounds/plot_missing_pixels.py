"""
Digits with missing pixels
==========================

Ten networks, one for each digit, learned from whole images by the protocol of the paper. Here they name and complete
images of which a quarter, a half or three quarters of the pixels are gone. Nothing has to be filled in first: a pixel
that was not observed drops out of the bound exactly. Other classifiers need an imputer in front of them.
"""

# %%
# Ten networks
# ------------
# Layers of 8, 24 and 64 variables, the last the pixels; five epochs at rate 0.05, as in section 4 of the paper. The
# experiments of ``sbnet reproduce`` are functions that can be called from here.

import matplotlib.pyplot as plt
import numpy as np

import sbnet as sb
from sbnet.datasets import load_digits
from sbnet.paper import Settings, missing
from sbnet.paper.digits import trained

settings = Settings(seeds=1)
networks = trained(settings).networks[0]
digits = load_digits()
print(networks[0])

# %%
# What is left, and what the networks make of it
# ----------------------------------------------
# Each network bounds the logarithm of the probability it gives to the pixels that are left. With equal odds for the
# ten digits, these bounds say how likely each digit is; the means of the missing pixels are averaged with the same
# weights. Nobody tells the networks which digit it is.


def complete(images):
    """Names of the digits, and images with the expected ink where a pixel is missing."""
    found = [sb.infer_many(network, images) for network in networks]
    bounds = np.column_stack([one.bound for one in found])
    weights = np.exp(bounds - bounds.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    pixels = np.stack([one.means[:, -64:] for one in found], axis=1)
    return bounds.argmax(axis=1), np.einsum("nd,ndp->np", weights, pixels)


first = [int(np.flatnonzero(digits.test_target == digit)[3]) for digit in range(10)]
whole = digits.test[first]
greys = plt.get_cmap("Greys").with_extremes(bad="#ffd9a8")
rows = [("whole", whole, None)]
for share in (0.25, 0.5, 0.75):
    incomplete = missing.remove_pixels(whole, share, seed=0)
    names, filled = complete(incomplete)
    rows += [(f"{100 * share:.0f} % missing", incomplete, None), ("completed", filled, names)]

fig, axes = plt.subplots(len(rows), 10, figsize=(7.6, 6.0), layout="constrained")
for line, (label, images, names) in zip(axes, rows, strict=True):
    for digit, ax in enumerate(line):
        ax.imshow(images[digit].reshape(8, 8), cmap=greys, vmin=0.0, vmax=1.0)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_color("#bbbbbb")
        if names is not None:
            wrong = names[digit] != digit
            text = f"{names[digit]}, not {digit}" if wrong else f"{digit}"
            ax.set_xlabel(text, fontsize=8, labelpad=2, color="#D55E00" if wrong else "#555555")
    line[0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=9)
plt.show()

# %%
# Coloured pixels are missing; below a completed image stands the name it was given.
#
# Against imputers
# ----------------
# ``sbnet reproduce missing`` compares these networks, and :class:`~sbnet.estimators.SBNClassifier`, with nine tuned
# pipelines of an imputer and a classifier on 2,000 images; :doc:`/project/benchmarks` has the errors.
