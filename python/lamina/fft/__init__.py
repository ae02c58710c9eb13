"""Operators of lamina.fft."""

from lamina._C import _submodule_functions

globals().update(_submodule_functions.get("fft", {}))
__all__ = sorted(_submodule_functions.get("fft", {}))
