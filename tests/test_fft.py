"""Fourier transforms against their definition, their inverses and Parseval's equation."""

import math

import pytest

import lamina

T = lamina
F = lamina.fft


def direct(x):
    n = x.shape[-1]
    k = T.arange(n, dtype=T.float64)
    angle = -2 * math.pi * ((k.unsqueeze(1) * k) % n) / n
    return T.mv(T.polar(T.ones_like(angle), angle), x)


# Small primes, powers, a product, primes that go by convolution.
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 12, 31, 36, 37, 61, 97, 101, 128, 210, 331])
def test_every_length(n):
    x = T.randn(n, dtype=T.complex128)
    want = direct(x)
    T.testing.assert_close(F.fft(x), want, rtol=1e-10, atol=1e-10)
    for norm in ("backward", "forward", "ortho"):
        T.testing.assert_close(F.ifft(F.fft(x, norm=norm), norm=norm), x)
    real = T.randn(n, dtype=T.float64)
    T.testing.assert_close(F.rfft(real), F.fft(real)[: n // 2 + 1])
    T.testing.assert_close(F.irfft(F.rfft(real), n), real)
    T.testing.assert_close(F.hfft(F.ihfft(real), n), real)


def test_several_dimensions_and_sizes():
    x = T.randn(3, 4, 5, dtype=T.float64)
    y = F.fftn(x, norm="ortho")
    T.testing.assert_close(y.abs().square().sum(), x.square().sum())
    T.testing.assert_close(F.irfftn(F.rfftn(x), x.shape), x)
    T.testing.assert_close(F.fft(x, 7, 1), F.fft(T.cat([x, x.new_zeros(3, 3, 5)], 1), dim=1))
    assert F.fft2(x, (2, 9)).shape == (3, 2, 9)
    T.testing.assert_close(F.ifftshift(F.fftshift(x)), x)


def test_arguments_are_checked():
    x = T.randn(4)
    for call in (
        lambda: F.fft(x, 0),
        lambda: F.fft(x, norm="half"),
        lambda: F.fftn(x, (2, 2)),
        lambda: F.fft2(T.ones(2, 2), dim=(0, 0)),
        lambda: F.rfft(T.ones(2, dtype=T.complex64)),
    ):
        with pytest.raises(RuntimeError):
            call()
    with pytest.raises(IndexError):
        F.fft(x, dim=2)


def test_same_bits_for_any_number_of_threads():
    x = T.randn(64, 300, dtype=T.float64)
    results = []
    for threads in (1, 2, 3):
        T.set_num_threads(threads)
        results.append(F.fft(x))
    assert all(r.equal(results[0]) for r in results)


@pytest.mark.parametrize("n", [1, 2, 6, 49, 60, 400, 403, 961])
def test_rows_together_are_as_each_alone(n):
    x = T.randn(19, n, dtype=T.complex128)
    together = F.fft(x)
    for rows in (1, 3, 8, 9):
        T.testing.assert_close(F.fft(x[:rows]), together[:rows], rtol=1e-12, atol=1e-12)
        assert rows < 4 or T.equal(F.fft(x[:rows]), together[:rows])
    T.testing.assert_close(together[18], direct(x[18]), rtol=1e-10, atol=1e-9)
    assert T.equal(F.fft(x.mT, dim=0), together.mT)
    T.testing.assert_close(F.ifft(together), x)


@pytest.mark.parametrize("n", [256, 1000, 1001, 8192, 9375, 16384, 10007])
def test_long_rows(n):
    x = T.randn(2, n, dtype=T.complex128)
    np = pytest.importorskip("numpy")
    np.testing.assert_allclose(F.fft(x).numpy(), np.fft.fft(x.numpy()), 1e-9, 1e-9)
    np.testing.assert_allclose(F.ifft(x).numpy(), np.fft.ifft(x.numpy()), 1e-9, 1e-12)
