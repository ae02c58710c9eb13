"""Distances between the rows of one matrix."""

from __future__ import annotations

import lamina
from lamina.functional import overridable


@overridable
def pdist(input, p: float = 2.0):
    """The `p`-norms of the differences of all pairs of rows i < j: (n, m) gives (n * (n - 1) / 2,).

    Raises RuntimeError for other dimensions, whole numbers and a negative `p`.
    """
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    if not input.is_floating_point():
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    first, second = lamina.triu_indices(input.size(0), input.size(0), 1).unbind(0)
    difference = input[first] - input[second]
    result = lamina.linalg.vector_norm(difference, p, dim=1)
    if p == 0:  # a count: its gradient is zero, but there is one
        nothing = lamina.zeros(difference.shape, dtype=lamina.bool)
        result = result + lamina.where(nothing, difference, 0.0).sum(1)
    return result


__all__ = ["pdist"]
