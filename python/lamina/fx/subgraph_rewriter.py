"""Replacing a pattern in a graph by another graph."""

from dataclasses import dataclass
from typing import NamedTuple

from lamina.fx._symbolic_trace import symbolic_trace
from lamina.fx.graph import Graph
from lamina.fx.graph_module import GraphModule, _assign_attr
from lamina.fx.node import Node, map_arg

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """Where a pattern was found: the pattern's last result, and the graph's node (or value) for each of the pattern's."""

    anchor: Node
    nodes_map: dict


@dataclass
class ReplacedPatterns:
    """The same, with the nodes that took the place."""

    anchor: Node
    nodes_map: dict
    replacements: list


def replace_pattern(gm, pattern, replacement):
    """Replace every place in a GraphModule that does what `pattern` does.

    Parameters
    ----------
    gm : GraphModule
        It is changed and recompiled.
    pattern, replacement : callable or GraphModule
        Functions of the same parameters, in the same order. A parameter of the pattern fits any value.

    A place fits if its nodes have the kinds, targets and arguments of the pattern's and nothing else reads what is inside. Places do not
    overlap: of two that do the earlier one is replaced.
    Returns the list of Match. Raises ValueError where the two take different numbers of parameters.
    """
    found = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(place.anchor, place.nodes_map) for place in found]


def replace_pattern_with_filters(
    gm, pattern, replacement, match_filters=None, ignore_literals=False
):
    """Like `replace_pattern` for the places of which every filter says yes.

    Parameters
    ----------
    match_filters : list of callable, optional
        Each is called with a Match, the graph and the pattern's graph.
    ignore_literals : bool
        Whether numbers and texts in the pattern fit any others.

    Returns the list of ReplacedPatterns.
    """
    pattern_graph, replacement_graph = _graph_of(pattern), _graph_of(replacement)
    inputs = [n for n in replacement_graph.nodes if n.op == "placeholder"]
    parameters = [n for n in pattern_graph.nodes if n.op == "placeholder"]
    if len(inputs) != len(parameters):
        raise ValueError(
            f"replace_pattern: pattern and replacement must take the same parameters; got {len(parameters)} and {len(inputs)}"
        )
    graph, done, taken = gm.graph, [], set()
    for anchor in list(graph.nodes):
        if anchor._erased or anchor in taken:
            continue
        place = _match(pattern_graph, anchor, gm, pattern, ignore_literals)
        if place is None or taken & set(place.inside):
            continue
        match = Match(place.anchor, place.nodes_map)
        if not all(accept(match, graph, pattern_graph) for accept in match_filters or ()):
            continue
        values = [place.nodes_map.get(p) for p in parameters]
        point = _point(graph, place, values)
        if point is None:
            continue
        made, results = _put_in(
            graph, point, replacement_graph, dict(zip(inputs, values, strict=True))
        )
        taken.update(place.inside)
        taken.update(made)
        _hand_over(graph, place, results)
        done.append(ReplacedPatterns(place.anchor, place.nodes_map, made))
    if isinstance(replacement, GraphModule):
        _take_state(gm, replacement)
    gm.recompile()
    return done


def _graph_of(source):
    if isinstance(source, Graph):
        return source
    return source.graph if isinstance(source, GraphModule) else symbolic_trace(source).graph


class _Place:
    def __init__(self, nodes_map, inside, outputs):
        self.nodes_map, self.inside, self.outputs = nodes_map, inside, outputs
        self.anchor = next(p for p, n in nodes_map.items() if n is outputs[-1])


def _match(pattern_graph, anchor, gm, pattern, ignore_literals):
    """The place whose last result is the anchor, or None."""
    output = pattern_graph.output_node()
    results = output.all_input_nodes
    if not results:
        return None
    found = {}

    def fits(p, n):
        if not isinstance(p, Node):
            return _same_value(p, n, fits, ignore_literals)
        if p in found:
            return found[p] is n or (not isinstance(n, Node) and found[p] == n)
        if p.op == "placeholder":
            found[p] = n
            return True
        if not isinstance(n, Node) or p.op != n.op or not _same_target(p, n, gm, pattern):
            return False
        found[p] = n
        return _same_value(tuple(p.args), tuple(n.args), fits, ignore_literals) and _same_value(
            dict(p.kwargs), dict(n.kwargs), fits, ignore_literals
        )

    if not fits(results[-1], anchor):
        return None
    for other in results[:-1]:
        # The other results are found from what they share with the last.
        if other not in found and not _find_from_inputs(other, found, fits):
            return None
    inside = [n for p, n in found.items() if p.op != "placeholder"]
    if any(n.op in ("placeholder", "output") for n in inside):
        return None
    members = set(inside)
    for p, n in found.items():
        if p.op not in ("placeholder", "get_attr") and p not in results:
            if any(user not in members for user in n.users):
                return None
    return _Place(found, inside, [found[r] for r in results])


def _find_from_inputs(p, found, fits):
    for read in p.all_input_nodes:
        if isinstance(found.get(read), Node):
            for candidate in list(found[read].users):
                before = dict(found)
                if fits(p, candidate):
                    return True
                found.clear()
                found.update(before)
    return False


def _same_target(p, n, gm, pattern):
    if p.op not in ("call_module", "get_attr") or p.target == n.target:
        return p.target == n.target
    if p.op == "get_attr" or not isinstance(pattern, GraphModule):
        return False
    return type(pattern.get_submodule(p.target)) is type(gm.get_submodule(n.target))


def _same_value(p, n, fits, ignore_literals):
    if isinstance(p, Node):
        return fits(p, n)
    if isinstance(p, (tuple, list)):
        return isinstance(n, (tuple, list)) and len(p) == len(n) and all(_same_value(a, b, fits, ignore_literals) for a, b in zip(p, n, strict=True))  # fmt: skip
    if isinstance(p, dict):
        return isinstance(n, dict) and p.keys() == n.keys() and all(_same_value(p[k], n[k], fits, ignore_literals) for k in p)  # fmt: skip
    if isinstance(p, slice):
        return isinstance(n, slice) and _same_value((p.start, p.stop, p.step), (n.start, n.stop, n.step), fits, ignore_literals)  # fmt: skip
    if isinstance(n, Node):
        return False
    return ignore_literals or (type(p) is type(n) and p == n)


def _point(graph, place, values):
    """The node before which the replacement goes: its inputs come before, readers of the results after; None if that cannot be."""
    order = {n: i for i, n in enumerate(graph.nodes)}
    inside = set(place.inside)
    readers = [u for n in place.outputs for u in n.users if u not in inside]
    point = min(readers, key=order.get) if readers else place.outputs[-1].next
    limit = order.get(point, len(order))
    return point if all(order[v] < limit for v in values if isinstance(v, Node)) else None


def _put_in(graph, point, replacement, values):
    made = []
    with graph.inserting_before(point):
        for node in replacement.nodes:
            if node in values:
                continue
            if node.op == "output":
                return made, map_arg(node.args[0], lambda n: values[n])
            args = map_arg(node.args, lambda n: values[n])
            kwargs = map_arg(node.kwargs, lambda n: values[n])
            values[node] = graph.create_node(node.op, node.target, args, dict(kwargs), node.name, node.type)  # fmt: skip
            values[node].meta = dict(node.meta)
            made.append(values[node])
    return made, None


def _hand_over(graph, place, results):
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    if len(results) != len(place.outputs):
        raise ValueError(
            f"replace_pattern: pattern and replacement must give the same number of results; got {len(place.outputs)} and {len(results)}"
        )
    for old, new in zip(place.outputs, results, strict=True):
        for user in list(old.users):
            if user not in place.inside:
                user.replace_input_with(old, new)
    for node in _backwards(graph, place.inside):
        if not node.users:
            graph.erase_node(node)


def _backwards(graph, nodes):
    """Nodes of a graph, the last first."""
    members = set(nodes)
    return [n for n in reversed(graph.nodes) if n in members]


def _take_state(gm, replacement):
    for node in gm.graph.nodes:
        if node.op not in ("get_attr", "call_module"):
            continue
        try:
            value = replacement
            for part in node.target.split("."):
                value = getattr(value, part)
        except AttributeError:
            continue
        held = gm
        for part in node.target.split("."):
            held = getattr(held, part, None)
        if held is None:
            _assign_attr(value, gm, node.target)
