"""The CPU under the names that accelerators have."""

from contextlib import nullcontext

from lamina import _C
from lamina.accelerator import Event, Stream

_stream = Stream()


def is_available():
    """True."""
    return True


def device_count():
    """1."""
    return 1


def current_device():
    """The name of the only one."""
    return "cpu"


def set_device(device):
    """Accepted; there is one CPU."""


def synchronize(device=None):
    """Returns at once: everything is done when its call returns."""


def current_stream(device=None):
    """The only stream."""
    return _stream


def stream(stream):
    """A block in which nothing changes."""
    return nullcontext()


StreamContext = stream


def is_initialized():
    """True."""
    return True


def _flags():
    with open("/proc/cpuinfo") as info:
        for line in info:
            if line.startswith("flags"):
                return set(line.split())
    return set()


def _is_avx2_supported():
    return "avx2" in _flags()


def _is_avx512_supported():
    return "avx512f" in _flags()


def get_capabilities():
    """What the processor can do, by name."""
    flags = _flags()
    return {"avx2": "avx2" in flags, "avx512_f": "avx512f" in flags, "fma3": "fma" in flags}


def memory_stats():
    """Statistics of the allocator, a dict."""
    return _C._memory_stats()


__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "device_count",
    "get_capabilities",
    "is_available",
    "is_initialized",
    "memory_stats",
    "set_device",
    "stream",
    "synchronize",
]
