"""A block with another default device, as a mode."""

from lamina import _C
from lamina.overrides import TorchFunctionMode


class DeviceContext(TorchFunctionMode):
    """``with DeviceContext("meta"):`` new tensors are made there, where a call names no device."""

    def __init__(self, device):
        super().__init__()
        self.device = _C.device(device)
        self.before = None

    def __enter__(self):
        self.before = _C.get_default_device()
        _C.set_default_device(self.device)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        _C.set_default_device(self.before)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def set_device(device):
    """A decorator: the function runs with that default device."""
    import functools

    def wrap(function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with DeviceContext(device):
                return function(*args, **kwargs)

        return wrapped

    return wrap
