"""The mps backend, which this build does not have: questions get true answers, requests raise."""

from lamina import _absent_backend, _missing

globals().update(_absent_backend.functions("mps"))
__getattr__ = _missing.getattr_of(__name__)
