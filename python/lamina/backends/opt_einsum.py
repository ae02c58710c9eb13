"""The package opt_einsum, which finds good orders of products."""

enabled = False
strategy = None


def is_available():
    """Whether the package is installed and used; False."""
    return False


def get_opt_einsum():
    """None."""
    return None


__all__ = ["get_opt_einsum", "is_available"]
