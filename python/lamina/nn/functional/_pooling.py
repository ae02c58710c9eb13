"""Pooling."""

from __future__ import annotations

import lamina
from lamina._C import _submodule_functions

_nn = _submodule_functions["_nn"]
_INFINITY = float("inf")


def _stride(stride):
    return [] if stride is None else stride


def max_pool1d_with_indices(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
):
    """`max_pool1d` and the index (int64) of each largest element in its row."""
    return lamina.max_pool1d_with_indices(
        input, kernel_size, _stride(stride), padding, dilation, ceil_mode
    )


def max_pool2d_with_indices(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
):
    """`max_pool2d` and the index (int64) of each largest element in its plane."""
    return _nn["max_pool2d_with_indices"](
        input, kernel_size, _stride(stride), padding, dilation, ceil_mode
    )


def max_pool3d_with_indices(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
):
    """`max_pool3d` and the index (int64) of each largest element in its volume."""
    return _nn["max_pool3d_with_indices"](
        input, kernel_size, _stride(stride), padding, dilation, ceil_mode
    )


def max_pool1d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
):
    """The largest element of each window of `input` (n, c, w) or (c, w); NaN counts as largest.

    `stride` is the kernel's size where it is None. With `return_indices` also where each was found.
    """
    op = max_pool1d_with_indices if return_indices else lamina.max_pool1d
    return op(input, kernel_size, _stride(stride), padding, dilation, ceil_mode)


def max_pool2d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
):
    """The largest element of each window of `input` (n, c, h, w) or (c, h, w); see `max_pool1d`."""
    op = max_pool2d_with_indices if return_indices else lamina.max_pool2d
    return op(input, kernel_size, _stride(stride), padding, dilation, ceil_mode)


def max_pool3d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
):
    """The largest element of each window of `input` (n, c, d, h, w) or (c, d, h, w); see `max_pool1d`."""
    op = max_pool3d_with_indices if return_indices else lamina.max_pool3d
    return op(input, kernel_size, _stride(stride), padding, dilation, ceil_mode)


def _filled(op: str, output_size, input, n: int):
    """`output_size` with the sizes of `input` where it says None."""
    if isinstance(output_size, int):
        return output_size
    if input.dim() <= len(output_size):
        raise ValueError(
            f"{op}: input must have more dimensions than output_size has entries; got {input.dim()}"
        )
    sizes = input.shape[-len(output_size) :] if output_size else ()
    return [have if want is None else want for want, have in zip(output_size, sizes)]


def adaptive_avg_pool2d(input, output_size):
    """The mean of each of `output_size` windows that cover (n, c, h, w) or (c, h, w); None keeps a size."""
    return _nn["adaptive_avg_pool2d"](input, _filled("adaptive_avg_pool2d", output_size, input, 2))


def adaptive_avg_pool3d(input, output_size):
    """The mean of each of `output_size` windows that cover (n, c, d, h, w) or (c, d, h, w)."""
    return _nn["adaptive_avg_pool3d"](input, _filled("adaptive_avg_pool3d", output_size, input, 3))


def adaptive_max_pool1d_with_indices(input, output_size, return_indices: bool = False):
    """`adaptive_max_pool1d` and where each largest element was found."""
    return lamina.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d_with_indices(input, output_size, return_indices: bool = False):
    """`adaptive_max_pool2d` and where each largest element was found."""
    return _nn["adaptive_max_pool2d"](input, _filled("adaptive_max_pool2d", output_size, input, 2))


def adaptive_max_pool3d_with_indices(input, output_size, return_indices: bool = False):
    """`adaptive_max_pool3d` and where each largest element was found."""
    return _nn["adaptive_max_pool3d"](input, _filled("adaptive_max_pool3d", output_size, input, 3))


def adaptive_max_pool1d(input, output_size, return_indices: bool = False):
    """The largest element of each of `output_size` windows that cover (n, c, w) or (c, w)."""
    pair = adaptive_max_pool1d_with_indices(input, output_size)
    return pair if return_indices else pair[0]


def adaptive_max_pool2d(input, output_size, return_indices: bool = False):
    """The largest element of each of `output_size` windows that cover (n, c, h, w) or (c, h, w)."""
    pair = adaptive_max_pool2d_with_indices(input, output_size)
    return pair if return_indices else pair[0]


def adaptive_max_pool3d(input, output_size, return_indices: bool = False):
    """The largest element of each of `output_size` windows that cover (n, c, d, h, w) or (c, d, h, w)."""
    pair = adaptive_max_pool3d_with_indices(input, output_size)
    return pair if return_indices else pair[0]


def _numbers(value, n: int) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n


def _fractional(n: int, input, kernel_size, output_size, output_ratio, samples):
    op = f"fractional_max_pool{n}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{op} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        if len(_numbers(output_ratio, n)) > n:
            raise ValueError(f"{op}: output_ratio must be a number or {n} of them")
        ratios = _numbers(output_ratio, n)
        output_size = [int(size * ratio) for size, ratio in zip(input.shape[-n:], ratios)]
    if samples is None:
        batch = 1 if input.dim() == n + 1 else input.shape[0]
        samples = lamina.rand(batch, input.shape[-n - 1], n, dtype=input.dtype, device=input.device)
    return _nn[op](input, kernel_size, output_size, samples)


def fractional_max_pool2d_with_indices(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples=None,
):
    """`fractional_max_pool2d` and where each largest element was found."""
    return _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples=None,
):
    """`fractional_max_pool3d` and where each largest element was found."""
    return _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples=None,
):
    """The largest element of windows at places drawn at random (Graham, 2014).

    Give `output_size` or `output_ratio` of (n, c, h, w) or (c, h, w). Raises ValueError without either.
    """
    pair = _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return pair if return_indices else pair[0]


def fractional_max_pool3d(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples=None,
):
    """The largest element of windows at places drawn at random; see `fractional_max_pool2d`."""
    pair = _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return pair if return_indices else pair[0]


def _unpooled_size(input, kernel_size, stride, padding, output_size):
    n = len(kernel_size)
    default = [
        (input.shape[i - n] - 1) * stride[i] + kernel_size[i] - 2 * padding[i] for i in range(n)
    ]
    if output_size is None:
        return default
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of '{len(output_size)}'"
        )
    for i in range(n):
        low, high = default[i] - stride[i], default[i] + stride[i]
        if not low < output_size[i] < high:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {i} must be between {low} and {high})'
            )
    return list(output_size)


def _windows(n: int, kernel_size, stride, padding):
    kernel_size = _numbers(kernel_size, n)
    return kernel_size, kernel_size if stride is None else _numbers(stride, n), _numbers(padding, n)


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Zeros with the elements of `input` (n, c, w) where `indices` of `max_pool1d` say."""
    kernel_size, stride, padding = _windows(1, kernel_size, stride, padding)
    size = _unpooled_size(input, kernel_size, stride, padding, output_size)
    result = _nn["max_unpool2d"](input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1])
    return result.squeeze(-1)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Zeros with the elements of `input` (n, c, h, w) where `indices` of `max_pool2d` say."""
    kernel_size, stride, padding = _windows(2, kernel_size, stride, padding)
    size = _unpooled_size(input, kernel_size, stride, padding, output_size)
    return _nn["max_unpool2d"](input, indices, size)


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Zeros with the elements of `input` (n, c, d, h, w) where `indices` of `max_pool3d` say."""
    kernel_size, stride, padding = _windows(3, kernel_size, stride, padding)
    size = _unpooled_size(input, kernel_size, stride, padding, output_size)
    return _nn["max_unpool3d"](input, indices, size, stride, padding)


def _lp_pool(n: int, pool, input, norm_type, kernel_size, stride, ceil_mode):
    if norm_type in (_INFINITY, -_INFINITY):
        largest = (max_pool1d, max_pool2d, max_pool3d)[n - 1]
        signed = input.abs() if norm_type > 0 else -input.abs()
        result = largest(signed, kernel_size, stride, 0, 1, ceil_mode)
        return result if norm_type > 0 else -result
    sizes = _numbers(kernel_size, n)
    count = 1
    for size in sizes:
        count *= size
    mean = pool(input.pow(norm_type), kernel_size, _stride(stride), 0, ceil_mode)
    # The sum of a window, with its sign kept apart where the mean is negative (odd norms).
    return (lamina.sign(mean) * lamina.relu(lamina.abs(mean))).mul(count).pow(1.0 / norm_type)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode: bool = False):
    """``sum(x ** p) ** (1 / p)`` of each window of `input` (n, c, w) or (c, w), p the `norm_type`."""
    return _lp_pool(1, lamina.avg_pool1d, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode: bool = False):
    """``sum(x ** p) ** (1 / p)`` of each window of `input` (n, c, h, w) or (c, h, w)."""
    return _lp_pool(2, _nn["avg_pool2d"], input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode: bool = False):
    """``sum(x ** p) ** (1 / p)`` of each window of `input` (n, c, d, h, w) or (c, d, h, w)."""
    return _lp_pool(3, _nn["avg_pool3d"], input, norm_type, kernel_size, stride, ceil_mode)


__all__ = [
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]
