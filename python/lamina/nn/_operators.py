"""What packages look up in `torch._C._nn`."""

from __future__ import annotations

import sys
import types

from lamina import _C
from lamina.nn.modules._convert import _parse_to

namespace = types.ModuleType("lamina._C._nn")
namespace.__doc__ = __doc__
vars(namespace).update(_C._submodule_functions["nn.functional"])
vars(namespace).update(_C._submodule_functions["_nn"])
namespace._parse_to = _parse_to
_C._nn = namespace
sys.modules.setdefault(namespace.__name__, namespace)
