"""Short-time Fourier transforms and windows against sums written out with NumPy."""

import math

import pytest

np = pytest.importorskip("numpy")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import lamina  # noqa: E402


def frames_of(signal, n_fft, hop, window):
    count = 1 + (len(signal) - n_fft) // hop
    rows = np.stack([signal[m * hop : m * hop + n_fft] * window for m in range(count)])
    return np.fft.fft(rows, axis=1).T


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 12), st.integers(1, 5), st.integers(12, 40), st.integers(0, 3), st.booleans(),
    st.booleans(), st.booleans(), st.integers(0, 10**6),
)  # fmt: skip
def test_against_sums(n_fft, hop, length, shorter, center, normalized, is_complex, seed):
    random = np.random.default_rng(seed)
    x = random.standard_normal(length)
    if is_complex:
        x = x + 1j * random.standard_normal(length)
    win_length = max(n_fft - shorter, 1)
    window = random.random(win_length) + 0.5
    left = (n_fft - win_length) // 2
    full = np.pad(window, (left, n_fft - win_length - left))
    padded = np.pad(x, n_fft // 2, mode="reflect") if center else x
    expected = frames_of(padded, n_fft, hop, full) / (math.sqrt(n_fft) if normalized else 1)
    arguments = (n_fft, hop, win_length, lamina.tensor(window), center)
    ours = lamina.stft(
        lamina.tensor(x), *arguments, normalized=normalized, return_complex=True, onesided=False
    )
    np.testing.assert_allclose(ours.numpy(), expected, 1e-9, 1e-9)
    pairs = lamina.tensor(x).stft(*arguments, normalized=normalized, return_complex=False)
    half = expected if is_complex else expected[: n_fft // 2 + 1]
    np.testing.assert_allclose(lamina.view_as_complex(pairs.contiguous()).numpy(), half, 1e-9, 1e-9)
    if hop > win_length or (win_length < n_fft and not center):
        return
    back = lamina.istft(
        ours, *arguments, normalized=normalized, onesided=False, return_complex=is_complex
    )
    n = min(len(back), length)
    np.testing.assert_allclose(back[:n].numpy(), x[:n], 1e-8, 1e-8)


def test_batches_lengths_and_frames_at_windows():
    x = lamina.randn(3, 50, dtype=lamina.float64)
    w = lamina.hann_window(8, dtype=lamina.float64)
    z = lamina.stft(x, 8, window=w, return_complex=True)
    assert z.shape == (3, 5, 26)
    assert lamina.allclose(z[1], lamina.stft(x[1], 8, window=w, return_complex=True))
    assert lamina.allclose(lamina.istft(z, 8, window=w), x)
    assert lamina.allclose(z.istft(8, window=w, length=30), x[:, :30])
    with pytest.warns(UserWarning, match="zeros"):
        longer = lamina.istft(z, 8, window=w, length=60)
    assert longer.shape == (3, 60) and longer[:, 54:].abs().sum() == 0
    aligned = lamina.stft(x, 8, 2, 6, center=False, return_complex=True, align_to_window=True)
    assert aligned.shape == (3, 5, 23)
    np.testing.assert_allclose(
        aligned[0, 0].real.numpy(), [x[0, 2 * m : 2 * m + 6].sum().item() for m in range(23)], 1e-9
    )


def test_gradients():
    x = lamina.randn(2, 12, dtype=lamina.float64, requires_grad=True)
    w = (lamina.rand(4, dtype=lamina.float64) + 0.5).requires_grad_()

    def there(x, w):
        return lamina.stft(x, 4, 2, window=w, return_complex=True)

    def back(z, w):
        return lamina.istft(z, 4, 2, window=w)

    z = there(x, w).detach().requires_grad_()
    for function, operands in ((there, (x, w)), (back, (z, w))):
        assert lamina.autograd.gradcheck(function, operands, check_forward_ad=True)
        assert lamina.autograd.gradgradcheck(function, operands)


def test_errors():
    x, w = lamina.randn(2, 50), lamina.ones(8)
    for arguments in (
        {"n_fft": 8}, {"n_fft": 0, "return_complex": True}, {"n_fft": 60, "return_complex": True, "center": False},
        {"n_fft": 8, "hop_length": 0, "return_complex": True}, {"n_fft": 8, "win_length": 9, "return_complex": True},
        {"n_fft": 8, "window": w[:6], "return_complex": True}, {"n_fft": 8, "align_to_window": True, "return_complex": True},
        {"n_fft": 10**18, "return_complex": True}, {"n_fft": 8, "onesided": True, "window": w.cfloat()},
    ):  # fmt: skip
        with pytest.raises(RuntimeError):
            lamina.stft(x, **arguments)
    for bad in (x.long(), x[None], x.half()):
        with pytest.raises(RuntimeError):
            lamina.stft(bad, 8, return_complex=True)
    z = lamina.stft(x, 8, window=w, return_complex=True)
    for bad, arguments in (
        (x, {"n_fft": 8}), (z, {"n_fft": 7}), (z, {"n_fft": 8, "onesided": False}), (z, {"n_fft": 8, "return_complex": True}),
        (z, {"n_fft": 8, "hop_length": 9}), (z[..., :0], {"n_fft": 8}), (z, {"n_fft": 8, "length": -1}),
        (z, {"n_fft": 8, "window": lamina.hann_window(8), "center": False}), (z[None], {"n_fft": 8}),
    ):  # fmt: skip
        with pytest.raises(RuntimeError):
            lamina.istft(bad, **arguments)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 8])
def test_windows(n):
    for name, theirs in (
        ("hann", np.hanning), ("hamming", np.hamming), ("blackman", np.blackman), ("bartlett", np.bartlett),
        ("kaiser", lambda m: np.kaiser(m, 12.0)),
    ):  # fmt: skip
        make = getattr(lamina, f"{name}_window")
        expected = theirs(n) if n != 1 else [1.0]
        np.testing.assert_allclose(
            make(n, False, dtype=lamina.float64).numpy(), expected, 1e-9, 1e-9
        )
        expected = theirs(n + 1)[:n] if n > 1 else [1.0] * n
        periodic = make(n, requires_grad=True)
        assert periodic.requires_grad and periodic.dtype == lamina.float32
        np.testing.assert_allclose(periodic.detach().numpy(), expected, 1e-5, 1e-6)
        with pytest.raises(RuntimeError):
            make(-1)
        with pytest.raises(RuntimeError):
            make(3, dtype=lamina.int64)
        with pytest.raises(TypeError):
            make(2.5)
