"""The page as one HTML file: the network inside as JSON, no other request, nothing that a unit's name could run."""

from __future__ import annotations

import base64
import hashlib
import html as markup
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np

from sbnet._version import __version__
from sbnet.model import roles
from sbnet.model.network import Network
from sbnet.model.states import find
from sbnet.model.strengths import edge_strengths
from sbnet.questions.evidence import OnePattern
from sbnet.questions.question import ask_one

_SOLVER = ("firing.js", "elimination.js")
_ASKING = (
    *("engine.js", "search.js", "asking.js", "summary.js"),
    *("drawing.js", "variables.js", "ranking.js", "keys.js", "page.js"),
)
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]")
"""Controls and marks of direction, which show nothing; they stand as escapes, as ``page.js`` has them. Joiners, which
letters and emoji need, are not among them."""
POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:"
"""What the page may load: nothing. Its script and its style are allowed by their digests."""


def document(network: Network, title: str, evidence: OnePattern, *, server: bool) -> str:
    """The page, for a server or by itself."""
    script = _joined(_ASKING if server else _SOLVER + _ASKING)
    style = _joined(("page.css",))
    whole = title.encode("utf-8", "replace").decode()  # half a character is none
    policy = f"{POLICY}; script-src {_digest(script)}; style-src {_digest(style)}"
    policy += "; connect-src 'self'" if server else ""
    parts = {
        "policy": markup.escape(policy),
        "version": __version__,
        "title": markup.escape(_UNSEEN.sub(lambda match: ascii(match[0])[1:-1], whole)),
        "style": style,
        "network": as_json(contents(network, evidence, whole=not server) | {"server": server}),
        "script": script,
    }
    # one pass: what is filled in is never looked at again
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _joined(("page.html",)))


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _joined(names: tuple[str, ...]) -> str:
    return "\n".join((files(__package__) / name).read_text(encoding="utf-8") for name in names)


def as_json(value: Any) -> str:
    """JSON that can stand inside a script element: no character in it means anything to a reader of HTML."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def contents(network: Network, evidence: OnePattern, *, whole: bool = True) -> dict[str, Any]:
    """The network as the page reads it; its numbers only if the page is to answer by itself."""
    notes = [network.notes[name] for name in network.names]
    causes = roles.causes(network)
    shown = {
        "names": list(network.names),
        "about": [note.about for note in notes],
        "group": [note.group for note in notes],
        "source": [note.source for note in notes],
        "states": [list(network.states[name]) for name in network.names],
        "nothing": [nothing(network.states[name]) for name in network.names],
        "causes": causes,
        "ranked": sorted({*causes, *roles.asked(network)}),
        "findings": roles.findings(network, causes),
        "observable": roles.observable(network),
        "parents": _by_variable(network, network.graph.parent),
        "strength": strengths(network),
        "evidence": _known(network, evidence),
    }
    return shown | (_numbers(network) if whole else {})


def nothing(states: tuple[str, ...]) -> int:
    """The state that means that nothing is the matter: the one whose name says so, else the first."""
    return next((k for k, state in enumerate(states) if state.casefold() in _NOTHING), 0)


_NOTHING = {"no", "none", "nothing", "absent", "false", "off", "negative", "normal", "healthy", "ok", "correct"}


def _known(network: Network, evidence: OnePattern) -> dict[str, Any]:
    """Evidence as the page has it: a state by its number, or the likelihoods of all states."""
    row = ask_one(network, evidence, None).given[0]
    soft = evidence if isinstance(evidence, Mapping) else {}
    reports = {
        str(network.index(key)): value
        for key, value in soft.items()
        if isinstance(value, _LISTS) and not (isinstance(value, np.ndarray) and value.ndim == 0)
    }
    known: dict[str, Any] = {str(i): int(row[i]) for i in np.flatnonzero(row >= 0)}
    return known | {i: _likelihoods(network, int(i), value) for i, value in reports.items()}


_LISTS = (tuple, list, Mapping, np.ndarray)


def _likelihoods(network: Network, unit: int, given: Any) -> list[float]:
    states = network.states[network.names[unit]]
    if isinstance(given, Mapping):
        by_number = {find(states, key): value for key, value in given.items()}
        given = [by_number[k] for k in range(len(states))]
    return [float(x) for x in given]


def _by_variable(network: Network, edges: Any) -> list[list[Any]]:
    return [part.tolist() for part in np.split(np.asarray(edges), network.graph.indptr[1:-1])]


def _numbers(network: Network) -> dict[str, Any]:
    """What the conditionals are, for ``elimination.js``: biases by threshold, weights by parent, tables as they are."""
    model = network.model
    blocks = [part.tolist() for part in np.split(network.weight, model.block[1:-1])] if network.n_edges else []
    ends = network.graph.indptr.tolist()
    return {
        "gate": network.gate.tolist(),
        "bias": [part.tolist() for part in np.split(network.bias, model.threshold[1:-1])],
        "weights": [blocks[begin:end] for begin, end in pairwise(ends)],
        "tables": {str(network.index(name)): table.ravel().tolist() for name, table in network.tables.items()},
    }


def strengths(network: Network) -> list[list[float]]:
    """How strong each edge is, for the drawing, by child."""
    return _by_variable(network, np.round(edge_strengths(network), 4))
