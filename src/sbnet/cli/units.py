"""Which units a listing has, and what it calls their prior probabilities."""

from __future__ import annotations

from collections.abc import Iterable

from sbnet.exact.prior import DRAWS, best_prior, is_sampled, predicted_prior
from sbnet.model import roles
from sbnet.model.network import Network

PREDICTED = "predicted: as if the parents of a variable were independent; sbnet sample draws from the model itself"
SAMPLED = f"prior: from {DRAWS:,} samples"


def prior_remarks(network: Network, names: Iterable[str]) -> tuple[str, ...]:
    """Where the prior probabilities of these units come from, if they are not exact."""
    return (PREDICTED,) if is_predicted(network, names) else (SAMPLED,) if is_sampled(network) else ()


def open_units(network: Network) -> list[str]:
    """The names of the units that someone can observe."""
    return [network.names[i] for i in roles.observable(network)]


def helpers_line(network: Network) -> list[list[str]]:
    """A last line of a listing that counts the others."""
    n = network.n_units - len(open_units(network))
    mixed = any(".switch" in name for name in network.names)
    return [[f"... {n:,} latent variable{'s' * (n != 1)}{' and mixture variables' * mixed}"]] if n else []


def is_predicted(network: Network, names: Iterable[str]) -> bool:
    """Are the prior probabilities of these units predictions, as if parents were independent, and no exact sums?"""
    if not network.is_binary:
        return False
    return best_prior(network) is predicted_prior(network) and any(network.parents(name) for name in names)
