"""Tensors from and to other libraries, by DLPack."""

from lamina import _C


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor on the memory of another library's array.

    Parameters
    ----------
    ext_tensor : object
        With ``__dlpack__``, or a capsule of DLPack; a capsule can be consumed once.
    device : device
        Where the result shall be; None leaves it.
    copy : bool
        True copies; False raises where a copy would be needed.

    Raises BufferError where the memory is not the CPU's or the element type is unknown. Memory that is read-only gives a warning.
    """
    if not hasattr(ext_tensor, "__dlpack__"):
        result = _C._from_dlpack(ext_tensor)
    else:
        place = (
            ext_tensor.__dlpack_device__() if hasattr(ext_tensor, "__dlpack_device__") else (1, 0)
        )
        if int(place[0]) != 1:
            raise BufferError(
                f"from_dlpack: only memory of the CPU can be shared; got device {place}"
            )
        options = {"max_version": (1, 0)}
        if copy is not None:
            options["copy"] = copy
        try:
            capsule = ext_tensor.__dlpack__(**options)
        except TypeError:  # a producer older than versions
            capsule = ext_tensor.__dlpack__()
        result = _C._from_dlpack(capsule)
    if device is not None and _C.device(device) != result.device:
        if copy is False:
            raise ValueError(
                f"from_dlpack: a copy is needed to get to {device}; copy=False was given"
            )
        result = result.to(device)
    return result


def to_dlpack(tensor):
    """The tensor as an older capsule of DLPack."""
    return tensor.__dlpack__()


__all__ = ["from_dlpack", "to_dlpack"]
