"""Objects and modes that take calls over: __torch_function__ and what functions written in Python need for it."""

import functools
import types
import warnings
from contextlib import contextmanager

from lamina import _C

has_torch_function = _C._has_torch_function
has_torch_function_unary = _C._has_torch_function_unary
has_torch_function_variadic = _C._has_torch_function_variadic
_is_torch_function_mode_enabled = _C._is_torch_function_mode_enabled


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Let modes and arguments with __torch_function__ answer a call.

    Parameters
    ----------
    public_api : callable
        The function that was called, as users know it.
    relevant_args : sequence
        The arguments that may take the call over.

    Returns what the first handler gave that did not answer NotImplemented; raises TypeError where all did.
    """
    return _C._handle_torch_function(public_api, tuple(relevant_args), args, kwargs)


def wrap_torch_function(dispatcher):
    """A decorator that gives a function of Python the protocol; `dispatcher(*args)` gives the relevant arguments."""

    def wrap(function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return wrap


def is_tensor_like(inp):
    """Whether an object is a Tensor or has __torch_function__."""
    return type(inp) is _C.Tensor or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func):
    """Whether a function that a handler got is a method or a property of Tensor."""
    return func in _tensor_functions() or getattr(func, "__name__", "") in ("__get__", "__set__")


@functools.lru_cache(maxsize=1)
def _tensor_functions():
    return {f for f in vars(_C.Tensor).values() if callable(f)}


_NOT_OVERRIDABLE = {
    "Tensor", "TensorBase", "as_tensor", "asarray", "from_numpy", "frombuffer", "is_tensor",
    "manual_seed", "get_default_dtype", "set_default_dtype", "get_num_threads", "set_num_threads",
    "tensor", "is_grad_enabled", "promote_types", "can_cast",
}  # fmt: skip


@functools.lru_cache(maxsize=1)
def get_ignored_functions():
    """Functions of the API that never take part."""
    return {getattr(_C, n) for n in _NOT_OVERRIDABLE if hasattr(_C, n)}


@functools.lru_cache(maxsize=1)
def get_overridable_functions():
    """Functions and methods that __torch_function__ can take over, as lists by the module or class they are in."""
    import lamina

    table = {lamina: [], _C.Tensor: []}
    for name, value in vars(_C).items():
        if isinstance(value, types.BuiltinFunctionType) and not name.startswith("_"):
            if name not in _NOT_OVERRIDABLE:
                table[lamina].append(value)
    for place, functions in _C._submodule_functions.items():
        if not place.startswith("_"):
            table[getattr_path(lamina, place)] = list(functions.values())
    for name, value in vars(_C.Tensor).items():
        if name in ("__new__", "__class__", "__init__", "__torch_function__", "__hash__"):
            continue
        if isinstance(value, types.GetSetDescriptorType):
            table[_C.Tensor].append(value.__get__)
        elif callable(value):
            table[_C.Tensor].append(value)
    return table


def getattr_path(place, dotted):
    """An attribute of an attribute."""
    import importlib

    for part in dotted.split("."):
        if not hasattr(place, part):
            importlib.import_module(f"{place.__name__}.{part}")
        place = getattr(place, part)
    return place


def get_testing_overrides():
    """For each overridable function one that takes the same arguments and returns -1."""
    return {
        f: (lambda *args, **kwargs: -1)
        for group in get_overridable_functions().values()
        for f in group
    }


def resolve_name(f):
    """The full name of a function that a handler got, or None."""
    if isinstance(f, str):
        return f
    for place, functions in get_overridable_functions().items():
        if f in functions:
            owner = getattr(f, "__self__", None)
            short = f.__name__
            if isinstance(owner, types.GetSetDescriptorType):
                short = f"{owner.__name__}.{short}"
            name = (
                "torch.Tensor" if place is _C.Tensor else place.__name__.replace("lamina", "torch")
            )
            return f"{name}.{short}"
    return None


class TorchFunctionMode:
    """A block in which every call comes here first.

    Derive from it and define ``__torch_function__(self, func, types, args=(), kwargs=None)``. Inside that method the mode is off, so
    that it can call on. Modes nest; the innermost is asked first.
    """

    inner = None

    def __init__(self):
        pass

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{type(self).__name__} must define __torch_function__")

    def __enter__(self):
        _C._push_on_torch_function_stack(self)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        _C._pop_torch_function_stack()

    @classmethod
    def push(cls, *args, **kwargs):
        """The old spelling of making one."""
        warnings.warn("TorchFunctionMode.push is deprecated: make an instance", stacklevel=2)
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_function_mode():
    count = _C._len_torch_function_stack()
    return _C._get_function_stack_at(count - 1) if count else None


def _get_current_function_mode_stack():
    return [_C._get_function_stack_at(i) for i in range(_C._len_torch_function_stack())]


@contextmanager
def enable_reentrant_dispatch():
    """A block in which a handler of __torch_dispatch__ may start from the top again; it always may."""
    yield


@contextmanager
def _enable_torch_function():
    yield


__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]
