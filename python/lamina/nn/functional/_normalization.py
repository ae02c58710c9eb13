"""Normalizations."""

from __future__ import annotations

import lamina
from lamina.overrides import handle_torch_function, has_torch_function_unary


def layer_norm(input, normalized_shape, weight=None, bias=None, eps: float = 1e-5):
    """Mean 0 and variance 1 over the last dimensions (`normalized_shape`), times `weight` plus `bias`."""
    return lamina.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps: float | None = None):
    """`input` over the root of the mean of its squares over the last dimensions, times `weight`."""
    return lamina.rms_norm(input, normalized_shape, weight, eps)


def group_norm(input, num_groups: int, weight=None, bias=None, eps: float = 1e-5):
    """Mean 0 and variance 1 over each of `num_groups` groups of channels (dimension 1) of each sample."""
    if input.dim() < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.dim()}"
        )
    _check_values(
        [input.size(0) * input.size(1) // max(num_groups, 1), num_groups, *input.shape[2:]]
    )
    return lamina.group_norm(input, num_groups, weight, bias, eps)


def batch_norm(
    input,
    running_mean,
    running_var,
    weight=None,
    bias=None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
):
    """Mean 0 and variance 1 of each channel (dimension 1) over all else.

    While `training`, the statistics are those of the batch and the running ones move towards them by `momentum`;
    otherwise the running ones are used. Raises ValueError for a batch of one value a channel in training.
    """
    if training:
        _check_values(input.shape)
    return lamina.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, True
    )


def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
):
    """`batch_norm` of each sample by itself."""
    if use_input_stats:
        count = 1
        for size in input.shape[2:]:
            count *= size
        if count == 1:
            raise ValueError(
                f"Expected more than 1 spatial element when training, got input size {input.shape}"
            )
    return lamina.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True
    )


def _check_values(shape) -> None:
    """A channel of one value has no variance."""
    count = shape[0]
    for size in shape[2:]:
        count *= size
    if count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {lamina.Size(shape)}"
        )


def normalize(input, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out=None):
    """`input` over its p-norm along `dim`, which is at least `eps`."""
    length = lamina.linalg.vector_norm(input, p, dim, True).clamp_min(eps).expand_as(input)
    return input / length if out is None else lamina.div(input, length, out=out)


def local_response_norm(input, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
    """``input / (k + alpha * mean of squares over `size` neighbouring channels) ** beta`` (Krizhevsky et al., 2012)."""
    if has_torch_function_unary(input):
        return handle_torch_function(
            local_response_norm, (input,), input, size, alpha=alpha, beta=beta, k=k
        )
    if input.dim() < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)"
        )
    if input.numel() == 0:
        return input
    squares = input.mul(input)
    before = size // 2
    shape = list(input.shape)
    shape[1] = before
    pad_before = squares.new_zeros(shape)
    shape[1] = (size - 1) // 2
    padded = lamina.cat([pad_before, squares, squares.new_zeros(shape)], 1)
    windows = padded.unfold(1, size, 1).sum(-1)
    windows = windows / size if input.is_floating_point() else windows // size
    return input / windows.mul(alpha).add(k).pow(beta)


__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "normalize",
    "rms_norm",
]
