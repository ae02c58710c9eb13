"""Graphs: lists of nodes that can be edited and written out as Python."""

import builtins
import copy
import keyword
import re
import warnings
from contextlib import contextmanager

import lamina
from lamina.fx._codegen import CodeGen, PythonCode, _custom_builtins
from lamina.fx.node import _KINDS, Node, _get_qualified_name, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]


def _snake_case(text):
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", text).lower()


class _Namespace:
    """Names that are taken: of nodes, and of globals of the generated code."""

    def __init__(self):
        self._used = {}
        self._of = {}
        self._last = {}  # the greatest number behind a name

    def create_name(self, candidate, obj):
        """A free name like the candidate: legal in Python, with a number behind it where it is taken."""
        if obj is not None and obj in self._of:
            return self._of[obj]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = re.match(r"(.*)_(\d+)$", candidate)
        base, number = (match[1], int(match[2])) if match else (candidate, 0)
        if candidate in self._used or self._is_illegal(candidate, obj):
            number = max(number, self._last.get(base, 0))
        while candidate in self._used or self._is_illegal(candidate, obj):
            number += 1
            candidate = f"{base}_{number}"
        self._used[candidate] = obj
        self._last[base] = max(number, self._last.get(base, 0))
        if obj is not None:
            self._of[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name, obj):
        """Say that a name belongs to an object."""
        if obj is not None:
            self._of[obj] = name

    @staticmethod
    def _is_illegal(name, obj):
        if name in keyword.kwlist:
            return True
        if name in builtins.__dict__:
            return obj is not builtins.__dict__[name]
        return name in _custom_builtins and obj is not _custom_builtins[name]


class _NodeList:
    """The nodes of a graph, as a sequence that follows its changes."""

    def __init__(self, graph, forward=True):
        self.graph, self.forward = graph, forward

    def __len__(self):
        return self.graph._len

    def __iter__(self):
        step = "_next" if self.forward else "_prev"
        root = self.graph._root
        node = getattr(root, step)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, step)

    def __reversed__(self):
        return iter(_NodeList(self.graph, not self.forward))


class Graph:
    """A computation as a list of nodes, in an order in which they can run.

    Parameters
    ----------
    owning_module : GraphModule, optional
        The module whose parameters and submodules the nodes name.
    tracer_cls : type, optional
        The tracer that made it.
    tracer_extras : dict, optional
        What that tracer wants to be called with again.
    """

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self._root = Node(self, "", "placeholder", "", (), {})
        self._graph_namespace = _Namespace()
        self._insert = self._root.prepend
        self._len = 0
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()

    @property
    def owning_module(self):
        """The module that this is the graph of, or None."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module):
        self._owning_module = module

    @property
    def nodes(self):
        """All nodes in order; a live view with `len`, iteration and `reversed`."""
        return _NodeList(self)

    def find_nodes(self, *, op, target=None, sort=True):
        """The nodes of a kind and, where given, with a target, in order."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def graph_copy(self, g, val_map, return_output_node=False):
        """Copy all nodes of `g` but its output to the insertion point.

        Parameters
        ----------
        g : Graph
        val_map : dict
            From nodes of `g` to nodes here; those that are in it already are not copied, the others are added.

        Returns the argument of `g`'s output in terms of this graph (with `return_output_node`, that node too), or None where `g` has
        no output.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], lambda n: val_map[n])
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo=None):
        memo = {} if memo is None else memo
        copied = Graph(tracer_cls=self._tracer_cls)
        value = copied.graph_copy(self, memo_nodes := {}, return_output_node=True)
        if value is not None:
            args, old = value
            new = copied.output(args, type_expr=old.type)
            new.meta = copy.copy(old.meta)
            memo_nodes[old] = new
        memo[id(self)] = copied
        memo.update((id(old), new) for old, new in memo_nodes.items())
        return copied

    def create_node(self, op, target, args=None, kwargs=None, name=None, type_expr=None):
        """Make a node and put it in at the insertion point, which is the end unless `inserting_before` or `inserting_after` says else.

        Parameters
        ----------
        op, target, args, kwargs
            See Node.
        name : str, optional
            The wish for a name; one made from the target otherwise. A number makes it unique.
        type_expr : optional
            Annotation of the result.

        Returns the node.
        """
        args = () if args is None else args
        if not isinstance(args, tuple) or not isinstance(kwargs, (dict, type(None))):
            raise AssertionError(
                f"Graph.create_node: args must be a tuple and kwargs a dict; got {type(args).__name__}, {type(kwargs).__name__}"
            )
        if op not in _KINDS or not (isinstance(target, str) or callable(target)):
            raise AssertionError(
                f"Graph.create_node: got kind {op!r} and target {target!r}; expected one of {_KINDS} and a str or callable"
            )
        wish = name if name is not None else self._target_to_str(target)
        node = Node(self, self._graph_namespace.create_name(wish, None), op, target, args, kwargs or {}, type_expr)  # fmt: skip
        self._graph_namespace.associate_name_with_obj(node.name, node)
        self._insert(node)
        self._len += 1
        owner = self._owning_module
        for hook in getattr(owner, "_create_node_hooks", ()) if owner is not None else ():
            hook(node)
        return node

    def _target_to_str(self, target):
        name = (
            target
            if isinstance(target, str)
            else getattr(target, "__name__", type(target).__name__)
        )
        if name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return _snake_case(name)

    def erase_node(self, to_erase):
        """Take a node out. Raises RuntimeError where other nodes read it or it is of another graph."""
        if to_erase.users:
            raise RuntimeError(
                f"Graph.erase_node: {to_erase} cannot be taken out, other nodes read it; got users {list(to_erase.users)}; "
                "give them another input first (replace_all_uses_with)"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Graph.erase_node: {to_erase} is of another graph")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}): it has been erased already", stacklevel=2)
            return
        owner = self._owning_module
        for hook in getattr(owner, "_erase_node_hooks", ()) if owner is not None else ():
            hook(to_erase)
        to_erase._unlink()
        to_erase._erased = True
        self._len -= 1
        to_erase._set_arguments((), {})

    @contextmanager
    def _inserting(self, insert):
        before, self._insert = self._insert, insert
        try:
            yield
        finally:
            self._insert = before

    def inserting_before(self, n=None):
        """A block in which new nodes go before `n`; without it, to the beginning."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Graph.inserting_before: the node is of another graph")
        return self._inserting(n.prepend)

    def inserting_after(self, n=None):
        """A block in which every new node goes right after `n`, so the last made comes first; without it, to the end."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Graph.inserting_after: the node is of another graph")
        return self._inserting(n.append)

    def placeholder(self, name, type_expr=None, default_value=...):
        """Add an input; without a default it must be given. Placeholders come first in a graph."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name, type_expr=None):
        """Add a read of a parameter, buffer or module of the owner, by its dotted path."""
        owner = self._owning_module
        if owner is not None and not _has_attribute(owner, qualified_name):
            warnings.warn(
                f"Graph.get_attr: the owning module has no {qualified_name!r}; add it with add_submodule or register_buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name, args=None, kwargs=None, type_expr=None):
        """Add a call of a submodule of the owner, by its dotted path."""
        owner = self._owning_module
        if owner is not None and not _has_attribute(owner, module_name):
            warnings.warn(
                f"Graph.call_module: the owning module has no {module_name!r}; add it with add_submodule",
                stacklevel=2,
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name, args=None, kwargs=None, type_expr=None):
        """Add a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None):
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def node_copy(self, node, arg_transform=lambda x: x):
        """Add a copy of a node, maybe of another graph; `arg_transform` maps the nodes that it reads to nodes here."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, dict(kwargs), node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def output(self, result, type_expr=None):
        """Add the node that says what the graph gives: nested nodes and constants."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def output_node(self):
        """The output node."""
        return next(iter(self.find_nodes(op="output")))

    def python_code(self, root_module, *, verbose=False, **_):
        """The graph as source of Python: a PythonCode with ``src`` and ``globals``; `root_module` is how the source names the owner."""
        namespace = _Namespace()
        before = {n: n._repr_fn for n in self.nodes}
        for node in before:  # names of globals must not hide names of nodes
            node._repr_fn = lambda n: namespace.create_name(n.name, n)
        try:
            return self._codegen._gen_python_code(self.nodes, root_module, namespace, verbose=verbose)  # fmt: skip
        finally:
            for node, shown in before.items():
                node._repr_fn = shown

    def process_inputs(self, *args):
        """Arguments of the function as the inputs of the graph."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out):
        """What the graph gives as the function gives it."""
        return self._codegen.process_outputs(out)

    def set_codegen(self, codegen):
        """Write the code with another generator."""
        self._codegen = codegen

    def __str__(self):
        lines = (node.format_node() for node in self.nodes)
        return "graph():" + "".join(f"\n    {line}" for line in lines if line is not None)

    def print_tabular(self):
        """Print the nodes as a table: kind, name, target, args, kwargs."""
        head = ("opcode", "name", "target", "args", "kwargs")
        rows = [tuple(map(str, (n.op, n.name, n.target, n.args, n.kwargs))) for n in self.nodes]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        for row in (head, tuple("-" * w for w in widths), *rows):
            print("  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip())

    def lint(self):
        """Check the graph: nodes read only what is before them, names are used once, targets exist in the owner.

        Raises RuntimeError that says which node is wrong.
        """
        seen, names = set(), set()

        def check(arg, node):
            if arg.graph is not self:
                raise RuntimeError(f"Graph.lint: {node} reads {arg}, which is of another graph")
            if arg not in seen:
                raise RuntimeError(f"Graph.lint: {node} reads {arg} before it has been defined; move it behind")  # fmt: skip

        owner = self._owning_module
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Graph.lint: {node} is of another graph")
            map_arg((node.args, node.kwargs), lambda n, node=node: check(n, node))
            if node.name in names:
                raise RuntimeError(f"Graph.lint: two nodes are named {node.name!r}")
            seen.add(node)
            names.add(node.name)
            if owner is not None and node.op in ("get_attr", "call_module"):
                if not _has_attribute(owner, node.target):
                    raise RuntimeError(f"Graph.lint: {node} names {node.target!r}; the owning module has no such attribute")  # fmt: skip
                if node.op == "call_module":
                    module = _follow(owner, node.target)
                    if not isinstance(module, lamina.nn.Module):
                        raise RuntimeError(f"Graph.lint: {node} calls {node.target!r}, which is no module; got {type(module).__name__}")  # fmt: skip

    def eliminate_dead_code(self, is_impure_node=None):
        """Take out the nodes that nobody reads and that do nothing else (see Node.is_impure).

        `is_impure_node(node)`, where given, decides instead which nodes stay. Returns whether the graph changed.
        """
        self.lint()
        impure = is_impure_node or Node.is_impure
        changed = False
        for node in reversed(self.nodes):
            if not node.users and node.op not in ("placeholder", "output") and not impure(node):
                self.erase_node(node)
                changed = True
        return changed


def _follow(module, path):
    for part in path.split("."):
        module = getattr(module, part)
    return module


def _has_attribute(module, path):
    try:
        _follow(module, path)
    except AttributeError:
        return False
    return True


# Named here in PyTorch; generated code and passes look for it.
_get_qualified_name = _get_qualified_name
