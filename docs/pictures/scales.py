"""Validation bounds against the scale of the prior, Gaussian and Laplace; each pixel on those before it."""

import matplotlib.pyplot as plt
import numpy as np

import sbnet as sb
from sbnet.datasets import load_digits
from sbnet.estimators import SBNDensity, Training

digits = load_digits()
train, held_out = digits.train[digits.train_target == 2][:300], digits.test[digits.test_target == 2]
scales = 2.0 ** np.arange(-5, 3)
priors = {"Gaussian": (sb.Gaussian, "#D55E00", "s-"), "Laplace": (sb.Laplace, "#0072B2", "o-")}

fig, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.4), layout="constrained")
fig.get_layout_engine().set(wspace=0.06)
for name, (prior, color, style) in priors.items():
    found = [
        SBNDensity(
            hidden=0,
            column_mixtures=0,
            prior=prior(scale),
            epochs=60,
            settings=Training(learning_rate=0.1),
            random_state=0,
        ).fit(train)
        for scale in scales
    ]
    bounds = np.array([density.score(held_out) for density in found])
    best = found[bounds.argmax()].network_.weight
    left.plot(scales, bounds, style, color=color, ms=5, label=name)
    right.plot(
        np.sort(np.abs(best))[::-1],
        color=color,
        ls="-" if name == "Laplace" else "--",
        label=f"{name}, scale {scales[bounds.argmax()]:g}",
    )
left.set_xscale("log", base=2)
left.set(xlabel="scale of the prior", ylabel="validation ln P, nats a row", ylim=(-31.5, -25.6))
left.set_title("How well new digits are predicted")
right.set(xlabel="edges, the strongest first", ylabel="size of the weight", title="The weights at the best scale")
left.legend(frameon=False)
right.legend(frameon=False)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
