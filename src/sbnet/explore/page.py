"""The page as one HTML file: the network inside as JSON, no other request, nothing that a unit's name could run."""

from __future__ import annotations

import base64
import hashlib
import html as markup
import json
import re
from importlib.resources import files
from typing import Any

import numpy as np

from sbnet._version import __version__
from sbnet.kernels import lobatto
from sbnet.kernels.codes import NOISY_OR
from sbnet.kernels.lobatto import NOTHING, nodes_for
from sbnet.model import roles
from sbnet.model.network import Network
from sbnet.questions.evidence import OnePattern, words_of
from sbnet.questions.question import ask_one

_SOLVER, _ASKING = ("solver.js", "sums.js"), ("engine.js", "asking.js", "drawing.js", "page.js")
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
        "network": as_json(contents(network, evidence) | {"server": server}),
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


def contents(network: Network, evidence: OnePattern) -> dict[str, Any]:
    """The network as the page reads it: all of it, and nothing else."""
    splits = network.graph.indptr[1:-1]
    notes = [network.notes[name] for name in network.names]
    row = ask_one(network, evidence, None).states[0]
    causes = roles.causes(network)
    return {
        "names": list(network.names),
        "about": [note.about for note in notes],
        "group": [note.group for note in notes],
        "source": [note.source for note in notes],
        "states": [list(words_of(network, i)) or None for i in range(network.n_units)],
        "causes": causes,
        "findings": roles.findings(network, causes),
        "observable": roles.observable(network),
        "gate": network.gate.tolist(),
        "bias": network.bias.tolist(),
        "parents": [part.tolist() for part in np.split(network.graph.parent, splits)],
        "weights": [part.tolist() for part in np.split(network.weight, splits)],
        "series": _series(network),
        "evidence": {str(i): int(row[i]) for i in np.flatnonzero(row >= 0)},
    }


def _series(network: Network) -> dict[str, list[float]]:
    """The sum of exponentials above t(x) of noisy-OR units, as many terms as the weakest cause needs."""
    weight = network.weight[network.gate[network.graph.child_of_edge] == NOISY_OR]
    weakest = float(weight[weight > NOTHING].min(initial=np.inf))
    n = nodes_for(weakest) if np.isfinite(weakest) else 0
    columns = {"nodes": lobatto.NODES, "weights": lobatto.WEIGHTS, "until": lobatto.UNTIL}
    return {name: column[:n].tolist() for name, column in columns.items()}
