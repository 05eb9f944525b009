"""Several networks of the same columns as one distribution: the mean of their likelihoods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sbnet import checks
from sbnet._types import FloatArray
from sbnet.errors import NetworkError, ParameterError, unknown_unit
from sbnet.model.network import Network

_BOUNDS = "give one array of bounds for each network, all of the same rows"
_ROUNDING = 1e-13  # of the largest number in a sum of a few


@dataclass(frozen=True, repr=False)
class NetworkMixture:
    r"""Networks that each tell of the same columns, in equal shares.

    .. math:: P(V) = \frac1K \sum_k P_k(V) \ge \frac1K \sum_k e^{L_k(V)}

    Every order of the columns gives another network of a table, and no order is best for all of its rows:
    ``SBNDensity(orders=4).fit(X).mixture_`` is such a mixture. :func:`sbnet.save` and :func:`sbnet.load` keep one in a
    file, and :meth:`sbnet.estimators.SBNDensity.from_networks` scores, samples and imputes with it.

    Attributes
    ----------
    networks : tuple of Network
    columns : tuple of str
        The variables, in every one of the networks, that the columns of a table are; all others are hidden.

    Examples
    --------
    >>> import sbnet as sb
    >>> one = sb.from_edges({("flu", "fever"): 2.0}, bias={"flu": -2.0})
    >>> other = sb.from_edges({("fever", "flu"): 2.0}, bias={"flu": -3.0})
    >>> sb.NetworkMixture((one, other), columns=("flu", "fever"))
    NetworkMixture(2 networks of 2 columns)
    """

    networks: tuple[Network, ...]
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        networks = checks.listed("networks", self.networks, "give a list of networks, one or more", NetworkError)
        columns = checks.listed("columns", self.columns, "give a list of names of variables", NetworkError)
        object.__setattr__(self, "networks", tuple(networks))
        object.__setattr__(self, "columns", tuple(columns))
        if not self.networks or not all(isinstance(network, Network) for network in self.networks):
            raise NetworkError("a mixture needs networks, one or more")
        for network in self.networks:
            for name in self.columns:
                if not isinstance(name, str) or name not in network._index:
                    raise unknown_unit(name, network.names, "a mixture")
        if len(set(self.columns)) < len(self.columns) or not self.columns:
            raise NetworkError("the columns of a mixture must be different variables, one or more")

    def __len__(self) -> int:
        return len(self.networks)

    def __iter__(self) -> Iterator[Network]:
        return iter(self.networks)

    def __repr__(self) -> str:
        return f"NetworkMixture({len(self.networks)} networks of {len(self.columns):,} columns)"

    def log_mean(self, bounds: Sequence[ArrayLike]) -> FloatArray:
        """The bounds that the networks have for some rows, each network's own, as one bound on the mixture's ln P.

        Parameters
        ----------
        bounds : sequence of arrays of shape (n,)
            One for each network.

        Returns
        -------
        ndarray of shape (n,)

        Examples
        --------
        ``mixture.log_mean([sb.infer_many(network, frame).bound for network in mixture])``, with a data frame: arrays
        have no names by which a network could find its columns.
        """
        given = bounds if isinstance(bounds, np.ndarray) else checks.listed("bounds", bounds, _BOUNDS)
        parts = np.atleast_1d(checks.numbers("bounds", given, _BOUNDS))
        if len(parts) != len(self.networks):
            raise ParameterError(f"bounds has {len(parts)} parts; the mixture has {len(self.networks)} networks")
        if np.any(parts == np.inf):
            raise ParameterError(f"bounds is {checks.shown(bounds)}; no bound on ln P is infinite")
        return log_mean(parts)


def log_mean(bounds: FloatArray) -> FloatArray:
    """ln of the mean of e^bound over the networks, which come first; rounded down."""
    mean: FloatArray = np.logaddexp.reduce(bounds, axis=0) - np.log(len(bounds))
    mean -= _ROUNDING * (1.0 + np.abs(bounds, where=np.isfinite(bounds), out=np.zeros_like(bounds)).max(axis=0))
    return mean
