"""One module in several processes."""

from __future__ import annotations

from lamina.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Exists so that programs can ask whether a module is one; there are no process groups to make one for."""

    def __init__(self, module, *args, **kwargs):
        raise RuntimeError(
            "DistributedDataParallel: the default process group has not been initialized; "
            "lamina.distributed has none"
        )
