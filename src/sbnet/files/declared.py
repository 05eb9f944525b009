"""What a file declares that pyAgrum is to read: it passes over what it does not know, and says nothing."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from sbnet.errors import FileFormatError
from sbnet.files.plain import read_text, read_xml

_ASIDE = re.compile(r'"(?:[^"\\]|\\.)*+"?|//[^\n]*|%[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
"""Texts and comments, in which anything may stand."""
_NODE = re.compile(r"\bnode\s+([^\s{};]{1,200})\s*\{(?:\s*TYPE\s*=\s*(\w{1,40}))?")


def declared_in(name: str) -> list[str]:
    """The variables that a file declares; one that has no table of probabilities is refused, by its name."""
    suffix, kinds = os.path.splitext(name.lower())[1], ("CPT", "")
    if suffix == ".jgum":
        return _in_jgum(name)
    if suffix == ".bifxml":
        variables = read_xml(name).iter("VARIABLE")
        found = [((one.findtext("NAME") or "").strip(), one.get("TYPE", "nature")) for one in variables]
        kinds = ("nature", "discrete")
    elif suffix in (".dsl", ".net"):
        found = _NODE.findall(_ASIDE.sub(" ", read_text(name)))
    else:  # a format of pyAgrum's own, which reads all that it writes
        found = []
    for own, kind in found:
        if kind not in kinds and suffix != ".net":
            raise FileFormatError(
                f"variable {own[:60]!r} is of kind {kind[:40]!r}; only variables with a table of probabilities are "
                f"read. Make it one, or remove it, in the program that wrote {name[-60:]}"
            )
    return [own for own, _ in found]


def check_all_read(name: str, declared: list[str], read: set[str]) -> None:
    """Refuse a file of which pyAgrum has read less than stands in it."""
    lacking = [own for own in declared if own not in read]
    if lacking:
        listed = ", ".join(repr(own[:40]) for own in lacking[:3]) + (", …" if len(lacking) > 3 else "")
        raise FileFormatError(
            f"pyAgrum read {len(read)} of the {len(declared)} variables of {name[-60:]} and left out {listed}; "
            "save the network as BIF with a table for every variable"
        )


def _in_jgum(name: str) -> list[str]:
    """Names stand before what describes the states: `A[2]`, `B{yes|no}`."""
    try:
        nodes: Any = json.loads(read_text(name))["nodes"]
        return [re.split(r"[\[{]", node, maxsplit=1)[0].strip() for node in nodes]
    except (KeyError, TypeError, ValueError, RecursionError):  # what it is, pyAgrum knows
        return []
