"""Dropout in all its forms."""

from __future__ import annotations

import warnings

import lamina


def _check(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input, p: float = 0.5, training: bool = True, inplace: bool = False):
    """Elements zeroed with probability `p`, the others over ``1 - p``; `input` itself when not `training`."""
    _check(p)
    return (lamina.dropout_ if inplace else lamina.dropout)(input, p, training)


def alpha_dropout(input, p: float = 0.5, training: bool = False, inplace: bool = False):
    """Dropout that keeps mean 0 and variance 1 of what `selu` gives."""
    _check(p)
    return (lamina.alpha_dropout_ if inplace else lamina.alpha_dropout)(input, p, training)


def feature_alpha_dropout(input, p: float = 0.5, training: bool = False, inplace: bool = False):
    """`alpha_dropout` of whole channels of (n, c, ...)."""
    _check(p)
    op = lamina.feature_alpha_dropout_ if inplace else lamina.feature_alpha_dropout
    return op(input, p, training)


def _features(name: str, input, p: float, training: bool, inplace: bool, dims: tuple[int, int]):
    """Dropout of whole channels: of (c, ...) with the lesser number of dimensions, of (n, c, ...) with the greater."""
    _check(p)
    if input.dim() not in dims:
        warnings.warn(
            f"{name}: Received a {input.dim()}-D input to {name}, which is deprecated and will result in an error in a "
            f"future release. To retain the behavior and silence this warning, please use dropout instead. Note that "
            f"{name} exists to provide channel-wise dropout on inputs with {dims[0] - 1} spatial dimensions, a channel "
            f"dimension, and an optional batch dimension (i.e. {dims[0]}D or {dims[1]}D inputs).",
            stacklevel=3,
        )
    op = lamina.feature_dropout_ if inplace else lamina.feature_dropout
    return op(input, p, training)


def dropout1d(input, p: float = 0.5, training: bool = True, inplace: bool = False):
    """Dropout of whole channels of (n, c, l) or (c, l)."""
    _check(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
            "batch dimension (i.e. 2D or 3D inputs)."
        )
    op = lamina.feature_dropout_ if inplace else lamina.feature_dropout
    if input.dim() == 3:
        return op(input, p, training)
    result = op(input.unsqueeze_(0) if inplace else input.unsqueeze(0), p, training)
    return result.squeeze_(0) if inplace else result.squeeze(0)


def dropout2d(input, p: float = 0.5, training: bool = True, inplace: bool = False):
    """Dropout of whole channels of (n, c, h, w)."""
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
            "desired - input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change "
            "in a future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To "
            "maintain the 1D channel-wise dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _features("dropout2d", input, p, training, inplace, (3, 4))


def dropout3d(input, p: float = 0.5, training: bool = True, inplace: bool = False):
    """Dropout of whole channels of (n, c, d, h, w)."""
    return _features("dropout3d", input, p, training, inplace, (4, 5))


__all__ = [
    "alpha_dropout",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
]
