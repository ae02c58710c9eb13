"""Functions with a backward of their own."""

import functools
import inspect
from typing import Any

import lamina
from lamina._C import _function_apply, _FunctionBase, _is_batched, _vmap_levels

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "once_differentiable",
]


class FunctionCtx(_FunctionBase):
    """What forward and backward of one call share."""


class BackwardCFunction(FunctionCtx):
    """The node of one call; its class is made for each Function, which it names."""

    @property
    def _backward_function(self):
        cls = self._forward_cls
        has_backward = cls.backward is not Function.backward
        if has_backward and cls.vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                "should only implement one of them."
            )
        return cls.backward if has_backward else cls.vjp

    def apply(self, *grads):
        """Backward of this call."""
        return self._backward_function(self, *grads)


class FunctionMeta(type):
    """Gives every Function the class of its nodes."""

    def __init__(cls, name, bases, attributes):
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})
        super().__init__(name, bases, attributes)


class Function(FunctionCtx, metaclass=FunctionMeta):
    """An operator with a derivative of its own: subclass, write forward and backward, call apply.

    ``forward(ctx, *args)`` computes; or ``forward(*args)`` with ``setup_context(ctx, inputs,
    output)``. ``backward(ctx, *grads)`` gets one gradient for each result and returns one for each
    argument (None for what is no tensor). ``jvp(ctx, *tangents)`` does the same forward.
    """

    generate_vmap_rule = False

    def __init__(self, *args, **kwargs):
        raise RuntimeError(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch."
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the results; nothing inside is recorded."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> Any:
        """Keeps on `ctx` what backward needs, where forward takes no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Gradients of the arguments from those of the results."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name of backward."""
        return Function.backward(ctx, *grad_outputs)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Tangents of the results from those of the arguments."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info, in_dims, *args):
        """The rule for batches of arguments."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or "
            "set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run forward, and record backward where an argument requires grad."""
        separate = cls.setup_context is not _default_setup_context
        if separate:
            args = _bind_defaults(cls.forward, *args, **kwargs)
        elif kwargs:
            raise TypeError(f"{cls.__name__}.apply() takes no keyword arguments")
        if _vmap_levels() and any(_is_batched(a) for a in args):
            from lamina.autograd import _function_vmap

            return _function_vmap.apply(cls, args)
        return _function_apply(cls, separate, args)


_default_setup_context = Function.setup_context


def _bind_defaults(function, *args, **kwargs):
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def once_differentiable(function):
    """A backward whose result cannot be differentiated again: doing so raises."""

    @functools.wraps(function)
    def wrapper(ctx, *grads):
        with lamina.no_grad():
            results = function(ctx, *grads)
        if not lamina.is_grad_enabled():
            return results
        if not any(isinstance(g, lamina.Tensor) and g.requires_grad for g in grads):
            return results
        single = not isinstance(results, tuple)
        if single:
            results = (results,)
        raising = tuple(
            _Undifferentiable.apply(r.detach().requires_grad_(), wrapper)
            if isinstance(r, lamina.Tensor)
            else r
            for r in results
        )
        return raising[0] if single else raising

    return wrapper


class _Undifferentiable(Function):
    """Passes a tensor on; its backward raises."""

    @staticmethod
    def forward(ctx, x, function):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


class InplaceFunction(Function):
    """A Function with a flag that says whether it writes in place."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace


def traceable(cls):
    """Kept for old programs; does nothing."""
    cls.is_traceable = True
    return cls
