"""Losses."""

from __future__ import annotations

import math
import warnings

import lamina
from lamina._C import _submodule_functions
from lamina._per_sample import per_sample
from lamina.nn.functional._reduction import reduction_code

_nn = _submodule_functions["_nn"]
_logsigmoid = _nn["log_sigmoid"]


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


def _warn_sizes(op: str, input, target) -> None:
    if tuple(input.shape) != tuple(target.shape):
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). "
            f"This will likely lead to incorrect results of {op} due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=3,
        )


def _weighted(loss, weight, code: int):
    """`loss` times `weight`, and its mean over the weights or its sum."""
    if code == 0:
        return loss * weight
    total = (loss * weight).sum()
    return total if code == 2 else total / weight.expand_as(loss).sum()


def l1_loss(input, target, size_average=None, reduce=None, reduction: str = "mean", weight=None):
    """Mean of absolute differences. With `weight` each is multiplied by it and the mean is over the weights."""
    _warn_sizes("l1_loss", input, target)
    code = reduction_code("l1_loss", reduction, size_average, reduce)
    if weight is not None:
        return _weighted((input - target).abs(), weight, code)
    return _nn["l1_loss"](input, target, code)


def smooth_l1_loss(
    input, target, size_average=None, reduce=None, reduction: str = "mean", beta: float = 1.0
):
    """Half the squared difference over `beta` where it is below `beta`, absolute difference less ``beta / 2`` beyond."""
    _warn_sizes("smooth_l1_loss", input, target)
    code = reduction_code("smooth_l1_loss", reduction, size_average, reduce)
    if beta == 0.0:
        return _nn["l1_loss"](input, target, code)
    return _nn["smooth_l1_loss"](input, target, code, beta)


def huber_loss(input, target, reduction: str = "mean", delta: float = 1.0, weight=None):
    """Half the squared difference up to `delta`, ``delta * (difference - delta / 2)`` beyond (Huber, 1964)."""
    _warn_sizes("huber_loss", input, target)
    code = reduction_code("huber_loss", reduction, None, None)
    if weight is not None:
        return _weighted(_nn["huber_loss"](input, target, 0, delta), weight, code)
    return _nn["huber_loss"](input, target, code, delta)


def binary_cross_entropy(
    input, target, weight=None, size_average=None, reduce=None, reduction: str = "mean"
):
    """``-(target * log(input) + (1 - target) * log(1 - input))`` of probabilities of one shape.

    Raises ValueError where the shapes differ and RuntimeError for an input outside 0 to 1.
    """
    code = reduction_code("binary_cross_entropy", reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
            "deprecated. Please ensure they have the same size."
        )
    return _nn["binary_cross_entropy"](input, target, weight, code)


def binary_cross_entropy_with_logits(
    input,
    target,
    weight=None,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
    pos_weight=None,
):
    """`binary_cross_entropy` of ``sigmoid(input)``, without overflow in between."""
    code = reduction_code("binary_cross_entropy_with_logits", reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(
            f"Target size ({target.size()}) must be the same as input size ({input.size()})"
        )
    return lamina.binary_cross_entropy_with_logits(input, target, weight, pos_weight, code)


def kl_div(
    input,
    target,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
    log_target: bool = False,
):
    """``target * (log(target) - input)`` of log-probabilities `input`; "batchmean" divides the sum by the samples."""
    if reduction == "batchmean":
        total = lamina.kl_div(input, target, 2, log_target=log_target)
        return total / input.size(0) if input.dim() != 0 else total
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=2,
        )
    code = reduction_code("kl_div", reduction, size_average, reduce)
    return lamina.kl_div(input, target, code, log_target=log_target)


def poisson_nll_loss(
    input,
    target,
    log_input: bool = True,
    full: bool = False,
    size_average=None,
    eps: float = 1e-8,
    reduce=None,
    reduction: str = "mean",
):
    """Negative log likelihood of Poisson counts `target` with (the logarithm of) their mean in `input`."""
    code = reduction_code("poisson_nll_loss", reduction, size_average, reduce)
    return lamina.poisson_nll_loss(input, target, log_input, full, eps, code)


@per_sample
def gaussian_nll_loss(
    input, target, var, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
):
    """Negative log likelihood of `target` under normals of mean `input` and variance `var` (at least `eps`).

    `var` has the shape of `input`, one less dimension, or 1 as one of its sizes. Raises ValueError for a negative variance.
    """
    if not isinstance(var, lamina.Tensor):
        if not isinstance(var, float | int):
            raise TypeError(f"var must be a tensor or number; got {type(var).__name__}")
        var = var * lamina.ones_like(input)
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif var.dim() != input.dim() or [
            v for i, v in zip(input.size(), var.size()) if i != v
        ] != [1]:
            raise ValueError("var is of incorrect size")
    code = reduction_code("gaussian_nll_loss", reduction, None, None)
    if bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    with lamina.no_grad():
        floor = var.clone().clamp_(min=eps)
    # At least eps in value, while the gradient still reaches what was below.
    var = var + (floor - var).detach()
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return loss.mean() if code == 1 else loss.sum() if code == 2 else loss


def hinge_embedding_loss(
    input,
    target,
    margin: float = 1.0,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
):
    """`input` where `target` is 1, ``max(0, margin - input)`` where it is -1."""
    code = reduction_code("hinge_embedding_loss", reduction, size_average, reduce)
    return lamina.hinge_embedding_loss(input, target, margin, code)


def cosine_embedding_loss(
    input1,
    input2,
    target,
    margin: float = 0,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
):
    """``1 - cos`` of the rows of (n, d) where `target` is 1, ``max(0, cos - margin)`` where it is -1."""
    code = reduction_code("cosine_embedding_loss", reduction, size_average, reduce)
    return lamina.cosine_embedding_loss(input1, input2, target, margin, code)


def margin_ranking_loss(
    input1,
    input2,
    target,
    margin: float = 0,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
):
    """``max(0, -target * (input1 - input2) + margin)``."""
    code = reduction_code("margin_ranking_loss", reduction, size_average, reduce)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return lamina.margin_ranking_loss(input1, input2, target, margin, code)


def triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
):
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with the p-norm as distance d."""
    code = reduction_code("triplet_margin_loss", reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return lamina.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, code)


def triplet_margin_with_distance_loss(
    anchor,
    positive,
    negative,
    *,
    distance_function=None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
):
    """`triplet_margin_loss` with a distance of one's own (`pairwise_distance` by default)."""
    code = reduction_code("triplet_margin_with_distance_loss", reduction, None, None)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = distance_function or lamina.pairwise_distance
    a_dim, p_dim, n_dim = anchor.ndim, positive.ndim, negative.ndim
    if not (a_dim == p_dim and p_dim == n_dim):
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, "
            f"but got: anchor {a_dim}D, positive {p_dim}D, and negative {n_dim}D inputs"
        )
    far = distance(anchor, negative)
    if swap:
        far = lamina.minimum(far, distance(positive, negative))
    loss = lamina.clamp_min(margin + distance(anchor, positive) - far, 0)
    return loss.mean() if code == 1 else loss.sum() if code == 2 else loss


def multi_margin_loss(
    input,
    target,
    p: int = 1,
    margin: float = 1.0,
    weight=None,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
):
    """Mean over the other classes of ``max(0, margin - input[target] + input[other]) ** p``, p 1 or 2."""
    code = reduction_code("multi_margin_loss", reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return _nn["multi_margin_loss"](input, target, p, margin, weight, code)


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction: str = "mean"):
    """Margins of 1 between every class listed in `target` (up to the first -1 of a row) and every other."""
    code = reduction_code("multilabel_margin_loss", reduction, size_average, reduce)
    return _nn["multilabel_margin_loss"](input, target, code)


def multilabel_soft_margin_loss(
    input, target, weight=None, size_average=None, reduce=None, reduction: str = "mean"
):
    """Mean over the classes (last dimension) of the cross entropy of ``sigmoid(input)`` with 0 or 1 in `target`."""
    code = reduction_code("multilabel_soft_margin_loss", reduction, size_average, reduce)
    loss = -(target * _logsigmoid(input) + (1 - target) * _logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(dim=input.dim() - 1) / input.size(input.dim() - 1)
    return loss.mean() if code == 1 else loss.sum() if code == 2 else loss


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction: str = "mean"):
    """``log(1 + exp(-target * input))``."""
    code = reduction_code("soft_margin_loss", reduction, size_average, reduce)
    return _nn["soft_margin_loss"](input, target, code)


__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]
