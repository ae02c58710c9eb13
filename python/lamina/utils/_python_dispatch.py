"""Modes of __torch_dispatch__: every operator that reaches the dispatcher's key Python."""

from contextlib import contextmanager

from lamina import _C


class TorchDispatchMode:
    """A block in which every operator comes here, below autograd, as ``func(*args, **kwargs)`` of lamina.ops.

    Derive from it and define ``__torch_dispatch__(self, func, types, args=(), kwargs=None)``. Inside that method the mode is off.
    """

    def __init__(self, _dispatch_key=None):
        pass

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{type(self).__name__} must define __torch_dispatch__")

    def __enter__(self):
        _C._push_on_torch_dispatch_stack(self)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        _C._pop_torch_dispatch_stack()

    @classmethod
    def push(cls, *args, **kwargs):
        """The old spelling of making one."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls):
        """Whether the mode is part of the library's own machinery; False."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode():
    count = _C._len_torch_dispatch_stack()
    return _C._get_dispatch_stack_at(count - 1) if count else None


def _get_current_dispatch_mode_stack():
    return [_C._get_dispatch_stack_at(i) for i in range(_C._len_torch_dispatch_stack())]


def is_in_torch_dispatch_mode(include_infra_modes=True):
    """Whether a mode is entered on this thread."""
    return _C._len_torch_dispatch_stack() > 0


@contextmanager
def _disable_current_modes():
    modes = []
    while _C._len_torch_dispatch_stack():
        modes.append(_C._pop_torch_dispatch_stack())
    try:
        yield modes
    finally:
        for mode in reversed(modes):
            _C._push_on_torch_dispatch_stack(mode)


def is_traceable_wrapper_subclass(t):
    """Whether a tensor is a subclass that says which tensors it holds, by __tensor_flatten__ and __tensor_unflatten__."""
    return (
        isinstance(t, _C.Tensor)
        and type(t) is not _C.Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass_type(t):
    """The same of a class."""
    return (
        issubclass(t, _C.Tensor)
        and t is not _C.Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def return_and_correct_aliasing(func, args, kwargs, out):
    """The result of a handler; where the operator returns an argument that it wrote to, that argument."""
    returns = func._schema.returns
    if len(returns) == 1 and returns[0].alias_info is not None and returns[0].alias_info.is_write:
        for given, argument in zip(args, func._schema.arguments, strict=False):
            if argument.alias_info is not None and argument.alias_info.is_write:
                return given
        for argument in func._schema.arguments:
            if argument.alias_info is not None and argument.alias_info.is_write:
                if argument.name in (kwargs or {}):
                    return kwargs[argument.name]
    return out
