"""Rows of tables by index."""

from __future__ import annotations

import lamina
from lamina._per_sample import per_sample


def _padding_row(op: str, padding_idx: int | None, rows: int) -> int:
    """The row that gets no gradient, counted from the front; -1 for none."""
    if padding_idx is None:
        return -1
    if not -rows <= padding_idx < rows:
        raise AssertionError(f"{op}: Padding_idx must be within num_embeddings")
    return padding_idx % rows


def _renormalized(weight, indices, max_norm: float, norm_type: float) -> None:
    with lamina.no_grad():
        lamina.embedding_renorm_(weight, indices, max_norm, norm_type)


def embedding(
    input,
    weight,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
):
    """Rows of `weight` (n, d) by the int32 or int64 indices `input`; the result has the shape of `input` and d.

    The row `padding_idx` gets no gradient. With `max_norm` the rows in use are first scaled, in place, to a norm of at
    most that. Gradients are dense, also with `sparse`.
    """
    row = _padding_row("embedding", padding_idx, weight.size(0)) if padding_idx is not None else -1
    if max_norm is not None:
        input = input.contiguous()
        _renormalized(weight, input, max_norm, norm_type)
    return lamina.embedding(weight, input, row, scale_grad_by_freq, sparse)


@per_sample
def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights=None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
):
    """Sum, mean or largest of the rows of `weight` in each bag of indices.

    `input` is (bags, length), or one-dimensional with the beginnings of the bags in `offsets`. Rows of `padding_idx`
    count nothing. `per_sample_weights` (the shape of `input`, mode "sum" only) multiply the rows.
    """
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        offsets = lamina.arange(0, input.numel(), max(input.size(1), 1), dtype=input.dtype)
        if input.size(1) == 0:
            offsets = lamina.zeros(input.size(0), dtype=input.dtype)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and (scale_grad_by_freq or sparse):
        what = "scaling the gradient by the frequency" if scale_grad_by_freq else "sparse weights"
        raise ValueError(f"max mode does not support {what}")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )
    row = _padding_row("embedding_bag", padding_idx, weight.size(0))
    if max_norm is not None:
        _renormalized(weight, input, max_norm, norm_type)
    count = input.size(0)
    if offsets.numel() and int(offsets[0]) != 0:
        raise RuntimeError(
            f"embedding_bag: offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
            f"position 0. However, got {int(offsets[0])}"
        )
    if offsets.numel() and int(offsets[-1]) > count:
        raise RuntimeError(
            f"embedding_bag: offsets[-1] can not be greater than input's length({count}) but got offsets[-1] of "
            f"{int(offsets[-1])}"
        )
    ends = (
        offsets[1:]
        if include_last_offset
        else lamina.cat([offsets[1:], offsets.new_tensor([count])])
    )
    starts = offsets[:-1] if include_last_offset else offsets
    lengths = (ends - starts).to(lamina.int64)
    bags = lengths.numel()
    bag_of = lamina.repeat_interleave(lamina.arange(bags), lengths)
    rows = lamina.embedding(weight, input[: bag_of.numel()], row, scale_grad_by_freq, sparse)
    counted = input[: bag_of.numel()] != row if row >= 0 else None
    if mode == "max":
        index = bag_of
        if counted is not None:
            rows, index = rows[counted], bag_of[counted]
        return _largest(rows, index, bags)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[: bag_of.numel()].unsqueeze(1)
    if counted is not None:
        rows = rows.masked_fill(counted.logical_not().unsqueeze(1), 0)
    total = rows.new_zeros(bags, weight.size(1)).index_add(0, bag_of, rows)
    if mode == "sum":
        return total
    number = lengths
    if counted is not None:
        number = lamina.zeros(bags, dtype=lamina.int64).index_add(
            0, bag_of, counted.to(lamina.int64)
        )
    return total / number.clamp_min(1).to(total.dtype).unsqueeze(1)


def _largest(rows, bag_of, bags: int):
    """The largest row element of each bag, column by column; zeros for an empty bag. The first of equal ones counts."""
    with lamina.no_grad():
        top = rows.new_full((bags, rows.size(1)), float("-inf"))
        # Bags are runs of adjacent rows, in order.
        counts = lamina.zeros(bags, dtype=lamina.int64).index_add(
            0, bag_of, lamina.ones_like(bag_of)
        )
        start, where = 0, lamina.zeros(bags, rows.size(1), dtype=lamina.int64)
        for i, n in enumerate(counts.tolist()):
            if n:
                top[i], at = rows[start : start + n].max(0)
                where[i] = at + start
            start += n
    if rows.size(0) == 0:
        return rows.new_zeros(bags, rows.size(1))
    return rows.gather(0, where).masked_fill((counts == 0).unsqueeze(1), 0)


__all__ = ["embedding", "embedding_bag"]
