"""Which units a listing has, and what it calls their chances before anything is known."""

from __future__ import annotations

from collections.abc import Iterable

from sbnet.asking import HELPERS
from sbnet.network import Network
from sbnet.prior import best_prior, predicted_prior

PREDICTED = "predicted: as if the parents of a unit were independent; sbnet sample draws from the model itself"


def open_units(network: Network) -> list[str]:
    """The units that someone could observe; all of them, if there is no other."""
    found = [name for name in network.names if network.notes[name].group not in HELPERS]
    return found or list(network.names)


def helpers_line(network: Network) -> list[list[str]]:
    """A last line of a listing that counts the others."""
    n = network.n_units - len(open_units(network))
    groups = {network.notes[name].group for name in network.names} & HELPERS
    words = {"hidden": "hidden units", "switches": "switches", "mirrors": "mirrors"}
    if groups == {"hidden"} and any(".switch" in name for name in network.names):
        groups = groups | {"switches"}
    return [[f"... {n:,} {' and '.join(word for group, word in words.items() if group in groups)}"]] if n else []


def is_predicted(network: Network, names: Iterable[str]) -> bool:
    """Are the chances of these units, before anything is known, predictions and no sums over all states?"""
    return best_prior(network) is predicted_prior(network) and any(network.parents(name) for name in names)
