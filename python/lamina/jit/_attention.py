"""Operators that scripted transformers call where nothing needs gradients: attention and encoder layer in one."""

import lamina
from lamina.nn import functional as F


def _scores_masked(scores, mask, mask_type):
    """Scores with -inf where `mask` says so. Types: 0 a mask (L, S), 1 of keys (N, S), 2 all (N, heads, L, S)."""
    mask = mask.to(lamina.bool)
    if mask_type == 1:
        mask = mask[:, None, None, :]
    return scores.masked_fill(mask, float("-inf"))


def native_multi_head_attention(
    query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias,
    mask=None, need_weights=True, average_attn_weights=True, mask_type=None,
):  # fmt: skip
    """Attention of (N, L, E) to (N, S, E): the output (N, L, E), and weights (N, L, S), or (N, heads, L, S), if needed."""
    weights = qkv_weight.chunk(3)
    biases = qkv_bias.chunk(3) if qkv_bias is not None else (None,) * 3
    q, k, v = (
        F.linear(x, w, b).unflatten(-1, (num_head, embed_dim // num_head)).transpose(1, 2)
        for x, w, b in zip((query, key, value), weights, biases)
    )
    scores = q @ k.transpose(-2, -1) / (embed_dim // num_head) ** 0.5
    if mask is not None:
        scores = _scores_masked(scores, mask, mask_type)
    scores = scores.softmax(-1)
    out = F.linear((scores @ v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    if not need_weights:
        return out, None
    return out, scores.mean(1) if average_attn_weights else scores


def transformer_encoder_layer_fwd(
    src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps,
    norm1_weight, norm1_bias, norm2_weight, norm2_bias, weight1, bias1, weight2, bias2, mask=None,
    mask_type=None,
):  # fmt: skip
    """A layer of a transformer's encoder on (N, L, E), without dropout."""

    def attention(x):
        return native_multi_head_attention(
            x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False,
            True, mask_type,
        )[0]  # fmt: skip

    def feed_forward(x):
        hidden = F.linear(x, weight1, bias1)
        return F.linear(F.gelu(hidden) if use_gelu else F.relu(hidden), weight2, bias2)

    def norm1(x):
        return F.layer_norm(x, (embed_dim,), norm1_weight, norm1_bias, eps)

    def norm2(x):
        return F.layer_norm(x, (embed_dim,), norm2_weight, norm2_bias, eps)

    if norm_first:
        src = src + attention(norm1(src))
        return src + feed_forward(norm2(src))
    src = norm1(src + attention(src))
    return norm2(src + feed_forward(src))
