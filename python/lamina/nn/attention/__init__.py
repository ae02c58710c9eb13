"""Which way attention is computed. There is one way here; choosing among others changes nothing."""

from __future__ import annotations

from contextlib import contextmanager
from enum import IntEnum

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(IntEnum):
    """Ways to compute scaled dot product attention that programs name."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_chosen = [list(SDPBackend)[1:]]


def _cur_sdpa_kernel_backends(with_priority=False):
    return list(_chosen[-1])


@contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Within the block one of `backends` is asked for. The result is the same."""
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances"
        )
    chosen = [backends] if isinstance(backends, SDPBackend) else list(dict.fromkeys(backends))
    _chosen.append(chosen)
    try:
        yield {}
    finally:
        _chosen.pop()
