"""Padding."""

from __future__ import annotations

from lamina._C import _submodule_functions

_nn = _submodule_functions["_nn"]


def pad(input, pad, mode: str = "constant", value=None):
    """`input` with a border.

    `pad` holds (before, after) of the last dimension, then of the one before it, and so on; negative numbers cut.
    `mode` is constant (filled with `value`, 0 where None), reflect, replicate or circular; the last three pad the last
    one to three dimensions of a batch or a sample. Raises NotImplementedError for other modes and ranks.
    """
    return _nn["pad"](input, pad, mode, value)


__all__ = ["pad"]
