"""Operators of lamina.linalg."""

from lamina._C import _submodule_functions

globals().update(_submodule_functions.get("linalg", {}))
__all__ = sorted(_submodule_functions.get("linalg", {}))
