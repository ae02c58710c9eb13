"""The accelerator of this machine: there is none. Streams and events for the CPU, which does things at once."""

import time

from lamina import _C


def is_available():
    """Whether there is an accelerator; False."""
    return False


def device_count():
    """Number of accelerators; 0."""
    return 0


def current_accelerator(check_available=False):
    """The accelerator's device; None."""
    return None


def _none(what):
    return RuntimeError(f"{what}: there is no accelerator; Lamina was built for the CPU only")


def current_device_index():
    """Raises RuntimeError: there is no accelerator."""
    raise _none("current_device_index")


current_device_idx = current_device_index


def set_device_index(device, /):
    """Raises RuntimeError: there is no accelerator."""
    raise _none("set_device_index")


set_device_idx = set_device_index


def synchronize(device=None, /):
    """Raises RuntimeError: there is no accelerator."""
    raise _none("synchronize")


def current_stream(device=None, /):
    """Raises RuntimeError: there is no accelerator."""
    raise _none("current_stream")


def get_device_module(device=None):
    """The module of a device: lamina.cpu, lamina.cuda and so on."""
    import importlib

    if device is None:
        name = "cpu"
    elif isinstance(device, (str, _C.device)):
        name = _C.device(device).type
    else:
        raise RuntimeError(f"get_device_module: expected a device or its name; got {device!r}")
    return importlib.import_module("lamina." + name)


class Stream:
    """A queue of work. On the CPU everything is done when its call returns, so there is nothing to wait for."""

    def __init__(self, device="cpu", *, priority=0, **_):
        device = _C.device(device)
        if device.type not in ("cpu", "meta"):
            raise RuntimeError(f"Stream: no streams on {device}; Lamina was built for the CPU only")
        self.device, self.priority = device, priority
        self.stream_id = 0

    device_index = -1
    device_type = 0

    def query(self):
        """Whether all work is done; True."""
        return True

    def synchronize(self):
        """Returns at once."""

    def wait_stream(self, stream):
        """Returns at once."""

    def wait_event(self, event):
        """Returns at once."""

    def record_event(self, event=None):
        """An event that is done."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __eq__(self, other):
        return isinstance(other, Stream) and self.device == other.device

    def __hash__(self):
        return hash((type(self), self.device))

    def __repr__(self):
        return f"torch.Stream device_type={self.device.type}, device_index=0, stream_id=0"


class Event:
    """A point in a queue; on the CPU it lies in the past as soon as it is recorded."""

    def __init__(self, device="cpu", *, enable_timing=False, blocking=False, interprocess=False):
        device = _C.device(device)
        if device.type not in ("cpu", "meta"):
            raise RuntimeError(f"Event: no events on {device}; Lamina was built for the CPU only")
        self.device, self.enable_timing = device, enable_timing
        self.time = None

    def record(self, stream=None):
        """Remember now."""
        self.time = time.perf_counter()

    def query(self):
        """Whether the event has happened; True."""
        return True

    def wait(self, stream=None):
        """Returns at once."""

    def synchronize(self):
        """Returns at once."""

    def elapsed_time(self, end_event):
        """Milliseconds between two recorded events; raises RuntimeError where one is not."""
        if self.time is None or end_event.time is None:
            raise RuntimeError("Event.elapsed_time: both events must be recorded first")
        return (end_event.time - self.time) * 1000


__all__ = [
    "Event",
    "Stream",
    "current_accelerator",
    "current_device_index",
    "device_count",
    "get_device_module",
    "is_available",
    "set_device_index",
    "synchronize",
]
