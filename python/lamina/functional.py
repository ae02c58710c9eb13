"""Functions of the top module that are written in Python."""

from __future__ import annotations

from lamina import _C
from lamina._per_sample import per_sample

TYPE_CHECKING = False  # typing takes time to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., Any])


def _misfit(function, args, kwargs, error):
    """TypeError about an argument that is no tensor, where that is what an AttributeError comes from, else None."""
    if isinstance(error.obj, _C.Tensor) or not hasattr(_C.Tensor, error.name or ""):
        return None
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    given = [(names[i] if i < len(names) else f"{i}", i, value) for i, value in enumerate(args)]
    given += [(name, names.index(name) if name in names else i, kwargs[name])
              for i, name in enumerate(kwargs, len(args))]  # fmt: skip
    kind = type(error.obj).__name__
    for name, position, value in given:
        if value is error.obj:
            return TypeError(
                f"{function.__name__}(): argument '{name}' (position {position + 1}) must be Tensor, not {kind}"
            )
        if isinstance(value, (list, tuple)):
            for i, item in enumerate(value):
                if item is error.obj:
                    return TypeError(
                        f"{function.__name__}(): expected Tensor as element {i} of argument '{name}' "
                        f"(position {position + 1}), but got {kind}"
                    )
    return None


# What arguments of these names must be, wherever they appear.
_KINDS = {
    bool: (
        "keepdim sorted return_inverse return_counts right out_int32 density replacement with_replacement "
        "descending largest zero_infinity assume_unique invert wrap as_tuple"
    ),
    str: "indexing interpolation",
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}


def overridable(function: _Function) -> _Function:
    """Gives a function the protocol of __torch_function__, and TypeError for arguments that should have been tensors.

    Lists among the arguments are looked into. Flags must be bools.
    """
    shown = getattr(function, "__wrapped__", function)  # under per_sample
    code = shown.__code__
    named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    positional = named[: code.co_argcount]
    presets = dict(zip(reversed(positional), reversed(shown.__defaults__ or ())))
    presets.update(shown.__kwdefaults__ or {})
    kinds = [
        (positional.index(name) if name in positional else None, name, _KIND_OF[name])
        for name in named
        if name in _KIND_OF and presets.get(name, False) is not None
    ]

    def wrapped(*args, **kwargs):
        relevant = [*args, *kwargs.values()]
        relevant += [x for a in relevant if isinstance(a, (list, tuple)) for x in a]
        if _C._has_torch_function(relevant):
            return _C._handle_torch_function(wrapped, relevant, args, kwargs)
        for i, name, kind in kinds:
            if name in kwargs:
                value = kwargs[name]
            elif i is not None and i < len(args):
                value = args[i]
            else:
                continue
            if not isinstance(value, kind):
                raise TypeError(
                    f"{function.__name__}(): argument '{name}' must be {kind.__name__}, not {type(value).__name__}"
                )
        try:
            return function(*args, **kwargs)
        except AttributeError as error:
            misfit = _misfit(shown, args, kwargs, error)
            if misfit is None:
                raise
        raise misfit

    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(wrapped, name, getattr(function, name))
    wrapped.__wrapped__ = function
    return wrapped


def broadcast_shapes(*shapes):
    """The shape that all of the shapes broadcast to."""
    sizes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    dims = max((len(s) for s in sizes), default=0)
    result = [1] * dims
    for s in sizes:
        for i in range(-len(s), 0):
            if s[i] < 0:
                raise ValueError(
                    f"broadcast_shapes: Attempting to broadcast a dimension with negative length; got {s}"
                )
            if s[i] != 1 and result[i] not in (1, s[i]):
                raise RuntimeError(
                    "Shape mismatch: objects cannot be broadcast to a single shape; got "
                    + ", ".join(map(str, sizes))
                )
            if s[i] != 1:
                result[i] = s[i]
    return _C.Size(result)


@overridable
def broadcast_tensors(*tensors):
    """The tensors as views of one common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    shape = broadcast_shapes(*(t.shape for t in tensors))
    return tuple(t.expand(shape) for t in tensors)


@overridable
def meshgrid(*tensors, indexing="ij"):
    """Coordinates of a grid, one tensor an axis."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f"meshgrid: indexing must be 'xy' or 'ij'; got {indexing!r}")
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for t in tensors:
        if t.dim() > 1:
            raise RuntimeError(
                f"meshgrid: Expected 0D or 1D tensor in the tensor list but got: {list(t.shape)}"
            )
        if t.dtype != tensors[0].dtype:
            raise RuntimeError(
                "meshgrid expects all tensors to have the same dtype; got "
                f"{tensors[0].dtype} and {t.dtype}"
            )
    n = len(tensors)
    # With "xy" the first two dimensions of the grid change places.
    places = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else list(range(n))
    shape = [tensors[p].numel() for p in places]
    return tuple(
        t.reshape([t.numel() if place == i else 1 for place in range(n)]).expand(shape)
        for i, t in zip(places, tensors)
    )


@overridable
def cartesian_prod(*tensors):
    """All combinations of the elements of vectors, one a row."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    for t in tensors:
        if t.dim() != 1:
            raise RuntimeError(f"cartesian_prod: Expect a 1D vector, but got shape {list(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return _C.stack([g.reshape(-1) for g in meshgrid(*tensors)], 1)


@overridable
@per_sample
def block_diag(*tensors):
    """A matrix with the given matrices along its diagonal."""
    blocks = [t.reshape(1, -1) if t.dim() < 2 else t for t in tensors]
    dtype = blocks[0].dtype if blocks else _C.get_default_dtype()
    for b in blocks[1:]:
        dtype = _C.promote_types(dtype, b.dtype)
    rows, columns = sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)
    result = _C.zeros(rows if blocks else 1, columns, dtype=dtype)
    row = column = 0
    for b in blocks:
        result[row : row + b.shape[0], column : column + b.shape[1]] = b
        row, column = row + b.shape[0], column + b.shape[1]
    return result


@overridable
def nonzero(input, *, out=None, as_tuple=False):
    """Coordinates of the elements that are not zero, in row-major order.

    An int64 tensor (n, dims), or with `as_tuple` one vector a dimension. Raises RuntimeError where `as_tuple` and `out`
    are both given.
    """
    if not as_tuple:
        return _C.nonzero(input, out=out)
    if out is not None:
        raise RuntimeError("nonzero: as_tuple=True has no out= form; got both")
    return _C.where(input)
