"""Operators of neural networks: ``lamina.nn.functional``.

Thin signatures over the operators of the op list (``lamina._C``); what differs from the operator is only how options
are spelled (``inplace=``, ``reduction='mean'``).
"""

from __future__ import annotations

import lamina
from lamina._C import _submodule_functions

_nn = _submodule_functions["_nn"]
globals().update(_submodule_functions["nn.functional"])  # linear, gelu, softplus

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _reduction(op: str, reduction: str, size_average: bool | None, reduce: bool | None) -> int:
    """The operator's number for `reduction`; the two flags of old programs win where given."""
    if size_average is not None or reduce is not None:
        if reduce is False:
            return 0
        return 1 if size_average is None or size_average else 2
    try:
        return _REDUCTIONS[reduction]
    except KeyError:
        raise ValueError(
            f"{op}: {reduction} is not a valid value for reduction; expected none, mean or sum"
        ) from None


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


def nll_loss(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index: int = -100,
    reduce=None,
    reduction: str = "mean",
):
    """Negative log likelihood.

    `input` holds log-probabilities (n, c) or (n, c, d1, ...), `target` int64 classes (n) or (n, d1, ...), `weight` one
    factor a class. The mean is over the weights of the rows whose target is not `ignore_index`.
    """
    return _nn["nll_loss"](
        input, target, weight, _reduction("nll_loss", reduction, size_average, reduce), ignore_index
    )


def cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index: int = -100,
    reduce=None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
):
    """`nll_loss` of `log_softmax`.

    `target` holds classes (int64) or probabilities (the shape of `input`). With `label_smoothing` e the target is mixed
    with the uniform distribution: ``(1 - e) * target + e / c``.
    """
    code = _reduction("cross_entropy", reduction, size_average, reduce)
    return _nn["cross_entropy_loss"](input, target, weight, code, ignore_index, label_smoothing)


def mse_loss(input, target, size_average=None, reduce=None, reduction: str = "mean", weight=None):
    """Mean of squared differences; shapes broadcast. With `weight` each square is multiplied by it."""
    code = _reduction("mse_loss", reduction, size_average, reduce)
    if weight is not None:
        loss = (input - target).square() * weight
        return (
            loss
            if code == 0
            else loss.sum()
            if code == 2
            else loss.sum() / weight.expand_as(loss).sum()
        )
    return _nn["mse_loss"](input, target, code)


__all__ = sorted(
    n for n in globals() if not n.startswith("_") and n not in ("lamina", "annotations")
)
