"""What programs need of `torch.fx` where they trace nothing."""

__all__ = ["wrap"]


def wrap(fn_or_name):
    """Mark a function that a tracer would not look into. There is no tracer; gives back its argument.

    Raises RuntimeError for anything but a function or a name.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("wrap: expected a global function or the name of one")
    return fn_or_name
