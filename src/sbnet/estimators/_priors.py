"""The prior that the arguments of an SBNDensity ask for, group of edges by group of edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnet import checks
from sbnet._types import BoolArray
from sbnet.errors import ParameterError
from sbnet.estimators._rows import columns
from sbnet.learning import Gaussian
from sbnet.learning.priors import ByEdge
from sbnet.model.network import Network

if TYPE_CHECKING:
    from sbnet.estimators.density import SBNDensity

GROUPS = ("hidden", "lateral")
SCALE, LATERAL_SCALE = 2.0, 0.5
"""What the scales of Gaussian priors are where only one of them is given."""


def is_auto(value: Any) -> bool:
    """Is this left to be chosen?"""
    return isinstance(value, str) and value == "auto"


def chooses(density: SBNDensity) -> bool:
    """Are the scales of the prior to be chosen on held-out rows?"""
    return all(is_auto(value) for value in (density.prior, density.prior_scale, density.lateral_prior_scale))


def is_lateral(network: Network, names: tuple[str, ...]) -> BoolArray:
    """Edges from columns, to other columns and to their switches; all others are of the group "hidden"."""
    found: BoolArray = np.isin(network.graph.parent, columns(network, names))
    return found


def for_network(density: SBNDensity, network: Network, names: tuple[str, ...]) -> Any:
    """The prior of the weights of a network, or None."""
    hidden, lateral = by_group(density)
    edges = is_lateral(network, names)
    if hidden is lateral or not edges.any():
        return hidden
    return ByEdge((hidden, lateral), edges.astype(np.int64))


def by_group(density: SBNDensity) -> tuple[Any, Any]:
    """The priors of the groups "hidden" and "lateral"; one for both is the same object twice."""
    if not is_auto(density.prior):
        return _given(density)
    scale, beside = density.prior_scale, density.lateral_prior_scale
    if hasattr(scale, "slope"):
        checks.no_class("prior_scale", scale)
        if beside is not None and not is_auto(beside):
            raise ParameterError(
                f"prior_scale is {scale!r}, and lateral_prior_scale is {beside!r}; a prior has its own scale. "
                'Give prior={"hidden": ..., "lateral": ...} for two of them'
            )
        return scale, scale
    if scale is None or (np.isscalar(scale) and scale == np.inf):
        return None, None
    scale = SCALE if is_auto(scale) else scale
    hidden = Gaussian(scale)
    if beside is None or (beside == scale and not is_auto(beside)):
        return hidden, hidden
    return hidden, Gaussian(LATERAL_SCALE if is_auto(beside) else beside)


def _given(density: SBNDensity) -> tuple[Any, Any]:
    """What `prior` says, which no other argument may contradict."""
    for name in ("prior_scale", "lateral_prior_scale"):
        if not is_auto(getattr(density, name)):
            raise ParameterError(f"prior and {name} were both given; give one of them")
    given = density.prior
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in GROUPS]
        if unknown:
            raise ParameterError(
                f"prior names {unknown[0]!r}; the groups of edges are {' and '.join(map(repr, GROUPS))}"
            )
        parts = tuple(_checked(given.get(name)) for name in GROUPS)
        return parts[0], parts[1]
    given = _checked(given)
    return given, given


def _checked(prior: Any) -> Any:
    checks.no_class("prior", prior)
    if prior is not None and not hasattr(prior, "slope"):
        raise ParameterError(
            f"prior is {prior!r}; give 'auto', a prior such as sbnet.Laplace(0.5), None, "
            'or priors by group: {"lateral": sbnet.Laplace(0.5), "hidden": sbnet.Laplace(2.0)}'
        )
    return prior
