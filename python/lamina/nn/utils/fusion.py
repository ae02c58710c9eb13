"""A layer and the batch normalization after it as one layer."""

from __future__ import annotations

import copy

import lamina
from lamina.nn.parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A copy of a convolution that computes ``bn(conv(x))``; both are in evaluation.

    Raises AssertionError where one is in training, or there are no running statistics.
    """
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
        transpose,
    )  # fmt: skip
    return fused


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """Weight and bias of a convolution with a batch normalization after it; `transpose` for transposed ones."""
    bias = lamina.zeros_like(bn_rm) if conv_b is None else conv_b
    gamma = lamina.ones_like(bn_rm) if bn_w is None else bn_w
    beta = lamina.zeros_like(bn_rm) if bn_b is None else bn_b
    scale = gamma * lamina.rsqrt(bn_rv + bn_eps)
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    weight = (conv_w * scale.reshape(shape)).to(dtype=conv_w.dtype)
    bias = ((bias - bn_rm) * scale + beta).to(dtype=conv_w.dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(
        bias, conv_b.requires_grad if conv_b is not None else conv_w.requires_grad
    )


def fuse_linear_bn_eval(linear, bn):
    """A copy of a linear layer that computes ``bn(linear(x))``; both are in evaluation.

    Raises AssertionError where one is in training, or the sizes do not fit.
    """
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1"
        )
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """Weight and bias of a linear layer with a batch normalization after it."""
    bias = lamina.zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * lamina.rsqrt(bn_rv + bn_eps)
    weight = linear_w * scale.unsqueeze(-1).to(dtype=linear_w.dtype)
    bias = ((bias - bn_rm) * scale + bn_b).to(dtype=linear_w.dtype)
    return Parameter(weight, linear_w.requires_grad), Parameter(
        bias, linear_b.requires_grad if linear_b is not None else linear_w.requires_grad
    )
