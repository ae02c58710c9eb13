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
