"""Windows: vectors (M,) of weights, symmetric by default, or periodic with ``sym=False``.

They take `dtype` (float32 or float64; the default floating type), `layout`, `device` and `requires_grad`. Raise ValueError for a
negative M and parameters out of range, RuntimeError for other dtypes.
"""

import math

from lamina import _C

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming",
    "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


def _window(name, M, sym, shape, dtype, layout, device, requires_grad):
    """`shape(k, n)` of the places k, float64, and the number n of intervals."""
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout not in (None, _C.strided):
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    dtype = dtype or _C.get_default_dtype()
    if dtype not in (_C.float32, _C.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    if M <= 1:
        result = _C.ones(M, dtype=dtype)
    else:
        k = _C.arange(M, dtype=_C.float64)
        result = shape(k, M - 1 if sym else M).to(dtype)
    return result.to(device or "cpu").requires_grad_(requires_grad)


def exponential(
    M, *, center=None, tau=1.0, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False
):  # fmt: skip
    """exp(-abs(k - center) / tau); a center other than the middle is for periodic windows alone."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def shape(k, n):
        return _C.exp(-((k - (n / 2 if center is None else center)).abs()) / tau)

    return _window("exponential", M, sym, shape, dtype, layout, device, requires_grad)


def cosine(M, *, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False):
    """Half a period of a sine."""

    def shape(k, n):
        return _C.sin((k + 0.5) * (math.pi / (n + 1)))

    return _window("cosine", M, sym, shape, dtype, layout, device, requires_grad)


def gaussian(
    M, *, std=1.0, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False
):
    """The density of a normal distribution of deviation `std`, 1 in the middle."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")

    def shape(k, n):
        return _C.exp(-0.5 * ((k - n / 2) / std) ** 2)

    return _window("gaussian", M, sym, shape, dtype, layout, device, requires_grad)


def kaiser(
    M, *, beta=12.0, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False
):
    """I0(beta * sqrt(1 - x^2)) / I0(beta), x from -1 to 1."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def shape(k, n):
        x = 2 * k / n - 1
        return _C.i0(beta * (1 - x * x).clamp(min=0).sqrt()) / _C.i0(
            _C.tensor(float(beta), dtype=_C.float64)
        )

    return _window("kaiser", M, sym, shape, dtype, layout, device, requires_grad)


def general_cosine(
    M, *, a, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False
):
    """The sum of (-1)^i a[i] cos(2 pi i k / n)."""
    try:
        weights = list(a)
    except TypeError:
        raise TypeError("Coefficients must be a list/tuple") from None
    if not weights:
        raise ValueError("Coefficients cannot be empty")

    def shape(k, n):
        return sum(w * (-1) ** i * _C.cos(k * (2 * math.pi * i / n)) for i, w in enumerate(weights))

    return _window("general_cosine", M, sym, shape, dtype, layout, device, requires_grad)


def general_hamming(
    M, *, alpha=0.54, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False
):
    """alpha - (1 - alpha) cos(2 pi k / n)."""
    return general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device,
        requires_grad=requires_grad,
    )  # fmt: skip


def _of_weights(name, weights, doc):
    def window(M, *, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False):
        return general_cosine(
            M, a=weights, sym=sym, dtype=dtype, layout=layout, device=device,
            requires_grad=requires_grad,
        )  # fmt: skip

    window.__name__ = window.__qualname__ = name
    window.__doc__ = doc
    return window


hamming = _of_weights("hamming", [0.54, 0.46], "0.54 - 0.46 cos(2 pi k / n).")
hann = _of_weights("hann", [0.5, 0.5], "0.5 - 0.5 cos(2 pi k / n).")
blackman = _of_weights("blackman", [0.42, 0.5, 0.08], "Blackman's three terms.")
nuttall = _of_weights(
    "nuttall", [0.3635819, 0.4891775, 0.1365995, 0.0106411], "Nuttall's four terms."
)


def bartlett(M, *, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False):
    """A triangle, 0 at both ends."""

    def shape(k, n):
        return 1 - (2 * k / n - 1).abs()

    return _window("bartlett", M, sym, shape, dtype, layout, device, requires_grad)
