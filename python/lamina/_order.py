"""Medians, places in sorted sequences, counts: built of sorting and gathering."""

from __future__ import annotations

import math
from collections import namedtuple

from lamina import _C
from lamina._out import given
from lamina._per_sample import per_sample
from lamina.functional import overridable

_median = namedtuple("median", ("values", "indices"))
_nanmedian = namedtuple("nanmedian", ("values", "indices"))
_kthvalue = namedtuple("kthvalue", ("values", "indices"))
for _type in (_median, _nanmedian, _kthvalue):
    _type.__module__ = "torch.return_types"


def _ordered(name, x):
    if x.is_complex() or x.dtype == _C.bool:
        raise NotImplementedError(f"{name}: not implemented for {x.dtype}")


def _evenly(flat, value):
    """`value`, whose gradient all equal elements of `flat` share."""
    if not flat.requires_grad and _C._current_dual_level() < 0:
        return value
    same = (flat == value) | (flat.isnan() & value.isnan())
    zeros = flat.detach() - flat.detach()
    part = _C.where(same, flat - flat.detach(), zeros).sum() / same.sum()
    return value.detach() + part.nan_to_num() if not bool(value.isnan()) else value.detach() + part


def _middle(x, dim, ignore_nan):
    """Indices of the medians along `dim`."""
    values, indices = _C.sort(x, dim=dim, stable=True)
    n = x.size(dim)
    if not x.is_floating_point():
        return indices.narrow(dim, (n - 1) // 2, 1)
    present = n - values.isnan().sum(dim, keepdim=True)
    place = (present - 1).clamp(min=0) // 2
    if not ignore_nan:  # the first of the NaN, which are sorted to the end
        place = _C.where(present < n, present, place)
    return indices.gather(dim, place)


def _median_of(name, kind, ignore_nan, x, dim, keepdim, out):
    _ordered(name, x)
    if dim is None:
        if x.numel() == 0:
            return x.new_full((), float("nan")) if x.is_floating_point() else x.new_zeros(()) - 1
        flat = x.reshape(-1)
        value = flat.detach().gather(0, _middle(flat.detach(), 0, ignore_nan))[0]
        return _evenly(flat, value)
    if x.dim() == 0:
        result = x.clone(), _C.zeros((), dtype=_C.int64)
    else:
        if x.size(dim) == 0:
            raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
        indices = _middle(x.detach(), dim, ignore_nan)
        values = x.gather(dim, indices)
        result = (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))
    return given(name, kind(*result), out)


@overridable
@per_sample
def median(input, dim=None, keepdim=False, *, out=None):
    """The lower of the middle values: of all elements, or along `dim` with its indices. NaN where there is one."""
    return _median_of("median", _median, False, input, dim, keepdim, out)


@overridable
@per_sample
def nanmedian(input, dim=None, keepdim=False, *, out=None):
    """`median` of what is not NaN."""
    return _median_of("nanmedian", _nanmedian, True, input, dim, keepdim, out)


@overridable
def kthvalue(input, k, dim=-1, keepdim=False, *, out=None):
    """The `k`-th smallest values along `dim`, counted from 1, and their indices. NaN counts as the largest."""
    _ordered("kthvalue", input)
    n = input.size(dim) if input.dim() else 1
    if not 1 <= k <= n:
        raise RuntimeError(
            f"kthvalue(): selected number k out of range for dimension {dim}; got {k}; size {n}"
        )
    if out is not None and out[0].data_ptr() == input.data_ptr() and input.numel():
        raise RuntimeError("kthvalue(): out shares memory with the input")
    if input.dim() == 0:
        return given("kthvalue", _kthvalue(input.clone(), _C.zeros((), dtype=_C.int64)), out)
    indices = _C.sort(input.detach(), dim=dim, stable=True).indices.narrow(dim, k - 1, 1)
    values = input.gather(dim, indices)
    if not keepdim:
        values, indices = values.squeeze(dim), indices.squeeze(dim)
    return given("kthvalue", _kthvalue(values, indices), out)


@overridable
def msort(input, *, out=None):
    """Sorted along the first dimension."""
    return given("msort", _C.sort(input, dim=0).values if input.dim() else input.clone(), out)


@overridable
@per_sample
def bincount(input, weights=None, minlength=0):
    """How often each whole number from 0 occurs in `input`, or the sum of its weights: (max(input) + 1,) or longer."""
    if input.is_floating_point() or input.is_complex():
        raise NotImplementedError(f"bincount: not implemented for {input.dtype}; expected integers")
    if input.dim() != 1:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise RuntimeError(f"minlength should be >= 0; got {minlength}")
    if weights is not None and weights.shape != input.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if input.numel() and int(input.min()) < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    size = max(int(input.max()) + 1 if input.numel() else 0, minlength)
    if weights is None:
        weights = _C.ones(input.shape, dtype=_C.int64)
    elif weights.dtype not in (_C.float32, _C.float64):
        weights = weights.double()
    counts = _C.zeros((size,), dtype=weights.dtype)
    return counts.index_add(0, input.to(_C.int64), weights.detach()) if input.numel() else counts


@overridable
def searchsorted(
    sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None, out=None
):
    """Where values would be inserted to keep sequences sorted, along the last dimension.

    A sequence of one dimension is for all values, otherwise the first dimensions are those of `input`. The place is
    before equal elements, with `right`, or `side` 'right', after them. `sorter` has the order of an unsorted sequence.
    """
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError("searchsorted(): side and right can't be set to opposites")
    right = right or side == "right"
    kind = _C.int32 if out_int32 else _C.int64
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    scalar = not isinstance(input, _C.Tensor)
    x = _C.tensor(input, dtype=None if scalar else input.dtype) if scalar else input
    if scalar and sorted_sequence.dim() != 1:
        raise RuntimeError("searchsorted(): a number needs a sequence of one dimension")
    seq = sorted_sequence
    if seq.dim() == 0 or (seq.dim() > 1 and seq.shape[:-1] != x.shape[:-1]):
        raise RuntimeError(
            "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of "
            f"boundaries tensor and input value tensor must match, but we got boundaries tensor "
            f"{list(seq.shape)} and input value tensor {list(x.shape)}"
        )
    n = seq.shape[-1]
    low = _C.zeros(x.shape, dtype=_C.int64)
    high = low + n
    flat = seq.dim() == 1
    for _ in range(n.bit_length()):
        middle = (low + high) // 2
        at = middle.clamp(max=max(n - 1, 0))
        value = seq[at] if flat else seq.gather(-1, at)
        # Written so that NaN among the values goes to the end.
        further = ~(value > x) if right else ~(value >= x)
        further = further & (low < high)
        low, high = _C.where(further, middle + 1, low), _C.where(further, high, middle)
        high = _C.maximum(high, low)
    return given("searchsorted", low.to(kind), out)


@overridable
def bucketize(input, boundaries, *, out_int32=False, right=False, out=None):
    """The bucket between sorted `boundaries` (n,) that each value is in, 0 to n; see `searchsorted`."""
    if boundaries.dim() != 1:
        raise RuntimeError(
            f"boundaries tensor must be 1 dimension, but got dim({boundaries.dim()})"
        )
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


@overridable
@per_sample
def histc(input, bins=100, min=0, max=0, *, out=None):  # noqa: A002
    """How many elements lie in each of `bins` equal bins from `min` to `max`: (bins,), of the dtype of `input`.

    The last bin has its upper end; elements outside and NaN count nowhere. Where both ends are equal, those of the
    elements are taken. Raises RuntimeError for ends that are not finite or in the wrong order.
    """
    if input.is_complex() or input.dtype == _C.bool:
        raise RuntimeError(f"histc: not defined for {input.dtype}")
    if bins <= 0:
        raise RuntimeError(f"histc: bins must be > 0; got {bins}")
    flat = input.detach().reshape(-1)
    low, high = float(min), float(max)
    if low == high and flat.numel():
        low, high = float(flat.min()), float(flat.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"histc: range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"histc: max must be larger than min; got [{low}, {high}]")
    x = flat.double()
    x = x[(x >= low) & (x <= high)]
    # The product first: whole numbers in bins of whole width come out exact.
    places = ((x - low) * bins / (high - low)).floor().clamp(max=bins - 1).to(_C.int64)
    counts = _C.zeros((bins,), dtype=_C.int64)
    counts = counts.index_add(0, places, _C.ones_like(places)) if places.numel() else counts
    return given("histc", counts.to(input.dtype), out)
