"""out= of operators that are made in Python: the rule of all the others."""

from lamina import _C


def given(name, result, out, same_type=False):
    """The result or, where `out` is given, `out` with the result written into it.

    `out` is resized to the result; it is one tensor, or a tuple of as many as there are results. Raises TypeError where it is
    something else, RuntimeError where the types do not cast (with `same_type`: are not the same), or where gradients are recorded.
    """
    if out is None:
        return result
    if isinstance(result, _C.Tensor):
        return _written(name, result, out, same_type)
    if not isinstance(out, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'out' must be tuple of Tensors, not {type(out).__name__}"
        )
    if len(out) != len(result):
        raise TypeError(
            f"{name}(): argument 'out' must be a tuple of {len(result)} Tensors, not of {len(out)}"
        )
    written = [_written(name, value, target, same_type) for value, target in zip(result, out)]
    return type(result)(*written) if hasattr(result, "_fields") else tuple(written)


def _written(name, value, target, same_type):
    if same_type and isinstance(target, _C.Tensor) and target.dtype != value.dtype:
        raise RuntimeError(f"{name}: expected out to have dtype {value.dtype}; got {target.dtype}")
    return _C._write_out(name, value, target)
