"""Python's multiprocessing, where tensors travel as handles of shared memory.

Sending a tensor through a queue or a pipe moves its bytes to shared memory first; the receiver sees the same bytes.
"""

import multiprocessing as _python
from multiprocessing import *  # noqa: F403

from lamina.multiprocessing import _sharing
from lamina.multiprocessing.spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

_sharing.register()
_strategy = "file_descriptor"


def get_all_sharing_strategies():
    """The ways to share memory: file descriptors."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy():
    """The way that was chosen."""
    return _strategy


def set_sharing_strategy(new_strategy):
    """Accepted: "file_descriptor" or "file_system"; memory is always shared by descriptors."""
    global _strategy
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"unknown sharing strategy {new_strategy!r}")
    _strategy = new_strategy


__all__ = [
    *_python.__all__,
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]
