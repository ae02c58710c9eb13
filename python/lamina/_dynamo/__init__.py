"""The compiler's older entrance; see lamina.compiler."""

from lamina import _missing
from lamina.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)
from lamina.compiler import compile as optimize_assert  # noqa: F401


class _Config:
    """Settings are kept, and read by nothing."""

    suppress_errors = False
    cache_size_limit = recompile_limit = 8
    accumulated_cache_size_limit = 256
    capture_scalar_outputs = False
    verbose = False

    def patch(self, *args, **kwargs):
        """A block in which nothing changes."""
        from contextlib import nullcontext

        return nullcontext()


config = _Config()


def optimize(backend="inductor", **_):
    """A decorator without effect."""
    return lambda given: given


def run(fn=None):
    """A decorator without effect."""
    return (lambda given: given) if fn is None else fn


def graph_break(msg=""):
    """Nothing is compiled, so nothing breaks."""


def mark_dynamic(t, index, **_):
    """Accepted; sizes are read at every call."""


def maybe_mark_dynamic(t, index):
    """Accepted; sizes are read at every call."""


def mark_static(t, index=None):
    """Accepted; sizes are read at every call."""


def mark_static_address(t, guard=False):
    """Accepted."""


def disallow_in_graph(fn):
    """A decorator without effect."""
    return fn


def forbid_in_graph(fn):
    """A decorator without effect."""
    return fn


def is_dynamo_supported():
    """False."""
    return False


__getattr__ = _missing.getattr_of(__name__)
__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "is_dynamo_supported",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
    "run",
]
