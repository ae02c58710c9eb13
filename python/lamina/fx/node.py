"""Nodes: the single steps of a graph."""

import builtins
import copy
import types
from collections.abc import Callable
from typing import Any

import lamina
from lamina import _C, _lazy
from lamina._missing import peer_name
from lamina._settings import _assert
from lamina.fx.immutable_collections import immutable_dict, immutable_list

__all__ = ["Argument", "BaseArgumentTypes", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]  # fmt: skip

BaseArgumentTypes = (
    str | int | float | bool | complex | _C.dtype | _C.Tensor | _C.device | _C.memory_format | _C.layout
)  # fmt: skip
base_types = BaseArgumentTypes.__args__
Target = Callable[..., Any] | str

# Operators as they are written.
_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "truediv": "/", "mod": "%", "pow": "**", "lshift": "<<", "rshift": ">>",
    "and_": "&", "or_": "|", "xor": "^", "matmul": "@", "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=",
}  # fmt: skip
_INPLACE = ("add", "and_", "floordiv", "lshift", "mod", "mul", "matmul", "or_", "pow", "rshift", "sub", "truediv", "xor")  # fmt: skip
inplace_methods = {
    **{f"i{name.rstrip('_')}": f"{{}} {_BINARY[name]}= {{}}" for name in _INPLACE},
    "setitem": "{}[{}] = {}",
}

_KINDS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")
_side_effectful_functions = {_assert, print}


def has_side_effect(fn):
    """Mark a function as one whose calls must stay even where nothing reads their results; gives it back."""
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a, fn):
    """`fn` of every leaf of nested tuples, lists, dictionaries and slices, in the same nesting."""
    if isinstance(a, tuple):
        items = [map_aggregate(e, fn) for e in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list(map_aggregate(e, fn) for e in a)
    if isinstance(a, dict):
        return immutable_dict((k, map_aggregate(v, fn)) for k, v in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(e, fn) for e in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a, fn):
    """`fn` of every node in nested arguments; everything else stays."""
    return map_aggregate(a, lambda e: fn(e) if isinstance(e, Node) else e)


def _resolve(path):
    """What a dotted name below `torch` leads to, or None."""
    value = lamina
    for part in path.split(".")[1:]:
        value = getattr(value, part, None)
        if value is None:
            return None
    return value


def _same(value, func):
    """Whether a value is a function, or the stand-in of one whose module waits."""
    real = getattr(value, "__wrapped__", None)
    return value is func or (isinstance(real, _lazy._Real) and real.get() is func)


# Where functions of the extension are public; the first place that has one under its name is its home.
_HOMES = ("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special", "torch._C._nn", "torch._C")  # fmt: skip


def _get_qualified_name(func):
    """The full name of a function under the name `torch`, as generated code writes it."""
    name = func.__name__
    if getattr(builtins, name, None) is func:
        return name
    if isinstance(func, (types.MethodDescriptorType, types.WrapperDescriptorType)) and func is getattr(
        _C.Tensor, name, None
    ):  # fmt: skip
        return f"torch.Tensor.{name}"
    module = getattr(func, "__module__", None) or ""
    if module.partition(".")[0] in ("lamina", "torch"):
        for home in (*_HOMES, peer_name(module)):
            if _same(_resolve(f"{home}.{name}"), func):
                return f"{home}.{name}"
    if name == "<lambda>":
        name = getattr(func, "__qualname__", name).rpartition(".")[2]
    return f"{peer_name(module)}.{name}"


def _format_arg(arg):
    if isinstance(arg, Node):
        return f"%{arg.name}"
    if isinstance(arg, list):
        return f"[{', '.join(map(_format_arg, arg))}]"
    if isinstance(arg, tuple) and not hasattr(arg, "_fields"):
        inner = ", ".join(map(_format_arg, arg))
        return f"({inner},)" if len(arg) == 1 else f"({inner})"
    if isinstance(arg, dict):
        return f"{{{', '.join(f'{k}: {_format_arg(v)}' for k, v in arg.items())}}}"
    return str(arg)


def _type_repr(kind):
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias):
        if kind.__module__ == "builtins":
            return kind.__qualname__
        return f"{peer_name(kind.__module__)}.{kind.__qualname__}"
    if kind is ...:
        return "..."
    return kind.__name__ if isinstance(kind, types.FunctionType) else repr(kind)


class Node:
    """One step of a graph.

    Parameters
    ----------
    graph : Graph
    name : str
        The name of its result.
    op : str
        ``placeholder`` an input; ``get_attr`` a parameter, buffer or module of the owner; ``call_function``, ``call_method`` and
        ``call_module`` calls; ``output`` what the graph gives.
    target : str or callable
        The input's name, the attribute's dotted path, the function, the method's name, the module's dotted path, or "output".
    args, kwargs
        What it is called with; nodes in them stand for their results.
    return_type
        An annotation of the result, or None.

    ``users`` has the nodes that read the result, as the keys of a dictionary; ``meta`` is free for passes.
    Raises ValueError for another `op` and for a target of the wrong type.
    """

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None):
        if op not in _KINDS:
            raise ValueError(f"Node: unknown kind of node; got {op!r}; expected one of {_KINDS}")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node: a call_function node needs a callable; got {target!r} of type {type(target).__name__}"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node: a {op} node needs a str as its target; got {target!r} of type {type(target).__name__}"
            )
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users = {}
        self.meta = {}
        self._input_nodes = {}
        self._args, self._kwargs = (), immutable_dict()
        self._prev = self._next = self
        self._erased = False
        self._repr_fn = None
        self._set_arguments(tuple(args), dict(kwargs))

    @property
    def next(self):
        """The node after this one; after the last comes the graph's root, which is no step."""
        return self._next

    @property
    def prev(self):
        """The node before this one."""
        return self._prev

    @property
    def args(self):
        """Positional arguments, a tuple; assigning brings the users of other nodes up to date."""
        return self._args

    @args.setter
    def args(self, value):
        self._set_arguments(tuple(value), self._kwargs)

    @property
    def kwargs(self):
        """Keyword arguments."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value):
        self._set_arguments(self._args, dict(value))

    @property
    def all_input_nodes(self):
        """Nodes among the arguments, each once, in order."""
        return list(self._input_nodes)

    @property
    def stack_trace(self):
        """The lines of the program that made this node, where the tracer recorded them, or None."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace):
        self.meta["stack_trace"] = trace

    def _set_arguments(self, args, kwargs):
        for old in self._input_nodes:
            old.users.pop(self, None)
        found = {}

        def note(node):
            found.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args, self._kwargs = map_arg(args, note), map_arg(kwargs, note)
        self._input_nodes = found

    def prepend(self, x):
        """Move `x` to just before this node. Raises ValueError where it is of another graph."""
        if x.graph is not self.graph:
            raise ValueError("Node.prepend: the nodes are of different graphs")
        if x is self:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x):
        """Move `x` to just after this node."""
        if x is not self:
            self._next.prepend(x)

    def _unlink(self):
        self._prev._next, self._next._prev = self._next, self._prev

    def update_arg(self, idx, arg):
        """Give the positional argument of a number another value."""
        self.args = (*self._args[:idx], arg, *self._args[idx + 1 :])

    def insert_arg(self, idx, arg):
        """Put a positional argument in before that of a number. Raises IndexError outside the list."""
        if not 0 <= idx <= len(self._args):
            raise IndexError(f"Node.insert_arg: got {idx}; expected 0 to {len(self._args)}")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key, arg):
        """Give a keyword argument another value."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_all_uses_with(self, replace_with, delete_user_cb=None, *, propagate_meta=False):
        """Let every user of this node read another.

        Parameters
        ----------
        replace_with : Node
        delete_user_cb : callable, optional
            Says of a user whether it takes part; all do.
        propagate_meta : bool
            Whether the other node takes over `meta`, which must be empty there.

        Returns the list of users that now read `replace_with`.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Node.replace_all_uses_with: propagate_meta needs a node whose meta is empty"
                )
            replace_with.meta.update(self.meta)
        changed = [u for u in self.users if delete_user_cb is None or delete_user_cb(u)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input, new_input):
        """Read `new_input` wherever the arguments have `old_input`."""
        swap = lambda n: new_input if n is old_input else n  # noqa: E731
        self._set_arguments(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def is_impure(self, impure_random=True):
        """Whether the node does more than give a result: then it stays where nobody reads that.

        Such are inputs and outputs, calls that write into an argument which others see (functions and methods whose names end in an
        underscore, ``x[i] = y``, ``out=``), functions marked with `has_side_effect`, random numbers where `impure_random` is true, and
        modules with ``_is_impure``. ``inplace=True`` only permits to save memory: such a call goes with its result.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "get_attr":
            return False
        if self._writes_in_place():
            written = self._args[0] if self._args else self._kwargs.get("input")
            return not isinstance(written, Node) or _is_seen(written, self, self)
        if self.op == "call_module":
            return bool(getattr(self._module(), "_is_impure", False))
        if self.op == "call_method":
            return False
        if self._kwargs.get("out") is not None or self.target in _side_effectful_functions:
            return True
        return impure_random and getattr(self.target, "__name__", "") in _RANDOM

    def _module(self):
        """The module that a call_module node calls, or None."""
        owner = self.graph.owning_module
        try:
            return owner.get_submodule(self.target) if owner is not None else None
        except AttributeError:
            return None

    def _writes_in_place(self):
        """Whether the node is there to write into its first argument."""
        if self.op == "call_module":
            return False
        name = self.target if self.op == "call_method" else getattr(self.target, "__name__", "")
        if getattr(self.target, "__module__", "") == "_operator":
            return name in inplace_methods
        return name.endswith("_") and not name.endswith("__")

    def _may_be_view(self):
        """Whether the result may share memory with an argument."""
        if (
            self.op == "call_method"
            or self._writes_in_place()
            or self._kwargs.get("inplace") is True
        ):
            return True
        if self.op == "call_module":
            module = self._module()
            return getattr(module, "inplace", False) is True or type(module).__name__.startswith(_VIEW_MODULES)  # fmt: skip
        return getattr(self.target, "__name__", "") in _VIEWS

    def format_node(self, placeholder_names=None, maybe_return_typename=None):
        """The node as one line of text.

        With lists given, the names of inputs and the type of the output go into them, and such a node has no line (None).
        """
        kind = f"{_type_repr(self.type)} " if self.type is not None else ""
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(f"%{self.target}")
                return None
            default = f"(default={self._args[0]})" if self._args else ""
            return f"{head}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{head}[target={self.target}]"
        if self.op == "output":
            if self.type is not None and maybe_return_typename is not None:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self._args[0] if self._args else None}"
        return f"{head}[target={self._pretty_print_target(self.target)}](args = {_format_arg(self._args)}, kwargs = {_format_arg(self._kwargs)})"

    @staticmethod
    def _pretty_print_target(target):
        if isinstance(target, str):
            return target
        if getattr(target, "__module__", None) in ("builtins", "_operator") and hasattr(
            target, "__name__"
        ):
            return f"{target.__module__.removeprefix('_')}.{target.__name__}"
        return _get_qualified_name(target) if hasattr(target, "__name__") else repr(target)

    def __repr__(self):
        return self.name if self._repr_fn is None else self._repr_fn(self)

    def __lt__(self, other):
        """Whether this node comes earlier in the graph."""
        node = self._next
        while node is not self.graph._root:
            if node is other:
                return True
            node = node._next
        return False

    def __gt__(self, other):
        return other < self

    def __deepcopy__(self, memo):
        # A node lives in its graph: the copy is that of the graph's copy.
        copied = copy.deepcopy(self.graph, memo)
        return memo.get(id(self), copied._root)


def _is_seen(value, through, writer):
    """Whether what `writer` writes into a value is seen by others than the node it came through."""
    if value.op in ("placeholder", "get_attr"):
        return True
    others = [user for user in value.users if user is not through]
    if any(user > writer or (user._may_be_view() and user.users) for user in others):
        return True
    return value._may_be_view() and any(_is_seen(n, value, writer) for n in value.all_input_nodes)


_RANDOM = {"rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "randperm", "bernoulli", "multinomial", "normal", "poisson"}  # fmt: skip
# What may give back its argument or a view of it.
_VIEWS = {
    "getitem", "getattr", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "transpose", "permute", "movedim", "swapaxes", "t",
    "narrow", "select", "chunk", "split", "unbind", "broadcast_to", "ravel", "diagonal", "dropout", "detach", "real", "atleast_2d",
}  # fmt: skip
_VIEW_MODULES = ("Flatten", "Unflatten", "Identity", "Dropout", "DropPath", "StochasticDepth")

# What a node's arguments may be.
Argument = (
    tuple["Argument", ...] | list["Argument"] | dict[str, "Argument"] | slice | range | Node | BaseArgumentTypes | None
)  # fmt: skip
