"""How the cross entropy of a linear layer is computed."""

from __future__ import annotations

from dataclasses import dataclass

import lamina

_METHODS = ("auto",)

__all__ = ["LinearCrossEntropyOptions"]


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """Options of `linear_cross_entropy`.

    Parameters
    ----------
    allow_retain_graph : bool
        Whether backward may run more than once.
    batch_chunk_size : int, optional
        Rows computed at once; chosen where it is not given.
    chunking_method : str, optional
        'auto', or None to compute all at once.
    acc_policy : str
        'accurate', 'balanced', 'compact' or 'auto'.
    acc_dtype : dtype, optional
        What sums are kept in.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: lamina.dtype | None = None

    def __post_init__(self):
        name = "LinearCrossEntropyOptions"
        if self.acc_policy not in ("accurate", "balanced", "compact", "auto"):
            raise ValueError(f"{name}: invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, *_METHODS):
            raise ValueError(f"{name}: invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and (not isinstance(size, int) or size <= 0):
            raise ValueError(f"{name}: batch_chunk_size must be positive int or None, got {size}")
        floats = (lamina.float16, lamina.bfloat16, lamina.float32, lamina.float64)
        if self.acc_dtype is not None and self.acc_dtype not in floats:
            raise ValueError(f"{name}: acc_dtype must be a floating dtype; got {self.acc_dtype}")
