"""Reductions of segments, and by exclusive or."""

import math

from lamina import _C
from lamina._dims import wrap_dims
from lamina._out import given
from lamina.functional import overridable

_SCATTERED = {"max": "amax", "amax": "amax", "min": "amin", "amin": "amin", "prod": "prod"}
_IDENTITY = {"sum": 0, "mean": 0, "prod": 1, "amax": -math.inf, "amin": math.inf}


def _begins(name, data, lengths, offsets, axis, unsafe):
    """Where segments begin, and the last ends: (..., segments + 1), in order and inside of the data."""
    table = offsets if offsets is not None else lengths
    if table.dtype not in (_C.int32, _C.int64):
        raise NotImplementedError(
            f"{name}: lengths and offsets must be int32 or int64; got {table.dtype}"
        )
    if table.dim() != axis + 1:
        raise RuntimeError(
            f"{name}: Expected axis to be the last dimension of {'offsets' if offsets is not None else 'lengths'} but got {axis}."
        )
    if table.shape[:-1] != data.shape[:axis]:
        raise RuntimeError(
            f"{name}: the dimensions before axis must be those of the data; got {list(table.shape)} and {list(data.shape)}"
        )
    table, n = table.to(_C.int64), data.shape[axis]
    if offsets is not None:
        if table.shape[-1] == 0:
            raise RuntimeError(f"{name}: offsets must not be empty along axis")
        begins = table
    else:
        if table.numel() and bool((table < 0).any()):
            raise RuntimeError(f"{name}: lengths contains negative value!")
        begins = _C.constant_pad_nd(table.cumsum(-1), [1, 0], 0)
        if not unsafe and bool((begins[..., -1] != n).any()):
            raise RuntimeError(
                f"{name}: Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
            )
    ordered = begins[..., 1:] >= begins[..., :-1]
    if begins.numel() and not bool(ordered.all() & (begins >= 0).all() & (begins <= n).all()):
        raise RuntimeError(
            f"{name}: segments must be in order and end inside of the data's {n} elements"
        )
    return begins


def _segment_reduce(
    data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None
):  # fmt: skip
    name = "segment_reduce"
    if reduce not in ("sum", "mean", *_SCATTERED):
        raise RuntimeError(
            f"{name}: reduce argument must be either sum, prod, mean, max or min, got {reduce!r}"
        )
    if indices is not None:
        raise RuntimeError(f"{name}: indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError(f"{name}: Either lengths or offsets must be defined.")
    if not data.is_floating_point():
        raise NotImplementedError(
            f"{name}: not implemented for {data.dtype}; expected floating point numbers"
        )
    (axis,) = wrap_dims([axis], data)
    if data.dim() == 0:
        raise RuntimeError(f"{name}: expected at least one dimension; got a tensor of one element")
    begins = _begins(name, data, lengths, offsets, axis, unsafe)
    rows, n, inner = math.prod(data.shape[:axis]), data.shape[axis], data.shape[axis + 1 :]
    count = begins.shape[-1] - 1
    # The segment of each element, `count` for those before and behind; one row of segments after the other.
    begins = begins.reshape(rows, count + 1)
    last = begins[:, -1:]
    sizes = _C.cat([begins[:, :1], begins.diff(dim=1), n - last], 1)
    names = _C.constant_pad_nd(_C.arange(count), [1, 1], count)
    names = names + _C.arange(rows).unsqueeze(1) * (count + 1)
    segment = _C.repeat_interleave(names.reshape(-1), sizes.reshape(-1))
    x = data.to(_C.float32) if data.dtype in (_C.float16, _C.bfloat16) else data
    x = x.reshape(rows * n, *inner)
    kind = _SCATTERED.get(reduce, reduce)
    start = _IDENTITY[kind] if initial is None else initial
    total = x.new_full((rows * (count + 1), *inner), _IDENTITY[kind])
    if kind in ("sum", "mean"):
        total = total.index_add(0, segment, x) + start
    else:
        wide = segment.reshape(-1, *[1] * len(inner)).expand(x.shape)
        total = total.scatter_reduce(0, wide, x, kind, include_self=False)
        if kind == "prod":
            total = total * start
        elif initial is not None:  # what an element equals comes from the element
            before = total < start if kind == "amax" else total > start
            total = _C.where(before, start, total)
    result = total.reshape(*data.shape[:axis], count + 1, *inner).narrow(axis, 0, count)
    if kind == "mean":
        size = sizes[:, 1:-1].reshape(*result.shape[: axis + 1], *[1] * len(inner))
        if initial is not None:  # which is the mean of nothing
            size = size.clamp(min=1)
        result = result / size
    return result.to(data.dtype)


@overridable
def segment_reduce(
    data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None
):  # fmt: skip
    """Each segment along `axis` reduced to one element by `reduce`: 'sum', 'mean', 'prod', 'max' or 'min'.

    `lengths` (..., segments) are the segments' sizes, or `offsets` (..., segments + 1) their ends; the dimensions before `axis` are
    the data's. Lengths must add up to the size of the data, unless `unsafe`. `initial` takes part in each segment. A segment
    without elements gives `initial`, or the identity of the reduction (NaN of 'mean'). Gradients of extremes are divided evenly
    among equal elements. Raises RuntimeError for segments that are out of order or outside, NotImplementedError for numbers that
    are not floating point.
    """
    return _segment_reduce(
        data, reduce, lengths=lengths, indices=indices, offsets=offsets, axis=axis, unsafe=unsafe, initial=initial
    )  # fmt: skip


@overridable
def hash_tensor(input, dim=(), *, keepdim=False, mode=0, out=None):
    """Exclusive or, uint64, of the bits of all elements or along dimensions; numbers are float64 or int64 first.

    Raises RuntimeError for another mode than 0, IndexError where a reduced dimension is empty, NotImplementedError for complex numbers.
    """
    if mode != 0:
        raise RuntimeError(f"hash_tensor: Unknown hash_tensor mode: {mode}; expected 0")
    if input.is_complex():
        raise NotImplementedError(f"hash_tensor: not implemented for {input.dtype}")
    x = input.detach()
    if x.dtype != _C.uint64:
        x = x.to(_C.float64 if x.is_floating_point() else _C.int64)
    x = x.view(_C.int64)
    dims = wrap_dims([dim] if isinstance(dim, int) else dim or (), x)
    if len(set(dims)) < len(dims):
        raise RuntimeError(
            f"hash_tensor: a dimension appears multiple times in the list of dims {dims}"
        )
    dims = (dims or list(range(x.dim()))) if x.dim() else []
    for d in dims:
        if x.shape[d] == 0:
            raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    left = [d for d in range(x.dim()) if d not in dims]
    kept = [x.shape[d] for d in left]
    rows = x.permute(left + dims).reshape([*kept, math.prod(x.shape[d] for d in dims)])
    while rows.shape[-1] > 1:  # the second half onto the first
        half = rows.shape[-1] // 2
        rest = rows[..., 2 * half :]
        rows = rows[..., :half] ^ rows[..., half : 2 * half]
        if rest.shape[-1]:
            rows[..., :1] ^= rest
    shape = [1 if d in dims else s for d, s in enumerate(x.shape)] if keepdim else kept
    result = rows.reshape(shape).clone().view(_C.uint64)
    return given("hash_tensor", result, out, same_type=True)
