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


class CrossMapLRN2d:
    """Local response normalization of images, as modules of old programs name it."""

    @staticmethod
    def apply(input, size, alpha=1e-4, beta=0.75, k=1):
        """See `nn.functional.local_response_norm`; a window of even size has one channel more before than after."""
        from lamina.nn import functional as F

        return F.local_response_norm(input, size, alpha, beta, k)
