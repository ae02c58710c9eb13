"""Decorators of TorchScript. Programs run as Python: what is given is given back. Archives are read by `load`."""

from contextlib import contextmanager
from typing import Any, Final

from lamina import _missing

Attribute = Any


def script(obj=None, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """Gives the function or module back: it runs as Python."""
    if obj is None:
        return lambda given: given
    if not callable(obj):
        raise TypeError(f"script: expected a function, a class or a module; got {type(obj)}")
    return obj


def script_if_tracing(fn):
    """Gives the function back."""
    return fn


def ignore(drop=False, **kwargs):
    """A decorator without effect."""
    if callable(drop):
        return drop
    return lambda function: function


def unused(fn):
    """A decorator without effect."""
    return fn


def export(fn):
    """A decorator without effect."""
    return fn


def interface(obj):
    """A decorator without effect."""
    return obj


def _overload(func):
    return func


def _overload_method(func):
    return func


def _script_if_tracing(fn):
    return fn


def is_scripting():
    """False: functions run as Python."""
    return False


def is_tracing():
    """False: nothing is traced."""
    return False


def annotate(the_type, the_value):
    """The value."""
    return the_value


def isinstance(obj, target_type):  # noqa: A001
    """Python's isinstance, which takes apart unions and generic types too."""
    import builtins
    import types
    import typing

    origin = typing.get_origin(target_type)
    if origin in (typing.Union, types.UnionType):
        return any(isinstance(obj, t) for t in typing.get_args(target_type))
    return builtins.isinstance(obj, origin or target_type)


@contextmanager
def optimized_execution(should_optimize):
    """A block in which nothing changes."""
    yield


@contextmanager
def fuser(name):
    """A block in which nothing changes."""
    yield


def set_fusion_strategy(strategy):
    """Accepted; nothing is fused here."""
    return []


def freeze(mod, preserved_attrs=None, optimize_numerics=True, preserve_parameters=False):
    """Gives the module back."""
    return mod


def optimize_for_inference(mod, other_methods=None):
    """Gives the module back."""
    return mod


class Error(Exception):
    """An error that a TorchScript program raised."""


class _Never(type):
    def __instancecheck__(cls, _):
        return False


class ScriptFunction(metaclass=_Never):
    """A compiled function; there are none, so nothing is an instance."""

    def __init__(self, *args, **kwargs):
        raise _missing.missing("torch.jit.ScriptFunction")


from ._archive import load as load  # noqa: E402
from ._module import RecursiveScriptModule as RecursiveScriptModule  # noqa: E402
from ._module import ScriptModule as ScriptModule  # noqa: E402


class TracedModule(ScriptModule):
    """A module made by tracing; archives give RecursiveScriptModule, so nothing is an instance."""


TopLevelTracedModule = TracedModule


def save(m, f, _extra_files=None):
    """Write a loaded module again. Raises MissingError: archives are only read here."""
    raise _missing.missing("torch.jit.save")


__getattr__ = _missing.getattr_of(__name__)
_ = Final
