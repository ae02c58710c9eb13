"""Losses."""

from __future__ import annotations

from lamina._C import _submodule_functions
from lamina.nn.functional._reduction import reduction_code

_nn = _submodule_functions["_nn"]


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
        input,
        target,
        weight,
        reduction_code("nll_loss", reduction, size_average, reduce),
        ignore_index,
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
    code = reduction_code("cross_entropy", reduction, size_average, reduce)
    return _nn["cross_entropy_loss"](input, target, weight, code, ignore_index, label_smoothing)


def mse_loss(input, target, size_average=None, reduce=None, reduction: str = "mean", weight=None):
    """Mean of squared differences; shapes broadcast. With `weight` each square is multiplied by it."""
    code = reduction_code("mse_loss", reduction, size_average, reduce)
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


__all__ = ["cross_entropy", "mse_loss", "nll_loss"]
