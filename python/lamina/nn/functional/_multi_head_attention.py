"""Attention of several heads, with everything around it."""

from __future__ import annotations

import math

import lamina
from lamina.overrides import handle_torch_function, has_torch_function


def _functional():
    from lamina.nn import functional

    return functional


def _none_or_dtype(input):
    if input is None:
        return None
    if isinstance(input, lamina.Tensor):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """A mask as numbers to add: -inf where a mask of bool is True. Raises RuntimeError for other dtypes."""
    if mask is None:
        return None
    floating = mask.is_floating_point()
    if mask.dtype != lamina.bool and not floating:
        raise RuntimeError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        import warnings

        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. "
            "Use same type for both instead.",
            stacklevel=3,
        )
    if floating:
        return mask
    zeros = lamina.zeros(mask.shape, dtype=target_type, device=mask.device)
    return zeros.masked_fill_(mask, float("-inf"))


def _in_projection_packed(q, k, v, w, b=None):
    """Projections of queries, keys and values by one matrix (3 * e, e); as few products as the inputs allow."""
    linear = _functional().linear
    e = q.size(-1)
    if k is v and q is k:
        return list(linear(q, w, b).chunk(3, dim=-1))
    if k is v:
        w_q, w_kv = w.split([e, e * 2])
        b_q, b_kv = (None, None) if b is None else b.split([e, e * 2])
        return [linear(q, w_q, b_q), *linear(k, w_kv, b_kv).chunk(2, dim=-1)]
    biases = (None, None, None) if b is None else b.chunk(3)
    return [linear(x, part, bias) for x, part, bias in zip((q, k, v), w.chunk(3), biases)]


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None):
    """Projections by a matrix each: (e, e), (e, kdim), (e, vdim)."""
    linear = _functional().linear
    e, e_k, e_v = q.size(-1), k.size(-1), v.size(-1)
    for name, w, expected in (
        ("query", w_q, (e, e)),
        ("key", w_k, (e, e_k)),
        ("value", w_v, (e, e_v)),
    ):
        if tuple(w.shape) != expected:
            raise AssertionError(
                f"expecting {name} weights shape of {expected}, but got {tuple(w.shape)}"
            )
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether there is a batch. Raises AssertionError where the dimensions do not fit each other."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    batched = query.dim() == 3
    kind = "batched (3-D)" if batched else "unbatched (2-D)"
    if key.dim() != query.dim() or value.dim() != query.dim():
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {query.dim()}-D but found "
            f"{key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != query.dim() - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {query.dim() - 1}-D "
            f"but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                f"{attn_mask.dim()}-D tensor instead"
            )
        if not batched and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            if tuple(attn_mask.shape) != expected:
                raise AssertionError(
                    f"Expected `attn_mask` shape to be {expected} but got {tuple(attn_mask.shape)}"
                )
    return batched


def _checked_mask(attn_mask, tgt_len, src_len, bsz, num_heads):
    if attn_mask.dim() == 2:
        expected = (tgt_len, src_len)
    elif attn_mask.dim() == 3:
        expected = (bsz * num_heads, tgt_len, src_len)
    else:
        raise RuntimeError(f"attn_mask's dimension {attn_mask.dim()} is not supported")
    if tuple(attn_mask.shape) != expected:
        raise RuntimeError(
            f"The shape of the {attn_mask.dim()}D attn_mask is {tuple(attn_mask.shape)}, but should "
            f"be {expected}."
        )
    return attn_mask.unsqueeze(0) if attn_mask.dim() == 2 else attn_mask


def _with_column(mask):
    """One more key, which is looked at."""
    if mask is None:
        return None
    return lamina.cat([mask, mask.new_zeros((*mask.shape[:-1], 1))], dim=-1)


def _with_row(x, dim):
    """One more row of zeros along `dim`."""
    sizes = list(x.shape)
    sizes[dim] = 1
    return lamina.cat([x, x.new_zeros(sizes)], dim=dim)


def _static(name, given, bsz, num_heads, head_dim):
    if given.size(0) != bsz * num_heads:
        raise AssertionError(
            f"expecting {name}.size(0) of {bsz * num_heads}, but got {given.size(0)}"
        )
    if given.size(2) != head_dim:
        raise AssertionError(f"expecting {name}.size(2) of {head_dim}, but got {given.size(2)}")
    return given


def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """What nn.MultiheadAttention computes; see there.

    Parameters
    ----------
    query, key, value : Tensor
        (l, n, e), (s, n, kdim), (s, n, vdim), or without n.
    key_padding_mask : Tensor, optional
        (n, s).
    attn_mask : Tensor, optional
        (l, s) or (n * num_heads, l, s).
    static_k, static_v : Tensor, optional
        (n * num_heads, s, head_dim), in place of the projected keys and values.

    Returns
    -------
    (Tensor, Tensor or None)
        (l, n, e); the weights (n, l, s), or (n, num_heads, l, s) where they are not averaged.

    Raises
    ------
    AssertionError
        Dimensions or sizes do not fit.
    RuntimeError
        Masks do not fit, or `is_causal` comes without a mask.
    """
    relevant = (
        query, key, value, in_proj_weight, in_proj_bias, bias_k, bias_v, out_proj_weight,
        out_proj_bias,
    )  # fmt: skip
    if has_torch_function(relevant):
        return handle_torch_function(
            multi_head_attention_forward, relevant, query, key, value, embed_dim_to_check,
            num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p,
            out_proj_weight, out_proj_bias, training=training, key_padding_mask=key_padding_mask,
            need_weights=need_weights, attn_mask=attn_mask, is_causal=is_causal,
            use_separate_proj_weight=use_separate_proj_weight, q_proj_weight=q_proj_weight,
            k_proj_weight=k_proj_weight, v_proj_weight=v_proj_weight, static_k=static_k,
            static_v=static_v, average_attn_weights=average_attn_weights,
        )  # fmt: skip
    F = _functional()
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same_key, same_query = key is value, query is key
        query = query.unsqueeze(1)
        key = query if same_query else key.unsqueeze(1)
        value = key if same_key else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    tgt_len, bsz, embed_dim = query.shape
    src_len = key.shape[0]
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "multi_head_attention_forward: is_causal is a hint about attn_mask; Need attn_mask if "
            "specifying the is_causal hint."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the attention operator knows the causal mask itself
    else:
        attn_mask = _canonical_mask(
            attn_mask, "attn_mask", None, "", query.dtype, check_other=False
        )
        is_causal = is_causal and key_padding_mask is None
    if embed_dim != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}"
        )
    head_dim = embed_dim // num_heads
    if head_dim * num_heads != embed_dim:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
        biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
        for name, w in (("q", q_proj_weight), ("k", k_proj_weight), ("v", v_proj_weight)):
            if w is None:
                raise AssertionError(
                    f"use_separate_proj_weight is True but {name}_proj_weight is None"
                )
        q, k, v = _in_projection(
            query, key, value, q_proj_weight, k_proj_weight, v_proj_weight, *biases
        )
    else:
        if key.shape != value.shape:
            raise AssertionError(
                f"key shape {tuple(key.shape)} does not match value shape {tuple(value.shape)}"
            )
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None:
        attn_mask = _checked_mask(attn_mask, tgt_len, src_len, bsz, num_heads)
    if (bias_k is None) != (bias_v is None):
        raise AssertionError("bias_k and bias_v are both given or both None")
    if bias_k is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key and value")
        k = lamina.cat([k, bias_k.repeat(1, bsz, 1)])
        v = lamina.cat([v, bias_v.repeat(1, bsz, 1)])
        attn_mask, key_padding_mask = _with_column(attn_mask), _with_column(key_padding_mask)

    def heads(x):
        return x.reshape(x.shape[0], bsz * num_heads, head_dim).transpose(0, 1)

    q = heads(q)
    k = heads(k) if static_k is None else _static("static_k", static_k, bsz, num_heads, head_dim)
    v = heads(v) if static_v is None else _static("static_v", static_v, bsz, num_heads, head_dim)
    if add_zero_attn:
        k, v = _with_row(k, 1), _with_row(v, 1)
        attn_mask, key_padding_mask = _with_column(attn_mask), _with_column(key_padding_mask)
    src_len = k.size(1)
    if key_padding_mask is not None:
        if tuple(key_padding_mask.shape) != (bsz, src_len):
            raise AssertionError(
                f"expecting key_padding_mask shape of {(bsz, src_len)}, but got "
                f"{tuple(key_padding_mask.shape)}"
            )
        padding = key_padding_mask.view(bsz, 1, 1, src_len).expand(-1, num_heads, -1, -1)
        padding = padding.reshape(bsz * num_heads, 1, src_len)
        attn_mask = padding if attn_mask is None else attn_mask + padding
    if not training:
        dropout_p = 0.0

    if need_weights:
        if is_causal and attn_mask is None:
            raise AssertionError("is_causal needs attn_mask where the weights are wanted")
        scaled = q * math.sqrt(1.0 / float(head_dim))
        if attn_mask is not None:
            weights = lamina.baddbmm(attn_mask, scaled, k.transpose(-2, -1))
        else:
            weights = lamina.bmm(scaled, k.transpose(-2, -1))
        weights = F.softmax(weights, dim=-1)
        if dropout_p > 0.0:
            weights = F.dropout(weights, p=dropout_p)
        output = lamina.bmm(weights, v).transpose(0, 1).reshape(tgt_len * bsz, embed_dim)
        output = F.linear(output, out_proj_weight, out_proj_bias)
        output = output.view(tgt_len, bsz, output.size(1))
        weights = weights.view(bsz, num_heads, tgt_len, src_len)
        if average_attn_weights:
            weights = weights.mean(dim=1)
        if not batched:
            output, weights = output.squeeze(1), weights.squeeze(0)
        return output, weights

    if attn_mask is not None:
        if attn_mask.size(0) == 1 and attn_mask.dim() == 3:
            attn_mask = attn_mask.unsqueeze(0)
        else:
            attn_mask = attn_mask.view(bsz, num_heads, -1, src_len)
    output = F.scaled_dot_product_attention(
        q.reshape(bsz, num_heads, tgt_len, head_dim),
        k.reshape(bsz, num_heads, src_len, head_dim),
        v.reshape(bsz, num_heads, src_len, head_dim),
        attn_mask,
        dropout_p,
        is_causal,
    )
    output = output.permute(2, 0, 1, 3).reshape(bsz * tgt_len, embed_dim)
    output = F.linear(output, out_proj_weight, out_proj_bias)
    output = output.view(tgt_len, bsz, output.size(1))
    return (output if batched else output.squeeze(1)), None


__all__ = ["multi_head_attention_forward"]
