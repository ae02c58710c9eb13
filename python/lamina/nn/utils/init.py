"""Modules without starting values."""

from __future__ import annotations

import inspect

import lamina

__all__ = ["skip_init"]


def skip_init(module_cls, *args, **kwargs):
    """A module whose parameters have any values: made on the meta device, then moved without copying.

    Raises RuntimeError where `module_cls` is no Module class or takes no `device`.
    """
    if not issubclass(module_cls, lamina.nn.Module):
        raise RuntimeError(f"skip_init: Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("skip_init: Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
