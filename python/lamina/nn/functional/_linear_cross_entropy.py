"""Cross entropy of a linear layer's output."""

from __future__ import annotations

from lamina.nn.functional._loss import cross_entropy


def linear_cross_entropy(
    input,
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction: str = "mean",
    ignore_index=None,
    label_smoothing: float = 0.0,
    options=None,
):
    """`cross_entropy` of ``linear(input, linear_weight, linear_bias)``.

    Parameters
    ----------
    input : Tensor
        (n, in_features) or (in_features).
    linear_weight : Tensor
        (classes, d1, d2, ..., in_features).
    target : Tensor
        Classes, int64 (n, d1, d2, ...), or probabilities (n, classes, d1, d2, ...).
    linear_bias : Tensor, optional
        (classes, d1, d2, ...).
    weight, reduction, ignore_index, label_smoothing
        As for `cross_entropy`.
    options : LinearCrossEntropyOptions, optional
        How the peer splits the work; the result is the same for all.
    """
    from lamina.nn import functional

    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError(
            "linear_cross_entropy: ignore_index is for targets that are classes; got probabilities"
        )
    sizes = linear_weight.shape[:-1]
    if len(sizes) > 1:
        if input.dim() == 1:
            raise RuntimeError(
                "linear_cross_entropy: an input without a batch takes a weight (classes, in_features); "
                f"got {list(linear_weight.shape)}"
            )
        linear_weight = linear_weight.flatten(0, -2)
        linear_bias = None if linear_bias is None else linear_bias.flatten()
    logits = functional.linear(input, linear_weight, linear_bias)
    if len(sizes) > 1:
        logits = logits.unflatten(-1, sizes)
    return cross_entropy(
        logits,
        target,
        weight=weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


__all__ = ["linear_cross_entropy"]
