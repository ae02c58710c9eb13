"""Passes over graphs."""

from lamina.fx.passes import shape_prop as shape_prop

__all__ = ["shape_prop"]
