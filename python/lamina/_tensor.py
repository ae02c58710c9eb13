"""Methods of Tensor that are written in Python."""

import builtins
import copy
from collections import OrderedDict

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
    kind = builtins.type(self)
    if self.is_meta or self.is_conj() or self.is_neg() or not self.untyped_storage().nbytes():
        with _C.DisableTorchFunctionSubclass():
            result = self.detach().clone()
        if kind is not _C.Tensor and builtins.type(result) is _C.Tensor:
            result = result.as_subclass(kind)
    else:
        # Tensors on the same bytes stay on the same bytes.
        from lamina.storage import deep_copied

        copied = deep_copied(self.untyped_storage(), memo)
        result = _C._from_storage(
            copied, self.dtype, self.storage_offset(), self.size(), self.stride()
        )
        if kind is not _C.Tensor:
            result = result.as_subclass(kind)
    memo[id(self)] = result
    if self.requires_grad:
        result.requires_grad_()
    if self.grad is not None:
        result.grad = copy.deepcopy(self.grad, memo)
    if self.__dict__:
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return result


def _rebuild_from_type_v2(func, new_type, args, state):
    """A tensor of a subclass, or with attributes; what pickle calls."""
    result = func(*args)
    if builtins.type(result) is not new_type:
        result = result.as_subclass(new_type)
    if hasattr(new_type, "__setstate__") and new_type.__setstate__ is not _C.Tensor.__setstate__:
        result.__setstate__(state)
        return result
    from lamina._utils import _set_obj_state

    return _set_obj_state(result, state)


def _from_bytes(data, dtype, size, requires_grad):
    flat = _C.frombuffer(bytearray(data), dtype=dtype) if data else _C.empty(0, dtype=dtype)
    return flat.clone().reshape(size).requires_grad_(requires_grad)


def _reduced(self):
    from lamina import _utils
    from lamina.storage import _BY_DTYPE, TypedStorage

    plain = self.detach()
    if self.is_meta:
        arguments = (self.dtype, tuple(self.size()), self.stride(), self.requires_grad)
        return _utils._rebuild_meta_tensor_no_storage, arguments
    if plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
    if str(self.dtype).removeprefix("torch.") not in _BY_DTYPE:
        data = bytes(plain.contiguous().untyped_storage()) if plain.numel() else b""
        data = data[: plain.numel() * plain.element_size()]
        if plain.numel():
            data = bytes(plain.contiguous().clone().untyped_storage())
        return _from_bytes, (data, self.dtype, tuple(self.size()), self.requires_grad)
    storage = TypedStorage(wrap_storage=plain.untyped_storage(), dtype=self.dtype)
    arguments = (
        storage, plain.storage_offset(), tuple(plain.size()), plain.stride(), self.requires_grad,
        OrderedDict(),
    )  # fmt: skip
    return _utils._rebuild_tensor_v2, arguments


def __reduce_ex__(self, protocol):
    from lamina._utils import _get_obj_state

    state = _get_obj_state(self)
    with _C.DisableTorchFunctionSubclass():
        function, arguments = _reduced(self)
    if builtins.type(self) is _C.Tensor and not state:
        return function, arguments
    return _rebuild_from_type_v2, (function, builtins.type(self), arguments, state)


def __setstate__(self, state):
    """Old pickles: (storage, offset, size, stride) or more."""
    if len(state) == 4:
        self.set_(*state)
        return
    if len(state) == 5:
        self.set_(*state[:4])
        return
    self.requires_grad, _, self._backward_hooks = state[:3]


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
    elif not isinstance(dtype, (_C.dtype, builtins.type)):
        raise TypeError(f"dtype must be a type, str, or dtype object; got {dtype!r}")
    return self.to(dtype)


def _of_sparse(name):
    def method(self, *args, **kwargs):
        raise RuntimeError(
            f"{name}: expected sparse tensor layout but got Strided; there are no sparse tensors here"
        )

    method.__name__ = method.__qualname__ = name
    method.__doc__ = "Raises RuntimeError: the tensor is not sparse."
    return method


for _name in ("coalesce", "indices", "values", "_indices", "_values"):
    globals()[_name] = _of_sparse(_name)


def dequantize(self):
    """The tensor in float32: there are no quantized types."""
    return self.to(_C.float32)


def nonzero(self, *, as_tuple=False):
    """Coordinates of the elements that are not zero; see `lamina.nonzero`."""
    from lamina.functional import nonzero

    return nonzero(self, as_tuple=as_tuple)


def storage(self):
    """The bytes as elements of the tensor's type."""
    from lamina.storage import TypedStorage

    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)


_typed_storage = storage


def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Look at other bytes: those of a storage, or of a tensor, or none."""
    if isinstance(source, _C.Tensor):
        if source.dtype != self.dtype:
            raise RuntimeError(f"set_: expected a source of {self.dtype}; got {source.dtype}")
        bytes_, storage_offset = source.untyped_storage(), source.storage_offset()
        size, stride = source.size(), source.stride()
    elif source is None:
        bytes_, size = _C.UntypedStorage(), (0,)
    else:
        bytes_ = getattr(source, "_untyped_storage", source)
    return _C._set_storage(self, bytes_, storage_offset, size, stride)


def new(self, *args, device=None):
    """A tensor of this one's type, of sizes or of data; the old way."""
    from lamina import _legacy

    return _legacy.make(self.dtype, args, device)


def _check_callable(self, name):
    if not self.device.type == "cpu":
        raise TypeError(f"{name} is only implemented on CPU tensors")
    if self.requires_grad:
        raise RuntimeError(f"{name}: Can't call {name}() on Variable that requires grad.")


def apply_(self, callable):
    """Replace each element by what a function of Python gives for it. Slow; for tests."""
    _check_callable(self, "apply_")
    for place in _places(self.shape):
        self[place] = callable(self[place].item())
    return self


def _places(shape):
    import itertools

    return itertools.product(*map(range, shape))


def map_(self, tensor, callable):
    """Replace each element by a function of it and another tensor's element."""
    _check_callable(self, "map_")
    tensor = tensor.expand(self.shape)
    for place in _places(self.shape):
        self[place] = callable(self[place].item(), tensor[place].item())
    return self


def map2_(self, x, y, callable):
    """Replace each element by a function of it and two other tensors' elements."""
    _check_callable(self, "map2_")
    x, y = x.expand(self.shape), y.expand(self.shape)
    for place in _places(self.shape):
        self[place] = callable(self[place].item(), x[place].item(), y[place].item())
    return self


def is_nonzero(self):
    """Whether the only element is not zero."""
    return _C.is_nonzero(self)


def pin_memory(self, device=None):
    """Raises RuntimeError: pinned memory is for accelerators, and there is none."""
    raise RuntimeError("pin_memory: cannot pin memory without an accelerator; Lamina has none here")


def share_memory_(self):
    """Move the bytes to memory that other processes can see; views move along."""
    self.untyped_storage().share_memory_()
    return self


def is_shared(self):
    """Whether other processes see the bytes."""
    return self.untyped_storage().is_shared()


def module_load(self, other, assign=False):
    """What load_state_dict does with a tensor: a copy, or the other one's values as they are."""
    return other.detach() if assign else self.copy_(other).detach()


def dim_order(self, ambiguity_check=False):
    """Dimensions from the outermost in memory to the innermost."""
    return tuple(sorted(range(self.dim()), key=lambda d: (-abs(self.stride(d)), d)))


def resize(self, *sizes):
    """The old out-of-place resize: a view where the number of elements allows it."""
    import warnings

    warnings.warn("non-inplace resize is deprecated", stacklevel=3)
    return self.reshape(*sizes)


def resize_as(self, tensor):
    """The old out-of-place resize to another tensor's sizes."""
    return resize(self, tensor.shape)


def record_stream(self, stream):
    """Nothing to record: everything is done when its call returns."""


def is_distributed(self):
    """False."""
    return False


def is_coalesced(self):
    """Of dense tensors always False."""
    return False


def to_dense(self, dtype=None, *, masked_grad=True):
    """The tensor itself, which is dense."""
    return self if dtype is None else self.to(dtype)


def __reversed__(self):
    return self.flip(0) if self.dim() else self


def __array_wrap__(self, array, context=None, return_scalar=False):
    """What NumPy's functions give back for a tensor: a tensor."""
    if array.dtype == bool:
        array = array.astype("uint8").astype(bool)
    return _C.as_tensor(array)


def __dlpack_device__(self):
    """(1, 0): the CPU. Raises BufferError on other devices."""
    if self.device.type != "cpu":
        raise BufferError(f"__dlpack_device__: no device of DLPack; got {self.device}")
    return (1, 0)


def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """The tensor as a capsule of DLPack, for other libraries.

    Versions from 1 on get a versioned capsule, others the older one. Raises BufferError for a stream or another device, RuntimeError
    where the tensor requires gradients or is lazily conjugated.
    """
    if self.requires_grad:
        raise RuntimeError("Can't export tensors that require gradient, use tensor.detach()")
    if self.is_conj():
        raise RuntimeError("Can't export tensors with the conjugate bit set")
    if self.is_neg():
        raise RuntimeError("Can't export tensors with the negative bit set")
    if stream is not None and stream != -1:
        raise BufferError(f"__dlpack__: the CPU has no streams; got stream={stream!r}")
    if dl_device is not None and tuple(dl_device) != (1, 0):
        raise BufferError(f"__dlpack__: cannot export to device {dl_device}; expected (1, 0)")
    source = self.clone() if copy else self
    versioned = max_version is not None and max_version[0] >= 1
    return _C._to_dlpack(source, versioned, bool(copy))
