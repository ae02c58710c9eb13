"""Gradients, with their types."""

from collections.abc import Sequence

from lamina import Tensor
from lamina._border import enable_grad as enable_grad
from lamina._border import inference_mode as inference_mode
from lamina._border import is_grad_enabled as is_grad_enabled
from lamina._border import no_grad as no_grad
from lamina._border import set_grad_enabled as set_grad_enabled
from lamina.autograd import forward_ad as forward_ad
from lamina.autograd import functional as functional
from lamina.autograd import grad_mode as grad_mode
from lamina.autograd import graph as graph
from lamina.autograd import profiler as profiler
from lamina.autograd.anomaly_mode import detect_anomaly as detect_anomaly
from lamina.autograd.anomaly_mode import set_detect_anomaly as set_detect_anomaly
from lamina.autograd.function import Function as Function
from lamina.autograd.gradcheck import gradcheck as gradcheck
from lamina.autograd.gradcheck import gradgradcheck as gradgradcheck
from lamina.autograd.variable import Variable as Variable

def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = ...,
    retain_graph: bool | None = ...,
    create_graph: bool = ...,
    grad_variables: Tensor | Sequence[Tensor | None] | None = ...,
    inputs: Tensor | Sequence[Tensor] | None = ...,
) -> None: ...
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = ...,
    retain_graph: bool | None = ...,
    create_graph: bool = ...,
    only_inputs: bool = ...,
    allow_unused: bool | None = ...,
    is_grads_batched: bool = ...,
    materialize_grads: bool = ...,
) -> tuple[Tensor, ...]: ...
