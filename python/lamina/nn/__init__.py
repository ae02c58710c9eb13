"""Building blocks of networks."""

import sys as _sys

from lamina import _lazy
from lamina.nn import _operators, functional, init, modules, utils  # noqa: F401
from lamina.nn.modules import *  # noqa: F403
from lamina.nn.parallel import DataParallel  # noqa: F401
from lamina.nn.parameter import (  # noqa: F401
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)

_lazy.add_submodule(_sys.modules[__spec__.name], "attention")

__all__ = sorted(
    [
        *modules.__all__,
        "Buffer",
        "DataParallel",
        "Parameter",
        "UninitializedBuffer",
        "UninitializedParameter",
        "functional",
        "init",
    ]
)
