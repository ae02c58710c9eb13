"""Modules to other dtypes, devices and memory."""

from __future__ import annotations

import lamina
from lamina import Tensor
from lamina.nn.parameter import Parameter


def _apply(self, fn, recurse=True):
    """Replace the values of every parameter, gradient and buffer by what `fn` gives for them."""
    if recurse:
        for module in self._modules.values():
            if module is not None:
                module._apply(fn)
    for name, parameter in self._parameters.items():
        if parameter is None:
            continue
        with lamina.no_grad():
            applied = fn(parameter)
        if _fits(parameter, applied):
            parameter.data = applied
            kept = parameter
        else:
            kept = Parameter(applied, parameter.requires_grad)
            self._parameters[name] = kept
        gradient = parameter.grad
        if gradient is not None:
            with lamina.no_grad():
                applied = fn(gradient)
            kept.grad = None
            kept.grad = applied.requires_grad_(gradient.requires_grad)
    for name, buffer in self._buffers.items():
        if buffer is not None:
            self._buffers[name] = fn(buffer)
    return self


def _fits(parameter, applied):
    """Whether a parameter can take these values and stay the object it is."""
    return (
        isinstance(applied, Tensor)
        and applied.__class__ in (Tensor, parameter.__class__)
        and applied.device.type == parameter.device.type
    )


def to_empty(self, *, device, recurse=True):
    """Move to `device` without copying: parameters and buffers have any values afterwards."""
    return self._apply(lambda t: lamina.empty_like(t, device=device), recurse=recurse)


def share_memory(self):
    """Move all tensors to memory that other processes can see."""
    return self._apply(lambda t: t.share_memory_())


def _parse_to(*args, device=None, dtype=None, non_blocking=False, copy=False, memory_format=None):
    """The ways to call `to`: (device, dtype), (dtype), (tensor), each with non_blocking and memory_format."""
    if args and isinstance(args[0], Tensor):
        device, dtype, rest = args[0].device, args[0].dtype, args[1:]
    elif args and isinstance(args[0], lamina.dtype):
        dtype, rest = args[0], args[1:]
    elif args and (args[0] is None or isinstance(args[0], (str, int, lamina.device))):
        device, rest = args[0], args[1:]
        if rest and (rest[0] is None or isinstance(rest[0], lamina.dtype)):
            dtype, rest = rest[0], rest[1:]
    else:
        rest = args
    if len(rest) > 2 or any(not isinstance(r, bool) for r in rest):
        raise TypeError(
            "to: received an invalid combination of arguments - got "
            f"({', '.join(a.__class__.__name__ for a in args)}); expected (device, dtype, non_blocking), "
            "(dtype, non_blocking) or (tensor, non_blocking)"
        )
    if rest:
        non_blocking = rest[0]
    if dtype is not None and not isinstance(dtype, lamina.dtype):
        raise TypeError(f"to: dtype must be a dtype; got {dtype.__class__.__name__}")
    if device is not None:
        device = lamina.device(device)
    return device, dtype, non_blocking, memory_format


def to(self, *args, **kwargs):
    """Move the module's tensors to a device or a dtype, in place.

    ``to(device, dtype, non_blocking)``, ``to(dtype, non_blocking)``, ``to(tensor, non_blocking)`` or
    ``to(memory_format=format)``. The dtype, floating or complex, is given to floating and complex tensors only; the
    memory format to those of 4 or 5 dimensions. Raises TypeError for other dtypes. Returns the module.
    """
    device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(f"to: a module takes floating point or complex dtypes; got {dtype}")

    def convert(t):
        target = dtype if t.is_floating_point() or t.is_complex() else None
        if memory_format is not None and t.dim() in (4, 5):
            return t.to(device, target or t.dtype, non_blocking, memory_format=memory_format)
        if device is None:
            return t if target is None else t.to(target, non_blocking)
        return t.to(device, target or t.dtype, non_blocking)

    return self._apply(convert)


def type(self, dst_type):  # noqa: A001
    """Convert all parameters and buffers, whole numbers too, to a dtype."""
    return self._apply(lambda t: t.type(dst_type))


def float(self):  # noqa: A001
    """Convert floating tensors to float32."""
    return self._apply(lambda t: t.float() if t.is_floating_point() else t)


def double(self):
    """Convert floating tensors to float64."""
    return self._apply(lambda t: t.double() if t.is_floating_point() else t)


def half(self):
    """Convert floating tensors to float16."""
    return self._apply(lambda t: t.half() if t.is_floating_point() else t)


def bfloat16(self):
    """Convert floating tensors to bfloat16."""
    return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)


def cpu(self):
    """Move to the CPU."""
    return self._apply(lambda t: t.cpu())


def _mover(kind):
    def move(self, device=None):
        place = lamina.device(kind if device is None else device)
        return self._apply(lambda t: t.to(place))

    move.__name__ = move.__qualname__ = kind
    move.__doc__ = f"Move to a device of kind {kind!r}."
    return move


cuda, xpu, ipu, mtia = _mover("cuda"), _mover("xpu"), _mover("ipu"), _mover("mtia")
