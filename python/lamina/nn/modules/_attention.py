"""Attention with several heads, as a module."""

from __future__ import annotations

import lamina
from lamina import _C
from lamina.nn import functional as F
from lamina.nn import init
from lamina.nn.modules.linear import NonDynamicallyQuantizableLinear
from lamina.nn.modules.module import Module
from lamina.nn.parameter import Parameter
from lamina.overrides import has_torch_function_unary


class MultiheadAttention(Module):
    """Attention of several heads (Vaswani et al., 2017).

    Parameters
    ----------
    embed_dim, num_heads : int
        Size of the queries, and heads, which divide it.
    dropout : float
        Probability of a zero among the weights, in training.
    bias : bool
        Whether the projections have biases.
    add_bias_kv, add_zero_attn : bool
        Whether a learned row, a row of zeros, is added to keys and values.
    kdim, vdim : int, optional
        Sizes of keys and values, where they differ from `embed_dim`.
    batch_first : bool
        Tensors are (n, length, size), not (length, n, size).

    Raises ValueError for sizes below 1, AssertionError where the heads do not divide.
    """

    __constants__ = ["batch_first"]

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "MultiheadAttention: embed_dim and num_heads must be greater than 0, "
                f"got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != self.embed_dim:
            raise AssertionError(
                "MultiheadAttention: embed_dim must be divisible by num_heads; got "
                f"{embed_dim} and {num_heads}"
            )
        factory = {"device": device, "dtype": dtype}

        def matrix(*sizes):
            return Parameter(lamina.empty(sizes, **factory))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = matrix(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = matrix(embed_dim, embed_dim)
            self.k_proj_weight = matrix(embed_dim, self.kdim)
            self.v_proj_weight = matrix(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = Parameter(lamina.empty(3 * embed_dim, **factory))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **factory)
        if add_bias_kv:
            self.bias_k = matrix(1, 1, embed_dim)
            self.bias_v = matrix(1, 1, embed_dim)
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self):
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            init.xavier_uniform_(self.q_proj_weight)
            init.xavier_uniform_(self.k_proj_weight)
            init.xavier_uniform_(self.v_proj_weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            init.xavier_normal_(self.bias_v)

    def __setstate__(self, state):
        state.setdefault("_qkv_same_embed_dim", True)  # states of before there were others
        super().__setstate__(state)

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        """Attend.

        Parameters
        ----------
        query, key, value : Tensor
            (l, n, e), (s, n, kdim), (s, n, vdim); without n, or with n first where the module says so.
        key_padding_mask : Tensor, optional
            (n, s): True, or -inf to add, for keys to leave out.
        need_weights : bool
            Whether the weights are returned too; it is quicker without.
        attn_mask : Tensor, optional
            (l, s) or (n * heads, l, s): True, or -inf to add, where a query does not look at a key.
        average_attn_weights : bool
            Whether the returned weights are the mean over heads.
        is_causal : bool
            A hint that `attn_mask` is the causal one.

        Returns
        -------
        (Tensor, Tensor or None)
            Output in the shape of `query`; weights (n, l, s), or (n, heads, l, s).
        """
        if (
            query is key
            and key is value
            and not need_weights
            and key_padding_mask is None
            and (attn_mask is not None if is_causal else attn_mask is None)
            and self._qkv_same_embed_dim
            and self.bias_k is None
            and not self.add_zero_attn
            and query.dim() == 3
            and query.shape[2] == self.embed_dim
            and not has_torch_function_unary(query)
        ):
            return self._self_attention(query, is_causal), None
        batched = query.dim() == 3
        swapped = self.batch_first and batched
        if swapped:
            if key is value:
                if query is key:
                    query = key = value = query.transpose(1, 0)
                else:
                    query = query.transpose(1, 0)
                    key = value = key.transpose(1, 0)
            else:
                query, key, value = (x.transpose(1, 0) for x in (query, key, value))
        separate = (
            {}
            if self._qkv_same_embed_dim
            else {
                "use_separate_proj_weight": True,
                "q_proj_weight": self.q_proj_weight,
                "k_proj_weight": self.k_proj_weight,
                "v_proj_weight": self.v_proj_weight,
            }
        )
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            **separate,
        )
        return (output.transpose(1, 0) if swapped else output), weights

    def _self_attention(self, x, is_causal):
        """What forward gives for one input in three places and no mask but the causal one, with fewer steps."""
        return _C._self_attention(
            x,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.out_proj.weight,
            self.out_proj.bias,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=is_causal,
            batch_first=self.batch_first,
        )

    def merge_masks(self, attn_mask, key_padding_mask, query):
        """Both masks as one, and what it is: 0 `attn_mask`, 1 `key_padding_mask`, 2 both (n, heads, l, s), None none."""
        merged, kind = None, None
        if key_padding_mask is not None:
            merged, kind = key_padding_mask, 1
        if attn_mask is not None:
            n, length, _ = query.shape
            kind = 2
            if attn_mask.dim() == 3:
                merged = attn_mask.view(n, -1, length, length)
            else:
                merged = attn_mask.view(1, 1, length, length).expand(n, self.num_heads, -1, -1)
            if key_padding_mask is not None:
                padding = key_padding_mask.view(n, 1, 1, length).expand(-1, self.num_heads, -1, -1)
                merged = merged + padding
        return merged, kind
