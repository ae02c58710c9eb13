"""Signal processing: windows."""

from lamina.signal import windows

__all__ = ["windows"]
