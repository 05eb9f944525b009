"""Typos and wrong arguments that are often made, each answered with what to write instead."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from sbnet.errors import EvidenceError, NearNameWarning, ParameterError, near_name
from sbnet.model.network import Network

_MOST_PAIRS = 100_000
"""Pairs of names that are compared: where there are more units without edges, they are meant."""


def check_network(network: object) -> None:
    """Is it a network? What stands in its place may be the name of a file."""
    if isinstance(network, Network):
        return
    path = isinstance(network, str | os.PathLike)
    reader = "load" if str(network).endswith(".sbn") else "read"
    way_out = f"sbnet.{reader}() reads one from a file" if path else "sbnet.from_edges() builds one"
    text = repr(network)
    what = text if len(text) <= 60 else f"of type {type(network).__name__}"
    raise ParameterError(f"network is {what}, which is no Network; {way_out}")


def check_kinds(network: Network, evidence: Any) -> None:
    """Is the first a network, and can the second be evidence at all?"""
    if isinstance(evidence, Network) and not isinstance(network, Network):
        raise EvidenceError("the network comes first, then the evidence; they are given the other way round")
    check_network(network)
    if isinstance(evidence, Network):
        raise EvidenceError(f"evidence is a Network; write a mapping from names to 0 or 1: {_example(network, None)}")
    if isinstance(evidence, str | bytes):
        way_out = f"write a mapping from names to 0 or 1: {_example(network, evidence)}"
        raise EvidenceError(f"evidence is the text {evidence[:60]!r}; {way_out}")
    if isinstance(evidence, Iterator):
        raise EvidenceError(f"evidence is a {type(evidence).__name__}; write list(...) around it for a table of rows")


def _example(network: Network, evidence: Any) -> str:
    """A mapping to write, of what seems to be meant if that is a unit."""
    name, _, value = (evidence if isinstance(evidence, str) else "").partition("=")
    meant = name.strip() if name.strip() in network.names else network.names[-1]
    return f"{{{meant[:60]!r}: {0 if value.strip() == '0' else 1}}}"


def warn_of_near_names(linked: Mapping[str, int], bias: Mapping[str, float]) -> None:
    """A unit that only has a bias may be meant, or it may be a typo for one that has edges."""
    alone = [name for name in bias if isinstance(name, str) and name not in linked]
    if len(alone) * len(linked) > _MOST_PAIRS:
        return
    for name in alone:
        alike = [other for other in linked if _digits(other) == _digits(name)]  # x1 and x2 are two units
        near = near_name(name, alike, 0.7)
        if near is not None:
            text = f"variable {name!r} has a bias and no edges; did you mean {near!r}? If not, list it in names"
            warnings.warn(text, NearNameWarning, stacklevel=3)


def _digits(name: object) -> str:
    return "".join(filter(str.isdigit, str(name)))
