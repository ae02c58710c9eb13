"""Symbolic tracing: a module or function is run once with proxies, and what it does is the graph."""

import builtins
import functools
import inspect
import math
import sys
import types
from collections import OrderedDict

import lamina
from lamina import _C
from lamina._settings import _assert
from lamina.fx.graph import Graph
from lamina.fx.graph_module import GraphModule
from lamina.fx.proxy import ParameterProxy, Proxy, Scope, TracerBase
from lamina.nn import Module, Parameter

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "is_fx_symbolic_tracing", "is_fx_tracing", "symbolic_trace", "wrap"]  # fmt: skip

# Functions that a tracer does not look into: (id of a module's globals, name) -> those globals.
_wrapped_fns_to_patch = {}
_wrapped_methods_to_patch = []
_proxyable_classes = {}
_tracing = 0


def is_fx_symbolic_tracing():
    """Whether a tracer is running."""
    return _tracing > 0


is_fx_tracing = is_fx_symbolic_tracing


class PHBase:
    """The type of PH: an argument in `concrete_args` that stays an input."""

    def __repr__(self):
        return "PH"


PH = PHBase()


class ProxyableClassMeta(type):
    """A metaclass: an object made with proxies while tracing becomes a call of its class in the graph."""

    def __init__(cls, name, bases, attrs):
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args, **kwargs):
        instance = cls.__new__(cls)
        if not is_fx_symbolic_tracing():
            cls.__init__(instance, *args, **kwargs)
            return instance
        found = {}
        _each_proxy((args, kwargs), lambda p: found.setdefault(p.tracer))
        if not found:
            cls.__init__(instance, *args, **kwargs)
            return instance
        if len(found) > 1:
            raise RuntimeError(f"{cls.__name__}: its arguments are proxies of different tracers")
        return next(iter(found)).create_proxy("call_function", cls, args, kwargs)


def _each_proxy(value, visit):
    if isinstance(value, Proxy):
        visit(value)
    elif isinstance(value, (tuple, list)):
        for e in value:
            _each_proxy(e, visit)
    elif isinstance(value, dict):
        for e in value.values():
            _each_proxy(e, visit)
    elif isinstance(value, slice):
        _each_proxy((value.start, value.stop, value.step), visit)


def _first_proxy(*values):
    found = []
    _each_proxy(values, found.append)
    return found[0] if found else None


def wrap(fn_or_name):
    """Mark a function that a tracer does not look into: a call of it with proxies becomes a node.

    Parameters
    ----------
    fn_or_name : str or callable
        A function at the top of the calling module, or the name of one there (or of a builtin, such as "len").

    Gives back its argument, so it works as a decorator. Raises RuntimeError for anything else and NotImplementedError where it is not
    called at the top of a module.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            f"wrap: expected a global function or the name of one; got {type(fn_or_name).__name__}"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap: must be called at the top level of a module")
    _wrapped_fns_to_patch[(id(frame.f_globals), name)] = frame.f_globals
    return fn_or_name


class _Patcher:
    """Changes that are taken back in reverse order."""

    def __init__(self):
        self.undo = []
        self.visited = set()

    def attribute(self, owner, name, value):
        self.undo.append((setattr, owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def item(self, table, name, value):
        if name in table:
            self.undo.append((dict.__setitem__, table, name, table[name]))
        else:
            self.undo.append((lambda t, n, _: t.pop(n, None), table, name, None))
        table[name] = value

    def revert(self):
        while self.undo:
            change, owner, name, value = self.undo.pop()
            change(owner, name, value)


def _wrapped(fn):
    """A function that becomes a node where it is called with proxies, its arguments as they were given."""

    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        proxy = _first_proxy(args, kwargs)
        if proxy is None:
            return fn(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", fn, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return wrapped


def _whole(fn):
    """The same for functions of nn.functional: what has a default is written out as a keyword."""
    signature = []

    @functools.wraps(fn)
    def whole(*args, **kwargs):
        proxy = _first_proxy(args, kwargs)
        if proxy is None:
            return fn(*args, **kwargs)
        if not signature:
            signature.append(inspect.signature(fn))
        positional, named = args, dict(kwargs)
        parameters = signature[0].parameters.values()
        if all(p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in parameters):
            bound = signature[0].bind(*args, **kwargs)
            bound.apply_defaults()
            positional = tuple(bound.arguments[p.name] for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD)  # fmt: skip
            named = {p.name: bound.arguments[p.name] for p in parameters if p.default is not p.empty or p.kind is p.KEYWORD_ONLY}  # fmt: skip
        return proxy.tracer.create_proxy("call_function", fn, positional, named)

    return whole


@functools.lru_cache(maxsize=1)
def _functional():
    """The functions of nn.functional that are written in Python, each with what stands for it while tracing.

    Their bodies look into their arguments, so they are recorded whole. `tanh` and `sigmoid` are the methods of their names.
    """
    names = vars(lamina.nn.functional)
    return {
        value: _whole(value)
        for name, value in names.items()
        if isinstance(value, types.FunctionType)
        and not name.startswith("_")
        and name not in ("tanh", "sigmoid")
    }


def _assert_is_none(value, msg):
    if value is not None:
        raise AssertionError(msg)


class Tracer(TracerBase):
    """Makes the graph of a module or function.

    Parameters
    ----------
    autowrap_modules : tuple of module
        Modules whose functions become nodes where they are called with proxies.
    autowrap_functions : tuple of callable
        Functions that do, where the traced code has them among its globals.
    param_shapes_constant : bool
        Whether the shapes of parameters are numbers in the graph instead of nodes.

    Override `is_leaf_module`, `call_module`, `create_proxy`, `create_arg`, `path_of_module` or `getattr` to trace otherwise.
    """

    def __init__(
        self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False
    ):
        super().__init__()
        self._autowrap_function_ids = {id(f) for m in autowrap_modules for n, f in vars(m).items() if callable(f) and not n.startswith("_")}  # fmt: skip
        self._autowrap_function_ids.update(id(f) for f in autowrap_functions)
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.tensor_attrs = {}

    def is_leaf_module(self, m, module_qualified_name):
        """Whether a module is one node rather than traced into: those of lamina.nn are, but for Sequential."""
        home = m.__module__
        own = home.startswith(("lamina.nn", "torch.nn", "torch.ao.nn"))
        return own and not isinstance(m, lamina.nn.Sequential)

    def path_of_module(self, mod):
        """The dotted path of a submodule of the root. Raises NameError where there is none."""
        path = (self.submodule_paths or {}).get(mod)
        if path is None:
            path = next((n for n, m in self.root.named_modules() if m is mod), None)
        if path is None:
            raise NameError(
                f"the module {type(mod).__name__} is not installed as a submodule of the root"
            )
        return path

    def call_module(self, m, forward, args, kwargs):
        """Called for every call of a module: makes a node of a leaf and runs `forward` of another; gives the result."""
        path = self.path_of_module(m)
        before, self.scope = self.scope, Scope(path, type(m))
        key = f"{path}@{len(self.module_stack)}" if path in self.module_stack else path
        self.module_stack[key] = (path, type(m))
        try:
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            del self.module_stack[key]
            self.scope = before

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        """Called for every parameter, buffer and submodule that a module is asked for; parameters become proxies."""
        kinds = [(Parameter, self.root.named_parameters)]
        if self.proxy_buffer_attributes:
            kinds.append((_C.Tensor, self.root.named_buffers))
        for kind, named in kinds:
            if not isinstance(attr_val, kind):
                continue
            for name, value in named():
                if value is attr_val:
                    if name not in parameter_proxy_cache:
                        # Overrides of create_proxy need not know the factory.
                        extra = {}
                        if self.param_shapes_constant:
                            extra["proxy_factory_fn"] = functools.partial(
                                self._parameter_proxy, name, attr_val
                            )
                        parameter_proxy_cache[name] = self.create_proxy(
                            "get_attr", name, (), {}, **extra
                        )
                    return parameter_proxy_cache[name]
        return attr_val

    def _parameter_proxy(self, name, param, node):
        return ParameterProxy(self, node, name, param)

    def get_fresh_qualname(self, prefix):
        """The first of prefix0, prefix1, ... that the root has no attribute of."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def create_arg(self, a):
        """A value as the argument of a node; parameters, buffers and modules of the root become reads of them, other tensors constants of it."""
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, Parameter):
            for name, value in self.root.named_parameters():
                if value is a:
                    return self.create_node("get_attr", name, (), {})
            if self.root_is_module:
                raise NameError(
                    "a parameter that is used is none of the root's: it cannot be named in the graph"
                )
        if isinstance(a, _C.Tensor):
            for name, value in self.root.named_buffers():
                if value is a:
                    return self.create_node("get_attr", name, (), {})
            name = self.tensor_attrs.get(id(a), (None,))[0]
            if name is None:
                name = self.get_fresh_qualname("_tensor_constant")
                self.tensor_attrs[id(a)] = (name, a)
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, Module):
            for name, value in self.root.named_modules():
                if value is a:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            # A named tuple is made in the graph, so that its reader gets the type.
            return self.create_node("call_function", type(a), tuple(map(self.create_arg, a)), {})
        if type(a) in _proxyable_classes:
            name = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """Inputs of the graph from a function's signature.

        Returns the function, such that it can be called with a flat list, and that list: the root first where `is_module`, then a proxy
        or the value in `concrete_args` for every parameter.
        """
        analyzed = inspect.unwrap(root_fn)
        code = analyzed.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames[:total])
        if is_module and not names:
            raise RuntimeError("``self`` argument cannot be part of *args expansion")
        args = [self.root] if is_module else []
        names = names[1:] if is_module else names
        parameters = inspect.signature(analyzed).parameters
        annotations = getattr(analyzed, "__annotations__", {})
        concrete = self._concrete(names, concrete_args)
        for name in names:
            parameter = parameters[name]
            default = () if parameter.default is inspect.Parameter.empty else (parameter.default,)
            if name in concrete and not isinstance(concrete[name], PHBase):
                args.append(self._specialized(name, concrete[name], default))
                continue
            shown = f"{name}_1" if name in concrete else name
            args.append(self.create_proxy("placeholder", shown, default, {}, type_expr=annotations.get(name)))  # fmt: skip
        position = total
        for flag, star in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
            if code.co_flags & flag:
                name = code.co_varnames[position]
                position += 1
                args.append(self.create_proxy("placeholder", star + name, (), {}, type_expr=annotations.get(name)))  # fmt: skip
        if position > code.co_argcount:
            root_fn = _with_flat_parameters(analyzed, position)
        return root_fn, args

    @staticmethod
    def _concrete(names, concrete_args):
        if isinstance(concrete_args, tuple):
            if len(concrete_args) != len(names):
                raise RuntimeError(f"trace: got {len(concrete_args)} concrete_args; expected {len(names)}, one for every parameter")  # fmt: skip
            return dict(zip(names, concrete_args, strict=True))
        return concrete_args or {}

    def _specialized(self, name, value, default):
        """The value of a parameter that is fixed; the graph keeps the input and checks it."""
        found = []
        _find_placeholders(value, found)
        if found:
            raise NotImplementedError(
                f"trace: concrete_args[{name!r}] holds PH inside a container; got {value!r}; expected a value or PH"
            )
        default = () if isinstance(value, _C.Tensor) else default
        proxy = self.create_proxy("placeholder", f"{name}_1", default, {})
        if value is None:
            message = f"{name} has been specialized to have value None but got another value"
            self.create_proxy("call_function", _assert_is_none, (proxy, message), {})
        elif isinstance(value, (bool, int, float, str)):
            message = f"{name} has been specialized to have value {value} but got another value"
            self.create_proxy("call_function", _assert, (proxy == value, message), {})
        return value

    def trace(self, root, concrete_args=None):
        """The graph of a module or function.

        Parameters
        ----------
        root : Module or callable
        concrete_args : dict or tuple, optional
            Values of parameters that are to be fixed while tracing, so that control flow may depend on them; PH leaves one an input.

        Raises TraceError where the program's flow depends on a proxy.
        """
        global _tracing
        self.root_is_module = isinstance(root, Module)
        if self.root_is_module:
            self.root = root
            fn = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {m: n for n, m in root.named_modules()}
        else:
            self.root, fn = Module(), root
            self.submodule_paths = {}
        self.graph = Graph(tracer_cls=type(self))
        if hasattr(fn, "__code__"):
            code = fn.__code__
            self.graph._co_fields = {
                "co_name": code.co_name,
                "co_filename": code.co_filename,
                "co_firstlineno": code.co_firstlineno,
            }
        self.tensor_attrs = {}
        self._collect_tensors(self.root, "")
        patcher = _Patcher()
        _tracing += 1
        try:
            flat, args = self.create_args_for_root(fn, self.root_is_module, concrete_args)
            self._patch(patcher, getattr(inspect.unwrap(fn), "__globals__", {}))
            result = self.create_arg(flat(*args))
            annotation = getattr(fn, "__annotations__", {}).get("return")
            self.create_node("output", "output", (result,), {}, type_expr=annotation)
        finally:
            patcher.revert()
            _tracing -= 1
            self.submodule_paths = None
        return self.graph

    def _collect_tensors(self, module, prefix):
        for name, value in vars(module).items():
            if isinstance(value, _C.Tensor):
                self.tensor_attrs[id(value)] = (prefix + name, value)
        for name, child in module.named_children():
            self._collect_tensors(child, f"{prefix}{name}.")

    def _patch(self, patcher, names):
        """What is different while the program runs with proxies."""
        call, look_up, cache = Module.__call__, Module.__getattr__, {}

        @functools.wraps(look_up)
        def module_getattr(module, attr):
            return self.getattr(attr, look_up(module, attr), cache)

        @functools.wraps(call)
        def module_call(module, *args, **kwargs):
            forward = getattr(module, "forward", None)
            self._patch_globals(patcher, getattr(inspect.unwrap(forward), "__globals__", {}))
            return self.call_module(module, lambda *a, **k: call(module, *a, **k), args, kwargs)

        patcher.attribute(Module, "__getattr__", module_getattr)
        patcher.attribute(Module, "__call__", module_call)
        for fn, stand_in in _functional().items():
            if getattr(lamina.nn.functional, fn.__name__, None) is fn:
                patcher.attribute(lamina.nn.functional, fn.__name__, stand_in)
        for (_, name), table in list(_wrapped_fns_to_patch.items()):
            original = table.get(name, getattr(builtins, name, None))
            if original is not None:
                patcher.item(table, name, _wrapped(original))
        for owner, name in _wrapped_methods_to_patch:
            patcher.attribute(owner, name, _wrapped_method(owner, name))
        self._patch_globals(patcher, names)
        for module in self._autowrap_search:
            self._patch_globals(patcher, vars(module))

    def _patch_globals(self, patcher, names):
        """Functions among a program's globals that are recorded whole."""
        if id(names) in patcher.visited or names is vars(lamina.nn.functional):
            return
        patcher.visited.add(id(names))
        whole = _functional()
        for name, value in list(names.items()):
            if id(value) in self._autowrap_function_ids and callable(value):
                patcher.item(names, name, _wrapped(value))
            elif isinstance(value, types.FunctionType) and value in whole:
                patcher.item(names, name, whole[value])


def _find_placeholders(value, found):
    if isinstance(value, PHBase):
        found.append(value)
    elif isinstance(value, (tuple, list)):
        for e in value:
            _find_placeholders(e, found)
    elif isinstance(value, dict):
        _find_placeholders(list(value.values()), found)


def _wrapped_method(owner, name):
    original = getattr(owner, name)

    @functools.wraps(original)
    def method(*args, **kwargs):
        proxy = _first_proxy(args, kwargs)
        if proxy is None:
            return original(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return method


def _with_flat_parameters(fn, count):
    """A function whose first `count` parameters, keyword-only ones, *args and **kwargs among them, are given by position."""
    code = fn.__code__
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    code = code.replace(co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=flags)  # fmt: skip
    return types.FunctionType(code, fn.__globals__, fn.__name__, None, fn.__closure__)


def symbolic_trace(root, concrete_args=None):
    """A GraphModule that does what a module or function does, with a graph that can be read and edited.

    Parameters
    ----------
    root : Module or callable
    concrete_args : dict or tuple, optional
        Values of parameters to fix; see Tracer.trace.

    Returns a GraphModule that shares parameters and submodules with `root`. Raises TraceError where the flow of the program depends on
    values that are not known while tracing.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
