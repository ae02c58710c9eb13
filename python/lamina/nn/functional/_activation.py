"""Activations."""

from __future__ import annotations

import lamina
from lamina._C import _submodule_functions

_nn = _submodule_functions["_nn"]
celu_, selu_ = lamina.celu_, lamina.selu_


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


def softmin(input, dim=None, _stacklevel: int = 3, dtype=None):
    """`softmax` of ``-input`` along `dim`."""
    return lamina.softmax(-input, _class_dim("softmin", input, dim), dtype=dtype)


def gumbel_softmax(logits, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1):
    """A sample of the Gumbel-softmax distribution (Jang et al., 2017) along `dim`, in the shape of `logits`.

    With `hard` the sample is one-hot, and its gradient that of the soft one. `eps` is ignored.
    """
    uniform = lamina.rand_like(logits).clamp_(min=lamina.finfo(logits.dtype).tiny)
    noise = -(-uniform.log()).log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    return lamina.zeros_like(logits).scatter_(dim, index, 1.0) - soft.detach() + soft


def elu(input, alpha: float = 1.0, inplace: bool = False):
    """`input` above zero, ``alpha * (exp(input) - 1)`` below."""
    return _nn["elu_" if inplace else "elu"](input, alpha)


def elu_(input, alpha: float = 1.0):
    """`elu` in place."""
    return _nn["elu_"](input, alpha)


def celu(input, alpha: float = 1.0, inplace: bool = False):
    """``max(0, input) + min(0, alpha * (exp(input / alpha) - 1))``."""
    return lamina.celu_(input, alpha) if inplace else lamina.celu(input, alpha)


def selu(input, inplace: bool = False):
    """`elu` scaled so that mean 0 and variance 1 stay (Klambauer et al., 2017)."""
    return lamina.selu_(input) if inplace else lamina.selu(input)


def glu(input, dim: int = -1):
    """First half of `input` along `dim` times the sigmoid of the second."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return _nn["glu"](input, dim)


def hardtanh(input, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False):
    """`input` kept between `min_val` and `max_val`. Raises ValueError where min_val > max_val."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _nn["hardtanh_" if inplace else "hardtanh"](input, min_val, max_val)


def hardtanh_(input, min_val: float = -1.0, max_val: float = 1.0):
    """`hardtanh` in place."""
    return _nn["hardtanh_"](input, min_val, max_val)


def relu6(input, inplace: bool = False):
    """``min(max(input, 0), 6)``."""
    return _nn["relu6_" if inplace else "relu6"](input)


def hardsigmoid(input, inplace: bool = False):
    """``min(max(input + 3, 0), 6) / 6``."""
    return _nn["hardsigmoid_" if inplace else "hardsigmoid"](input)


def hardswish(input, inplace: bool = False):
    """``input * hardsigmoid(input)``."""
    return _nn["hardswish_" if inplace else "hardswish"](input)


def mish(input, inplace: bool = False):
    """``input * tanh(log(1 + exp(input)))``."""
    return _nn["mish_" if inplace else "mish"](input)


def threshold(input, threshold: float, value: float, inplace: bool = False):
    """`input` above `threshold`, `value` elsewhere."""
    op = lamina.threshold_ if inplace else lamina.threshold
    return op(input, threshold, value)


def threshold_(input, threshold: float, value: float):
    """`threshold` in place."""
    return lamina.threshold_(input, threshold, value)


def rrelu(
    input,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
):
    """Leaky ReLU with a slope drawn for each element between `lower` and `upper`; their mean when not training."""
    return (lamina.rrelu_ if inplace else lamina.rrelu)(input, lower, upper, training)


def rrelu_(input, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False):
    """`rrelu` in place."""
    return lamina.rrelu_(input, lower, upper, training)


def leaky_relu_(input, negative_slope: float = 0.01):
    """`leaky_relu` in place."""
    return _nn["leaky_relu_"](input, negative_slope)


def tanhshrink(input):
    """``input - tanh(input)``."""
    return input - input.tanh()


def softsign(input):
    """``input / (1 + |input|)``."""
    return input / (input.abs() + 1)


__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "glu",
    "gumbel_softmax",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]
