"""Quantiles, modes, covariances, histograms, differences quotients: built of sorting, gathering and sums."""

from __future__ import annotations

import builtins
import math
from collections import namedtuple

from lamina import _C
from lamina._order import bucketize
from lamina._out import given
from lamina._per_sample import per_sample
from lamina.functional import overridable

_range = builtins.range  # an argument has that name
_mode = namedtuple("mode", ("values", "indices"))
_histogram = namedtuple("histogram", ("hist", "bin_edges"))
_histogramdd = namedtuple("histogramdd", ("hist", "bin_edges"))
for _type in (_mode, _histogram, _histogramdd):
    _type.__module__ = "torch.return_types"


@overridable
def combinations(input, r=2, with_replacement=False):
    """All choices of `r` elements of a vector, (count, r), in order of their places."""
    if input.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty((0,))
    n = input.numel()
    count = math.comb(n + r - 1 if with_replacement else n, r) if n or not with_replacement else 0
    if count * r >= 2**60:
        raise RuntimeError(f"combinations: {count} choices of {r} elements are too many")
    result = input.new_empty((count, r))  # raises where the result has no room
    if count == 0:
        return result
    columns = [_C.arange(n)]
    for _ in _range(1, r):  # behind each choice so far, all elements that may follow its last
        last = columns[-1] + (0 if with_replacement else 1)
        follow = n - last
        columns = [_C.repeat_interleave(c, follow) for c in columns]
        begin = _C.repeat_interleave(follow.cumsum(0) - follow - last, follow)
        columns.append(_C.arange(columns[0].numel()) - begin)
    return _C.stack([input[c] for c in columns], 1)


def unravel_index(indices, shape):
    """Coordinates, one tensor a dimension, of places in a flattened tensor of the given shape."""
    if isinstance(shape, int):
        shape = (shape,)
    if indices.is_floating_point() or indices.is_complex() or indices.dtype == _C.bool:
        raise ValueError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    shape = [int(n) for n in shape]
    if any(n < 0 for n in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(shape)}")
    result, indices = [], indices.to(_C.int64)
    for n in reversed(shape):
        result.append(indices % max(n, 1))
        indices = indices.div(max(n, 1), rounding_mode="floor")
    return tuple(reversed(result))


@overridable
def mode(input, dim=-1, keepdim=False, *, out=None):
    """The most frequent value along `dim`, the smallest of several, and the index of its last place."""
    if input.is_complex():
        raise NotImplementedError("mode: complex numbers have no order")
    if input.dim() == 0:
        return given("mode", _mode(input.clone(), _C.zeros((), dtype=_C.int64)), out)
    n = input.size(dim)
    if n == 0:
        raise IndexError(f"mode(): Expected reduction dim {dim} to have non-zero size.")
    values, order = _C.sort(input.detach(), dim=dim, stable=True)
    values, order = values.movedim(dim, -1), order.movedim(dim, -1)
    change = _C.ones_like(order, dtype=_C.bool)
    if n > 1:
        change[..., 1:] = values[..., 1:] != values[..., :-1]
    place = _C.arange(n).expand(order.shape)
    start = _C.where(change, place, 0).cummax(-1).values
    last = (place - start).argmax(-1, keepdim=True)  # the end of the first longest run
    indices = order.gather(-1, last).movedim(-1, dim)
    picked = input.gather(dim, indices)
    if not keepdim:
        picked, indices = picked.squeeze(dim), indices.squeeze(dim)
    return given("mode", _mode(picked, indices), out)


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(name, input, q, dim, keepdim, interpolation, out, ignore_nan):
    if input.dtype not in (_C.float32, _C.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got "
            f"{interpolation}"
        )
    if not isinstance(q, _C.Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        q = _C.tensor(q, dtype=input.dtype)
    if q.dim() > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q.dtype != input.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if q.numel() and not bool(((q >= 0) & (q <= 1)).all()):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    if input.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if dim is None:
        x, place = input.reshape(-1), None
    else:
        place = dim % max(input.dim(), 1)
        x = (input if input.dim() else input.reshape(1)).movedim(place, -1)
    ordered = _C.sort(x, dim=-1).values
    n = x.shape[-1]
    missing = x.detach().isnan()
    flat_q = q.reshape([-1] + [1] * (x.dim() - 1))
    if ignore_nan:
        top = (n - missing.sum(-1)).to(x.dtype) - 1
    else:
        top = _C.where(missing.any(-1), float("nan"), float(n - 1)).to(x.dtype)
    rank = flat_q * top  # (q, ...)
    if not ignore_nan:  # of NaN the last place, where the sorted values have them
        rank = _C.where(rank.isnan(), float(n - 1), rank)
    rank = rank.clamp(min=0)
    if interpolation == "lower":
        rank = rank.floor()
    elif interpolation == "higher":
        rank = rank.ceil()
    elif interpolation == "nearest":
        rank = rank.round()
    low = rank.detach().floor().to(_C.int64)
    result = ordered.unsqueeze(0).expand([rank.shape[0], *ordered.shape])
    lower = result.gather(-1, low.unsqueeze(-1)).squeeze(-1)
    if interpolation in ("linear", "midpoint"):
        high = rank.detach().ceil().to(_C.int64)
        upper = result.gather(-1, high.unsqueeze(-1)).squeeze(-1)
        weight = (
            rank - rank.detach().floor() if interpolation == "linear" else _C.full_like(rank, 0.5)
        )
        lower = lower.lerp(upper, weight)
    value = lower  # (q, ...) of the dimensions that are left
    if keepdim:
        value = (
            value.reshape([value.shape[0]] + [1] * input.dim())
            if place is None
            else value.unsqueeze(place + 1 if input.dim() else 1)
        )
        if input.dim() == 0:
            value = value.reshape(value.shape[0])
    if q.dim() == 0:
        value = value[0]
    return given(name, value, out, same_type=True)


@overridable
@per_sample
def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """The `q`-quantiles, q in [0, 1], of all elements or along `dim`; a vector q gives a new first dimension. NaN where one is."""
    return _quantile("quantile", input, q, dim, keepdim, interpolation, out, False)


@overridable
@per_sample
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """`quantile` of what is not NaN."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, out, True)


@overridable
@per_sample
def cov(input, *, correction=1, fweights=None, aweights=None):
    """Covariances (n, n) of n variables with their samples in rows; integer and real weights of the samples."""
    if input.dim() > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {input.dim()} dimensions"
        )
    if input.dtype == _C.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input.reshape(1, -1) if input.dim() < 2 else input
    count = x.shape[1]
    weights = None
    if fweights is not None:
        _check_weights("fweights", fweights, count)
        if fweights.is_floating_point() or fweights.is_complex() or fweights.dtype == _C.bool:
            raise RuntimeError(
                f"cov(): expected fweights to have integral dtype but got fweights with {fweights.dtype} dtype"
            )
        weights = fweights
    if aweights is not None:
        _check_weights("aweights", aweights, count)
        if not aweights.is_floating_point():
            raise RuntimeError(
                f"cov(): expected aweights to have floating point dtype but got aweights with {aweights.dtype} dtype"
            )
        weights = aweights if weights is None else weights * aweights
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(_C.get_default_dtype())
    if weights is None:
        total = count
        mean = x.sum(1, keepdim=True) / count
        norm = total - correction
    else:
        total = weights.sum()
        if count and float(total) == 0:
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        mean = (x * weights).sum(1, keepdim=True) / total
        if aweights is None or correction == 0:
            norm = total - correction
        else:
            norm = total - correction * (weights * aweights).sum() / total
    norm = max(norm, 0) if isinstance(norm, (int, float)) else norm.clamp(min=0)
    x = x - mean
    spread = x.t().conj() if weights is None else (x * weights).t().conj()
    result = _C.mm(x, spread.resolve_conj().to(x.dtype))
    result = (
        result / norm
        if not (isinstance(norm, int) and norm == 0)
        else result / _C.zeros_like(result)
    )
    return result.squeeze()


def _check_weights(name, weights, count):
    if weights.dim() > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.dim()} dimensions"
        )
    if weights.numel() != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{weights.numel()} != {count}"
        )
    if count and bool((weights < 0).any()):
        raise RuntimeError(f"cov(): {name} cannot be negative")


@overridable
def corrcoef(input):
    """Correlation coefficients (n, n) of n variables with their samples in rows."""
    if input.dim() > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.dim()} dimensions"
        )
    c = cov(input)
    if c.dim() == 0:
        return c / c
    deviation = c.diag().sqrt()
    c = c / deviation.reshape(-1, 1) / deviation.reshape(1, -1)
    if c.is_complex():
        return _C.complex(_C.real(c).clip(-1, 1), _C.imag(c).clip(-1, 1))
    return c.clip(-1, 1)


@overridable
def cumulative_trapezoid(y, x=None, *, dx=1, dim=-1):
    """Running integral along `dim` by the trapezoidal rule, one element shorter; places `x`, or steps `dx`."""
    n = y.size(dim)
    low, high = y.narrow(dim, 0, max(n - 1, 0)), y.narrow(dim, min(1, n), max(n - 1, 0))
    if x is None:
        if isinstance(dx, bool):
            raise RuntimeError(
                "cumulative_trapezoid: Currently, we only support dx as a real number."
            )
        return (dx / 2.0) * (high + low).cumsum(dim)
    if x.dim() == 1 and y.dim() > 1:
        if x.numel() != n:
            raise RuntimeError(
                "cumulative_trapezoid: There must be one `x` value for each sample point"
            )
        shape = [1] * y.dim()
        shape[dim] = n
        x = x.reshape(shape)
    steps = x.diff(dim=dim if x.dim() == y.dim() or dim < 0 else dim - y.dim())
    return ((high + low) * steps / 2.0).cumsum(dim)


def _edges(flat, bins, low, high):
    """Ends (bins + 1,) of equal bins; without a range from the smallest to the largest element."""
    if low == high:
        low, high = low - 0.5, high + 0.5
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"histogram: range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError("histogram: min should not exceed max")
    return _C.linspace(low, high, bins + 1, dtype=flat.dtype)


def _bin_of(values, edges):
    """The bin of each value, and which values are in one; the last has its upper end."""
    count = edges.numel() - 1
    places = bucketize(values, edges, right=True) - 1
    inside = (values >= edges[0]) & (values <= edges[-1])
    return places.clamp(0, max(count - 1, 0)), inside


def _binned(name, columns, edges, weight, density):
    shape = [e.numel() - 1 for e in edges]
    dtype = columns[0].dtype
    place = _C.zeros(columns[0].shape, dtype=_C.int64)
    inside = _C.ones(columns[0].shape, dtype=_C.bool)
    for values, e, n in zip(columns, edges, shape):
        at, there = _bin_of(values, e)
        place, inside = place * n + at, inside & there
    amount = inside.to(dtype) if weight is None else weight.detach().reshape(-1) * inside.to(dtype)
    hist = _C.zeros(math.prod(shape), dtype=dtype)
    if hist.numel() and place.numel():
        hist = hist.index_add(0, place, amount)
    hist = hist.reshape(shape)
    if density:
        total = hist.sum()
        for d, e in enumerate(edges):
            widths = [1] * len(shape)
            widths[d] = shape[d]
            hist = hist / e.diff().reshape(widths)
        hist = hist / total
    return hist


@overridable
@per_sample
def histogram(input, bins=100, *, range=None, weight=None, density=False, out=None):  # noqa: A002
    """Counts, or sums of weights, of the elements in bins, and the ends of the bins.

    bins is a number of equal bins, from the smallest to the largest element or over `range`, or a vector of their ends.
    """
    if not input.is_floating_point():
        raise NotImplementedError(f"histogram: not defined for {input.dtype}")
    flat = input.detach().reshape(-1)
    if weight is not None and weight.shape != input.shape:
        raise RuntimeError(
            "histogram: if weight tensor is provided it should have the same shape as the input"
        )
    if isinstance(bins, _C.Tensor):
        if bins.dim() != 1 or bins.numel() == 0:
            raise RuntimeError("histogram: bins tensor should have one dimension and not be empty")
        if bins.dtype != input.dtype:
            raise RuntimeError("histogram: bins and input should have one dtype")
        edges = bins.detach().clone()
    else:
        if bins <= 0:
            raise RuntimeError(f"histogram: bins must be > 0, but got {bins}")
        if range is not None:
            low, high = (float(v) for v in range)
        elif flat.numel():
            low, high = float(flat.min()), float(flat.max())
        else:
            low, high = 0.0, 1.0
        edges = _edges(flat, bins, low, high)
    hist = _binned("histogram", [flat], [edges], weight, density)
    return given("histogram", _histogram(hist, edges), out)


@overridable
@per_sample
def histogramdd(input, bins, range=None, weight=None, density=False):  # noqa: A002
    """`histogram` of points, the last dimension of `input`; bins (and ends) for each of their coordinates."""
    if input.dim() < 2:
        raise RuntimeError(
            f"histogramdd: input tensor should have at least 2 dimensions; got {input.dim()}"
        )
    n = input.shape[-1]
    points = input.detach().reshape(-1, n)
    bins = [bins] * n if isinstance(bins, int) else list(bins)
    if len(bins) != n:
        raise RuntimeError(
            f"histogramdd: expected {n} sequences of bin edges for {n}-dimensional points; got {len(bins)}"
        )
    edges = []
    for i, b in enumerate(bins):
        column = points[:, i]
        if isinstance(b, _C.Tensor):
            edges.append(b.detach().clone())
            continue
        if range is not None:
            low, high = float(range[2 * i]), float(range[2 * i + 1])
        elif column.numel():
            low, high = float(column.min()), float(column.max())
        else:
            low, high = 0.0, 1.0
        edges.append(_edges(column, b, low, high))
    hist = _binned("histogramdd", [points[:, i] for i in _range(n)], edges, weight, density)
    return _histogramdd(hist, tuple(edges))


@overridable
def gradient(input, *, spacing=None, dim=None, edge_order=1):
    """Derivatives along dimensions by central differences, one tensor a dimension; one-sided at the ends (edge_order 1 or 2).

    `spacing` is a number for all or one for each dimension, or tensors of the places along each.
    """
    dims = (
        list(_range(input.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    )
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if len({d % max(input.dim(), 1) for d in dims}) < len(dims):
        raise RuntimeError(
            f"torch.gradient: a dim appears multiple times in the list of dims {dims}"
        )
    spacing = 1 if spacing is None else spacing
    spaces = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    if len(spaces) != len(dims):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar, or a list of length {len(dims)}; got {len(spaces)}"
        )
    result = []
    for d, h in zip(dims, spaces):
        n = input.size(d)
        if n < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1"
            )
        result.append(_derivative(input, d, h, edge_order, n))
    return tuple(result)


def _derivative(x, d, h, order, n):
    def at(i, length=1):
        return x.narrow(d, i, length)

    if not isinstance(h, _C.Tensor) or h.dim() == 0:
        h = h.item() if isinstance(h, _C.Tensor) else h
        inner = (at(2, n - 2) - at(0, n - 2)) / (2 * h)
        if order == 1:
            first, last = (at(1) - at(0)) / h, (at(n - 1) - at(n - 2)) / h
        else:
            first = (-1.5 * at(0) + 2 * at(1) - 0.5 * at(2)) / h
            last = (1.5 * at(n - 1) - 2 * at(n - 2) + 0.5 * at(n - 3)) / h
        return _C.cat([first, inner, last], d)
    if h.numel() != n:
        raise RuntimeError(
            f"torch.gradient expected one coordinate for each element; got {h.numel()} for {n}"
        )
    shape = [1] * x.dim()
    shape[d] = -1
    steps = h.diff()

    def wide(t):
        return t.reshape(shape)

    a, b = wide(steps[:-1]), wide(steps[1:])
    inner = (
        at(0, n - 2) * (-b / (a * (a + b)))
        + at(1, n - 2) * ((b - a) / (a * b))
        + at(2, n - 2) * (a / (b * (a + b)))
    )
    if order == 1:
        first, last = (at(1) - at(0)) / steps[0], (at(n - 1) - at(n - 2)) / steps[-1]
    else:
        a, b = steps[0], steps[1]
        first = (
            at(0) * (-(2 * a + b) / (a * (a + b)))
            + at(1) * ((a + b) / (a * b))
            + at(2) * (-a / (b * (a + b)))
        )
        a, b = steps[-2], steps[-1]
        last = (
            at(n - 3) * (b / (a * (a + b)))
            + at(n - 2) * (-(a + b) / (a * b))
            + at(n - 1) * ((2 * b + a) / (b * (a + b)))
        )
    return _C.cat([first, inner, last], d)
