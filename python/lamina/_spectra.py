"""Short-time Fourier transforms: frames of a signal, times a window, transformed."""

import math
import operator
import warnings

from lamina import _C
from lamina.functional import overridable


def _window(
    name,
    length,
    periodic,
    shape,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """`shape(k, n)` of the places k, float64, of one period of n places, or of a symmetric window's n intervals."""
    length, dtype = operator.index(length), dtype or _C.get_default_dtype()
    if layout not in (None, _C.strided):
        raise RuntimeError(f"{name} is not implemented for sparse types, got: {layout}")
    if not dtype.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
    if length < 0:
        raise RuntimeError(
            f"{name} requires non-negative window_length, got window_length={length}"
        )
    if length <= 1:
        result = _C.ones(length, dtype=dtype)
    else:
        k = _C.arange(length, dtype=_C.float64)
        result = shape(k, length if periodic else length - 1).to(dtype)
    return result.to(device or "cpu").requires_grad_(requires_grad)


def _cosines(*weights):
    """weights[0] - weights[1] cos(t) + weights[2] cos(2 t) ..., one period of t."""

    def shape(k, n):
        total = _C.full_like(k, weights[0])
        for i, weight in enumerate(weights[1:], 1):
            total = total + weight * (-1) ** i * (k * (2 * math.pi * i / n)).cos()
        return total

    return shape


def hann_window(window_length, periodic=True, **options):
    """The window sin(pi k / n)^2, a vector; n is its length or, unless `periodic`, one less.

    All windows take `dtype` (floating point), `layout`, `device`, `pin_memory` and `requires_grad`, and raise RuntimeError for other
    types and negative lengths.
    """
    return _window("hann_window", window_length, periodic, _cosines(0.5, 0.5), **options)


def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, **options):
    """The window alpha - beta cos(2 pi k / n), a vector; n is its length or, unless `periodic`, one less."""
    return _window("hamming_window", window_length, periodic, _cosines(alpha, beta), **options)


def blackman_window(window_length, periodic=True, **options):
    """The window 0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n), a vector; n is its length or, unless `periodic`, one less."""
    return _window("blackman_window", window_length, periodic, _cosines(0.42, 0.5, 0.08), **options)


def bartlett_window(window_length, periodic=True, **options):
    """The window 1 - abs(2 k / n - 1), a vector; n is its length or, unless `periodic`, one less."""

    def shape(k, n):
        return 1 - (k * (2 / n) - 1).abs()

    return _window("bartlett_window", window_length, periodic, shape, **options)


def kaiser_window(window_length, periodic=True, beta=12.0, **options):
    """The window I0(beta sqrt(1 - (2 k / n - 1)^2)) / I0(beta), a vector; n is its length or, unless `periodic`, one less."""

    def shape(k, n):
        inner = (1 - (k * (2 / n) - 1).square()).clamp(min=0).sqrt()
        return _C.i0(inner * beta) / _C.i0(_C.tensor(float(beta), dtype=k.dtype))

    return _window("kaiser_window", window_length, periodic, shape, **options)


def _lengths(name, n_fft, hop_length, win_length):
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if hop <= 0:
        raise RuntimeError(f"{name}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise RuntimeError(f"{name}: expected 0 < win_length <= n_fft, but got win_length={length}")
    return hop, length


def _full_window(name, window, length, n_fft, dtype):
    """The window with zeros on both sides, n_fft long; without one it is 1 on its length."""
    if window is None:
        window = _C.ones(length, dtype=dtype)
    elif window.dim() != 1 or window.shape[0] != length:
        raise RuntimeError(
            f"{name}: expected a 1D window tensor of size equal to win_length={length}, but got window with size "
            f"{list(window.shape)}"
        )
    left = (n_fft - length) // 2
    return _C.constant_pad_nd(window, [left, n_fft - length - left], 0)


@overridable
def stft(
    input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect",
    normalized=False, onesided=None, return_complex=None, align_to_window=None,
):  # fmt: skip
    """Short-time Fourier transform of a signal (length) or a batch of them (batch, length).

    Frame m begins at m * hop_length (n_fft // 4); it is multiplied by `window` (win_length,), which zeros fill up on both sides to
    n_fft, and transformed. With `center` the signal is first padded by n_fft // 2 on both sides, by `pad_mode`, so that frames
    have their middle there; without it `align_to_window` makes the window, not the frame, begin there. `normalized` divides by
    sqrt(n_fft). `onesided` (the default for real numbers) leaves out frequencies above n_fft // 2.

    The result is complex (..., frequencies, frames), or with ``return_complex=False`` real (..., frequencies, frames, 2). Raises
    RuntimeError for other sizes, types that have no transform, and real operands without `return_complex`.
    """
    name = "stft"
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(
            f"{name}: expected a tensor of floating point or complex values; got {input.dtype}"
        )
    if input.dim() not in (1, 2):
        raise RuntimeError(f"{name}: expected a 1D or 2D tensor; got {list(input.shape)}")
    if center and align_to_window is not None:
        raise RuntimeError(f"{name}: align_to_window should only be set when center = false")
    if n_fft <= 0:
        raise RuntimeError(f"{name}: expected n_fft > 0, but got n_fft={n_fft}")
    hop, length = _lengths(name, n_fft, hop_length, win_length)
    x = input.unsqueeze(0) if input.dim() == 1 else input
    if center:
        from lamina.nn.functional import pad

        x = pad(x.unsqueeze(0), [n_fft // 2] * 2, pad_mode).squeeze(0)
    elif align_to_window:
        left = (n_fft - length) // 2
        x = _C.constant_pad_nd(x, [left, n_fft - length - left], 0)
    if n_fft > x.shape[1]:
        raise RuntimeError(f"{name}: expected 0 < n_fft <= {x.shape[1]}, but got n_fft={n_fft}")
    is_complex = x.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not is_complex:
            raise RuntimeError(
                f"{name} requires the return_complex parameter be given for real inputs; expected return_complex=True"
            )
        return_complex = True
    onesided = not is_complex if onesided is None else onesided
    if onesided and is_complex:
        raise RuntimeError(f"{name}: Cannot have onesided output if window or input is complex")
    frames = x.unfold(1, n_fft, hop)
    if window is not None or length < n_fft:
        frames = frames * _full_window(name, window, length, n_fft, x.dtype)
    from lamina import fft

    transform = fft.rfft if onesided else fft.fft
    result = transform(frames, norm="ortho" if normalized else None).transpose(1, 2)
    if input.dim() == 1:
        result = result.squeeze(0)
    return result if return_complex else _C.view_as_real(result)


def _overlapped(frames, hop):
    """Sums (batch, length) of frames (batch, frames, n) that begin `hop` after one another."""
    count, n = frames.shape[1:]
    places = (_C.arange(count).unsqueeze(1) * hop + _C.arange(n)).reshape(-1)
    total = frames.new_zeros((frames.shape[0], (count - 1) * hop + n))
    return total.index_add(1, places, frames.reshape(frames.shape[0], -1))


@overridable
def istft(
    input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False,
    onesided=None, length=None, return_complex=False,
):  # fmt: skip
    """The signal (length) or (batch, length) whose `stft` is nearest to `input` (..., frequencies, frames).

    It is the sum of the transformed frames times the window over the sum of the squares of the window (Griffin and Lim, 1984), cut
    or filled up with zeros to `length`. The other arguments are those of `stft`; ``return_complex=True`` gives the complex signal
    of a two-sided transform. Raises RuntimeError for real input, for sizes that do not fit, and where no window reaches.
    """
    name = "istft"
    if not input.is_complex():
        raise RuntimeError(
            f"{name} requires a complex-valued input tensor matching the output from stft with return_complex=True; got {input.dtype}"
        )
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"{name}: expected a tensor with 2 or 3 dimensions, but got {input.dim()}"
        )
    if input.numel() == 0:
        raise RuntimeError(f"{name}: input tensor cannot be empty")
    hop, win_length = _lengths(name, n_fft, hop_length, win_length)
    if hop > win_length:
        raise RuntimeError(
            f"{name}: expected 0 < hop_length <= win_length; got {hop} and {win_length}"
        )
    if length is not None and length < 0:
        raise RuntimeError(f"{name}: expected length >= 0; got {length}")
    z = input.unsqueeze(0) if input.dim() == 2 else input
    frequencies, count = z.shape[1:]
    onesided = frequencies != n_fft if onesided is None else onesided
    if frequencies != (n_fft // 2 + 1 if onesided else n_fft):
        raise RuntimeError(
            f"{name}: expected the frequency dimension of the input tensor to match n_fft ({n_fft // 2 + 1} if onesided=True, "
            f"{n_fft} otherwise), but got {frequencies}"
        )
    if return_complex and onesided:
        raise RuntimeError(f"{name}: Cannot have onesided output if window or input is complex")
    if not return_complex and window is not None and window.is_complex():
        raise RuntimeError(f"{name}: Complex windows are incompatible with return_complex=False")
    shape = _full_window(name, window, win_length, n_fft, z.dtype.to_real())
    from lamina import fft

    norm = "ortho" if normalized else None
    z = z.transpose(1, 2)
    # Of a real signal the upper half of the frequencies says nothing new.
    frames = fft.ifft(z, norm=norm) if return_complex else fft.irfft(z, n_fft, norm=norm)
    # Of a complex window the conjugate: the least squares solution.
    signal = _overlapped(frames * (shape.conj() if shape.is_complex() else shape), hop)
    squares = shape.abs().square() if shape.is_complex() else shape.square()
    envelope = _overlapped(squares.expand(1, count, n_fft), hop)
    start = n_fft // 2 if center else 0
    whole = signal.shape[1]
    end = start + length if length is not None else whole - start
    signal, envelope = signal[:, start:end], envelope[:, start:end]
    if envelope.numel() and not float(envelope.detach().min()) > 1e-11:
        raise RuntimeError(
            f"{name}: window overlap add min: no window reaches a part of the signal"
        )
    result = signal / envelope
    if end > whole and length is not None:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings.",
            stacklevel=2,
        )
        result = _C.constant_pad_nd(result, [0, length - result.shape[1]], 0)
    return result.squeeze(0) if input.dim() == 2 else result
