"""Shapes and dtypes of the values in a graph."""

from typing import Any, NamedTuple

import lamina
from lamina.fx.interpreter import Interpreter
from lamina.fx.node import map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple
    memory_format: Any
    is_quantized: bool
    qparams: dict


def _extract_tensor_metadata(result, include_contiguity=True):
    layout = None
    if include_contiguity:
        formats = [lamina.contiguous_format]
        formats += [lamina.channels_last] if result.dim() == 4 else []
        layout = next((f for f in formats if result.is_contiguous(memory_format=f)), None)
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), layout, False, {}
    )


class ShapeProp(Interpreter):
    """Runs a graph and notes at every node, in ``meta``, the value's ``type`` and, of tensors, ``tensor_meta``.

    Parameters
    ----------
    gm : GraphModule
    """

    def __init__(self, gm):
        super().__init__(gm)

    def run_node(self, n):
        """The value of one node; its metadata goes into ``n.meta``."""
        result = super().run_node(n)
        found = []

        def note(value):
            if isinstance(value, lamina.Tensor):
                found.append(value)
                return _extract_tensor_metadata(value)
            return value

        meta = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args):
        """Run with arguments; returns what the graph gives."""
        return super().run(*args)
