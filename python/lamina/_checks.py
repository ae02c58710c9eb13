"""Checks that raise: ``lamina._check(condition, message)`` and those of other types of errors."""

from lamina import _C


def _check_with(error_type, cond, message=None):
    """Raise an error of the type unless `cond` is true. `message` is a function that gives the text."""
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        text = "Expected cond to be True, but got False. (Could this error message be improved?)"
    elif callable(message):
        text = str(message())
    else:
        raise TypeError("message must be a callable")
    raise error_type(text)


def _check(cond, message=None):
    """Raise RuntimeError unless `cond` is true."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond, message=None):
    """Raise IndexError unless `cond` is true."""
    _check_with(IndexError, cond, message)


def _check_value(cond, message=None):
    """Raise ValueError unless `cond` is true."""
    _check_with(ValueError, cond, message)


def _check_type(cond, message=None):
    """Raise TypeError unless `cond` is true."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond, message=None):
    """Raise NotImplementedError unless `cond` is true."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i, message=None, *, max=None):  # noqa: A002
    """Raise RuntimeError unless `i` is at least 0, and at most `max`."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all_with(error_type, cond, message=None):
    """Raise an error of the type unless all elements of the bool tensor `cond` are true."""
    if not isinstance(cond, _C.Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != _C.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond, message=None):
    """Raise RuntimeError unless all elements of the bool tensor `cond` are true."""
    _check_tensor_all_with(RuntimeError, cond, message)
