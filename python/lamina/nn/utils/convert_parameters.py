"""Parameters as one vector, and back."""

from __future__ import annotations

import lamina
from lamina import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _one_device(parameters):
    if len({p.device for p in parameters}) > 1:
        raise TypeError(
            "Found two parameters on different devices, this is currently not supported."
        )


def parameters_to_vector(parameters) -> Tensor:
    """All elements of several tensors, one tensor after the other. Raises TypeError for several devices."""
    parameters = list(parameters)
    _one_device(parameters)
    return lamina.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters) -> None:
    """Give parameters the values of a vector: their `data` are views of it.

    Raises TypeError where `vec` is no Tensor or parameters are on several devices.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {lamina.typename(vec)}")
    parameters = list(parameters)
    _one_device(parameters)
    at = 0
    for parameter in parameters:
        size = parameter.numel()
        parameter.data = vec[at : at + size].view_as(parameter).data
        at += size
