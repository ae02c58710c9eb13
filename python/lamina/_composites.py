"""Operators that are a few calls of others, in Python."""

import math
from collections import namedtuple

from lamina import _C
from lamina._dims import wrap_dims
from lamina._out import given
from lamina._per_sample import per_sample
from lamina.functional import overridable

_range = range  # torch has a function of that name


def _runs(sorted_flat):
    """Where a sorted vector, or matrix of rows, changes: truth values, the first one True."""
    n = sorted_flat.shape[0]
    change = _C.ones(n, dtype=_C.bool)
    if n > 1:
        differs = sorted_flat[1:] != sorted_flat[:-1]
        change[1:] = differs if differs.dim() == 1 else differs.any(1)
    return change


def _picked(values, change, order, return_inverse, return_counts):
    starts = _C.nonzero(change).reshape(-1)
    result = [values[starts]]
    if return_inverse:
        number = change.to(_C.int64).cumsum(0) - 1
        inverse = _C.empty_like(number)
        inverse[order] = number
        result.append(inverse)
    if return_counts:
        ends = _C.cat([starts[1:], starts.new_full((1,), len(change))]) if len(starts) else starts
        result.append(ends - starts)
    return result


def _rows_order(rows):
    order = _C.arange(rows.shape[0])
    for column in _range(rows.shape[1] - 1, -1, -1):
        order = order[_C.sort(rows[order, column], stable=True)[1]]
    return order


def _tensor(name, value):
    if not isinstance(value, _C.Tensor):
        raise TypeError(
            f"{name}(): argument 'input' (position 1) must be Tensor, not {type(value).__name__}"
        )


def _slices(input, dim):
    """With `dim` in front, and each slice as a row."""
    front = input.detach().movedim(dim, 0)
    if front.numel() == 0 and front.shape[0]:
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied; "
            f"got {tuple(input.shape)} along dim {dim}"
        )
    return front, front.reshape(front.shape[0], math.prod(front.shape[1:]))


@overridable
@per_sample
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different values, in order.

    Parameters
    ----------
    sorted : bool
        Accepted; they are always in order.
    return_inverse, return_counts : bool
        Also the place of each element's value, and how often each value stands there; int64.
    dim : int
        Slices along a dimension are compared, instead of elements.
    """
    _tensor("unique", input)
    if dim is None:
        flat = input.detach().reshape(-1)
        order = _C.sort(flat, stable=True)[1]
        values = flat[order]
        result = _picked(values, _runs(values), order, return_inverse, return_counts)
        if return_inverse:
            result[1] = result[1].reshape(input.shape)
    else:
        front, rows = _slices(input, dim)
        order = _rows_order(rows)
        values = rows[order]
        result = _picked(values, _runs(values), order, return_inverse, return_counts)
        shape = [result[0].shape[0], *front.shape[1:]]
        result[0] = result[0].reshape(shape).movedim(0, dim)
    return result[0] if len(result) == 1 else tuple(result)


@overridable
@per_sample
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """Without repetitions of the element (or slice) before; see `unique` for the other results."""
    _tensor("unique_consecutive", input)
    if dim is None:
        rows = input.detach().reshape(-1)
    else:
        front, rows = _slices(input, dim)
    order = _C.arange(rows.shape[0])
    result = _picked(rows, _runs(rows), order, return_inverse, return_counts)
    if dim is None:
        if return_inverse:
            result[1] = result[1].reshape(input.shape)
    else:
        shape = [result[0].shape[0], *front.shape[1:]]
        result[0] = result[0].reshape(shape).movedim(0, dim)
    return result[0] if len(result) == 1 else tuple(result)


@overridable
def var_mean(input, dim=None, *, correction=1, keepdim=False, unbiased=None):
    """Variance and mean, a tuple."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    correction = correction if unbiased is None else int(unbiased)
    mean = input.mean() if dim is None and not keepdim else input.mean(dim, keepdim=keepdim)
    return input.var(dim, correction=correction, keepdim=keepdim), mean


@overridable
def std_mean(input, dim=None, *, correction=1, keepdim=False, unbiased=None):
    """Standard deviation and mean, a tuple."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    correction = correction if unbiased is None else int(unbiased)
    mean = input.mean() if dim is None and not keepdim else input.mean(dim, keepdim=keepdim)
    return input.std(dim, correction=correction, keepdim=keepdim), mean


@overridable
def atleast_2d(*tensors):
    """Each as a view of at least two dimensions; new ones come first."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return tuple(atleast_2d(t) for t in tensors[0])
    rows = tuple(t.reshape(1, -1) if t.dim() < 2 else t for t in tensors)
    return rows[0] if len(rows) == 1 else rows


@overridable
def atleast_3d(*tensors):
    """Each as a view of at least three dimensions."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return tuple(atleast_3d(t) for t in tensors[0])
    deep = tuple(atleast_2d(t).unsqueeze(-1) if t.dim() < 3 else t for t in tensors)
    deep = tuple(t.unsqueeze(-1) if t.dim() < 3 else t for t in deep)
    return deep[0] if len(deep) == 1 else deep


@overridable
@per_sample
def tensor_split(input, indices_or_sections, dim=0):
    """Views of parts along a dimension: so many, as equal as can be, or between the indices."""
    n = input.size(dim)
    at = indices_or_sections
    if isinstance(at, _C.Tensor):
        if at.dtype != _C.int64:
            raise RuntimeError(
                f"tensor_split: expected indices or sections of dtype long, but got {at.dtype}"
            )
        at = at.tolist()
    if isinstance(at, int):
        if at <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {at}")
        if at > 1 << 20:
            raise RuntimeError(f"tensor_split: too many sections; got {at}")
        bounds = [0]
        for i in _range(at):
            bounds.append(bounds[-1] + n // at + (i < n % at))
    else:
        bounds = [0, *(min(max(i + n if i < 0 else i, 0), n) for i in at), n]
    return tuple(input.narrow(dim, a, max(b - a, 0)) for a, b in zip(bounds, bounds[1:]))


def _copies(name, views):
    """The operator `name`: copies of the views that another makes."""
    copies = getattr(_C, name)

    def function(input, *args, out=None, **options):
        if out is None:
            return copies(input, *args, **options)
        if not isinstance(out, (tuple, list)):
            raise TypeError(
                f"{name}(): argument 'out' must be tuple of Tensors, not {type(out).__name__}"
            )
        parts = getattr(_C, views)(input, *args, **options)
        if len(out) != len(parts):
            raise RuntimeError(
                f"{name}: expected an out= argument of size {len(parts)}, got size {len(out)}"
            )
        return given(name, parts, tuple(out), same_type=True)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"What {views} shows, as copies; written into the tensors of `out` where it is given."
    )
    return overridable(function)


split_copy = _copies("split_copy", "split")
split_with_sizes_copy = _copies("split_with_sizes_copy", "split_with_sizes")
unbind_copy = _copies("unbind_copy", "unbind")


def _split_evenly(name, input, indices_or_sections, dim, least):
    if input.dim() < least:
        raise RuntimeError(
            f"{name}: requires a tensor with at least {least} dimension{'s' * (least > 1)}; got {input.dim()}"
        )
    sections, size = indices_or_sections, input.size(dim)
    if isinstance(sections, int) and sections != 0 and size % sections != 0:
        raise RuntimeError(
            f"{name}: attempted to split along dimension {dim}, but the size of the dimension {size} is not "
            f"divisible by the split_size {sections}"
        )
    return tensor_split(input, sections, dim)


@overridable
def hsplit(input, indices_or_sections):
    """tensor_split along the second dimension; of vectors along their only one. Sections are equal."""
    dim = 0 if input.dim() == 1 else 1
    return _split_evenly("hsplit", input, indices_or_sections, dim, 1)


@overridable
def vsplit(input, indices_or_sections):
    """tensor_split along the first dimension. Sections are equal."""
    return _split_evenly("vsplit", input, indices_or_sections, 0, 2)


@overridable
def dsplit(input, indices_or_sections):
    """tensor_split along the third dimension. Sections are equal."""
    return _split_evenly("dsplit", input, indices_or_sections, 2, 3)


@overridable
def take_along_dim(input, indices, dim=None, *, out=None):
    """gather with sizes that broadcast; without a dimension, of the flattened tensor."""
    if indices.dtype != _C.int64:
        raise RuntimeError(
            f"take_along_dim(): dtype of indices should be Long but got {indices.dtype}"
        )
    if dim is None:
        input, indices = input.reshape(-1), indices.reshape(-1)
        result = input.gather(0, _C.where(indices < 0, indices + input.numel(), indices))
    else:
        if input.dim() != indices.dim():
            raise RuntimeError(
                "take_along_dim: input and indices should have the same number of dimensions; got "
                f"{input.dim()} and {indices.dim()}"
            )
        (dim,) = wrap_dims([dim], input)
        shape = [max(a, b) if 0 not in (a, b) else 0 for a, b in zip(input.shape, indices.shape)]
        wide = [s if i != dim else n for i, (s, n) in enumerate(zip(shape, input.shape))]
        thin = [s if i != dim else n for i, (s, n) in enumerate(zip(shape, indices.shape))]
        input, indices = input.expand(wide), indices.expand(thin)
        n = input.shape[dim]
        result = input.gather(dim, _C.where(indices < 0, indices + n, indices))
    return given("take_along_dim", result, out, same_type=True)


def _triangle(mask, dtype):
    return _C.nonzero(mask).t().contiguous().to(dtype)


def tril_indices(row, col, offset=0, *, dtype=_C.int64, device="cpu", layout=_C.strided):
    """Coordinates (2, n) of the lower triangle of a matrix."""
    rows, cols = _C.arange(row).unsqueeze(1), _C.arange(col)
    return _triangle(cols - rows <= offset, dtype)


def triu_indices(row, col, offset=0, *, dtype=_C.int64, device="cpu", layout=_C.strided):
    """Coordinates (2, n) of the upper triangle of a matrix."""
    rows, cols = _C.arange(row).unsqueeze(1), _C.arange(col)
    return _triangle(cols - rows >= offset, dtype)


@overridable
@per_sample
def isin(elements, test_elements, *, assume_unique=False, invert=False, out=None):
    """For each element, whether it is one of the others; one of the two may be a number. Raises TypeError where both are."""
    if not isinstance(elements, _C.Tensor) and not isinstance(test_elements, _C.Tensor):
        raise TypeError(
            "isin() received an invalid combination of arguments; got "
            f"({type(elements).__name__}, {type(test_elements).__name__}); expected a Tensor"
        )
    elements = elements if isinstance(elements, _C.Tensor) else _C.tensor(elements)
    tests = test_elements if isinstance(test_elements, _C.Tensor) else _C.tensor(test_elements)
    if tests.numel() < 16:
        result = _C.zeros(elements.shape, dtype=_C.bool)
        for value in tests.reshape(-1):
            result |= elements == value
    else:
        both = _C.cat([elements.reshape(-1), tests.reshape(-1)])
        places = unique(both, return_inverse=True)[1]
        known = _C.zeros(int(places.max()) + 1, dtype=_C.bool)
        known[places[elements.numel() :]] = True
        result = known[places[: elements.numel()]].reshape(elements.shape)
    return given("isin", ~result if invert else result, out)


_aminmax = namedtuple("aminmax", ("min", "max"))
_aminmax.__module__ = "torch.return_types"


@overridable
def aminmax(input, *, dim=None, keepdim=False, out=None):
    """Smallest and largest, a named tuple (min, max)."""
    dims = [] if dim is None else [dim]
    result = _aminmax(_C.amin(input, dims, keepdim), _C.amax(input, dims, keepdim))
    return given("aminmax", result, out, same_type=True)


@overridable
def trapezoid(y, x=None, *, dx=None, dim=-1):
    """The integral by the trapezoidal rule along a dimension."""
    n = y.size(dim)
    if y.dtype == _C.bool or (x is not None and x.dtype == _C.bool):
        raise RuntimeError("trapezoid: received a bool input, but bool is not supported")
    left, right = y.narrow(dim, 0, max(n - 1, 0)), y.narrow(dim, min(1, n), max(n - 1, 0))
    if x is None:
        return (left + right).sum(dim) * (0.5 * (1 if dx is None else dx))
    if x.dim() == 1 and x.shape[0] != n:
        raise RuntimeError(
            f"trapezoid: There must be one `x` value for each sample point; got {x.shape[0]} for {n}"
        )
    if x.dim() == 1 and y.dim() > 1:
        shape = [1] * y.dim()
        shape[dim] = -1
        x = x.reshape(shape)
    return ((left + right) * _C.diff(x, dim=dim)).sum(dim) * 0.5


trapz = trapezoid


@overridable
def cdist(x1, x2, p=2.0, compute_mode=None):
    """Distances (..., m, n) between the rows of two matrices, by the p-norm."""
    if x1.dim() < 2 or x2.dim() < 2:
        raise RuntimeError("cdist only supports at least 2D tensors")
    if x1.size(-1) != x2.size(-1):
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns; got {x1.size(-1)} and {x2.size(-1)}"
        )
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    for x in (x1, x2):
        if not x.is_floating_point():
            raise RuntimeError(f"cdist only supports floating-point dtypes; got {x.dtype}")
    difference = (x1.unsqueeze(-2) - x2.unsqueeze(-3)).abs()
    if p == 0:
        return _C._tied((difference != 0).to(x1.dtype).sum(-1), difference)  # flat, not constant
    if p == math.inf:
        return difference.amax(-1)
    if p == 1:
        return difference.sum(-1)
    if p == 2:
        return (difference * difference).sum(-1).sqrt()
    return difference.pow(p).sum(-1).pow(1 / p)


@overridable
def get_device(input):
    """The index of the tensor's device; -1 for the CPU."""
    _tensor("get_device", input)
    return input.get_device()


@overridable
def is_signed(input):
    """Whether the element type has a sign."""
    return input.is_signed()


@overridable
def is_inference(input):
    """Whether the tensor was made under inference_mode."""
    return input.is_inference()


@overridable
def is_same_size(input, other):
    """Whether both have the same sizes."""
    return input.is_same_size(other)


@overridable
def resize_as_(input, the_template, *, memory_format=None):
    """Resize in place to the sizes of another tensor."""
    return input.resize_(the_template.shape)


@overridable
def detach_(input):
    """Forget the history, in place."""
    return input.detach_()


def range(start=0, end=None, step=1, **options):  # noqa: A001
    """arange with the end included; deprecated in torch, too."""
    if end is None:
        raise TypeError("range() is missing the argument 'end'")
    import warnings

    warnings.warn("torch.range is deprecated: use arange, which leaves the end out", stacklevel=2)
    options.setdefault("dtype", _C.get_default_dtype())
    count = int((end - start) / step) + 1
    return (_C.arange(count) * step + start).to(options["dtype"])


@overridable
def fill_diagonal_(input, fill_value, wrap=False):
    """Set the main diagonal, in place; with `wrap` that of a tall matrix starts again after a row left out.

    Raises RuntimeError for less than 2 dimensions, and for more of different sizes.
    """
    sizes = input.shape
    if input.dim() < 2:
        raise RuntimeError(f"fill_diagonal_: dimensions must be larger than 1; got {input.dim()}")
    if input.dim() > 2 and len(set(sizes)) > 1:
        raise RuntimeError(
            f"fill_diagonal_: all dimensions must be of equal length; got {list(sizes)}"
        )
    n = min(sizes)
    if n == 0:
        return input
    places = _C.arange(n)
    input[(places,) * input.dim()] = fill_value
    if wrap and input.dim() == 2 and sizes[0] > sizes[1] + 1:
        fill_diagonal_(input[sizes[1] + 1 :], fill_value, True)
    return input


@overridable
@per_sample(random=True)
def multinomial(input, num_samples, replacement=False, *, generator=None, out=None):
    """Numbers drawn with probabilities in proportion to weights (categories) or (rows, categories): int64 (..., num_samples).

    Raises RuntimeError for weights that are negative, infinite or NaN, for a row of zeros, and, without `replacement`, for
    more samples than there are categories of weight above zero.
    """
    if not input.is_floating_point():
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {input.dtype}"
        )
    if input.dim() not in (1, 2):
        raise RuntimeError("multinomial: prob_dist must be 1 or 2 dim")
    if out is not None and out.dtype != _C.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {out.dtype}")
    if num_samples <= 0:
        raise RuntimeError("multinomial: cannot sample n_sample <= 0 samples")
    if input.size(-1) >= 2**24:
        raise RuntimeError("multinomial: number of categories cannot exceed 2^24")
    if not replacement and num_samples > input.size(-1):
        raise RuntimeError(
            "multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    weights = input.detach().to(_C.float64)
    if not bool(((weights >= 0) & (weights < math.inf)).all()):
        raise RuntimeError(
            "multinomial: probability tensor contains either `inf`, `nan` or element < 0"
        )
    enough = (weights > 0).sum(-1)
    if enough.numel() and int(enough.min()) < (1 if replacement else num_samples):
        raise RuntimeError(
            "multinomial: invalid multinomial distribution (too few categories with a weight above "
            f"zero; got {int(enough.min())}, expected {1 if replacement else num_samples})"
        )
    if replacement:
        from lamina._order import searchsorted

        reach = weights.cumsum(-1) / weights.sum(-1, keepdim=True)
        drawn = _C.rand((*input.shape[:-1], num_samples), dtype=_C.float64, generator=generator)
        # The first category whose reach is not below the draw; never one of weight zero.
        last = input.size(-1) - 1 - (weights > 0).flip(-1).to(_C.int64).argmax(-1, keepdim=True)
        result = searchsorted(reach, drawn).minimum(last)
    else:
        # Exponential variables over weights: the smallest come first (Efraimidis and Spirakis, 2006).
        drawn = -_C.log1p(-_C.rand(input.shape, dtype=_C.float64, generator=generator))
        result = (weights / drawn).topk(num_samples, -1)[1]
    return given("multinomial", result, out)


@overridable
def _scaled_mm(
    input, mat2, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False, *, out=None
):  # fmt: skip
    """Product (m, n) of float8 matrices times their scales, float32: one number for a matrix, or (m, 1) and (1, n) for its rows.

    It is computed in float32, `bias` (n,) is added, and the result converted to `out_dtype` (by default the first's); a float8
    result is divided by `scale_result` first. Raises RuntimeError for sizes that do not fit, ValueError for other types and scales.
    """
    kinds = (_C.float8_e4m3fn, _C.float8_e5m2)
    if input.dim() != 2 or mat2.dim() != 2 or input.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"_scaled_mm: mat_a and mat_b shapes cannot be multiplied; got {list(input.shape)} and {list(mat2.shape)}"
        )
    m, n = input.shape[0], mat2.shape[1]
    for scale, rows in ((scale_a, [m, 1]), (scale_b, [1, n])):
        if scale.dtype != _C.float32 or (scale.numel() != 1 and list(scale.shape) != rows):
            raise ValueError(
                f"_scaled_mm: scales must be float32, of one element or {rows}; got {scale.dtype} {list(scale.shape)}"
            )
    if input.dtype not in kinds or mat2.dtype not in kinds:
        raise ValueError(
            f"_scaled_mm: expected float8 matrices; got {input.dtype} and {mat2.dtype}"
        )
    result = _C.mm(input.to(_C.float32), mat2.to(_C.float32))
    result = result * scale_a.reshape(-1, 1) * scale_b.reshape(1, -1)
    if bias is not None:
        if bias.dim() != 1 or bias.shape[0] != n:
            raise RuntimeError(f"_scaled_mm: bias must have {n} elements; got {list(bias.shape)}")
        result = result + bias.to(_C.float32)
    dtype = input.dtype if out_dtype is None else out_dtype
    if scale_result is not None and dtype in kinds:
        result = result / scale_result
    return given("_scaled_mm", result.to(dtype), out, same_type=True)
