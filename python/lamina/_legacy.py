"""Classes of tensors by element type, as old code names them: FloatTensor(2, 3), isinstance(x, LongTensor)."""

from lamina import _C

_TYPES = {
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "BoolTensor": "bool",
}


class _TensorType(type):
    """The type of those classes; their instances are plain Tensors."""

    def __instancecheck__(cls, obj):
        return isinstance(obj, _C.Tensor) and obj.dtype == cls.dtype and obj.device.type == "cpu"

    def __call__(cls, *args, device=None):
        return make(cls.dtype, args, device)

    def __repr__(cls):
        return f"<class 'torch.{cls.__name__}'>"

    def __str__(cls):
        return f"<class 'torch.{cls.__name__}'>"


def make(dtype, args, device=None):
    """A tensor of sizes, of data, or of another tensor's values.

    Sizes give memory that is not initialized. Raises TypeError where the arguments are neither.
    """
    if device is not None and _C.device(device).type not in ("cpu", "meta"):
        raise RuntimeError(f"legacy constructor expects device type: cpu; got {device}")
    if not args:
        return _C.empty(0, dtype=dtype)
    first = args[0]
    if isinstance(first, _C.Size) and len(args) == 1:
        return _C.empty(first, dtype=dtype)
    if all(isinstance(a, int) and not isinstance(a, bool) for a in args):
        return _C.empty(args, dtype=dtype)
    if len(args) > 1:
        raise TypeError(
            "new(): invalid combination of arguments; expected sizes, a sequence, an array or a tensor"
        )
    if isinstance(first, _C.Tensor):
        if first.dtype != dtype:
            raise TypeError(
                f"expected a tensor of {dtype}, but got one of {first.dtype}; use Tensor.to"
            )
        return first.detach()
    if isinstance(first, _C.UntypedStorage):
        return _C._from_storage(first, dtype)
    if not (hasattr(type(first), "__len__") and hasattr(type(first), "__getitem__")):
        raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
    return _C.tensor(first, dtype=dtype)


def _class(name):
    content = {
        "dtype": getattr(_C, _TYPES[name]),
        "layout": _C.strided,
        "is_cuda": False,
        "is_sparse": False,
        "__module__": "torch",
        "__doc__": f"Makes tensors of {_TYPES[name]}; isinstance asks for the type.",
    }
    return _TensorType(name, (), content)


globals().update({name: _class(name) for name in _TYPES})
__all__ = list(_TYPES)
