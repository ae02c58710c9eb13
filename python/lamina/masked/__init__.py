"""Reductions and normalizations that leave elements out.

`mask` is true where an element counts; it broadcasts to the operand, and None keeps every element. What is left out has no
influence on a result and gets a gradient of exactly zero. A reduction of nothing gives the identity of its operation (0 for sums and
norms, 1 for products, the lowest value for maxima, the highest for minima, -inf for `logsumexp`) and NaN where it has none. `dim` is
one dimension or several, all by default. `dtype` is what the operand is converted to first, and the type of the result.

They raise IndexError for a mask of more dimensions than the operand, RuntimeError for one that does not broadcast to it. Operands are
dense; there is no MaskedTensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina import _C
from lamina._dims import wrap_dim
from lamina._missing import missing
from lamina.functional import overridable

__all__ = [
    "MaskedTensor", "amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum", "is_masked_tensor",
    "log_softmax", "logaddexp", "logsumexp", "masked_tensor", "mean", "median", "norm", "normalize", "prod", "softmax",
    "softmin", "std", "sum", "var",
]  # fmt: skip

_Tensor, _dtype = _C.Tensor, _C.dtype


class MaskedTensor(_Tensor):
    """A tensor with its mask; not in this release: the functions of this module take the mask as an argument."""

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
        raise missing("torch.masked.MaskedTensor")


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """A new MaskedTensor; raises NotImplementedError, see there."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """A MaskedTensor that shares `data`; raises NotImplementedError, see there."""
    return MaskedTensor(data, mask)


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether an object is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


def _mask_of(name: str, mask: _Tensor, input: _Tensor) -> _Tensor:
    """The mask as bool, with the sizes of the operand."""
    if not isinstance(mask, _Tensor):
        raise TypeError(f"{name}: mask must be a Tensor; got {type(mask).__name__}")
    if mask.dim() > input.dim():
        raise IndexError(
            f"{name}: expected a mask that broadcasts to the input; got a mask of {mask.dim()} dimensions for {input.dim()}"
        )
    return (mask if mask.dtype == _C.bool else mask != 0).expand(input.shape)


def _bound(name: str, dtype: _dtype, highest: bool) -> Any:
    """The largest or the smallest number of a type."""
    if dtype.is_floating_point:
        return float("inf") if highest else float("-inf")
    if dtype.is_complex or dtype == _C.bool:
        raise NotImplementedError(
            f"{name}: a mask needs numbers that have an order and an identity; got {dtype}"
        )
    from lamina._type_info import iinfo

    return iinfo(dtype).max if highest else iinfo(dtype).min


def _without(name: str, input: _Tensor, mask: _Tensor | None, value: Any) -> _Tensor:
    """The operand with `value` where the mask is false."""
    return input if mask is None else _C.where(_mask_of(name, mask, input), input, value)


def _extreme(name: str, input: _Tensor, mask: _Tensor | None, highest: bool) -> _Tensor:
    return (
        input if mask is None else _without(name, input, mask, _bound(name, input.dtype, highest))
    )


def _dims(input: _Tensor, dim: int | Sequence[int] | None) -> list[int]:
    """The dimensions to reduce: all of them without `dim`; a tensor of one element has none."""
    n = input.dim()
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return list(range(n))
    result: list[int] = []
    for d in [dim] if isinstance(dim, int) else dim:
        wrapped = wrap_dim(d, max(n, 1))
        if wrapped in result:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        result.append(wrapped)
    return sorted(result) if n else []


def _one_dim(input: _Tensor, dim: int | Sequence[int] | None) -> int:
    return (_dims(input, dim) or [0])[0]


def _converted(input: _Tensor, dtype: _dtype | None, widen: bool = False) -> _Tensor:
    """The operand in the type asked for; with `widen` whole numbers become int64 where none is."""
    if dtype is None and widen and not (input.is_floating_point() or input.is_complex()):
        dtype = _C.int64
    return input if dtype is None or dtype == input.dtype else input.to(dtype)


@overridable
def sum(
    input: _Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool | None = False,
    dtype: _dtype | None = None,
    mask: _Tensor | None = None,
) -> _Tensor:
    """Sum of the elements that count; whole numbers are added in int64."""
    dims = _dims(input, dim)
    x = _without("masked.sum", _converted(input, dtype, True), mask, 0)
    return _C.sum(x, dims, bool(keepdim), dtype=x.dtype) if dims else x.clone()


@overridable
def prod(
    input: _Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool | None = False,
    dtype: _dtype | None = None,
    mask: _Tensor | None = None,
) -> _Tensor:
    """Product of the elements that count; whole numbers are multiplied in int64."""
    dims = _dims(input, dim)
    x = _without("masked.prod", _converted(input, dtype, True), mask, 1)
    if not dims:
        return x.clone()
    for d in reversed(dims):
        x = _C.prod(x, d, bool(keepdim), dtype=x.dtype)
    return x


@overridable
def cumsum(
    input: _Tensor, dim: int, *, dtype: _dtype | None = None, mask: _Tensor | None = None
) -> _Tensor:
    """Running sums along `dim` of the elements that count, in the type of the operand."""
    x = _converted(input, dtype)
    if x.dtype == _C.bool:
        raise NotImplementedError("masked.cumsum: not implemented for torch.bool; expected numbers")
    return _C.cumsum(_without("masked.cumsum", x, mask, 0), _one_dim(input, dim), dtype=x.dtype)


@overridable
def cumprod(
    input: _Tensor, dim: int, *, dtype: _dtype | None = None, mask: _Tensor | None = None
) -> _Tensor:
    """Running products along `dim` of the elements that count, in the type of the operand."""
    x = _converted(input, dtype)
    if x.dtype == _C.bool:
        raise NotImplementedError(
            "masked.cumprod: not implemented for torch.bool; expected numbers"
        )
    return _C.cumprod(_without("masked.cumprod", x, mask, 1), _one_dim(input, dim), dtype=x.dtype)


@overridable
def amax(
    input: _Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool | None = False,
    dtype: _dtype | None = None,
    mask: _Tensor | None = None,
) -> _Tensor:
    """Largest of the elements that count."""
    x = _extreme("masked.amax", input, mask, False)
    return _converted(_C.amax(x, _dims(input, dim), bool(keepdim)), dtype)


@overridable
def amin(
    input: _Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool | None = False,
    dtype: _dtype | None = None,
    mask: _Tensor | None = None,
) -> _Tensor:
    """Smallest of the elements that count."""
    x = _extreme("masked.amin", input, mask, True)
    return _converted(_C.amin(x, _dims(input, dim), bool(keepdim)), dtype)


@overridable
def argmax(
    input: _Tensor,
    dim: int | None = None,
    *,
    dtype: _dtype | None = None,
    keepdim: bool | None = False,
    mask: _Tensor | None = None,
) -> _Tensor:
    """Index of the largest of the elements that count, along `dim` or of all; as in torch in the type of the operand, or `dtype`."""
    x = _extreme("masked.argmax", input, mask, False)
    return _C.argmax(x, dim, bool(keepdim)).to(input.dtype if dtype is None else dtype)


@overridable
def argmin(
    input: _Tensor,
    dim: int | None = None,
    *,
    dtype: _dtype | None = None,
    keepdim: bool | None = False,
    mask: _Tensor | None = None,
) -> _Tensor:
    """Index of the smallest of the elements that count, along `dim` or of all; as in torch in the type of the operand, or `dtype`."""
    x = _extreme("masked.argmin", input, mask, True)
    return _C.argmin(x, dim, bool(keepdim)).to(input.dtype if dtype is None else dtype)


def _count(input: _Tensor, mask: _Tensor, dims: list[int], keepdim: bool | None) -> _Tensor:
    """How many elements count, for each result."""
    kept = _mask_of("masked", mask, input).to(_C.int64)
    return _C.sum(kept, dims, bool(keepdim)) if dims else kept


@overridable
def mean(
    input: _Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool | None = False,
    dtype: _dtype | None = None,
    mask: _Tensor | None = None,
) -> _Tensor:
    """Mean of the elements that count. Raises ValueError for whole numbers."""
    result = input.dtype if dtype is None else dtype
    if not (result.is_floating_point or result.is_complex):
        which = "Input" if dtype is None else "Optional"
        raise ValueError(
            f"mean(): Could not infer output dtype. {which} dtype must be either a floating point or complex dtype. Got: {result}"
        )
    dims = _dims(input, dim)
    x = _converted(input, dtype)
    if mask is None:
        return _C.mean(x, dims, bool(keepdim)) if dims else x.clone()
    return sum(x, dim, keepdim=keepdim, mask=mask) / _count(x, mask, dims, keepdim)


@overridable
def median(
    input: _Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    mask: _Tensor | None = None,
) -> _Tensor:
    """The middle along `dim` of the elements that count, the lower of two; NaN does not count.

    Raises ValueError where none of a row counts and the numbers are whole.
    """
    if input.is_complex():
        raise NotImplementedError("masked.median: complex numbers have no order")
    at, name = _one_dim(input, dim), "masked.median"
    x = _converted(input, dtype)
    if x.is_floating_point():
        from lamina._order import nanmedian

        return nanmedian(_without(name, x, mask, float("nan")), at, keepdim).values
    if mask is None:
        from lamina._order import median

        return median(x, at, keepdim).values
    kept = _mask_of(name, mask, x)
    count = kept.sum(at, keepdim=True)
    if bool((count == 0).any()):
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating point"
        )
    # The first `count` of what is sorted count, and as many of the largest numbers may as are left out.
    highest = True if x.dtype == _C.bool else _bound(name, x.dtype, True)
    ordered = _C.sort(_C.where(kept, x, highest), dim=at).values
    middle = ordered.gather(at, (count - 1) // 2) if x.dim() else ordered
    return middle if keepdim or not x.dim() else middle.squeeze(at)


@overridable
def logsumexp(
    input: _Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    mask: _Tensor | None = None,
) -> _Tensor:
    """Logarithm of the sum of the exponentials of the elements that count; as in torch in the type of the operand, or `dtype`."""
    x = _converted(input, dtype)
    if x.dtype == _C.bool:
        raise NotImplementedError(
            "masked.logsumexp: not implemented for torch.bool; expected numbers"
        )
    value = (
        float("-inf")
        if x.is_floating_point() or x.is_complex()
        else _bound("masked.logsumexp", x.dtype, False)
    )
    return _C.logsumexp(
        _without("masked.logsumexp", x, mask, value), _dims(input, dim), keepdim
    ).to(x.dtype)


@overridable
def logaddexp(
    input: _Tensor,
    other: _Tensor,
    *,
    dtype: _dtype | None = None,
    input_mask: _Tensor | None = None,
    other_mask: _Tensor | None = None,
) -> _Tensor:
    """log(exp(input) + exp(other)), each without what its mask leaves out."""
    x, y = _converted(input, dtype), _converted(other, input.dtype if dtype is None else dtype)
    return _C.logaddexp(
        _without("masked.logaddexp", x, input_mask, float("-inf")),
        _without("masked.logaddexp", y, other_mask, float("-inf")),
    )


@overridable
def norm(
    input: _Tensor,
    ord: float | None = 2.0,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool | None = False,
    dtype: _dtype | None = None,
    mask: _Tensor | None = None,
) -> _Tensor:
    """The norm of vectors of the elements that count; `ord` is a number or an infinity. Of nothing 0, or inf for a negative `ord`."""
    if isinstance(ord, str) or ord is None:
        raise TypeError(f"masked.norm: ord must be a number; got {ord!r}")
    x = _converted(input, dtype)
    whole = not (x.is_floating_point() or x.is_complex())  # which vector_norm refuses
    x = _without("masked.norm", x, mask, float("inf") if ord < 0 and not whole else 0)
    return _C._submodule_functions["linalg"]["vector_norm"](
        x, ord, _dims(input, dim), bool(keepdim)
    )


def _correction(unbiased: bool | None, correction: float | None) -> float:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    return correction if correction is not None else int(unbiased is None or unbiased)


@overridable
def var(
    input: _Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: _dtype | None = None,
    mask: _Tensor | None = None,
) -> _Tensor:
    """Variance of the elements that count: the sum of squares over max(count - correction, 0).

    Whole numbers are computed in the default floating type; the result of complex numbers is, as in torch, complex.
    """
    less = _correction(unbiased, correction)
    dims = _dims(input, dim)
    x = _converted(input, dtype)
    if x.dtype == _C.bool:
        raise RuntimeError("masked.var: not defined for torch.bool; expected numbers")
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(_C.get_default_dtype())
    if mask is None:
        count: Any = 1
        for d in dims:
            count *= x.shape[d]
        count = _C.full((), count, dtype=_C.int64)
    else:
        count = _count(x, mask, dims, True)
    middle = sum(x, dims, keepdim=True, mask=mask) / count
    away = _without("masked.var", x - middle, mask, 0)
    squares = away * away.conj() if away.is_complex() else away * away
    total = sum(squares, dims, keepdim=True)
    result = total / (count - less).clamp(min=0)
    return (result if keepdim or not dims else result.squeeze(dims)).to(x.dtype)


@overridable
def std(
    input: _Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: _dtype | None = None,
    mask: _Tensor | None = None,
) -> _Tensor:
    """Square root of `var`."""
    return var(
        input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask
    ).sqrt()


@overridable
def softmax(
    input: _Tensor, dim: int, *, dtype: _dtype | None = None, mask: _Tensor | None = None
) -> _Tensor:
    """Softmax along `dim` of the elements that count, 0 elsewhere; NaN where none does."""
    x = _extreme("masked.softmax", _converted(input, dtype), mask, False)
    return _C.softmax(x, _one_dim(input, dim))


@overridable
def log_softmax(
    input: _Tensor, dim: int, *, dtype: _dtype | None = None, mask: _Tensor | None = None
) -> _Tensor:
    """Logarithm of `softmax`, -inf for what is left out."""
    x = _extreme("masked.log_softmax", _converted(input, dtype), mask, False)
    return _C.log_softmax(x, _one_dim(input, dim))


@overridable
def softmin(
    input: _Tensor, dim: int, *, dtype: _dtype | None = None, mask: _Tensor | None = None
) -> _Tensor:
    """`softmax` of the negated elements."""
    x = _extreme("masked.softmin", _converted(input, dtype), mask, True)
    return _C.softmax(-x, _one_dim(input, dim))


@overridable
def normalize(
    input: _Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: _dtype | None = None,
    mask: _Tensor | None = None,
) -> _Tensor:
    """The elements that count over the larger of `eps` and their norm along `dim`, 0 elsewhere."""
    x = _without("masked.normalize", _converted(input, dtype), mask, 0)
    length = norm(_converted(input, dtype), ord, dim, keepdim=True, mask=mask)
    return x / length.clamp(min=eps)
