"""Gradients: backward, grad, the modes that say what is recorded, and functions of one's own."""

from lamina._C import (
    _autograd_backward,
    _autograd_grad,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from lamina.autograd import grad_mode, graph
from lamina.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from lamina.autograd.function import Function
from lamina.autograd.gradcheck import gradcheck, gradgradcheck
from lamina.autograd.variable import Variable

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]

# Loaded at first use.
_LAZY = ("forward_ad", "functional", "profiler")


def __getattr__(name):
    import importlib

    if name in _LAZY:
        return importlib.import_module("lamina.autograd." + name)
    raise AttributeError(f"module 'lamina.autograd' has no attribute {name!r}")


def backward(
    tensors,
    grad_tensors=None,
    retain_graph=None,
    create_graph=False,
    grad_variables=None,
    inputs=None,
):
    """Add the gradients of the sum of `tensors` to the leaves.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensors
        What is differentiated.
    grad_tensors : Tensor or sequence of Tensors and None
        Gradients of each; None stands for 1 and needs a tensor of one element.
    retain_graph : bool
        Keep what was saved, for another run; `create_graph` where it is None.
    create_graph : bool
        Record the computation of the gradients.
    inputs : Tensor or sequence of Tensors
        The leaves that get a gradient; None means all.
    """
    if grad_tensors is None:
        grad_tensors = grad_variables
    _autograd_backward(tensors, grad_tensors, retain_graph, bool(create_graph), inputs)


grad = _autograd_grad
