"""What a file declares that pyAgrum is to read: it passes over what it does not know, and says nothing."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from typing import Any

from sbnet.errors import FileFormatError
from sbnet.files.plain import read_text, read_xml

_ASIDE = re.compile(r'"(?:[^"\\]|\\.)*+"?|//[^\n]*|%[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
"""Texts and comments, in which anything may stand."""
_NODE = re.compile(r"\bnode\s+([^\s{};]{1,200})\s*\{(?:\s*TYPE\s*=\s*(\w{1,40}))?")


def declared_in(name: str) -> list[str]:
    """The variables that a file declares; one that has no table of probabilities is refused, by its name."""
    return _READERS.get(os.path.splitext(name.lower())[1], _unknown)(name)


def check_all_read(name: str, declared: list[str], read: set[str]) -> None:
    """Refuse a file of which pyAgrum has read less than stands in it."""
    lacking = [own for own in declared if own not in read]
    if lacking:
        listed = ", ".join(repr(own[:40]) for own in lacking[:3]) + (", …" if len(lacking) > 3 else "")
        raise FileFormatError(
            f"pyAgrum read {len(read)} of the {len(declared)} variables of {name[-60:]} and left out {listed}; "
            "save the network as BIF with a table for every variable"
        )


def _unknown(name: str) -> list[str]:
    """Formats of pyAgrum's own: it reads all that it writes."""
    return []


def _in_bifxml(name: str) -> list[str]:
    found = []
    for variable in read_xml(name).iter("VARIABLE"):
        own, kind = (variable.findtext("NAME") or "").strip(), variable.get("TYPE", "nature")
        _check_kind(own, kind, ("nature", "discrete"), name)
        found.append(own)
    return found


def _in_dsl(name: str) -> list[str]:
    nodes = _nodes(name)
    for own, kind in nodes:
        _check_kind(own, kind or "CPT", ("CPT",), name)
    return [own for own, _ in nodes]


def _in_net(name: str) -> list[str]:
    return [own for own, _ in _nodes(name)]


def _nodes(name: str) -> list[tuple[str, str]]:
    return _NODE.findall(_ASIDE.sub(" ", read_text(name)))


def _in_jgum(name: str) -> list[str]:
    """Names stand before what describes the states: `A[2]`, `B{yes|no}`."""
    try:
        nodes: Any = json.loads(read_text(name))["nodes"]
        return [re.split(r"[\[{]", node, maxsplit=1)[0].strip() for node in nodes]
    except (KeyError, TypeError, ValueError, RecursionError):  # what it is, pyAgrum knows
        return []


def _check_kind(own: str, kind: str, known: tuple[str, ...], name: str) -> None:
    if kind not in known:
        raise FileFormatError(
            f"variable {own[:60]!r} is of kind {kind[:40]!r}; only variables with a table of probabilities are read. "
            f"Make it one, or remove it, in the program that wrote {name[-60:]}"
        )


_READERS: dict[str, Callable[[str], list[str]]] = {
    ".bifxml": _in_bifxml,
    ".dsl": _in_dsl,
    ".net": _in_net,
    ".jgum": _in_jgum,
}
