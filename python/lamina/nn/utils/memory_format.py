"""Weights of convolutions in another memory format."""

from __future__ import annotations

from lamina.nn.modules import conv

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module, kinds, memory_format):
    if isinstance(module, kinds):
        module.weight.data = module.weight.detach().clone().contiguous(memory_format=memory_format)
    for child in module.children():
        _convert(child, kinds, memory_format)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """Put the weights of all convolutions over images in `module` into a memory format. Returns the module."""
    return _convert(module, (conv.Conv2d, conv.ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module, memory_format):
    """Put the weights of all convolutions over volumes in `module` into a memory format. Returns the module."""
    return _convert(module, (conv.Conv3d, conv.ConvTranspose3d), memory_format)
