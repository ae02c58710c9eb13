"""Operators of lamina.special."""

from lamina._C import _submodule_functions

globals().update(_submodule_functions.get("special", {}))
__all__ = sorted(_submodule_functions.get("special", {}))
