"""Dimensions by number, counted from the front or from the end."""

from __future__ import annotations

TYPE_CHECKING = False  # typing takes time to import
if TYPE_CHECKING:
    from collections.abc import Iterable

    from lamina import Tensor


def wrap_dim(dim: int, rank: int, what: str = "") -> int:
    """`dim` of `rank` dimensions, counted from the front. Raises IndexError, which begins with `what`, outside of them."""
    if not -rank <= dim < rank:
        raise IndexError(
            f"{what}Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})"
        )
    return dim % rank


def wrap_dims(dims: Iterable[int], t: Tensor) -> list[int]:
    """The same for dimensions of a tensor; one without any counts as one with one."""
    rank = max(t.dim(), 1)
    return [wrap_dim(d, rank) for d in dims]
