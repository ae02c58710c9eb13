"""Gradients kept within bounds."""

from __future__ import annotations

import warnings

import lamina
from lamina import Tensor

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


def _listed(parameters):
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _gradients(parameters):
    return [p.grad for p in parameters if p.grad is not None]


_NARROW = (lamina.float16, lamina.bfloat16)


def _norm(tensors, norm_type, error_if_nonfinite):
    """The norm of all, in float32 where the tensors are narrower: its square would overflow them."""
    norm_type = float(norm_type)
    if not tensors:
        return lamina.tensor(0.0)
    device = tensors[0].device
    norms = [
        lamina.linalg.vector_norm(
            t, norm_type, dtype=lamina.float32 if t.dtype in _NARROW else None
        ).to(device)
        for t in tensors
    ]
    total = norms[0]
    if len(norms) > 1:
        widest = lamina.float64 if any(n.dtype == lamina.float64 for n in norms) else norms[0].dtype
        total = lamina.linalg.vector_norm(lamina.stack([n.to(widest) for n in norms]), norm_type)
    if error_if_nonfinite and not bool(lamina.isfinite(total)):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so "
            "it cannot be clipped. To disable this error and scale the gradients by the non-finite "
            "norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def _as_theirs(total, tensors):
    """A norm in the tensors' own dtype, as callers expect it."""
    narrow = {t.dtype for t in tensors}
    return total.to(narrow.pop()) if len(narrow) == 1 and narrow <= set(_NARROW) else total


@lamina.no_grad()
def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None) -> Tensor:
    """The norm of several tensors, as if all their elements were one vector.

    Parameters
    ----------
    tensors : Tensor or iterable of Tensors
    norm_type : float
        May be inf.
    error_if_nonfinite : bool
        Raise RuntimeError where the norm is NaN or infinite.
    foreach : bool, optional
        Accepted.
    """
    tensors = _listed(tensors)
    return _as_theirs(_norm(tensors, norm_type, error_if_nonfinite), tensors)


@lamina.no_grad()
def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None) -> None:
    """Scale gradients, in place, by ``max_norm / (total_norm + 1e-6)`` where that is below 1."""
    gradients = _gradients(_listed(parameters))
    if not gradients:
        return
    factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(factor.to(gradient.device))  # of no dimension: the gradient's dtype stays


@lamina.no_grad()
def clip_grad_norm_(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None
) -> Tensor:
    """Scale the gradients of parameters, in place, so that the norm of all together is at most `max_norm`.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensors
        Those without a gradient are left out.
    max_norm, norm_type : float
    error_if_nonfinite : bool
        Raise RuntimeError where the norm is NaN or infinite.
    foreach : bool, optional
        Accepted.

    Returns the norm before, a tensor.
    """
    if not isinstance(parameters, Tensor):
        generator = not hasattr(parameters, "__len__") and iter(parameters) is parameters
        parameters = list(parameters)
        if generator and not parameters:
            warnings.warn(
                "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3
            )
    parameters = _listed(parameters)
    gradients = _gradients(parameters)
    total = _norm(gradients, norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return _as_theirs(total, gradients)


def clip_grad_norm(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None
) -> Tensor:
    """The old name of `clip_grad_norm_`."""
    warnings.warn(
        "torch.nn.utils.clip_grad_norm is now deprecated in favor of "
        "torch.nn.utils.clip_grad_norm_.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@lamina.no_grad()
def clip_grad_value_(parameters, clip_value, foreach=None) -> None:
    """Limit every element of the gradients of parameters, in place, to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    for gradient in _gradients(_listed(parameters)):
        gradient.clamp_(min=-clip_value, max=clip_value)


_get_total_norm = get_total_norm
_clip_grads_with_norm_ = clip_grads_with_norm_
