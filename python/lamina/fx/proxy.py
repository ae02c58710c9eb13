"""Proxies: stand-ins for values that record what is done with them."""

import dataclasses
import dis
import enum
import operator
import sys

from lamina import _C
from lamina.fx._codegen import _BINARY, magic_methods
from lamina.fx.graph import Graph
from lamina.fx.node import Node, base_types, map_aggregate
from lamina.overrides import is_tensor_method_or_property

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "Scope", "TraceError", "TracerBase"]  # fmt: skip


class TraceError(ValueError):
    """The program asked a proxy for something that only a value has."""


@dataclasses.dataclass
class Scope:
    """The module whose forward is being traced: its path and type."""

    module_path: str
    module_type: object


class TracerBase:
    """What every tracer has: it makes nodes of calls and arguments of values."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        """Add a node to the graph; tracers override it to look at every node."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        stack = getattr(self, "module_stack", None)
        if stack:
            node.meta["nn_module_stack"] = dict(stack)
        if self.record_stack_traces:
            frame = self._find_user_frame()
            if frame is not None:
                node.stack_trace = (
                    f"File: {frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
                )
        return node

    def proxy(self, node):
        """A proxy of a node."""
        return Proxy(node, self)

    def create_proxy(
        self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None
    ):
        """Add a node, its arguments given as the program has them, and give a proxy of it."""
        args_, kwargs_ = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, args_, kwargs_, name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def _find_user_frame(self):
        frame = sys._getframe(1)
        while frame is not None and (
            frame.f_globals.get("__name__", "").partition(".")[0] in ("lamina", "torch")
        ):
            frame = frame.f_back
        return frame

    def create_arg(self, a):
        """A value of the program as the argument of a node: proxies become nodes, containers are copied.

        Raises NotImplementedError for a type that a graph cannot hold.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(e) for e in a]
            return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
        if isinstance(a, list):
            return [self.create_arg(e) for e in a]
        if isinstance(a, dict):
            return {self._key(k): self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(*(self.create_arg(e) for e in (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(a.start, a.stop, a.step)
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        if a is None or a is ... or isinstance(a, (*base_types, enum.Enum, Node)):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}; a graph cannot hold it")

    def _key(self, key):
        def check(e):
            if isinstance(e, Proxy):
                raise RuntimeError(
                    "the keys of a dictionary cannot be proxies: they must be known while tracing"
                )
            return e

        return map_aggregate(key, check)

    def to_bool(self, obj):
        """Called where a proxy is asked for its truth; raises TraceError."""
        raise TraceError(
            "symbolically traced variables cannot be used as inputs to control flow: their values are not known while tracing"
        )

    def iter(self, obj):
        """Called where a proxy is iterated: unpacking into a known number of names works, else TraceError."""
        frame = sys._getframe(1)
        while frame.f_globals.get("__name__") == __name__:
            frame = frame.f_back
        for step in dis.get_instructions(frame.f_code):
            if step.offset == frame.f_lasti:
                if step.opname == "UNPACK_SEQUENCE":
                    return (obj[i] for i in range(step.argval))
                break
        raise TraceError(
            "Proxy object cannot be iterated: its length is not known while tracing (a loop over it, or *args and **kwargs made of it)"
        )

    def keys(self, obj):
        """Called where the keys of a proxy are asked for, as ** does."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """A tracer that adds to a graph what is done with proxies of its nodes."""

    def __init__(self, graph):
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = {}


class Proxy:
    """Stands for the value of a node; operators, methods, attributes and functions called with it become nodes.

    Parameters
    ----------
    node : Node
    tracer : TracerBase, optional
        Who records; one that appends to the node's graph otherwise.
    """

    def __init__(self, node, tracer=None):
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self):
        return f"Proxy({self.node.name})"

    def __getattr__(self, k):
        if k in ("tracer", "node") or (k.startswith("__") and k.endswith("__")):
            raise AttributeError(k)
        return Attribute(self, k)

    def __deepcopy__(self, memo):
        return Proxy(self.node, self.tracer)

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self):
        return self.tracer.iter(self)

    def __abs__(self):
        return self.tracer.create_proxy("call_function", abs, (self,), {})

    def __bool__(self):
        return self.tracer.to_bool(self)

    def keys(self):
        """What ** asks for; see TracerBase.keys."""
        return self.tracer.keys(self)

    def __len__(self):
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default; to record the call, say torch.fx.wrap('len') at the top of the module"
        )

    @classmethod
    def __torch_function__(cls, orig_method, types, args=None, kwargs=None):
        args, kwargs = args or (), kwargs or {}
        tracers = {}
        map_aggregate(
            (args, kwargs), lambda a: tracers.setdefault(a.tracer) if isinstance(a, cls) else None
        )
        if len(tracers) > 1:
            raise RuntimeError(f"{orig_method}: its arguments are proxies of different tracers")
        tracer = next(iter(tracers))
        name = orig_method.__name__
        if is_tensor_method_or_property(orig_method):
            if name == "__get__":
                return Attribute(args[0], orig_method.__self__.__name__)
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy(
            "call_function", orig_method, args, kwargs, tracer.graph._target_to_str(name)
        )


class Attribute(Proxy):
    """An attribute of a proxy: a call of it is a method call, any other use a node of its own."""

    def __init__(self, root, attr):
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node = None

    @property
    def node(self):
        """The node that reads the attribute; it is made when somebody asks."""
        if self._node is None:
            self._node = self.tracer.create_proxy(
                "call_function", getattr, (self.root, self.attr), {}
            ).node
        return self._node

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """Stands for a parameter: its shape and size are known while tracing."""

    def __init__(self, tracer, node, name, param):
        super().__init__(node, tracer)
        if not isinstance(param, _C.Tensor):
            raise AssertionError(
                f"ParameterProxy: expected a parameter; got {type(param).__name__}"
            )
        self.param = param
        self.name = name

    def __repr__(self):
        return f"ParameterProxy({self.name})"

    @property
    def shape(self):
        """The parameter's shape."""
        return self.param.shape

    def size(self, *dim):
        """The parameter's shape, or one of its sizes."""
        return self.param.size(*dim)

    def dim(self):
        """The number of the parameter's dimensions."""
        return self.param.dim()

    @property
    def ndim(self):
        """The number of the parameter's dimensions."""
        return self.param.ndim

    def numel(self):
        """The number of the parameter's elements."""
        return self.param.numel()

    def nelement(self):
        """The number of the parameter's elements."""
        return self.param.nelement()


def _operator_method(target, reflected):
    def method(self, *args):
        operands = (*args, self) if reflected else (self, *args)
        return self.tracer.create_proxy("call_function", target, operands, {})

    return method


for _name in magic_methods:
    _plain = _name.rstrip("_")
    _target = getattr(operator, _name)
    setattr(Proxy, f"__{_plain}__", _operator_method(_target, False))
    if _name in _BINARY and _name not in ("eq", "ne", "lt", "gt", "le", "ge"):
        setattr(Proxy, f"__r{_plain}__", _operator_method(_target, True))
Proxy.__hash__ = object.__hash__
