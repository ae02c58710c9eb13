"""MKL: not built; products come from OpenBLAS and from kernels of Lamina's own."""


def is_available():
    """False."""
    return False


class verbose:
    """A block in which MKL would report its calls; there is none."""

    def __init__(self, enable):
        self.enable = enable

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


VERBOSE_OFF, VERBOSE_ON = 0, 1
__all__ = ["is_available", "verbose"]
