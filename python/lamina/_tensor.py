"""Methods of Tensor that are written in Python."""

import builtins
import copy

from lamina import _C

_LEGACY = {
    "float16": "HalfTensor",
    "float32": "FloatTensor",
    "float64": "DoubleTensor",
    "bfloat16": "BFloat16Tensor",
    "bool": "BoolTensor",
    "uint8": "ByteTensor",
    "int8": "CharTensor",
    "int16": "ShortTensor",
    "int32": "IntTensor",
    "int64": "LongTensor",
    "complex64": "ComplexFloatTensor",
    "complex128": "ComplexDoubleTensor",
}


def __deepcopy__(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "deepcopy: only leaves can be copied deeply, tensors made by the user; this one was made "
            f"by {self.grad_fn.name()}; use detach() first"
        )
    result = _copy_of(self)
    memo[id(self)] = result
    if self.requires_grad:
        result.requires_grad_()
    if self.grad is not None:
        result.grad = copy.deepcopy(self.grad, memo)
    if builtins.type(self) is not _C.Tensor:
        result = _as_subclass(result, builtins.type(self))
        memo[id(self)] = result
    if self.__dict__:
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return result


def _copy_of(self):
    """The same values in the same layout, sharing nothing."""
    source = self.detach()
    if source.is_meta or source.is_contiguous():
        return source.clone()
    result = _C.empty_strided(source.size(), source.stride(), dtype=source.dtype)
    try:
        return result.copy_(source)
    except RuntimeError:  # strides that overlap
        return source.clone()


def _as_subclass(tensor, kind):
    return kind.__new__(kind, tensor) if kind is not _C.Tensor else tensor


def _rebuild(kind, data, dtype, size, requires_grad, attributes):
    """A tensor from its bytes; what pickle calls."""
    if data:
        tensor = _C.frombuffer(bytearray(data), dtype=dtype).reshape(size)
    else:
        tensor = _C.empty(size, dtype=dtype)
    tensor = _as_subclass(tensor.clone(), kind)
    if requires_grad:
        tensor.requires_grad_()
    if attributes:
        tensor.__dict__.update(attributes)
    return tensor


def __reduce_ex__(self, protocol):
    if not self.is_leaf:
        raise RuntimeError(
            "pickle: only leaves can be pickled; this tensor was made by "
            f"{self.grad_fn.name()}; use detach() first"
        )
    plain = self.detach().contiguous()
    flat = plain.reshape(-1).view(_C.uint8) if plain.numel() else plain
    data = bytes(flat.numpy()) if plain.numel() else b""
    size = tuple(self.shape)
    arguments = (
        builtins.type(self),
        data,
        self.dtype,
        size,
        self.requires_grad,
        dict(self.__dict__),
    )
    return (_rebuild, arguments)


def __dir__(self):
    return sorted({*dir(builtins.type(self)), *self.__dict__})


def __divmod__(self, other):
    return self // other, self % other


def __rdivmod__(self, other):
    return other // self, other % self


def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, **_):
    """A tensor of `data` with this one's type and device where none are given."""
    return _C.tensor(
        data,
        dtype=self.dtype if dtype is None else dtype,
        device=self.device if device is None else device,
        requires_grad=requires_grad,
    )


def storage_type(self):
    """The type of the storage."""
    return _C.UntypedStorage


def type(self, dtype=None, non_blocking=False, **_):  # noqa: A001
    """The name of the tensor's type, or the tensor converted to another."""
    if dtype is None:
        name = str(self.dtype).removeprefix("torch.")
        place = "" if self.device.type == "cpu" else self.device.type + "."
        return f"torch.{place}{_LEGACY.get(name, name)}"
    if isinstance(dtype, str):
        short = dtype.removeprefix("torch.")
        matches = [name for name, legacy in _LEGACY.items() if legacy == short]
        if not matches:
            raise ValueError(f"invalid type: {dtype!r}")
        dtype = getattr(_C, matches[0])
    return self.to(dtype)


def nonzero(self, *, as_tuple=False):
    """Coordinates of the elements that are not zero; see `lamina.nonzero`."""
    from lamina.functional import nonzero

    return nonzero(self, as_tuple=as_tuple)
