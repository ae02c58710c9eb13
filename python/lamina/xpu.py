"""The xpu backend, which this build does not have: questions get true answers, requests raise."""

from lamina import _missing


def is_available():
    """False."""
    return False


def device_count():
    """0."""
    return 0


def is_initialized():
    """False."""
    return False


def empty_cache():
    """Does nothing."""


def manual_seed(seed):
    """Does nothing."""


def manual_seed_all(seed):
    """Does nothing."""


def synchronize(device=None):
    """Raises RuntimeError: this build has no xpu."""
    raise RuntimeError("xpu.synchronize: Lamina was built without xpu")


def current_device():
    """Raises RuntimeError: this build has no xpu."""
    raise RuntimeError("xpu.current_device: Lamina was built without xpu")


__getattr__ = _missing.getattr_of(__name__)
