"""What pickles of tensors name: functions that make tensors from storages."""

from lamina import _C


def _untyped(storage):
    return getattr(storage, "_untyped_storage", storage)


def _rebuild_tensor(storage, storage_offset, size, stride):
    return _C._from_storage(_untyped(storage), storage.dtype, storage_offset, size, stride)


def _rebuild_tensor_v2(
    storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None
):
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    return _finished(tensor, requires_grad, metadata)


def _finished(tensor, requires_grad, metadata):
    """With the marks that a pickle adds to the elements."""
    if metadata:
        if metadata.get("conj"):
            tensor = tensor.conj()
        if metadata.get("neg"):
            tensor = tensor._neg_view()
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_tensor_v3(
    storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None
):
    tensor = _C._from_storage(_untyped(storage), dtype, storage_offset, size, stride)
    return _finished(tensor, requires_grad, metadata)


def _rebuild_device_tensor_from_cpu_tensor(data, dtype, device, requires_grad):
    return data.to(dtype=dtype, device=device).requires_grad_(requires_grad)


def _rebuild_device_tensor_from_numpy(data, dtype, device, requires_grad):
    return _C.from_numpy(data).to(dtype=dtype, device=device).requires_grad_(requires_grad)


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    return _C.empty_strided(size, stride, dtype=dtype, device="meta").requires_grad_(requires_grad)


def _rebuild_parameter(data, requires_grad, backward_hooks):
    from lamina import nn

    return nn.Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    parameter = _rebuild_parameter(data, requires_grad, backward_hooks)
    return _set_obj_state(parameter, state)


def _set_obj_state(obj, state):
    if isinstance(state, tuple):
        attributes, slots = state
    else:
        attributes, slots = state, None
    for name, value in (attributes or {}).items():
        setattr(obj, name, value)
    for name, value in (slots or {}).items():
        setattr(obj, name, value)
    return obj


def _get_obj_state(obj):
    slots = {
        name: getattr(obj, name)
        for kind in type(obj).__mro__
        for name in vars(kind).get("__slots__", ())
        if isinstance(vars(kind).get("__slots__"), (tuple, list)) and hasattr(obj, name)
    }
    attributes = dict(obj.__dict__)
    return (attributes, slots) if slots else attributes


def _element_size(dtype):
    """Bytes of one element."""
    return dtype.itemsize


def _get_available_device_type():
    """The kind of accelerator there is: None."""
    return None


def _get_device_module(device_type):
    """The module of a kind of device, ``lamina.cuda`` for "cuda"."""
    from lamina.accelerator import get_device_module

    return get_device_module(device_type)


def _get_device_index(device, optional=False, allow_cpu=False):
    """The index of a device given as a number, a text or a device; -1 for the CPU."""
    if isinstance(device, str):
        device = _C.device(device)
    if isinstance(device, _C.device):
        if not allow_cpu and device.type == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        if device.type == "cpu":
            return -1
        device = device.index
    if isinstance(device, int):
        return device
    if device is None and optional:
        return None
    raise ValueError(
        f"Expected a torch.device with a specified index or an integer, but got:{device}"
    )


def _flatten_dense_tensors(tensors):
    """All elements of several tensors, one after the other."""
    return _C.cat([t.contiguous().reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat, tensors):
    """Views of a flat tensor with the shapes of others."""
    result, at = [], 0
    for t in tensors:
        result.append(flat.narrow(0, at, t.numel()).view_as(t))
        at += t.numel()
    return tuple(result)


class KeyErrorMessage(str):
    """A text that shows as it is where KeyError shows its argument."""

    __slots__ = ()

    def __repr__(self):
        return self


class ExceptionWrapper:
    """An exception of another process, with its text."""

    def __init__(self, exc_info=None, where="in background"):
        import sys
        import traceback

        exc_info = exc_info or sys.exc_info()
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self):
        """Raise it here."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        try:
            errors = [self.exc_type(text)]
        except Exception:
            raise RuntimeError(text) from None
        # Not kept in this frame: the error holds the frame, and a circle would outlive the caller.
        raise errors.pop()
