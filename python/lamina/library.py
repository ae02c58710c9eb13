"""Operators and kernels made in Python.

`Library` adds schemas and kernels to the dispatcher, `custom_op` makes an operator of a function, `opcheck` tests that what a schema
says is true.
"""

import inspect
import types
import typing

from lamina import _C, _dispatch_keys  # noqa: F401
from lamina._opcheck import _UTILS, OpCheckError, opcheck  # noqa: F401

_KEYS = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}
_fakes = {}  # by full name
_RESERVED = ("prim", "aten")


def fallthrough_kernel():
    """As a kernel: the key lets calls through."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Library:
    """Schemas and kernels of a namespace; they are gone when it is destroyed.

    Parameters
    ----------
    ns : str
        The namespace.
    kind : str
        "DEF" for a new namespace, "FRAGMENT" to add to one, "IMPL" for kernels only.
    dispatch_key : str
        The key of kernels where `impl` names none.
    """

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError("Unsupported kind: ", kind)
        if ns in _RESERVED and kind in ("DEF", "FRAGMENT"):
            raise ValueError(
                f"{ns} is a reserved namespace. Please try creating a library with another name."
            )
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._handles = []
        self._impls = set()
        self._defined = []
        self._rules = []

    def define(self, schema, alias_analysis="", *, tags=()):
        """Add an operator: ``lib.define("mul2(Tensor x, int n=2) -> Tensor")``; returns its name.

        Raises RuntimeError where the schema is malformed or the operator exists.
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise RuntimeError("Library.define: a library of kind IMPL has kernels only")
        self._handles.append(_C._library_define(self.ns, schema.strip()))
        name = schema.strip().partition("(")[0]
        self._defined.append(f"{self.ns}::{name}")
        return name

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=False):
        """Add a kernel: a function of the operator's arguments, or `fallthrough_kernel`."""
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        name = _name_of(op_name)
        name = name if "::" in name else f"{self.ns}::{name}"
        if name.partition("::")[0] != self.ns:
            raise RuntimeError(f"Library.impl: {name} is not in the namespace {self.ns}")
        if (name, key) in self._impls and not allow_override:
            raise RuntimeError(
                "This is not allowed since there's already a kernel registered from python overriding "
                f"{name}'s behavior for {key} dispatch key and {self.ns} namespace."
            )
        kernel = None if fn is fallthrough_kernel else fn
        if with_keyset and kernel is not None:
            inner = kernel

            def kernel(*args, **kwargs):
                return inner(key, *args, **kwargs)

        self._handles.append(_C._library_impl(self.ns, name, key, kernel))
        self._impls.add((name, key))

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        """Add a kernel for every operator that has none of its own at a key.

        Parameters
        ----------
        fn : callable
            ``fn(op, *args, **kwargs)`` with the overload that was called, or `fallthrough_kernel`.
        dispatch_key : str
            The key; the library's own by default.
        with_keyset : bool
            Its name is given as well, first.

        Raises RuntimeError unless the library's namespace is ``_``, for all. What `fn` calls with the same tensors comes back to it
        where the key is not excluded.
        """
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        key = dispatch_key or self.dispatch_key
        if not key:
            raise RuntimeError("Library.fallback: a dispatch key is needed")
        if self.ns != "_":
            raise RuntimeError(
                "Library.fallback: a kernel of all operators belongs to a library of the namespace '_'; "
                f"got {self.ns!r}"
            )
        if ("_", key) in self._impls:
            raise RuntimeError(
                "This is not allowed since there's already a kernel registered from python overriding "
                f"the fallback of the {key} dispatch key."
            )
        kernel = None if fn is fallthrough_kernel else fn
        if with_keyset and kernel is not None:

            def kernel(op, *args, **kwargs):
                return fn(key, op, *args, **kwargs)

        self._handles.append(_C._library_impl(self.ns, "", key, kernel))
        self._impls.add(("_", key))

    def _register_fake(self, op_name, fn, _stacklevel=1, *, allow_override=False):
        self.impl(op_name, fn, "Meta", allow_override=allow_override)
        _fakes[f"{self.ns}::{_name_of(op_name)}"] = fn

    def _destroy(self):
        from lamina._ops_namespace import forget

        for handle in reversed(self._handles):
            _C._library_remove(handle)
        for name in self._defined:
            forget(name)
        for op, kind in self._rules:
            rules = _C._torch_dispatch_rules.get(op, {})
            rules.pop(kind, None)
            if not rules:
                _C._torch_dispatch_rules.pop(op, None)
        self._rules.clear()
        self._handles.clear()
        self._impls.clear()
        self._defined.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._destroy()

    def __del__(self):
        if getattr(self, "_handles", None) and _C is not None:
            try:
                self._destroy()
            except Exception:  # at the end of the process
                pass

    def __repr__(self):
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"


def _scoped_library(*args, **kwargs):
    """A library for the length of a block."""
    return Library(*args, **kwargs)


def _name_of(op):
    if isinstance(op, str):
        return op
    if isinstance(op, CustomOpDef):
        return op._qualname
    if hasattr(op, "_full_name"):
        return op._full_name
    return op._qualified_op_name


_kept = {}  # libraries of the functions below, by namespace


def _library_for(name, lib=None):
    if lib is not None:
        return lib
    ns = name.partition("::")[0]
    return _kept.setdefault(ns, Library(ns, "FRAGMENT" if ns not in _RESERVED else "IMPL"))


def define(qualname, schema, *, lib=None, tags=()):
    """Add an operator: ``define("mylib::sin", "(Tensor x) -> Tensor")``. As a decorator the function is its kernel."""
    if not isinstance(qualname, str) or "::" not in qualname:
        raise ValueError(f"define: expected a name such as mylib::sin; got {qualname!r}")
    library = _library_for(qualname, lib)
    library.define(qualname.partition("::")[2] + schema)


def _keys_of(kinds):
    if kinds in (None, "default"):
        return ["CompositeExplicitAutograd"]
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    for kind in kinds:
        if kind not in _KEYS and kind not in (
            "CompositeImplicitAutograd",
            "CompositeExplicitAutograd",
        ):
            raise ValueError(f"unknown device type {kind!r}; expected one of {sorted(_KEYS)}")
    return [_KEYS.get(k, k) for k in kinds]


def impl(qualname, types, func=None, *, lib=None):  # noqa: A002
    """Add a kernel for device types ("cpu", "default", ...), or for a dispatch key; also a decorator."""
    name = _name_of(qualname)
    if isinstance(types, str) and types not in (*_KEYS, "default"):
        keys = [types]
    else:
        keys = _keys_of(types)

    def register(f):
        for key in keys:
            _library_for(name, lib).impl(name, f, key)
        return f

    return register if func is None else register(func)


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Add a kernel for device types to an operator; also a decorator."""
    if isinstance(op, CustomOpDef):
        return op.register_kernel(device_types, func)
    return impl(op, device_types or "default", func, lib=lib)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=False):
    """Say what results look like, for tensors without memory; also a decorator."""
    name = _name_of(op)

    def register(f):
        if isinstance(op, CustomOpDef):
            return op.register_fake(f)
        _library_for(name, lib)._register_fake(name.partition("::")[2], f)
        return f

    return register if func is None else register(func)


impl_abstract = register_fake


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """Say how an operator is differentiated.

    Parameters
    ----------
    backward : callable
        ``backward(ctx, *grads)`` gives a gradient, or None, for each argument.
    setup_context : callable
        ``setup_context(ctx, inputs, output)`` saves what backward needs.
    """
    if isinstance(op, CustomOpDef):
        op.register_autograd(backward, setup_context=setup_context)
        return
    name = _name_of(op)
    _library_for(name, lib).impl(name, _autograd_kernel(name, backward, setup_context), "Autograd")


def register_vmap(op, func=None, /, *, lib=None):
    """Say what an operator does inside vmap; also a decorator.

    Parameters
    ----------
    op : str, OpOverload or CustomOpDef
    func : callable
        ``func(info, in_dims, *args)``: `info` has ``batch_size`` and ``randomness``, `in_dims` says for each argument where
        its samples lie, None where it has none. It gives (output, out_dims).
    lib : Library
        The rule goes with it.

    Without a rule the operator runs once for each sample.
    """
    name = _name_of(op)

    def register(f):
        def kernel(*args, **kwargs):
            from lamina.func import _vmap

            return _vmap.call_rule(f, name, args, kwargs)

        if isinstance(op, CustomOpDef):
            op._lib.impl(op._name, kernel, "FuncTorchBatched", allow_override=True)
        else:
            _library_for(name, lib).impl(name, kernel, "FuncTorchBatched", allow_override=True)
        return f

    return register if func is None else register(func)


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None):
    """Say what an operator does for one class: a tensor subclass, or a TorchDispatchMode.

    Parameters
    ----------
    op : str, OpOverload or CustomOpDef
    torch_dispatch_class : type
        Exactly this class; subclasses of it have rules of their own.
    func : callable
        ``func(cls_or_mode, op, types, args, kwargs)``, in place of the class's ``__torch_dispatch__``. Without it the result is a decorator.
    lib : Library
        The rule goes with it.

    Raises RuntimeError where there is a rule already.
    """
    from lamina._ops_namespace import overload

    if not isinstance(torch_dispatch_class, type):
        raise ValueError(
            f"register_torch_dispatch: expected a class; got {type(torch_dispatch_class).__name__}"
        )
    op = overload(_name_of(op))

    def register(f):
        rules = _C._torch_dispatch_rules.setdefault(op, {})
        if torch_dispatch_class in rules:
            raise RuntimeError(
                f"{torch_dispatch_class} already has a `__torch_dispatch__` registration for {op}"
            )
        rules[torch_dispatch_class] = f
        if lib is not None:
            lib._rules.append((op, torch_dispatch_class))
        return f

    return register if func is None else register(func)


class _Below:
    """A block below autograd."""

    def __enter__(self):
        self.before = _C._set_excluded_keys(0)
        _C._set_excluded_keys(self.before | _C._autograd_key_bits())

    def __exit__(self, *_):
        _C._set_excluded_keys(self.before)


def _autograd_kernel(name, backward, setup_context):
    from lamina import autograd
    from lamina._ops_namespace import overload
    from lamina.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

    def no_backward(ctx, *grads):
        raise RuntimeError(
            f"Trying to backward through {overload(name)} but no autograd formula was registered. "
            "Please use register_autograd to add one."
        )

    def kernel(*args, **kwargs):
        op = overload(name)
        leaves, spec = tree_flatten((args, kwargs))
        needs = _C.is_grad_enabled() and any(
            isinstance(x, _C.Tensor) and x.requires_grad for x in leaves
        )
        if not needs:
            with _Below():
                return op(*args, **kwargs)
        given = _with_defaults(op._schema, args, kwargs)

        class Recorded(autograd.Function):
            @staticmethod
            def forward(ctx, *flat):
                own_args, own_kwargs = tree_unflatten(list(flat), spec)
                with _Below():
                    result = op(*own_args, **own_kwargs)
                if setup_context is not None:
                    keyword_only = {
                        a.name: given[1][a.name] for a in op._schema.arguments if a.kwarg_only
                    }
                    extra = {"keyword_only_inputs": keyword_only} if keyword_only else {}
                    setup_context(ctx=ctx, inputs=given[0], output=result, **extra)
                written = [
                    own_args[i]
                    for i, a in enumerate(op._schema.arguments[: len(own_args)])
                    if a.is_write
                ]
                if written:
                    ctx.mark_dirty(*written)
                return tuple(result) if isinstance(result, list) else result

            @staticmethod
            def backward(ctx, *grads):
                found = (backward or no_backward)(ctx, *grads)
                found = found if isinstance(found, tuple) else (found,)
                # One gradient an argument; lists have lists, and defaults that were not given are left out.
                found = list(found) + [None] * (len(args) - len(found))
                flat = []
                for value, gradient in zip(args, found):
                    count = len(tree_leaves(value))
                    if isinstance(value, (list, tuple)):
                        flat += list(gradient) if gradient is not None else [None] * count
                    else:
                        flat.append(gradient)
                flat += [None] * (len(leaves) - len(flat))
                return tuple(flat)

        Recorded.__name__ = Recorded.__qualname__ = "Generated" + name.replace("::", "_")
        return Recorded.apply(*leaves)

    return kernel


def _with_defaults(schema, args, kwargs):
    positional, named = list(args), dict(kwargs)
    for i, a in enumerate(schema.arguments):
        if a.kwarg_only:
            named.setdefault(a.name, a.default_value)
        elif i >= len(positional):
            positional.append(named.pop(a.name, a.default_value))
    return tuple(positional), named


# ---- operators from functions ---------------------------------------------------------------------

_TYPE_NAMES = {
    _C.Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    _C.device: "Device",
    _C.dtype: "ScalarType",
}


def _type_text(annotation):
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in _TYPE_NAMES:
        return _TYPE_NAMES[annotation]
    if origin in (typing.Union, types.UnionType):
        inner = [p for p in parts if p is not type(None)]
        if set(inner) == {int, float, bool} or set(inner) == {int, float}:
            text = "Scalar"
        elif len(inner) == 1:
            text = _type_text(inner[0])
        else:
            raise ValueError(f"infer_schema: a union has no type in a schema: {annotation}")
        return text + "?" * (type(None) in parts)
    import collections.abc

    if origin in (list, tuple, collections.abc.Sequence) and parts:
        return _type_text(parts[0]) + "[]"
    raise ValueError(f"infer_schema: the type {annotation} cannot stand in a schema")


def infer_schema(prototype_function, /, *, mutates_args, op_name=None):
    """The schema of a function, from its annotations: ``(Tensor x, SymInt n=2) -> Tensor``.

    `mutates_args` names the arguments that are written to, or is "unknown". Raises ValueError where an annotation is missing or has no
    type in a schema.
    """
    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)
    if mutates_args != "unknown":
        for name in mutates_args:
            if name not in signature.parameters:
                raise ValueError(f"infer_schema: mutates_args names {name!r}, which is no argument")
    parts, star = [], False
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    for name, p in signature.parameters.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise ValueError("infer_schema: *args and **kwargs have no place in a schema")
        if name not in hints:
            raise ValueError(f"infer_schema: Parameter {name} must have a type annotation.")
        text = _type_text(hints[name])
        written = text.startswith("Tensor") if mutates_args == "unknown" else name in mutates_args
        if written:
            if not text.startswith("Tensor"):
                raise ValueError(f"infer_schema: {name} is written to and no Tensor")
            text = text.replace("Tensor", f"Tensor({next(letters)}!)", 1)
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        default = ""
        if p.default is not p.empty:
            default = "=" + (f'"{p.default}"' if isinstance(p.default, str) else str(p.default))
            if isinstance(p.default, _C.dtype):
                default = "=" + str(p.default).removeprefix("torch.")
        parts.append(f"{text} {name}{default}")
    returned = hints.get("return", inspect.Signature.empty)
    if returned is inspect.Signature.empty:
        raise ValueError("infer_schema: No return type annotation was provided. Please add one.")
    if returned is type(None):
        result = "()"
    elif typing.get_origin(returned) is tuple:
        result = "(" + ", ".join(_type_text(t) for t in typing.get_args(returned)) + ")"
    else:
        result = _type_text(returned)
    return f"{op_name or ''}({', '.join(parts)}) -> {result}"


class CustomOpDef:
    """An operator made of a function; call it like the function."""

    def __init__(self, namespace, name, schema, fn, mutates_args, tags=None):
        self._namespace, self._name = namespace, name
        self._qualname = f"{namespace}::{name}"
        self._schema = schema
        self._init_fn = fn
        self._lib = Library(namespace, "FRAGMENT")
        self._lib.define(name + schema)
        self._backward = self._setup_context = None
        self._set_autograd()
        self.__name__, self.__doc__ = name, fn.__doc__

    def _set_autograd(self):
        self._lib.impl(
            self._name,
            _autograd_kernel(self._qualname, self._backward, self._setup_context),
            "Autograd",
            allow_override=True,
        )

    @property
    def _opoverload(self):
        from lamina._ops_namespace import overload

        return overload(self._qualname)

    def __call__(self, *args, **kwargs):
        return self._opoverload(*args, **kwargs)

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types, fn=None, /):
        """Add a kernel for device types; also a decorator."""

        def register(f):
            def kernel(*args, **kwargs):
                result = f(*args, **kwargs)
                results = result if isinstance(result, (tuple, list)) else (result,)
                for given in (*args, *kwargs.values()):
                    if isinstance(given, _C.Tensor) and any(r is given for r in results):
                        raise RuntimeError(
                            f"{self._qualname} (with implementation in {f.__module__}): The output of "
                            "this custom operator (1) must not also be an input to this custom "
                            "operator and (2) may not alias any inputs; return a clone"
                        )
                return result

            for key in _keys_of(device_types):
                self._lib.impl(self._name, kernel, key, allow_override=True)
            return f

        return register if fn is None else register(fn)

    def register_fake(self, fn, /):
        """Say what results look like, for tensors without memory; also a decorator."""
        self._lib.impl(self._name, fn, "Meta", allow_override=True)
        _fakes[self._qualname] = fn
        return fn

    def register_autograd(self, backward, /, *, setup_context=None):
        """Say how it is differentiated; see `lamina.library.register_autograd`."""
        if any(a.is_write for a in self._opoverload._schema.arguments):
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self._qualname}: it "
                "writes to its arguments"
            )
        self._backward, self._setup_context = backward, setup_context
        self._set_autograd()

    def register_vmap(self, func=None):
        """Say what it does inside vmap; see `lamina.library.register_vmap`."""
        return register_vmap(self, func)

    def register_autocast(self, device_type, cast_inputs):
        """Accepted: mixed precision is not part of this release."""

    def set_kernel_enabled(self, device_type, enabled=True):
        """Raises NotImplementedError."""
        raise NotImplementedError("set_kernel_enabled is not part of this release of Lamina")


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """A decorator that makes an operator of a function.

    Parameters
    ----------
    name : str
        ``"mylib::name"``.
    mutates_args : iterable of str
        The arguments it writes to, or "unknown".
    device_types : str or sequence of str
        Where the function is the kernel; None means everywhere.
    schema : str
        ``"(Tensor x) -> Tensor"``; None reads the annotations.
    """
    if "::" not in name:
        raise ValueError(f"custom_op: expected a name such as mylib::sin; got {name!r}")

    def make(f):
        text = schema or infer_schema(f, mutates_args=mutates_args)
        namespace, _, short = name.partition("::")
        result = CustomOpDef(namespace, short, text, f, mutates_args, tags)
        result.register_kernel(device_types, f)
        return result

    return make if fn is None else make(fn)


def triton_op(name, fn=None, /, *, mutates_args, schema=None):
    """As custom_op."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel, /):
    """The kernel itself."""
    return triton_kernel


def get_kernel(op, dispatch_key):
    """A function that runs the operator's kernel for a key."""
    from lamina._ops_namespace import overload

    return overload(_name_of(op))


def get_ctx():
    """For fake kernels whose result sizes depend on values. Raises RuntimeError: sizes are numbers here."""
    raise RuntimeError("get_ctx: sizes that depend on values have no fake kernel in this release")


__all__ = [
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "get_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]
