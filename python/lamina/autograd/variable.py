"""Variable: the old name of Tensor."""

import lamina
from lamina import _C

__all__ = ["Variable"]


class _Engine:
    """The engine as programs reach it through Variable."""

    @staticmethod
    def queue_callback(callback) -> None:
        """Run `callback` at the end of the backward pass that runs now."""
        _C._queue_callback(callback)


class _VariableMeta(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, lamina.Tensor)


class Variable(metaclass=_VariableMeta):
    """Variable(tensor, requires_grad=False) is the tensor itself."""

    _execution_engine = _Engine()

    def __new__(cls, data=None, requires_grad=None, volatile=None):
        result = lamina.empty(0) if data is None else data.detach()
        if requires_grad:
            result.requires_grad_()
        return result
