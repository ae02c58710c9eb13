"""Helpers around the library."""

from pathlib import Path

# For CMake: -DCMAKE_PREFIX_PATH=$(python -c "import lamina; print(lamina.utils.cmake_prefix_path)")
cmake_prefix_path = str(Path(__file__).resolve().parent.parent)

__all__ = ["cmake_prefix_path"]
