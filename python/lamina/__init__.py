"""Lamina: tensors and gradients with PyTorch's API, on a runtime you can see through.

What can wait is loaded when it is first asked for: submodules, printing.
"""

import sys as _sys
from math import e, inf, nan, pi

from lamina import _C, _lazy
from lamina._C import *  # noqa: F403
from lamina._ops_namespace import ops
from lamina._type_info import finfo, iinfo, is_storage, typename
from lamina._version import __version__
from lamina.functional import (
    block_diag,
    broadcast_shapes,
    broadcast_tensors,
    cartesian_prod,
    meshgrid,
    nonzero,
)
from lamina.random import (
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

newaxis = None

# Names of modules that few programs need; they are imported at the first call.
for _module, _name in (
    ("_tensor_str", "set_printoptions"),
    ("_tensor_str", "get_printoptions"),
    ("_fork_rng", "fork_rng"),
):
    globals()[_name] = _lazy.later("lamina." + _module, _name)
# No __getattr__ here: see lamina._lazy.
_SUBMODULES = (
    "autograd",
    "explain",
    "fft",
    "linalg",
    "nn",
    "optim",
    "special",
    "testing",
    "types",
    "utils",
)
for _name in _SUBMODULES:
    _lazy.add_submodule(_sys.modules[__name__], _name)
del _module, _name


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
