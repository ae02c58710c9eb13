"""NNPACK: not built."""

from contextlib import contextmanager


def is_available():
    """False."""
    return False


def set_flags(enabled):
    """Accepted; nothing reads it."""
    return (False,)


@contextmanager
def flags(enabled=False):
    """A block with another setting, which nothing reads."""
    yield


__all__ = ["flags", "is_available", "set_flags"]
