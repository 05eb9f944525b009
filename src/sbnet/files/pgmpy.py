"""pgmpy: networks of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sbnet import checks
from sbnet.errors import FileFormatError, ParameterError
from sbnet.files.assembling import assembled
from sbnet.files.tables_writing import as_variables
from sbnet.files.variables import Variable
from sbnet.model.network import Network
from sbnet.model.suggestions import check_network

if TYPE_CHECKING:
    from pgmpy.models import DiscreteBayesianNetwork

MOST_PARENTS = 20
"""A table of a million rows; pgmpy would take 16 MB for it, and as much again for each use."""


def to_pgmpy(network: Network) -> DiscreteBayesianNetwork:
    """The network in pgmpy, whose nodes have tables: a column for each state of the parents, so at most twenty of them.

    States are called as :func:`sbnet.convert.to_pyagrum` calls them.

    Parameters
    ----------
    network : Network

    Returns
    -------
    pgmpy.models.DiscreteBayesianNetwork

    Examples
    --------
    >>> import sbnet as sb
    >>> model = sb.convert.to_pgmpy(sb.from_edges({("rain", "wet"): 2.0}))  # doctest: +SKIP
    """
    check_network(network)
    checks.extra("pgmpy", "to_pgmpy()")
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    variables = as_variables(network, most=MOST_PARENTS, into="a table of pgmpy")
    states = {one.name: list(one.states) for one in variables}
    made = DiscreteBayesianNetwork()
    made.add_nodes_from(states)
    made.add_edges_from((parent, one.name) for one in variables for parent in one.parents)
    for one in variables:
        sizes = [len(states[parent]) for parent in one.parents]
        given: dict[str, Any] = {"evidence": list(one.parents), "evidence_card": sizes} if sizes else {}
        named = {name: states[name] for name in (one.name, *one.parents)}
        cpd = TabularCPD(one.name, len(one.states), one.table.T, **given, state_names=named)
        made.add_cpds(cpd)
    return made


def from_pgmpy(network: DiscreteBayesianNetwork) -> Network:
    """The network that a pgmpy network is, as :func:`sbnet.convert.from_pyagrum` makes it of one of pyAgrum.

    Parameters
    ----------
    network : DiscreteBayesianNetwork

    Returns
    -------
    Network

    Examples
    --------
    >>> import sbnet as sb
    >>> model = sb.convert.to_pgmpy(sb.from_edges({("rain", "wet"): 2.0}))  # doctest: +SKIP
    >>> sb.convert.from_pgmpy(model).names  # doctest: +SKIP
    ('rain', 'wet')
    """
    if isinstance(network, type) or not all(hasattr(network, name) for name in ("nodes", "get_cpds")):
        raise ParameterError(f"network is {checks.shown(network)}; give a DiscreteBayesianNetwork of pgmpy")
    variables = [_variable(network, node) for node in network.nodes()]
    return assembled(variables, "a pgmpy network")


def _variable(network: Any, node: Any) -> Variable:
    cpd = network.get_cpds(node)
    if cpd is None:
        raise FileFormatError(f"{node!r} has no table in the pgmpy network; add its TabularCPD")
    states = tuple(str(state) for state in cpd.state_names[node])
    parents = tuple(str(parent) for parent in cpd.variables[1:])
    return Variable(str(node), states, parents, np.asarray(cpd.get_values(), dtype=np.float64).T)
