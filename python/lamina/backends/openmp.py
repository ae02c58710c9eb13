"""OpenMP: not used; threads are Lamina's own."""


def is_available():
    """False."""
    return False


__all__ = ["is_available"]
