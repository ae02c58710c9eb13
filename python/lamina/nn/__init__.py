"""Building blocks of networks."""

from lamina.nn import functional

__all__ = ["functional"]
