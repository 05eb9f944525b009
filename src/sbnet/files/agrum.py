"""pyAgrum: its networks, and the files that it reads. Logit and noisy-OR nodes are units, whatever their parents."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray
from sbnet.errors import FileFormatError, ParameterError
from sbnet.files.assembling import assembled
from sbnet.files.plain import read_text
from sbnet.files.tables_writing import as_variables, words
from sbnet.files.variables import Variable, Weighted, no_first
from sbnet.kernels.codes import NOISY_OR
from sbnet.model.gates import sigma
from sbnet.model.network import CERTAIN, Network
from sbnet.model.suggestions import check_network

if TYPE_CHECKING:
    import pyagrum

ENDINGS = (".dsl", ".o3prm", ".jgum", ".bgum")
"""What pyAgrum reads for us. Its pickles (.pkl) are left out: reading one runs what stands in it."""
_WHOLE = 14
"""Parents up to which a table is read whole; of more, a logit or noisy-OR node is known by some rows."""
_MOST = 20
"""Parents of a table that is handed to pyAgrum."""
_EXACT = 1e-9
"""A difference of probabilities that is rounding."""
_ASIDE = re.compile(r'"(?:[^"\\]|\\.)*+"?|//[^\n]*|%[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
"""Texts and comments, in which anything may stand."""
_NODE = re.compile(r"\bnode\s+([^\s{};]{1,200})\s*\{(?:\s*TYPE\s*=\s*(\w{1,40}))?")


def read_pyagrum(name: str) -> list[Variable]:
    """The variables of a file that pyAgrum reads."""
    gum = checks.extra("pyagrum", f"reading {name}")
    if name.lower().endswith(".o3prm"):
        checks.extra("pyagrum.prm", f"reading {name}")
    declared = declared_in(name)
    try:
        network = gum.loadBN(name)
    except FileNotFoundError:
        raise
    except Exception as error:  # pyAgrum has errors of its own, which have no common base in Python
        with open(name, "rb"):  # one that cannot be opened is an error of the system
            text = " ".join(str(error).split())
        raise FileFormatError(f"pyAgrum cannot read {name}: {text}") from None
    variables = from_tensors(network)
    check_all_read(name, declared, {variable.name for variable in variables})
    return variables


def declared_in(name: str) -> list[str]:
    """The variables that a file declares; one that has no table of probabilities is refused, by its name."""
    suffix, kinds = os.path.splitext(name.lower())[1], ("CPT", "")
    if suffix == ".jgum":  # names stand before what describes the states: `A[2]`, `B{yes|no}`
        try:
            return [re.split(r"[\[{]", node, maxsplit=1)[0].strip() for node in json.loads(read_text(name))["nodes"]]
        except (KeyError, TypeError, ValueError, RecursionError):  # what it is, pyAgrum knows
            return []
    # All other formats are pyAgrum's own, which reads all that it writes.
    found = _NODE.findall(_ASIDE.sub(" ", read_text(name))) if suffix == ".dsl" else []
    for own, kind in found:
        if kind not in kinds:
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


def from_pyagrum(network: pyagrum.BayesNet) -> Network:
    """The network that a pyAgrum network is: variables with states and tables, as :func:`sbnet.read` gives them.

    Logit and noisy-OR nodes with more parents than a table may have stay what they are.

    Parameters
    ----------
    network : pyagrum.BayesNet

    Returns
    -------
    Network

    Examples
    --------
    >>> import sbnet as sb
    >>> bn = sb.convert.to_pyagrum(sb.from_edges({("rain", "wet"): 2.0}))  # doctest: +SKIP
    >>> sb.convert.from_pyagrum(bn).names  # doctest: +SKIP
    ('rain', 'wet')
    """
    gum = checks.extra("pyagrum", "from_pyagrum()")
    if not isinstance(network, gum.BayesNet):
        raise ParameterError(f"network is {checks.shown(network)}; give a pyagrum.BayesNet")
    return assembled(from_tensors(network), "a pyAgrum network")


def from_tensors(network: Any) -> list[Variable]:
    """The variables of a pyAgrum network, in the order of its nodes."""
    return [_variable(network, node) for node in sorted(network.nodes())]


def _variable(network: Any, node: int) -> Variable:
    own, tensor = network.variable(node), network.cpt(node)
    names = list(tensor.names)
    parents, states = tuple(names[1:]), tuple(own.labels())
    if len(states) < 2:
        raise FileFormatError(f"variable {own.name()!r} has {len(states)} states; a variable needs two")
    about = own.description()
    about = "" if about == own.name() else about
    if len(parents) <= _WHOLE:
        return Variable(own.name(), states, parents, _table(tensor, [*parents, own.name()]), about)
    formula = _probed(network, node, parents, states)
    return Variable(own.name(), states, parents, np.zeros((0, len(states))), about, formula)


def _table(tensor: Any, names: list[str]) -> FloatArray:
    """All probabilities, entry by entry: arrays of logit and noisy-OR nodes have another order than those of tables."""
    gum = checks.extra("pyagrum", "reading a pyAgrum network")
    place, values = gum.Instantiation(tensor), []
    place.setFirst()
    while not place.end():
        values.append(tensor.get(place))
        place.inc()
    order = [place.variable(k).name() for k in range(place.nbrDim())]  # the first of them is the fastest
    sizes = [place.variable(k).domainSize() for k in range(place.nbrDim())]
    table = np.array(values).reshape(sizes[::-1]).T.transpose([order.index(name) for name in names])
    return table.reshape(-1, sizes[order.index(names[-1])])


def _probed(network: Any, node: int, parents: tuple[str, ...], states: tuple[str, ...]) -> Weighted:
    """A node with so many parents that it can have no table: some rows, and what they say about all.

    No parent and each alone give the numbers of a sigmoid or noisy-OR variable; pairs, halves and all of them test it.
    """
    gum = checks.extra("pyagrum", "reading a pyAgrum network")
    name, tensor, n = network.variable(node).name(), network.cpt(node), len(parents)
    labels = [tuple(network.variable(one).labels()) for one in (*parents, name)]
    if any(len(own) != 2 for own in labels):
        raise FileFormatError(f"{name!r} has {n} parents, and not all of them have two states")
    *above, own = [no_first(words) or (0, 1) for words in labels]
    rng, eye = np.random.default_rng(0), np.eye(n)
    halves = rng.random((32, n)) < 0.5
    on = np.concatenate([np.zeros((1, n)), eye, np.ones((1, n)), halves, eye + np.roll(eye, 1, 0)]).astype(int)
    p = np.empty((len(on), 2))
    for k, row in enumerate(on.tolist()):
        place = gum.Instantiation(tensor)
        for parent, order, s in zip(parents, above, row, strict=True):
            place.chgVal(parent, order[s])
        for s in (0, 1):
            place.chgVal(name, own[s])
            p[k, s] = tensor.get(place)
    with np.errstate(divide="ignore"):
        log_p = np.maximum(np.log(p), -CERTAIN)
    for gate, x in (("sigmoid", log_p[:, 1] - log_p[:, 0]), ("noisy-or", -log_p[:, 0])):
        bias, weights = x[0], x[1 : n + 1] - x[0]
        sums = bias + on @ weights
        zero = sigma(-sums) if gate == "sigmoid" else np.exp(-sums)
        if np.abs(zero - p[:, 0]).max() <= _EXACT and (gate == "sigmoid" or weights.min() >= -_EXACT):
            least = -np.inf if gate == "sigmoid" else 0.0
            return Weighted(gate, float(bias), tuple(np.maximum(weights, least).tolist()))
    raise FileFormatError(f"{name!r} has {n} parents, and is neither a logit nor a noisy-OR node")


def to_pyagrum(network: Network) -> pyagrum.BayesNet:
    """The network in pyAgrum: logit and noisy-OR nodes, however many parents, where states are no and yes, else tables.

    States are called as the network calls them, those of a network of yes and no "0" and "1"; descriptions are what the
    notes say. A table has at most twenty parents, and inference in pyAgrum makes one of every node, so keep to that.
    Edges without influence are left out.

    Parameters
    ----------
    network : Network

    Returns
    -------
    pyagrum.BayesNet

    Examples
    --------
    >>> import sbnet as sb
    >>> bn = sb.convert.to_pyagrum(sb.noisy_or({("flu", "fever"): 0.9}, prior=0.05))  # doctest: +SKIP
    """
    check_network(network)
    gum = checks.extra("pyagrum", "to_pyagrum()")
    made: pyagrum.BayesNet = gum.BayesNet()
    tables = [] if network.is_binary else as_variables(network, most=_MOST, into="a table of pyAgrum")
    for one in tables:
        made.add(gum.LabelizedVariable(one.name, one.about, list(one.states)))
    for unit, name in enumerate(network.names if network.is_binary else ()):
        weights, states, about = _weights(network, unit), words(network, name), network.notes[name].about
        own = gum.LabelizedVariable(name, about, list(states))
        if not weights:
            made.add(own)
            family = network.family(unit)
            first = np.zeros((1, len(family.parents)), np.int64)  # it listens to none of them
            tables.append(Variable(name, states, (), family.distribution(first), about))
        elif network.gate[unit] == NOISY_OR:
            made.addNoisyORNet(own, float(-np.expm1(-network.bias[unit])))
        else:
            made.addLogit(own, float(network.bias[unit]))
        for parent, weight in weights.items():
            made.addWeightedArc(parent, name, weight)
    for one in tables:  # in pyAgrum the node itself runs fastest, then its first parent
        for parent in one.parents:
            made.addArc(parent, one.name)
        sizes = [made.variable(parent).domainSize() for parent in one.parents]
        table = one.table.reshape(*sizes, -1).transpose(*reversed(range(len(sizes))), len(sizes))
        made.cpt(one.name).fillWith(table.ravel().tolist())
    return made


def _weights(network: Network, unit: int) -> dict[str, float]:
    """The numbers of a unit as pyAgrum has them; edges without influence are left out, which it does not take."""
    edges = slice(network.graph.indptr[unit], network.graph.indptr[unit + 1])
    weights = network.weight[edges]
    if network.gate[unit] == NOISY_OR:
        weights = -np.expm1(-weights)
    return {name: w for name, w in zip(network.parents(unit), weights.tolist(), strict=True) if w != 0.0}
