"""Draws the picture of the README: ``python scripts/make_picture.py``, about half a minute."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from sbnet.paper import Settings, run

FILE = Path(__file__).parents[1] / "docs" / "_static" / "completed.png"


def main() -> None:
    """Save the picture of the completed digits."""
    (done,) = run(["generated"], Settings(seeds=1))
    picture = done.pictures[-1]
    figure = Figure(figsize=picture.size, layout="constrained", dpi=150)
    picture.draw(figure)
    figure.savefig(FILE)
    print(FILE, "-", picture.title)


if __name__ == "__main__":
    main()
