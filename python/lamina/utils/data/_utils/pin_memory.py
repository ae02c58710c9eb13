"""Pinned memory: on a machine without an accelerator a tensor's own pin_memory() decides."""

import collections.abc

import lamina

from .collate import _like_mapping, _like_sequence


def pin_memory(data, device=None):
    """`data` with its tensors pinned, inside of containers and objects with pin_memory() too."""
    if isinstance(data, lamina.Tensor):
        return data.pin_memory()
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, str | bytes):
        return data
    if isinstance(data, collections.abc.Mapping):
        return _like_mapping(data, {k: pin_memory(v, device) for k, v in data.items()})
    if isinstance(data, tuple):
        if hasattr(data, "_fields"):
            return type(data)(*(pin_memory(sample, device) for sample in data))
        return type(data)(pin_memory(sample, device) for sample in data)
    if isinstance(data, collections.abc.Sequence):
        return _like_sequence(data, [pin_memory(sample, device) for sample in data])
    return data
