"""The algorithm of the paper, update by update, as an animation: written to the folder for static files."""

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.animation import FuncAnimation, PillowWriter

import sbnet as sb
import sbnet.plots

FILE = Path(__file__).parents[1] / "_static" / "steps.gif"

garden = sb.from_edges({("rain", "wet"): 4.0, ("sprinkler", "wet"): 3.0}, bias={"rain": -1.0, "wet": -3.0})
path = list(sb.steps(garden, {"wet": 1}, max_sweeps=4))
figure, axes = plt.subplots(figsize=(4.4, 3.7))
figure.subplots_adjust(0.0, 0.0, 1.0, 0.86)


def draw(step):
    axes.clear()
    sb.plots.network(garden, evidence={"wet": 1}, means=step.means, ax=axes)
    moved = "start" if step.unit is None else f"{'ξ' if step.what == 'xi' else 'mean'} of {step.unit}"
    axes.set_title(f"sweep {step.sweep}: {moved}\nbound {step.bound:.4f}", size=12)


FuncAnimation(figure, draw, frames=path).save(FILE, writer=PillowWriter(fps=1.5), dpi=160)
plt.close(figure)
