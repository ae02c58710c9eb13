"""cuDNN: not built. Settings are kept, so that programs which make them run."""

from contextlib import contextmanager

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True
fp32_precision = "none"


def is_available():
    """False."""
    return False


def version():
    """None."""
    return None


def is_acceptable(tensor):
    """False: no tensor can be given to cuDNN."""
    return False


@contextmanager
def flags(
    enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True, **_
):
    """A block with other settings."""
    chosen = {
        "enabled": enabled,
        "benchmark": benchmark,
        "benchmark_limit": benchmark_limit,
        "deterministic": deterministic,
        "allow_tf32": allow_tf32,
    }
    before = {name: globals()[name] for name in chosen}
    globals().update(chosen)
    try:
        yield
    finally:
        globals().update(before)


__all__ = ["flags", "is_acceptable", "is_available", "version"]
