"""The paper's experiments, one module each, with the published numbers beside ours.

``sbnet reproduce`` runs them. An experiment is a function from :class:`~sbnet.paper.record.Settings` to a record
of what came out; to add one, write such a function and enter it in `EXPERIMENTS`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]

from sbnet.errors import ParameterError, hint
from sbnet.paper import beyond, digits, figure5, figure6, figures, gibbs, missing, tables
from sbnet.paper.record import Experiment, Settings

__all__ = ["EXPERIMENTS", "Experiment", "Settings", "choose", "run"]

EXPERIMENTS: dict[str, Callable[[Settings], Experiment]] = {
    "figure1": figures.figure1,
    "figure2": figures.figure2,
    "figure3": figures.figure3,
    "figure4": figures.figure4,
    "figure5": figure5.run,
    "figure6": figure6.run,
    "figure7": figures.figure7,
    "table1": tables.table1,
    "table2": tables.table2,
    "table3": tables.table3,
    "gibbs": gibbs.run,
    # Beyond the paper: what its networks can do that it does not show, and what is better today.
    "generated": beyond.generated,
    "missing": missing.run,
    "beyond": beyond.run,
    "densities": beyond.densities,
}


def choose(names: Iterable[str]) -> list[str]:
    """The experiments meant by these names, in the order of the paper; "all", or no name, means every one.

    Parameters
    ----------
    names : iterable of str

    Returns
    -------
    list of str

    Examples
    --------
    >>> from sbnet import paper
    >>> paper.choose(["table1", "figure5"])
    ['figure5', 'table1']
    """
    wanted = set(names) or {"all"}
    unknown = sorted(wanted - {"all"} - set(EXPERIMENTS))
    if unknown:
        meant = hint(unknown[0], EXPERIMENTS, likeness=0.6) or "."
        raise ParameterError(f"there is no experiment {unknown[0]!r}{meant} `sbnet reproduce list` shows them all")
    return [name for name in EXPERIMENTS if "all" in wanted or name in wanted]


def run(names: Iterable[str], settings: Settings) -> Iterator[Experiment]:
    """Run experiments one after the other. Nothing is kept from an earlier run.

    Parameters
    ----------
    names : iterable of str
        As in :func:`choose`.
    settings : Settings

    Yields
    ------
    Experiment
        With the seconds it took.

    Examples
    --------
    >>> from sbnet import paper
    >>> (done,) = paper.run(["figure2"], paper.Settings(quick=True))
    >>> done.name, len(done.pictures)
    ('figure2', 1)
    """
    digits.trained.cache_clear()
    for name in choose(names):
        settings.say(name)
        begin = time.monotonic()
        with threadpool_limits(1):  # work is shared out over processes; threads of matrix products would get in the way
            done = EXPERIMENTS[name](settings)
        yield replace(done, name=name, seconds=time.monotonic() - begin)
    digits.trained.cache_clear()
