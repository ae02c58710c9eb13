"""Channels mixed between groups."""

from __future__ import annotations

from lamina import Tensor
from lamina.nn import functional as F
from lamina.nn.modules.module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """The channels of (n, c, ...), read as (groups, c / groups), in the order of the transpose."""

    __constants__ = ["groups"]

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
