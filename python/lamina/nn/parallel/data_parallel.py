"""One module, its batch split over devices."""

from __future__ import annotations

from lamina.nn.modules.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Calls `module`; without GPUs there is nothing to split the batch over.

    Parameters
    ----------
    module : Module
    device_ids, output_device, dim
        As for several GPUs; without one they must name none.
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        if device_ids:
            raise ValueError(
                f"DataParallel: there is no accelerator; got device_ids={list(device_ids)}; expected None"
            )
        self.module = module
        self.device_ids = []
        self.output_device = output_device
        self.dim = dim

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """``module(*inputs, **module_kwargs)``; see DataParallel."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*inputs, **(module_kwargs or {}))
