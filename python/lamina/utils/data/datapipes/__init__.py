"""The base classes of data pipes; the pipes themselves are not here."""

from lamina._missing import getattr_of as _getattr_of

from .datapipe import IterDataPipe, MapDataPipe  # noqa: F401

__getattr__ = _getattr_of(__name__)
