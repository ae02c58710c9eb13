"""Linear algebra, with its types."""

from collections.abc import Sequence

from lamina._border import dtype
from lamina._ops import Tensor
from lamina._ops_linalg import *

def norm(
    A: Tensor,
    ord: float | str | None = ...,
    dim: int | Sequence[int] | None = ...,
    keepdim: bool = ...,
    *,
    out: Tensor | None = ...,
    dtype: dtype | None = ...,
) -> Tensor: ...
def matrix_norm(
    A: Tensor,
    ord: float | str = ...,
    dim: Sequence[int] = ...,
    keepdim: bool = ...,
    *,
    dtype: dtype | None = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def cond(A: Tensor, p: float | str | None = ..., *, out: Tensor | None = ...) -> Tensor: ...
def matrix_rank(
    A: Tensor,
    tol: float | Tensor | bool | None = ...,
    hermitian: bool = ...,
    *,
    atol: float | Tensor | None = ...,
    rtol: float | Tensor | None = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def pinv(
    A: Tensor,
    rcond: float | Tensor | bool | None = ...,
    hermitian: bool = ...,
    *,
    atol: float | Tensor | None = ...,
    rtol: float | Tensor | None = ...,
    out: Tensor | None = ...,
) -> Tensor: ...

class LinAlgError(RuntimeError): ...
