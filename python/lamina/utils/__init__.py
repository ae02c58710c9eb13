"""Helpers around the library."""

import sys as _sys
from pathlib import Path

from lamina import _lazy

# For CMake: -DCMAKE_PREFIX_PATH=$(python -c "import lamina; print(lamina.utils.cmake_prefix_path)")
cmake_prefix_path = str(Path(__file__).resolve().parent.parent)

for _name in ("checkpoint", "data", "dlpack", "hooks", "safetensors"):
    _lazy.add_submodule(_sys.modules[__spec__.name], _name)
del _name

__all__ = ["cmake_prefix_path"]
