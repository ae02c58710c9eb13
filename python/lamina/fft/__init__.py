"""Fourier transforms.

Each takes the sizes (`n`, `s`) to which the operand is cut or padded with zeros, the dimensions to transform and the scale:
`norm` 'backward' (the default) scales inverse transforms by 1 / n, 'forward' the others, 'ortho' both by 1 / sqrt(n). Whole
numbers are computed in the default floating type. Raises RuntimeError for sizes below 1, repeated dimensions and dtypes that
have no transform.
"""

from lamina import _C
from lamina._dims import wrap_dim
from lamina._out import given
from lamina.functional import overridable

_NORMS = {None: (0, 2), "backward": (0, 2), "ortho": (1, 1), "forward": (2, 0)}


def _scale(name, norm, forward):
    if norm not in _NORMS:
        raise RuntimeError(f"{name}: Invalid normalization mode: {norm!r}")
    return _NORMS[norm][0 if forward else 1]


def _floating(name, x, to_complex):
    """The operand in a type that has a transform."""
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(_C.get_default_dtype())
    if x.dtype in (_C.float16, _C.bfloat16) or x.dtype == getattr(_C, "complex32", None):
        raise RuntimeError(f"{name}: Unsupported dtype {x.dtype}")
    return x.to(x.dtype.to_complex()) if to_complex and not x.is_complex() else x


def _real(name, x):
    if x.is_complex():
        raise RuntimeError(f"{name}: expects a real input tensor, but got {x.dtype}")
    return _floating(name, x, False)


def _resized(name, x, dims, sizes):
    """`x` cut or padded with zeros at the end of dimensions; -1 and None keep a size."""
    for d, n in zip(dims, sizes):
        if n is None or n == -1:
            n = x.shape[d]
        if n < 1:
            raise RuntimeError(f"{name}: Invalid number of data points ({n}) specified")
        if n < x.shape[d]:
            x = x.narrow(d, 0, n)
        elif n > x.shape[d]:
            x = _padded(x, d, n)
    return x


def _padded(x, d, n):
    shape = list(x.shape)
    shape[d] = n - shape[d]
    return _C.cat([x, x.new_zeros(shape)], d)


def _dim(name, x, dim):
    return wrap_dim(dim, x.dim(), f"{name}: ")


def _dims(name, x, s, dim):
    """Dimensions and sizes, from the arguments of a transform of several dimensions."""
    if isinstance(dim, int):
        dim = (dim,)
    if isinstance(s, int):
        s = (s,)
    if dim is None:
        count = x.dim() if s is None else len(s)
        if count > x.dim():
            raise RuntimeError(
                f"{name}: Got shape with {count} values but input tensor only has {x.dim()} dimensions."
            )
        dims = list(range(x.dim() - count, x.dim()))
    else:
        dims = [_dim(name, x, d) for d in dim]
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"{name}: FFT dims must be unique")
    if s is not None and len(s) != len(dims):
        raise RuntimeError(f"{name}: When given, dim and shape arguments must have the same length")
    return dims, [x.shape[d] for d in dims] if s is None else list(s)


def _c2c(name, x, dims, sizes, norm, forward):
    x = _resized(name, _floating(name, x, True), dims, sizes)
    return _C._fft_c2c(x, dims, _scale(name, norm, forward), forward) if dims else x.clone()


def _r2c(name, x, dims, sizes, norm, forward):
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    x = _resized(name, _real(name, x), dims, sizes)
    result = _C._fft_r2c(x, dims, _scale(name, norm, forward), True)
    return result if forward else result.conj().resolve_conj()


def _c2r(name, x, dims, sizes, norm, forward):
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    x = _floating(name, x, True)
    last = sizes[-1]
    if last is None or last == -1:
        last = 2 * (x.shape[dims[-1]] - 1)
    if last < 1:
        raise RuntimeError(f"{name}: Invalid number of data points ({last}) specified")
    x = _resized(name, x, dims, [*sizes[:-1], last // 2 + 1])
    return _C._fft_c2r(x.conj() if forward else x, dims, _scale(name, norm, forward), last)


def _make(name, run, forward, kind, doc):
    """One public transform; kind is 1, 2 or n, the number of dimensions."""
    full = "fft_" + name

    def finish(input, dims, sizes, norm, out):
        result = run(full, input, dims, sizes, norm, forward)
        return given(full, result, out)

    if kind == 1:

        def function(input, n=None, dim=-1, norm=None, *, out=None):
            return finish(input, [_dim(full, input, dim)], [n], norm, out)

    else:
        preset = (-2, -1) if kind == 2 else None

        def function(input, s=None, dim=preset, norm=None, *, out=None):
            dims, sizes = _dims(full, input, s, dim)
            if s is None and run is _c2r and sizes:
                sizes[-1] = None
            return finish(input, dims, sizes, norm, out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return overridable(function)


_KINDS = (
    ("fft", _c2c, True, "The discrete Fourier transform"),
    ("ifft", _c2c, False, "The inverse transform"),
    ("rfft", _r2c, True, "The half that is not redundant of the transform of real numbers"),
    ("irfft", _c2r, False, "The inverse of rfft, real"),
    ("hfft", _c2r, True, "The transform, real, of one half of a signal with Hermitian symmetry"),
    ("ihfft", _r2c, False, "The inverse of hfft"),
)
for _name, _run, _forward, _doc in _KINDS:
    globals()[_name] = _make(_name, _run, _forward, 1, _doc + " along `dim`.")
    globals()[_name + "2"] = _make(_name + "2", _run, _forward, 2, _doc + " in two dimensions.")
    globals()[_name + "n"] = _make(
        _name + "n", _run, _forward, "n", _doc + " in all dimensions, or those of `dim`."
    )


def _shifted(x, dim, by):
    dims = list(range(x.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return _C.roll(x, [by(x.shape[d]) for d in dims], dims) if dims else x.clone()


@overridable
def fftshift(input, dim=None):
    """The zero frequency moved to the middle of each dimension."""
    return _shifted(input, dim, lambda n: n // 2)


@overridable
def ifftshift(input, dim=None):
    """The inverse of fftshift."""
    return _shifted(input, dim, lambda n: (n + 1) // 2)


def _frequencies(name, indices, n, d, out, options):
    if n <= 0:
        raise RuntimeError(f"{name}: Invalid number of data points ({n}) specified")
    dtype = options.pop("dtype", None) or _C.get_default_dtype()
    grad = options.pop("requires_grad", False)
    result = (indices.to(dtype) * (1.0 / (n * d))).to(options.pop("device", None) or "cpu")
    return given(name, result, out) if out is not None else result.requires_grad_(grad)


def fftfreq(n, d=1.0, *, out=None, **options):
    """Frequencies (n,) of the elements of a transform of n samples every `d`: 0 first, then positive, then negative."""
    i = _C.arange(n)
    return _frequencies("fft_fftfreq", _C.where(i < (n + 1) // 2, i, i - n), n, d, out, options)


def rfftfreq(n, d=1.0, *, out=None, **options):
    """Frequencies (n // 2 + 1,) of the elements of rfft of n samples every `d`."""
    return _frequencies("fft_rfftfreq", _C.arange(n // 2 + 1), n, d, out, options)


__all__ = sorted(
    [*(n + e for n, *_ in _KINDS for e in ("", "2", "n"))]
    + ["fftshift", "ifftshift", "fftfreq", "rfftfreq"]
)
