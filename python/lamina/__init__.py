"""Lamina: tensors and gradients with PyTorch's API, on a runtime you can see through.

What can wait is loaded when it is first asked for: submodules, printing, type information.
"""

from math import e, inf, nan, pi

from lamina import _C
from lamina._C import *  # noqa: F403
from lamina._version import __version__
from lamina.random import (
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

newaxis = None
del globals()["nonzero"]  # the operator; lamina.functional adds as_tuple

# Names that come from a module of their own at first use.
_LAZY = {
    "finfo": "_type_info",
    "ops": "_ops_namespace",
    "iinfo": "_type_info",
    "set_printoptions": "_tensor_str",
    "get_printoptions": "_tensor_str",
    "fork_rng": "_fork_rng",
    "typename": "_type_info",
    "is_storage": "_type_info",
    "broadcast_tensors": "functional",
    "broadcast_shapes": "functional",
    "meshgrid": "functional",
    "cartesian_prod": "functional",
    "block_diag": "functional",
    "nonzero": "functional",
}
_SUBMODULES = (
    "autograd",
    "fft",
    "functional",
    "linalg",
    "nn",
    "optim",
    "random",
    "special",
    "testing",
    "types",
    "utils",
)


def __getattr__(name):
    import importlib

    if name in _LAZY:
        value = getattr(importlib.import_module("lamina." + _LAZY[name]), name)
    elif name in _SUBMODULES:
        try:
            return importlib.import_module("lamina." + name)
        except ModuleNotFoundError as error:
            if error.name != "lamina." + name:
                raise
            raise AttributeError(f"module 'lamina' has no attribute {name!r}") from None
    else:
        raise AttributeError(f"module 'lamina' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_LAZY, *_SUBMODULES})


# What is written in Python stands before an operator of the same name.
for _name in _LAZY:
    globals().pop(_name, None)
del _name


def _attach():
    """Methods of Tensor that are written in Python; each loads its module at the first call."""

    def forward(name):
        def method(self, *args, **kwargs):
            from lamina import _tensor

            return getattr(_tensor, name)(self, *args, **kwargs)

        method.__name__ = name
        method.__qualname__ = "Tensor." + name
        return method

    for name in (
        "__deepcopy__",
        "__reduce_ex__",
        "__dir__",
        "__rdivmod__",
        "__divmod__",
        "nonzero",
        "new_tensor",
        "type",
        "storage_type",
    ):
        setattr(Tensor, name, forward(name))  # noqa: F405
    Tensor.__div__ = Tensor.__truediv__  # noqa: F405
    Tensor.__rdiv__ = Tensor.__rtruediv__  # noqa: F405
    Tensor.__idiv__ = Tensor.__itruediv__  # noqa: F405
    Tensor.__array_priority__ = 1000  # noqa: F405
    Tensor.__module__ = "lamina"  # noqa: F405


_attach()
del _attach
