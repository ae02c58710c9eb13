"""Helpers around the library."""

from pathlib import Path

# For CMake: -DCMAKE_PREFIX_PATH=$(python -c "import lamina; print(lamina.utils.cmake_prefix_path)")
cmake_prefix_path = str(Path(__file__).resolve().parent.parent)

__all__ = ["cmake_prefix_path"]


def __getattr__(name):
    if name in ("checkpoint", "data", "dlpack", "hooks", "safetensors"):
        from importlib import import_module

        return import_module(f"{__spec__.name}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
