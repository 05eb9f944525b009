"""Test images with missing pixels: networks that take them as they are, against imputers before other classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from sbnet._types import FloatArray
from sbnet.estimators import SBNClassifier
from sbnet.inference import infer_many
from sbnet.model.network import Network
from sbnet.paper import baselines
from sbnet.paper.baselines import PIPELINES
from sbnet.paper.digits import SOLVER, data, trained
from sbnet.paper.drawing import FIRST, SECOND
from sbnet.paper.record import Experiment, Picture, Settings, Table

SHARES = (0.0, 0.25, 0.5, 0.75)
OURS = "sbnet, the paper’s ten networks"
CLASSIFIER = "SBNClassifier(hidden=8)"
EVERY = 2
"""One in so many test images is used: all of them take two minutes."""

Wrong: TypeAlias = dict[str, NDArray[np.bool_]]
"""For each pipeline, whether it named the image wrongly: shares × images."""


def run(settings: Settings) -> Experiment:
    """Pixels go missing at random, in test images only; nobody was trained for it."""
    chosen = np.arange(0, len(data(settings).test), settings.size(EVERY, 1))
    n, wrong = len(chosen), compare(settings, chosen)
    errors = {name: 100 * flags.mean(axis=1) for name, flags in wrong.items()}
    ranked = sorted(errors, key=lambda name: errors[name][1:].mean())
    behind = {name: _behind(wrong[name], wrong[OURS]) for name in ranked}
    header = ("", *(f"{100 * share:.0f} %" for share in SHARES))
    cells = tuple((name, *(f"{error:.1f}" for error in errors[name])) for name in ranked)
    bold = frozenset(k for k, name in enumerate(ranked) if name in (OURS, CLASSIFIER))
    typical = ", ".join(f"{value:.1f}" for value in np.median([behind[p.name][:, 1] for p in PIPELINES], axis=0))
    return Experiment(
        title="Missing pixels",
        paper="“It places no restrictions on the locations of visible units; they may occur anywhere within the "
        "network — an important feature for handling problems with missing data.” The paper measures nothing of the "
        "kind.",
        found=f"Pixels of {n:,} test images were removed at random. The ten networks of seed 0 take the images as "
        "they are: pixels that are not observed drop out of the bound exactly. So does the classifier of the library, "
        "with connections between pixels, eight hidden units and its defaults for the rest.\n\n"
        "Other classifiers need an imputer in front, or take missing values as scikit-learn’s trees do. All learned "
        "from whole images only; the iterative imputer alone was also shown missing pixels, as many as in the test, "
        "as without any it learns nothing. Settings of imputers and classifiers were chosen by the mean error at "
        "25, 50 and 75 % on the last 100 training images of each digit, after learning from the other 600: "
        f"`{TUNED}`.\n\n"
        f"{_verdict(wrong, [pipeline.name for pipeline in PIPELINES])}",
        tables=(Table("error, %, by the share of missing pixels", header, cells, f"{_NOTE} {typical}.", bold),),
        pictures=(Picture(_CAPTION, lambda figure: draw(figure, wrong), _ALT, (4.6, 8.2)),),
        numbers={
            "error, %": {name: values.tolist() for name, values in errors.items()},
            "minus sbnet, % and its standard error": {name: values.tolist() for name, values in behind.items()},
            "missing": list(SHARES),
            "images": n,
        },
    )


TUNED = "python scripts/tune_baselines.py missing"
_NOTE = (
    "Sorted by the mean of the last three columns. Standard errors of the difference to the paper’s networks, on "
    "the same images with the same pixels missing (whiskers in the picture), in the middle of all pipelines:"
)
_CAPTION = "errors of sbnet (blue) and of the best pipeline of each classifier (orange)"
_ALT = (
    "Four panels, one for each share of missing pixels, each with five points and their values: errors rise from panel "
    "to panel."
)


def compare(settings: Settings, images: Any) -> Wrong:
    """Name these test images, at every share of missing pixels, with our networks and with every pipeline."""
    digits = data(settings)
    whole, truth = digits.test[images], digits.test_target[images]
    tables = {share: remove_pixels(whole, share, seed=0) for share in SHARES}
    named = _ours(settings, images, tables)
    settings.say("missing pixels: imputers")
    fillings = dict.fromkeys((one.imputer, one.filling) for one in PIPELINES)
    jobs = [delayed(_fill)(settings.quiet, *filling, tables) for filling in fillings]
    filled = dict(zip(fillings, Parallel(n_jobs=settings.jobs)(jobs), strict=True))
    settings.say("missing pixels: the other classifiers")
    # A classifier with the same settings behind several imputers learns once.
    groups = [list(group) for _, group in groupby(sorted(PIPELINES, key=_model), key=_model)]
    jobs = [
        delayed(_names)(settings.quiet, group[0], [filled[p.imputer, p.filling] for p in group]) for group in groups
    ]
    for group, names in zip(groups, Parallel(n_jobs=settings.jobs)(jobs), strict=True):
        named |= dict(zip([pipeline.name for pipeline in group], names, strict=True))
    return {name: found != truth for name, found in named.items()}


def _ours(settings: Settings, images: Any, tables: dict[float, FloatArray]) -> dict[str, Any]:
    """The names that the paper's networks give, and those of the library's own classifier: shares × images."""
    made, incomplete = trained(settings), [table for share, table in tables.items() if share > 0.0]
    settings.say("missing pixels: networks")
    jobs = [delayed(_bounds)(network, incomplete) for network in made.networks[0]]
    found = np.stack([np.stack(one) for one in Parallel(n_jobs=settings.jobs)(jobs)], axis=-1)
    named = {OURS: np.stack([made.bounds[0][images], *found]).argmax(axis=-1)}  # whole images were done before
    settings.say(f"missing pixels: {CLASSIFIER}")
    model = SBNClassifier(hidden=8, random_state=0, n_jobs=settings.jobs)
    if settings.quick:
        model.set_params(density__epochs=1)
    digits = data(settings)
    model.fit(digits.train, digits.train_target)
    named[CLASSIFIER] = np.stack([model.predict(table) for table in tables.values()])
    return named


def remove_pixels(X: Any, share: float, seed: int) -> FloatArray:
    """The images with a share of their pixels, drawn at random, missing."""
    gone = np.random.default_rng([seed, round(100 * share)]).random(X.shape) < share
    return np.where(gone, np.nan, X.astype(np.float64))


def _bounds(network: Network, tables: list[FloatArray]) -> list[FloatArray]:
    return [infer_many(network, table, solver=SOLVER, threads=1, progress=False).bound for table in tables]


def _fill(
    settings: Settings, imputer: str, filling: baselines.Chosen, tables: dict[float, FloatArray]
) -> list[FloatArray]:
    train = data(settings).train.astype(np.float64)
    return [fill(imputer, dict(filling), train, share, table, quick=settings.quick) for share, table in tables.items()]


def fill(
    imputer: str, filling: dict[str, Any], train: FloatArray, share: float, table: FloatArray, *, quick: bool = False
) -> FloatArray:
    """The table with its missing values filled in, after learning from whole training images."""
    if share == 0.0 or imputer == "none":
        return table
    # From whole images the iterative imputer learns nothing, so as many pixels of its training images are missing.
    seen = remove_pixels(train, share, seed=100) if imputer == "iterative" else train
    return baselines.fill(imputer, filling, seen, table, quick=quick)


def _model(pipeline: baselines.Pipeline) -> tuple[str, str]:
    return pipeline.classifier, repr(pipeline.setting)


def _names(settings: Settings, pipeline: baselines.Pipeline, tables: list[list[FloatArray]]) -> list[Any]:
    """Learn once, and name the images of several lists of tables."""
    digits = data(settings)
    model = baselines.make(pipeline.classifier, 0, quick=settings.quick, setting=dict(pipeline.setting))
    model.fit(digits.train.astype(np.float64), digits.train_target)
    return [np.stack([model.predict(table) for table in group]) for group in tables]


def _behind(theirs: NDArray[np.bool_], ours: NDArray[np.bool_]) -> FloatArray:
    """How much larger their error is, and the standard error of that over images, in percent: shares × 2."""
    difference = theirs.astype(np.float64) - ours
    error = difference.std(axis=1, ddof=1) / np.sqrt(difference.shape[1])
    return 100 * np.column_stack([difference.mean(axis=1), error])


def _verdict(wrong: Wrong, names: Sequence[str]) -> str:
    """Where our networks err less than the best pipeline by more than two standard errors, where more, in words."""
    texts = []
    for name, start in ((OURS, "The paper’s networks"), (CLASSIFIER, f"`{CLASSIFIER}`")):
        groups: dict[str, list[str]] = {}
        for s, share in enumerate(SHARES):
            best = min(names, key=lambda other: wrong[other][s].mean())
            behind, error = _behind(wrong[best], wrong[name])[s]
            verdict = "level" if abs(behind) <= 2 * error else "fewer errors" if behind > 0 else "more errors"
            groups.setdefault(verdict, []).append(f"{100 * share:.0f}")
        parts = []
        for verdict, shares in groups.items():
            listed = " and ".join(filter(None, [", ".join(shares[:-1]), shares[-1]]))
            parts.append(f"{verdict} with {listed} % missing")
        texts.append(f"{start}: {', '.join(parts)}.")
    return (
        "Against the best pipeline at each share, by the standard error of the difference on the same images, two of "
        f"which count as a difference. {' '.join(texts)}"
    )


def draw(figure: Figure, wrong: Wrong) -> None:
    """A panel for each share with a scale of its own, and a row for each name: lines would lie on one another.

    Whiskers are standard errors of the difference to the paper's networks, which have none themselves.
    """
    errors = {name: 100 * flags.mean(axis=1) for name, flags in wrong.items()}
    groups: dict[str, list[str]] = {}
    for pipeline in PIPELINES:
        groups.setdefault(pipeline.classifier, []).append(pipeline.name)
    best = [min(group, key=lambda name: errors[name][1:].mean()) for group in groups.values()]
    names = [CLASSIFIER, OURS, *best]
    behind = {name: _behind(wrong[name], wrong[OURS]) for name in names}
    panels = figure.subplots(len(SHARES), 1)
    rows = [name.replace(", ", ",\n").replace(" + ", "\n+ ") for name in names]
    place = np.arange(len(names))
    for s, (ax, share) in enumerate(zip(panels, SHARES, strict=True)):
        values = [errors[name][s] for name in names]
        spread = [behind[name][s, 1] for name in names]
        ax.errorbar(values, place, xerr=spread, fmt="none", ecolor="#888888", elinewidth=1.2)
        ax.scatter(values[:2], place[:2], color=FIRST, s=26, zorder=3)
        ax.scatter(values[2:], place[2:], color=SECOND, marker="s", s=26, zorder=3)
        for x, y, half in zip(values, place, spread, strict=True):
            ax.annotate(f"{x:.1f}", (x + half, y), (5, 0), textcoords="offset points", va="center", fontsize=8)
        ax.set(yticks=place, yticklabels=rows, ylim=(len(names) - 0.5, -0.5))
        ax.margins(x=0.16)
        ax.tick_params(labelsize=8)
        ax.grid(axis="y", color="#88888844", linewidth=0.6)
        ax.set_title(f"{100 * share:.0f} % of the pixels missing", loc="left", fontsize=9)
    panels[-1].set_xlabel("error, %")
