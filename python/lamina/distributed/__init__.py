"""Process groups; this release has none. Questions get true answers, requests raise."""

from lamina import _missing


def is_available():
    """Whether process groups can be made; False."""
    return False


def is_initialized():
    """False."""
    return False


def is_nccl_available():
    """False."""
    return False


def is_gloo_available():
    """False."""
    return False


def is_mpi_available():
    """False."""
    return False


def is_ucc_available():
    """False."""
    return False


def is_xccl_available():
    """False."""
    return False


def is_backend_available(backend):
    """False."""
    return False


def is_torchelastic_launched():
    """Whether a launcher started this process, by its environment variable."""
    import os

    return "TORCHELASTIC_RUN_ID" in os.environ


__getattr__ = _missing.getattr_of(__name__)
