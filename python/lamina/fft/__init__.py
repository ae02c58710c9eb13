"""Operators of lamina.fft."""

from lamina import _C

globals().update(_C._submodule_functions.get("fft", {}))
__all__ = sorted(_C._submodule_functions.get("fft", {}))
