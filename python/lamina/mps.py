"""The mps backend, which this build does not have: questions get true answers, requests raise."""

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
    """Raises RuntimeError: this build has no mps."""
    raise RuntimeError("mps.synchronize: Lamina was built without mps")


def current_device():
    """Raises RuntimeError: this build has no mps."""
    raise RuntimeError("mps.current_device: Lamina was built without mps")


__getattr__ = _missing.getattr_of(__name__)
