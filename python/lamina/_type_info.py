"""Limits of element types, and names of things."""

from lamina import _C

# Mantissa bits stored, exponent bias, and the largest exponent, by type.
_FLOATS = {
    "float16": (16, 10, -14, 65504.0),
    "bfloat16": (16, 7, -126, 3.3895313892515355e38),
    "float32": (32, 23, -126, 3.4028234663852886e38),
    "float64": (64, 52, -1022, 1.7976931348623157e308),
    "float8_e4m3fn": (8, 3, -6, 448.0),
    "float8_e5m2": (8, 2, -14, 57344.0),
}
_INTEGERS = {
    "uint8": (8, False),
    "uint16": (16, False),
    "uint32": (32, False),
    "uint64": (64, False),
    "int8": (8, True),
    "int16": (16, True),
    "int32": (32, True),
    "int64": (64, True),
}


def _short(dtype):
    return str(dtype).removeprefix("torch.")


def _shown(value):
    """A float with six digits, as %g."""
    text = f"{value:g}"
    return text


class finfo:
    """Limits of a floating type: bits, eps, max, min, tiny, resolution."""

    def __init__(self, type=None):
        dtype = _C.get_default_dtype() if type is None else type
        if not isinstance(dtype, _C.dtype):
            raise TypeError(f"finfo(): argument 'type' must be torch.dtype, not {dtype!r}")
        if dtype.is_complex:
            dtype = dtype.to_real()
        name = _short(dtype)
        if name not in _FLOATS:
            raise TypeError(
                f"torch.finfo() requires a floating point input type; got {dtype}; "
                "use torch.iinfo to handle 'torch.finfo'"
            )
        self.bits, mantissa, smallest, self.max = _FLOATS[name]
        self.dtype = name
        self.min = -self.max
        self.eps = 2.0**-mantissa
        self.tiny = self.smallest_normal = 2.0**smallest
        self.resolution = 10.0 ** -int(mantissa * 0.30103)

    def __repr__(self):
        return (
            f"finfo(resolution={_shown(self.resolution)}, min={_shown(self.min)}, "
            f"max={_shown(self.max)}, eps={_shown(self.eps)}, "
            f"smallest_normal={_shown(self.smallest_normal)}, tiny={_shown(self.tiny)}, "
            f"dtype={self.dtype})"
        )

    def __eq__(self, other):
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)


class iinfo:
    """Limits of an integer type: bits, max, min."""

    def __init__(self, type):
        if not isinstance(type, _C.dtype):
            raise TypeError(f"iinfo(): argument 'type' must be torch.dtype, not {type!r}")
        name = _short(type)
        if name not in _INTEGERS:
            raise TypeError(
                f"torch.iinfo() requires an integer input type; got {type}; "
                "use torch.finfo to handle 'torch.iinfo'"
            )
        self.bits, signed = _INTEGERS[name]
        self.dtype = name
        self.max = 2 ** (self.bits - signed) - 1
        self.min = -self.max - 1 if signed else 0

    def __repr__(self):
        return f"iinfo(min={_shown(self.min)}, max={_shown(self.max)}, dtype={self.dtype})"

    def __eq__(self, other):
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)


def typename(obj):
    """The full name of an object's type."""
    kind = obj if isinstance(obj, type) else type(obj)
    module = "" if kind.__module__ in (None, "builtins") else kind.__module__ + "."
    return module + kind.__qualname__


def is_storage(obj):
    """Is it the bytes of a tensor?"""
    return isinstance(obj, _C.UntypedStorage)
