"""What the distributions share: broadcasting of parameters, probabilities and logits, triangles, lazy attributes."""

from numbers import Number

import lamina
from lamina import Tensor
from lamina.overrides import is_tensor_like

__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Tensor | int | float | bool) -> tuple[Tensor, ...]:
    """Tensors of one shape from tensors and numbers.

    A number becomes a tensor of the first tensor's dtype and device, of the default dtype where
    there is none. Raises ValueError for anything else, RuntimeError where shapes do not broadcast.
    """
    if not all(is_tensor_like(v) or isinstance(v, Number) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__."
        )
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = lamina.get_default_dtype() if like is None else like.dtype
    device = None if like is None else like.device
    return tuple(
        lamina.broadcast_tensors(
            *(
                v if is_tensor_like(v) else lamina.tensor(v, dtype=dtype, device=device)
                for v in values
            )
        )
    )


def given_shape(*values) -> lamina.Size:
    """Batch shape of parameters before they are broadcast: () where all are numbers."""
    return lamina.broadcast_shapes(*(v.shape for v in values if isinstance(v, Tensor)))


def _standard_normal(shape, dtype, device) -> Tensor:
    return lamina.normal(
        lamina.zeros(shape, dtype=dtype, device=device),
        lamina.ones(shape, dtype=dtype, device=device),
    )


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """Sum over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[: value.dim() - dim] + (-1,)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of logits: their sigmoid where binary, else the softmax over the last dimension."""
    return lamina.sigmoid(logits) if is_binary else lamina.softmax(logits, -1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept one epsilon of their dtype away from 0 and 1."""
    eps = lamina.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Logits of probabilities: log(p / (1 - p)) where binary, else log p; clamped first."""
    clamped = clamp_probs(probs)
    return clamped.log() - lamina.log1p(-clamped) if is_binary else clamped.log()


class lazy_property:
    """An attribute that is computed, with gradients, at the first look and kept on the instance."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.__name__ = wrapped.__name__

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with lamina.enable_grad():
            value = self.wrapped(instance)
        instance.__dict__[self.wrapped.__name__] = value
        return value


def _triangle(size, diag, device):
    return lamina.ones(size, size, dtype=lamina.bool, device=device).tril(diag)


def _triangle_entries(size, diag):
    """How many entries lie on and below diagonal `diag` of a square matrix."""
    if diag <= 0:
        return (size + diag) * (size + diag + 1) // 2
    above = max(size - 1 - diag, 0)
    return size * size - above * (above + 1) // 2


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Entries on and below diagonal `diag` of matrices (..., n, n), row by row: (..., count).

    Raises ValueError for a diagonal outside -n ... n - 1.
    """
    size = mat.shape[-1]
    if not -size <= diag < size:
        raise ValueError(f"diag ({diag}) provided is outside [{-size}, {size - 1}].")
    return mat[..., _triangle(size, diag, mat.device)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The inverse of `tril_matrix_to_vec`: (..., count) to (..., n, n), zero above the diagonal.

    Raises ValueError where no n gives that count.
    """
    count, size = vec.shape[-1], max(-diag, 0)
    while _triangle_entries(size, diag) < count:
        size += 1
    if _triangle_entries(size, diag) != count:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower "
            "triangular part of a square D x D matrix."
        )
    matrix = vec.new_zeros(vec.shape[:-1] + (size, size))
    place = _triangle(size, diag, vec.device)
    return matrix.masked_scatter(place.expand(matrix.shape), vec)
