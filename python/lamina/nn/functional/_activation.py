"""Activations."""

from __future__ import annotations

import lamina
from lamina._C import _submodule_functions

_nn = _submodule_functions["_nn"]


def relu(input, inplace: bool = False):
    """``max(input, 0)``; NaN stays. Shape and dtype of `input`."""
    return input.relu_() if inplace else lamina.relu(input)


def relu_(input):
    """`relu` in place."""
    return input.relu_()


def silu(input, inplace: bool = False):
    """``input * sigmoid(input)``. Shape and dtype of `input`."""
    return _nn["silu_"](input) if inplace else _nn["silu"](input)


def leaky_relu(input, negative_slope: float = 0.01, inplace: bool = False):
    """`input` above zero, ``negative_slope * input`` below. Shape and dtype of `input`."""
    op = _nn["leaky_relu_"] if inplace else _nn["leaky_relu"]
    return op(input, negative_slope)


def sigmoid(input):
    """``1 / (1 + exp(-input))``."""
    return input.sigmoid()


def tanh(input):
    """Hyperbolic tangent."""
    return input.tanh()


def softmax(input, dim=None, _stacklevel: int = 3, dtype=None):
    """``exp(input)`` divided by its sum along `dim`. Raises RuntimeError where `dim` is not given."""
    return lamina.softmax(input, _class_dim("softmax", input, dim), dtype=dtype)


def log_softmax(input, dim=None, _stacklevel: int = 3, dtype=None):
    """Logarithm of softmax along `dim`. Raises RuntimeError where `dim` is not given."""
    return lamina.log_softmax(input, _class_dim("log_softmax", input, dim), dtype=dtype)


def _class_dim(op: str, input, dim):
    if dim is None:
        # What old programs got: dimension 0 of vectors and 3-d tensors, else 1.
        return 0 if input.dim() in (0, 1, 3) else 1
    return dim


__all__ = [
    "leaky_relu",
    "log_softmax",
    "relu",
    "relu_",
    "sigmoid",
    "silu",
    "softmax",
    "tanh",
]
