"""Operators of lamina.nn.functional."""

from lamina._C import _submodule_functions

globals().update(_submodule_functions.get("nn.functional", {}))
__all__ = sorted(_submodule_functions.get("nn.functional", {}))
