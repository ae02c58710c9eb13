"""Functions with derivatives of their own that modules use."""

from lamina.autograd import Function

__all__ = []


class BackwardHookFunction(Function):
    """The identity; a place in the graph where a module's backward hooks sit."""

    @staticmethod
    def forward(ctx, *args):
        ctx.mark_non_differentiable(*[a for a in args if not a.requires_grad])
        return args

    @staticmethod
    def backward(ctx, *args):
        return args
