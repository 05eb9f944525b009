"""Networks in XML for other programs: XMLBIF, and GeNIe's XDSL, which has noisy-MAX nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from sbnet._types import FloatArray
from sbnet.errors import FileFormatError
from sbnet.files.atomic import write_atomically
from sbnet.files.tables_writing import MOST_PARENTS, as_variables, check_rows
from sbnet.kernels.codes import NOISY_OR
from sbnet.model.conditional import Family
from sbnet.model.network import Network
from sbnet.model.probabilities import thresholds_of

_UNWRITTEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""What XML has no way to write."""
_NEAR = (0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6)
"""Neighbours of a probability that are tried, by their distance."""


def write_xmlbif(network: Network, name: str) -> None:
    """Write tables in XMLBIF: the variable itself runs fastest, then its last parent."""
    variables = as_variables(network)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<BIF VERSION="0.3">', "<NETWORK>", "<NAME>unknown</NAME>"]
    for one in variables:
        outcomes = "".join(f"<OUTCOME>{_text(state)}</OUTCOME>" for state in one.states)
        about = f"<PROPERTY>description = {_text(one.about)}</PROPERTY>" if one.about else ""
        lines.append(f'<VARIABLE TYPE="nature"><NAME>{_text(one.name)}</NAME>{outcomes}{about}</VARIABLE>')
    for one in variables:
        given = "".join(f"<GIVEN>{_text(parent)}</GIVEN>" for parent in one.parents)
        head = f"<DEFINITION><FOR>{_text(one.name)}</FOR>{given}<TABLE>"
        lines += [head, *(_numbers(row) for row in one.table), "</TABLE></DEFINITION>"]
    write_atomically(name, "\n".join([*lines, "</NETWORK>", "</BIF>", ""]).encode())


def write_xdsl(network: Network, name: str) -> None:
    """Write a network as GeNIe has it: noisy-OR variables as noisy-MAX nodes, all others with tables.

    GeNIe's names are identifiers: in others, what is no letter, digit or _ becomes _. The label has the name of such a
    variable, and an extension, which other programs step over, those of such variables and states.
    """
    called = _identifiers(network.names)
    noisy = {own for own in network.names if network.gate[network.index(own)] == NOISY_OR and network.parents(own)}
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<smile version="1.0" id="Network">', "<nodes>"]
    for own in network.names:
        family = network.family(own)
        turned = [parent in noisy for parent in family.parents]  # those whose states begin with the strongest there
        lines.append((_noisy_max if own in noisy else _cpt)(family, called, turned))
    lines += ["</nodes>", "<extensions>", '<genie version="1.0" app="sbnet" name="Network">']
    for own in network.names:
        label = network.notes[own].about or ("" if called[own] == own else own)
        lines += [f"<node id={quoteattr(called[own])}><name>{_text(label)}</name></node>"] if label else []
    lines += ["</genie>", "<sbnet>", *_renamed(network, called), "</sbnet>", "</extensions>", "</smile>", ""]
    write_atomically(name, "\n".join(lines).encode())


def _renamed(network: Network, called: dict[str, str]) -> Iterable[str]:
    """The names of variables and states that are no identifiers, by what they are called in the file."""
    for own, word in called.items():
        states = _identifiers(network.states[own]).items()
        listed = "".join(f"<state id={quoteattr(w)}>{_text(state)}</state>" for state, w in states if w != state)
        listed = (f"<name>{_text(own)}</name>" if word != own else "") + listed
        if listed:
            yield f"<node id={quoteattr(word)}>{listed}</node>"


def _cpt(family: Family, called: dict[str, str], turned: list[bool]) -> str:
    sizes = [len(states) for states in family.parent_states]
    if family.table is None:
        check_rows(family.name, sizes, MOST_PARENTS, "a table")
    rows = family.distribution(family.every_row()).reshape(*sizes, len(family.states))
    rows = np.flip(rows, tuple(axis for axis, back in enumerate(turned) if back)).reshape(-1, len(family.states))
    numbers = " ".join(_numbers(row) for row in rows)
    return f"<cpt {_head(family, called, family.states)}<probabilities>{numbers}</probabilities></cpt>"


def _noisy_max(family: Family, called: dict[str, str], turned: list[bool]) -> str:
    """States with the strongest first and the absent one last; each state of each parent alone, and the leak."""
    strengths, rows = [], list[FloatArray]()
    for states, weight, back in zip(family.parent_states, family.weights, turned, strict=True):
        order = range(len(states) - 1, -1, -1)
        strengths += [str(len(states) - 1 - s if back else s) for s in order]
        rows += [_alone(weight[:, s - 1] if s else np.zeros(len(weight))) for s in order]
    numbers = " ".join(_numbers(row[::-1]) for row in (*rows, _alone(family.bias)))
    body = f"<strengths>{' '.join(strengths)}</strengths><parameters>{numbers}</parameters>"
    return f"<noisymax {_head(family, called, family.states[::-1])}{body}</noisymax>"


def _alone(weight: FloatArray) -> FloatArray:
    """The distribution that one cause alone brings: P(v <= k) = exp(-sum of x_l over l > k); small ones keep digits.

    It gives these very weights when it is read, if any does, as where they came from such a file.
    """
    above = np.append(np.cumsum(weight[::-1])[::-1], 0.0)
    p: FloatArray = np.exp(-above)
    p[1:] *= -np.expm1(-weight)
    found = _neighbour(p, weight, len(weight) - 1, set())
    return p if found is None else found


def _neighbour(p: FloatArray, weight: FloatArray, k: int, vain: set[tuple[int, float]]) -> FloatArray | None:
    """Probabilities next to these that give the weights of thresholds up to k, and above k what p gives; `vain` has the
    sums above k from which that cannot be."""
    place = (k, float(np.cumsum(p[: k + 1 : -1])[-1]) if k + 2 < len(p) else 0.0)
    if k < 0 or place in vain:
        return p if k < 0 else None
    step = 0.5 * np.spacing(p[k + 1 :].sum())  # of whole steps, all might round to even
    for n in _NEAR:
        other = p.copy()
        other[k + 1] += n * step
        if thresholds_of(other, "noisy-or", weight)[k] == weight[k]:
            found = _neighbour(other, weight, k - 1, vain)
            if found is not None:
                return found
    vain.add(place)
    return None


def _head(family: Family, called: dict[str, str], states: Iterable[str]) -> str:
    words = _identifiers(states)
    listed = "".join(f"<state id={quoteattr(word)}/>" for word in words.values())
    parents = " ".join(called[parent] for parent in family.parents)
    return f"id={quoteattr(called[family.name])}>{listed}" + (f"<parents>{parents}</parents>" if parents else "")


def _identifiers(names: Iterable[str]) -> dict[str, str]:
    """An identifier for each name, the name itself if it is one."""
    found: dict[str, str] = {}
    used: set[str] = set()
    for name in names:
        word = _text(re.sub(r"\W", "_", name, flags=re.ASCII))
        word = word if re.match("[A-Za-z_]", word) else f"_{word}"
        k = 2
        while word in used:
            word, k = f"{re.sub('_[0-9]+$', '', word) if k > 2 else word}_{k}", k + 1
        used.add(word)
        found[name] = word
    return found


def _numbers(row: FloatArray) -> str:
    return " ".join(map(repr, row.tolist()))


def _text(text: str) -> str:
    if _UNWRITTEN.search(text):
        raise FileFormatError(f"{text[:60]!r} cannot be written in XML, which has no such characters; rename it")
    return escape(text, {"\r": "&#13;"})
