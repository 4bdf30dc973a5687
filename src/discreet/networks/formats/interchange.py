"""Networks and graphs to and from pgmpy, pyAgrum and networkx, each of them imported only when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.networks.credal_network import CredalNetwork
from discreet.networks.network import Network
from discreet.values.errors import GraphError, NetworkError, import_extra
from discreet.values.graph import DAG
from discreet.values.schema import Attribute, Schema
from discreet.values.table import Array, Table
from discreet.values.text import list_some, show


def to_pgmpy(network: Network) -> Any:
    """The network as a pgmpy `DiscreteBayesianNetwork`; its tables put the child first, then the parents."""
    models = import_extra("pgmpy.models", "exchange with other tools", "interchange")
    factors = import_extra("pgmpy.factors.discrete", "exchange with other tools", "interchange")
    model = models.DiscreteBayesianNetwork()
    model.add_nodes_from(network.nodes)
    model.add_edges_from(network.dag.edges())
    for name, parents, cpt in zip(network.nodes, network.dag.parents, network.cpts, strict=True):
        model.add_cpds(
            factors.TabularCPD(
                name,
                network.schema[name].size,
                np.moveaxis(cpt.values, -1, 0).reshape(network.schema[name].size, -1).copy(),
                evidence=list(parents),
                evidence_card=[network.schema[parent].size for parent in parents],
                state_names={member: list(network.schema[member].levels) for member in cpt.axes},
            )
        )
    return model


def from_pgmpy(model: Any) -> Network:
    """The network in a pgmpy model; names and states become text, in the order of their own tables."""
    if not hasattr(model, "get_cpds") or not hasattr(model, "nodes"):
        raise NetworkError(f"a {type(model).__name__} is not a discrete Bayesian network of pgmpy")
    nodes = list(model.nodes())
    cpds = {node: model.get_cpds(node) for node in nodes}
    for node, cpd in cpds.items():
        if cpd is None or not hasattr(cpd, "state_names"):
            raise NetworkError(f"node {show(node)} of the pgmpy model has no table")
    states = {node: list(cpd.state_names[node]) for node, cpd in cpds.items()}
    levels, parents, tables = {}, {}, {}
    for node, cpd in cpds.items():
        if set(cpd.variables[1:]) != set(model.get_parents(node)):
            raise NetworkError(f"the pgmpy table of {show(node)} and the graph disagree about its parents")
        values = np.asarray(cpd.values, dtype=np.float64)
        for axis, member in enumerate(cpd.variables):
            values = _reorder(values, axis, cpd.state_names[member], states[member], node, member)
        levels[str(node)] = [str(state) for state in states[node]]
        parents[str(node)] = [str(parent) for parent in cpd.variables[1:]]
        tables[str(node)] = np.moveaxis(values, 0, -1)
    if len(levels) < len(nodes):
        raise NetworkError(f"two nodes of the pgmpy model have the same text as name: {list_some(nodes)}")
    return Network.build(levels, parents, tables)


def to_pyagrum(network: Network) -> Any:
    """The network as a pyAgrum `BayesNet`; its arrays put the last parent first and the child last."""
    gum = import_extra("pyagrum", "exchange with other tools", "interchange")
    model = gum.BayesNet()
    for attribute in network.schema:
        variable = gum.LabelizedVariable(attribute.name, attribute.name, 0)
        for level in attribute.levels:
            variable.addLabel(level)
        model.add(variable)
    for parent, child in network.dag.edges():
        model.addArc(parent, child)
    for name, cpt in zip(network.nodes, network.cpts, strict=True):
        tensor = model.cpt(name)
        tensor[:] = cpt.arrange(tuple(reversed(tensor.names))).values.copy()
    return model


def from_pyagrum(model: Any) -> Network:
    """The network in a pyAgrum `BayesNet`; the labels of every kind of discrete variable become levels."""
    if not hasattr(model, "cpt") or not hasattr(model, "names"):
        raise NetworkError(f"a {type(model).__name__} is not a Bayesian network of pyAgrum")
    names = [model.variable(node).name() for node in sorted(model.nodes())]
    schema = Schema(tuple(Attribute(name, tuple(model.variable(name).labels())) for name in names))
    parents, tables = {}, []
    for name in names:
        tensor = model.cpt(name)
        axes = tuple(tensor.names)
        parents[name] = axes[1:]
        stored = Table(tuple(reversed(axes)), np.array(tensor[:], dtype=np.float64))
        tables.append(stored.arrange((*axes[1:], name)))
    return Network(schema, DAG.build(parents), tuple(tables))


def from_pyagrum_credal(model: Any) -> CredalNetwork:
    """The credal network in a pyAgrum `CredalNet`: the interval hull of each conditional's vertices.

    pyAgrum keeps a list of vertices for every conditional. Two levels are kept exactly; with more, the hull may contain
    distributions that the vertices do not span, so bounds over it are valid, if wider.
    """
    if not hasattr(model, "credalNet_currentCpt") or not hasattr(model, "current_bn"):
        raise NetworkError(f"a {type(model).__name__} is not a credal network of pyAgrum")
    graph = model.current_bn()
    vertices = model.credalNet_currentCpt()
    names = {node: graph.variable(node).name() for node in sorted(graph.nodes())}
    schema = Schema(tuple(Attribute(name, tuple(graph.variable(name).labels())) for name in names.values()))
    parents, lower, upper = {}, {}, {}
    for node, name in names.items():
        axes = tuple(graph.cpt(name).names)
        parents[name] = axes[1:]
        # Conditionals are listed with the first parent fastest, so the last parent's axis comes first.
        shape = [schema[parent].size for parent in reversed(axes[1:])]
        ends = [np.array([reduce(found, axis=0) for found in vertices[node]]) for reduce in (np.min, np.max)]
        low, high = (
            Table((*reversed(axes[1:]), name), end.reshape(*shape, -1)).arrange((*axes[1:], name)).values
            for end in ends
        )
        lower[name], upper[name] = low, high
    return CredalNetwork.build(schema, parents, lower, upper)


def to_networkx(graph: DAG | Network) -> Any:
    """The graph as a networkx `DiGraph`; the predecessors of a node come in the order of its parents."""
    dag = graph.dag if isinstance(graph, Network) else graph
    found = import_extra("networkx", "exchange with other tools", "interchange").DiGraph()
    found.add_nodes_from(dag.nodes)
    found.add_edges_from(dag.edges())
    return found


def from_networkx(digraph: Any) -> DAG:
    """The graph in a networkx `DiGraph`, whose nodes are the names of attributes."""
    if not (hasattr(digraph, "is_directed") and digraph.is_directed()):
        raise GraphError(f"a {type(digraph).__name__} has no directed edges; a networkx DiGraph is needed")
    odd = [node for node in digraph.nodes if not isinstance(node, str)]
    if odd:
        raise GraphError(
            f"node {show(odd[0])} is a {type(odd[0]).__name__}; the nodes must be names, as text"
        )
    return DAG.build({node: tuple(digraph.predecessors(node)) for node in digraph.nodes})


def _reorder(
    values: Array, axis: int, found: Sequence[object], wanted: Sequence[object], node: object, member: object
) -> Array:
    if list(found) == list(wanted):
        return values
    if len(found) != len(wanted) or set(found) != set(wanted):
        raise NetworkError(
            f"the pgmpy table of {show(node)} has states {list_some(found)} for {show(member)}, "
            f"which has {list_some(wanted)}"
        )
    return values.take([list(found).index(state) for state in wanted], axis=axis)
