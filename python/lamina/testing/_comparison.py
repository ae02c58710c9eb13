"""assert_close: equal within a tolerance that depends on the type."""

from collections.abc import Mapping, Sequence
from math import isfinite, isnan

from lamina import _C

# (relative, absolute) by type; every type without an entry is compared exactly.
_TOLERANCES = {
    _C.float16: (1e-3, 1e-5),
    _C.bfloat16: (1.6e-2, 1e-5),
    _C.float32: (1.3e-6, 1e-5),
    _C.float64: (1e-7, 1e-7),
    _C.complex64: (1.3e-6, 1e-5),
    _C.complex128: (1e-7, 1e-7),
}


class _Different(Exception):
    """Why two items differ, and where."""


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
):
    """Raise AssertionError unless ``|actual - expected| <= atol + rtol * |expected|`` everywhere.

    Tensors, numbers, and sequences and mappings of them are compared item by item; types, devices
    and shapes have to agree.

    Parameters
    ----------
    rtol, atol : float
        Tolerances, both or none; by default they depend on the types, the looser one counts.
    equal_nan : bool
        NaN equals NaN.
    msg : str or callable
        The error's message, or a function of the one that would be shown.
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            "rtol and atol must both be specified or both be unspecified, "
            f"but got rtol={rtol}, atol={atol} instead."
        )
    options = {
        "allow_subclasses": allow_subclasses,
        "rtol": rtol,
        "atol": atol,
        "equal_nan": equal_nan,
        "check_device": check_device,
        "check_dtype": check_dtype,
        "check_layout": check_layout,
        "check_stride": check_stride,
    }
    try:
        _compare(actual, expected, options, "")
    except _Different as different:
        text = str(different)
        if msg is not None:
            text = msg(text) if callable(msg) else msg
        raise AssertionError(text) from None


def _is_array(x):
    return isinstance(x, _C.Tensor) or (hasattr(x, "__array__") and hasattr(x, "dtype"))


def _compare(actual, expected, options, where):
    at = f"\n\nThe failure occurred for item {where}" if where else ""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if set(actual) != set(expected):
            raise _Different(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(set(expected) - set(actual), key=str)}\n"
                f"Additional keys in the actual mapping: {sorted(set(actual) - set(expected), key=str)}"
                + at
            )
        for key in expected:
            _compare(actual[key], expected[key], options, f"{where}[{key!r}]")
        return
    listed = [
        isinstance(x, Sequence) and not isinstance(x, (str, bytes)) for x in (actual, expected)
    ]
    if all(listed):
        if len(actual) != len(expected):
            raise _Different(
                f"The length of the sequences mismatch: {len(actual)} != {len(expected)}" + at
            )
        for i, (a, b) in enumerate(zip(actual, expected)):
            _compare(a, b, options, f"{where}[{i}]")
        return
    if isinstance(actual, (int, float, complex)) and isinstance(expected, (int, float, complex)):
        _compare_numbers(actual, expected, options, at)
        return
    if actual is None and expected is None:
        return
    if not (_is_array(actual) and _is_array(expected)):
        if _is_number_like(actual) and _is_number_like(expected):
            raise _Different(
                "Except for Python scalars, type equality is required, but got "
                f"{type(actual)} and {type(expected)} instead." + at
            )
        raise TypeError(
            f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
        )
    if type(actual) is not type(expected) and not (
        options["allow_subclasses"]
        and isinstance(actual, _C.Tensor)
        and isinstance(expected, _C.Tensor)
    ):
        raise _Different(
            "Except for Python scalars, type equality is required, but got "
            f"{type(actual)} and {type(expected)} instead." + at
        )
    _compare_tensors(_C.as_tensor(actual), _C.as_tensor(expected), options, at)


def _is_number_like(x):
    return isinstance(x, (int, float, complex)) or _is_array(x)


def _tolerances(options, *dtypes):
    if options["rtol"] is not None:
        return options["rtol"], options["atol"]
    pairs = [_TOLERANCES.get(d, (0.0, 0.0)) for d in dtypes]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


def _compare_numbers(actual, expected, options, at):
    def dtype_of(x):
        if isinstance(x, bool):
            return _C.bool
        if isinstance(x, int):
            return _C.int64
        return _C.float64 if isinstance(x, float) else _C.complex128

    rtol, atol = _tolerances(options, dtype_of(actual), dtype_of(expected))
    if actual == expected:
        return
    both_nan = actual != actual and expected != expected
    if both_nan and options["equal_nan"]:
        return
    difference = abs(actual - expected)
    if not both_nan and difference <= atol + rtol * abs(expected) and difference != float("inf"):
        return
    relative = difference / abs(expected) if expected else float("inf")
    kind = "Booleans" if isinstance(actual, bool) and isinstance(expected, bool) else "Scalars"
    if kind == "Booleans":
        raise _Different(f"Booleans mismatch: {actual} is not {expected}" + at)
    word = "equal" if rtol == 0 and atol == 0 else "close"
    raise _Different(
        f"Scalars are not {word}!\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}"
        + (f" (up to {atol} allowed)" if word == "close" else "")
        + f"\nRelative difference: {relative}"
        + (f" (up to {rtol} allowed)" if word == "close" else "")
        + at
    )


def _compare_tensors(actual, expected, options, at):
    def check(name, a, b):
        if a != b:
            raise _Different(f"The values for attribute '{name}' do not match: {a} != {b}." + at)

    check("shape", actual.shape, expected.shape)
    if options["check_layout"]:
        check("layout", actual.layout, expected.layout)
    if options["check_device"]:
        check("device", actual.device, expected.device)
    if options["check_dtype"]:
        check("dtype", actual.dtype, expected.dtype)
    if options["check_stride"]:
        check("stride()", actual.stride(), expected.stride())
    if actual.is_meta or actual.numel() == 0:
        return
    rtol, atol = _tolerances(options, actual.dtype, expected.dtype)
    actual, expected = actual.detach(), expected.detach()
    dtype = _C.promote_types(actual.dtype, expected.dtype)
    exact = not (dtype.is_floating_point or dtype.is_complex)
    if exact:
        same = actual == expected
        if bool(same.all()):
            return
        _report(
            actual.tolist(), expected.tolist(), rtol, atol, options["equal_nan"], actual.shape, at
        )
        return
    wide = _C.complex128 if dtype.is_complex else _C.float64
    a, b = actual.to(wide), expected.to(wide)
    difference = (a - b).abs()
    allowed = b.abs() * rtol + atol
    # An infinite difference, or one beside an infinite bound, is no closeness.
    same = (a == b) | ((difference <= allowed) & (difference < float("inf")))
    if options["equal_nan"]:
        same = same | ((a != a) & (b != b))
    if bool(same.all()):
        return
    _report(a.tolist(), b.tolist(), rtol, atol, options["equal_nan"], actual.shape, at)


def _flat(items, into):
    if isinstance(items, list):
        for i in items:
            _flat(i, into)
    else:
        into.append(items)
    return into


def _index(flat, shape):
    index = []
    for n in reversed(shape):
        flat, i = divmod(flat, n)
        index.append(i)
    return tuple(reversed(index))


def _is_finite(x):
    return isfinite(x.real) and isfinite(x.imag)


def _report(actual, expected, rtol, atol, equal_nan, shape, at):
    """Raise with the count of differences and the greatest ones."""
    a, b = _flat(actual, []), _flat(expected, [])
    wrong, absolute, relative = 0, (-1.0, 0), (-1.0, 0)
    for i, (x, y) in enumerate(zip(a, b)):
        if x == y or (equal_nan and x != x and y != y):
            continue
        d = abs(x - y)
        if d <= atol + rtol * abs(y) and _is_finite(complex(d)):
            continue
        wrong += 1
        r = d / abs(y) if y else float("inf")
        if d > absolute[0] or isnan(d):
            absolute = (d, i)
        if r > relative[0] or isnan(r):
            relative = (r, i)
    word = "equal" if rtol == 0 and atol == 0 else "close"
    kind = "Scalars" if not shape else "Tensor-likes"
    if not shape:
        d, r = absolute[0], relative[0]
        raise _Different(
            f"Scalars are not {word}!\n\nExpected {b[0]} but got {a[0]}.\nAbsolute difference: {d}"
            + (f" (up to {atol} allowed)" if word == "close" else "")
            + f"\nRelative difference: {r}"
            + (f" (up to {rtol} allowed)" if word == "close" else "")
            + at
        )

    def greatest(name, found, bound):
        text = f"Greatest {name} difference: {found[0]} at index {_index(found[1], shape)}"
        return text + (f" (up to {bound} allowed)" if word == "close" else "")

    raise _Different(
        f"{kind} are not {word}!\n\n"
        f"Mismatched elements: {wrong} / {len(a)} ({wrong / len(a):.1%})\n"
        + greatest("absolute", absolute, atol)
        + "\n"
        + greatest("relative", relative, rtol)
        + at
    )
