"""Nodes of the recorded graph."""

from lamina._C import _Node as Node

__all__ = ["Node"]
