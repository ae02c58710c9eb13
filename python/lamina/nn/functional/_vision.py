"""Resampling, sampling at places, windows as columns."""

from __future__ import annotations

import math
import warnings

import lamina
from lamina._C import _submodule_functions

_nn = _submodule_functions["_nn"]

_NEAREST = ("nearest", "nearest-exact", "area")
_UPSAMPLE = {
    ("nearest", 3): "upsample_nearest1d",
    ("nearest", 4): "upsample_nearest2d",
    ("nearest", 5): "upsample_nearest3d",
    ("nearest-exact", 3): "_upsample_nearest_exact1d",
    ("nearest-exact", 4): "_upsample_nearest_exact2d",
    ("nearest-exact", 5): "_upsample_nearest_exact3d",
    ("linear", 3): "upsample_linear1d",
    ("bilinear", 4): "upsample_bilinear2d",
    ("bicubic", 4): "upsample_bicubic2d",
    ("trilinear", 5): "upsample_trilinear3d",
}
_RANK = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}


def _per_dimension(value, n: int, what: str) -> list:
    if not isinstance(value, (list, tuple)):
        return [value] * n
    if len(value) != n:
        raise ValueError(
            f"interpolate: Input and {what} must have the same number of spatial dimensions; got {n} dimensions and "
            f"{what} {list(value)}. Please provide input tensor in (N, C, d1, d2, ...,dK) format."
        )
    return list(value)


def _is_whole(value) -> bool:
    return hasattr(type(value), "__index__") and not isinstance(value, bool)


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
):
    """`input` (n, c, spatial) resampled to `size`, or to its size times `scale_factor`.

    `mode` is nearest, nearest-exact, area (3 to 5 dimensions), linear (3), bilinear, bicubic (4) or trilinear (5).
    With `align_corners` the middles of the corner elements stay where they are, else the corners of the image do.
    `scale_factor` is what places are computed with, unless `recompute_scale_factor` asks for the quotient of sizes.
    `antialias` widens the support of bilinear and bicubic where an image shrinks. Raises ValueError for arguments that
    contradict each other, NotImplementedError for modes and ranks that do not go together.
    """
    if mode in _NEAREST:
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    n = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    scales = None
    if size is not None:
        sizes = _per_dimension(size, n, "output")
        if not all(_is_whole(s) for s in sizes):
            raise TypeError(f"expected size to be one of int or Tuple[int, ...]; got {size!r}")
        if recompute_scale_factor:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    elif scale_factor is not None:
        scales = [float(s) for s in _per_dimension(scale_factor, n, "scale_factor")]
        sizes = [math.floor(float(have) * s) for have, s in zip(input.shape[2:], scales)]
        if recompute_scale_factor or mode == "area":
            scales = None
    else:
        raise ValueError("either size or scale_factor should be defined")
    if antialias and not (mode in ("bilinear", "bicubic") and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )
    if mode == "area":
        from lamina.nn.functional import (
            adaptive_avg_pool1d,
            adaptive_avg_pool2d,
            adaptive_avg_pool3d,
        )

        pools = {3: adaptive_avg_pool1d, 4: adaptive_avg_pool2d, 5: adaptive_avg_pool3d}
        if input.dim() in pools:
            return pools[input.dim()](input, sizes)
    name = _UPSAMPLE.get((mode, input.dim()))
    if name is None:
        if mode in _RANK and input.dim() in (3, 4, 5):
            raise NotImplementedError(
                f"Got {input.dim()}D input, but {mode} mode needs {_RANK[mode]}D input"
            )
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported"
            f" (got {input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact"
            f" (got {mode})"
        )
    if antialias:
        name = f"_{name}_aa"
    arguments = [sizes] if mode in _NEAREST else [sizes, align_corners]
    return _nn[name](input, *arguments, *(scales or [None] * n))


def upsample(input, size=None, scale_factor=None, mode: str = "nearest", align_corners=None):
    """`interpolate` under its old name."""
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """`interpolate` with mode nearest."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """`interpolate` with mode bilinear and aligned corners."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


_GRID_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_GRID_BORDERS = {"zeros": 0, "border": 1, "reflection": 2}


def grid_sample(
    input,
    grid,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
):
    """`input` (n, c, h, w) at the places of `grid` (n, oh, ow, 2), or (n, c, d, h, w) at (n, od, oh, ow, 3).

    A place is (x, y) or (x, y, z), -1 and 1 being the borders: the middles of the outer elements with `align_corners`,
    else their edges. Outside is zero, the border, or the image mirrored (`padding_mode`). NaN counts as -1.
    Raises ValueError for unknown modes.
    """
    if mode not in _GRID_MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _GRID_BORDERS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(
            "grid_sample: align_corners is False where it is not given; say align_corners=True for places that count "
            "from the middles of the outer elements.",
            stacklevel=2,
        )
        align_corners = False
    return lamina.grid_sampler(
        input, grid, _GRID_MODES[mode], _GRID_BORDERS[padding_mode], align_corners
    )


def affine_grid(theta, size, align_corners: bool | None = None):
    """The grid of `grid_sample` for the affine maps `theta` (n, 2, 3) or (n, 3, 4); `size` is that of the result.

    Raises ValueError where theta is no floating-point batch of such maps or a size is not positive,
    NotImplementedError for other numbers of dimensions.
    """
    if align_corners is None:
        warnings.warn(
            "affine_grid: align_corners is False where it is not given; say align_corners=True for places that count "
            "from the middles of the outer elements.",
            stacklevel=2,
        )
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    spatial = len(size) - 2
    if spatial not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {tuple(size)}."
        )
    if theta.dim() != 3 or tuple(theta.shape[-2:]) != (spatial, spatial + 1):
        raise ValueError(
            f"Expected a batch of {spatial}D affine matrices of shape Nx{spatial}x{spatial + 1} for size {tuple(size)}. "
            f"Got {tuple(theta.shape)}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {tuple(size)}")
    return lamina.affine_grid_generator(theta, list(size), align_corners)


def _pair(value) -> list:
    return list(value) if isinstance(value, (list, tuple)) else [value, value]


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Each window of `input` (n, c, h, w) or (c, h, w) as a column: (n, c * kh * kw, windows)."""
    return _nn["im2col"](input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Columns (n, c * kh * kw, windows) added up where their windows lie in (n, c, *output_size)."""
    return _nn["col2im"](
        input,
        _pair(output_size),
        _pair(kernel_size),
        _pair(dilation),
        _pair(padding),
        _pair(stride),
    )


__all__ = [
    "affine_grid",
    "fold",
    "grid_sample",
    "interpolate",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]
