"""oneDNN: not built."""

from contextlib import contextmanager

enabled = True
deterministic = False
allow_tf32 = True
fp32_precision = "none"


def is_available():
    """False."""
    return False


def is_acl_available():
    """False."""
    return False


@contextmanager
def flags(enabled=False, deterministic=False, allow_tf32=True, **_):
    """A block with other settings, which nothing reads."""
    yield


__all__ = ["flags", "is_acl_available", "is_available"]
