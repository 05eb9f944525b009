"""The prior on weights that the argument `prior` asks for, group of edges by group of edges."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from sbnet import checks
from sbnet._types import BoolArray
from sbnet.errors import ParameterError
from sbnet.estimators._rows import columns
from sbnet.learning import Gaussian
from sbnet.learning.priors import by_edge
from sbnet.model.network import Network

GROUPS = ("hidden", "autoregressive")
DEFAULT = {"hidden": 2.0, "autoregressive": 0.5}
"""Scales of Gaussian priors where none is given and nothing is chosen."""


def is_auto(value: Any) -> bool:
    """Is this left to be chosen?"""
    return isinstance(value, str) and value == "auto"


def is_autoregressive(network: Network, names: tuple[str, ...]) -> BoolArray:
    """Edges from columns, to other columns and to their mixture variables; all others are of the group "hidden"."""
    found: BoolArray = np.isin(network.graph.parent, columns(network, names))
    return found


def for_network(prior: Any, network: Network, names: tuple[str, ...]) -> Any:
    """The prior that an argument `prior` puts on the weights of a network, or None."""
    hidden, autoregressive = by_group(prior)
    edges = is_autoregressive(network, names)
    if hidden is autoregressive or not edges.any():
        return hidden
    return by_edge(edges, autoregressive, hidden)


def by_group(given: Any) -> tuple[Any, Any]:
    """The priors of the groups "hidden" and "autoregressive" as `prior` says; one for both is the same object twice."""
    given = DEFAULT if is_auto(given) else given
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in GROUPS]
        if unknown:
            raise ParameterError(
                f"prior names {unknown[0]!r}; the groups of edges are {' and '.join(map(repr, GROUPS))}"
            )
        hidden, autoregressive = (_one(given.get(name)) for name in GROUPS)
        return hidden, autoregressive
    one = _one(given)
    return one, one


def _one(prior: Any) -> Any:
    """A penalty, or None: a number is the scale of a Gaussian one, and infinity is none."""
    checks.no_class("prior", prior)
    if prior is None or hasattr(prior, "gradient"):
        return prior
    number = isinstance(prior, int | float | np.integer | np.floating) and not isinstance(prior, bool)
    if number and prior == np.inf:
        return None
    if number and 0 < prior <= sys.float_info.max:
        return Gaussian(float(prior))
    raise ParameterError(
        f"prior is {checks.shown(prior)}; give 'auto', a positive scale such as 2.0, a penalty such as "
        'sbnet.Laplace(0.5), None, or one for each group of edges: {"autoregressive": 0.7, "hidden": 2.0}'
    )
