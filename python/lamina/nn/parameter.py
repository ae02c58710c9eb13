"""Tensors that belong to modules: parameters, buffers, and those whose shape is not known yet."""

from __future__ import annotations

from collections import OrderedDict

import lamina
from lamina import _C, Tensor
from lamina._C import DisableTorchFunctionSubclass, _disabled_torch_function_impl

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


class _ParameterMeta(type(Tensor)):
    """Tensors of other subclasses that were made parameters count as such, by their mark."""

    def __instancecheck__(cls, instance):
        if super().__instancecheck__(instance):
            return True
        return (
            cls is Parameter
            and isinstance(instance, Tensor)
            and getattr(instance, "_is_param", False)
        )


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a module registers as its parameter when it is assigned to it.

    Parameters
    ----------
    data : Tensor, optional
        The values; shared, not copied. An empty tensor where it is not given. A tensor of a subclass keeps its class
        and is marked.
    requires_grad : bool
        Whether gradients are collected; True also under `no_grad`.
    """

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = lamina.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        if not isinstance(data, Tensor):
            raise TypeError(
                f"Parameter: data must be a Tensor; got {type(data).__name__}; "
                "lamina.tensor makes one of numbers"
            )
        result = data.detach().requires_grad_(requires_grad)
        if type(result) is not type(data):
            raise RuntimeError(
                f"Parameter: detach() of a {type(data).__name__} must keep the class; it gave a "
                f"{type(result).__name__}"
            )
        result._is_param = True
        return result

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        values = self.data
        if values.is_meta or values.is_conj() or values.is_neg() or not values.numel():
            copied = values.clone(memory_format=lamina.preserve_format)
        else:  # parameters that share memory go on sharing it
            from lamina.storage import deep_copied

            bytes_ = deep_copied(values.untyped_storage(), memo)
            place = (values.storage_offset(), values.size(), values.stride())
            copied = _C._from_storage(bytes_, values.dtype, *place)
        result = type(self)(copied, self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self, *, tensor_contents=None):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, proto):
        from lamina import _utils

        state = _utils._get_obj_state(self)
        values = (self.data, self.requires_grad, OrderedDict())
        if not state:
            return _utils._rebuild_parameter, values
        return _utils._rebuild_parameter_with_state, (*values, state)

    __torch_function__ = _disabled_torch_function_impl


class _BufferMeta(type(Tensor)):
    def __instancecheck__(cls, instance):
        if super().__instancecheck__(instance):
            return True
        return (
            cls is Buffer
            and isinstance(instance, Tensor)
            and getattr(instance, "_is_buffer", False)
        )


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a module registers as a buffer when it is assigned to it.

    Parameters
    ----------
    data : Tensor, optional
        The values; the tensor itself is returned, marked.
    persistent : bool
        Whether the buffer is part of the module's `state_dict`.
    """

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = lamina.empty(0)
        result = data.detach().requires_grad_(data.requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result

    __torch_function__ = _disabled_torch_function_impl


# What a tensor without a shape still answers.
_ANSWERED = {
    "is_complex",
    "is_floating_point",
    "half",
    "float",
    "double",
    "bfloat16",
    "cuda",
    "cpu",
}
_CONVERSIONS = {
    "to", "type", "size", "requires_grad_", "_make_subclass", "__repr__", "char", "short", "int",
    "long", "bool", "byte",
}  # fmt: skip


class UninitializedTensorMixin:
    """What parameters and buffers without a shape have in common."""

    def materialize(self, shape, device=None, dtype=None):
        """Give the tensor its shape, and its class; device and dtype stay unless given."""
        if device is None:
            device = self.data.device
        if dtype is None:
            dtype = self.data.dtype
        self.data = lamina.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        """Raises RuntimeError: there are no sizes yet."""
        raise RuntimeError(
            "shape: an uninitialized tensor has none yet; run the module once, or call materialize"
        )

    def share_memory_(self):
        """Raises RuntimeError: there is no memory yet."""
        raise RuntimeError(
            "share_memory_: an uninitialized tensor has no memory yet; call materialize first"
        )

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, proto):
        return type(self), (self.requires_grad,)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if func in _descriptors() or name in _ANSWERED or name in _CONVERSIONS:
            with DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        raise ValueError(
            f"{name or func}: the tensor is an uninitialized parameter or buffer, without a shape; "
            "run the module once with an input, then use its parameters"
        )


_known_descriptors = set()


def _descriptors():
    if not _known_descriptors:
        for name in (
            "data", "device", "dtype", "grad", "grad_fn", "is_leaf", "requires_grad", "is_meta",
            "layout", "is_cuda", "_version", "is_quantized", "is_sparse",
        ):  # fmt: skip
            descriptor = vars(Tensor).get(name)
            for kind in ("__get__", "__set__", "__delete__"):
                if hasattr(descriptor, kind):
                    _known_descriptors.add(getattr(descriptor, kind))
    return _known_descriptors


def is_lazy(param):
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is found at the module's first call."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        data = lamina.empty(0, device=device, dtype=dtype)
        return Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        memo[id(self)] = result
        return result


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is found at the module's first call."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        data = lamina.empty(0, device=device, dtype=dtype)
        result = Tensor._make_subclass(cls, data, requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result
