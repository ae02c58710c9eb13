"""Special functions against identities between them and against values known in closed form."""

import math

import lamina

T = lamina
F64 = T.float64
S = lamina.special


def v(*x):
    return T.tensor(x, dtype=F64)


def close(a, b, tolerance=1e-13):
    T.testing.assert_close(a, b, rtol=tolerance, atol=1e-300, equal_nan=True)


X = T.linspace(0.05, 30, 400, dtype=F64)


def test_bessel_functions_keep_their_wronskians():
    close(T.i0(X) * S.modified_bessel_k1(X) + S.i1(X) * S.modified_bessel_k0(X), 1 / X)
    j0, j1, y0, y1 = (getattr(S, "bessel_" + n)(X) for n in ("j0", "j1", "y0", "y1"))
    close(j1 * y0 - j0 * y1, 2 / (math.pi * X), 1e-12)
    close(S.i0e(X), T.exp(-X) * T.i0(X))
    close(S.scaled_modified_bessel_k1(X), T.exp(X) * S.modified_bessel_k1(X), 1e-12)


def test_gamma_functions_keep_their_recurrences():
    close(T.digamma(X + 1), T.digamma(X) + 1 / X, 1e-12)
    for n in (1, 2, 5):
        sign = (-1) ** n * math.factorial(n)
        close(T.polygamma(n, X + 1) - T.polygamma(n, X), sign / X ** (n + 1), 1e-9)
    close(T.polygamma(1, v(1.0, 0.5)), v(math.pi**2 / 6, math.pi**2 / 2))
    close(S.zeta(v(2.0, 4.0), v(1.0, 1.0)), v(math.pi**2 / 6, math.pi**4 / 90))
    assert T.polygamma(1, v(-1.0, -501.0)).tolist() == [math.inf] * 2
    assert T.polygamma(2, v(math.inf)).item() == 0


def test_incomplete_gamma_functions():
    for a in (0.3, 1.0, 7.5, 60.0, 1e4):
        order = T.full_like(X, a)
        close(T.igamma(order, X) + T.igammac(order, X), T.ones_like(X))
    close(T.igammac(T.ones_like(X), X), T.exp(-X), 1e-12)
    assert abs(T.igamma(v(1e9), v(1e9)).item() - 0.5) < 1e-5


def test_normal_distribution():
    p = T.linspace(1e-4, 1 - 1e-4, 301, dtype=F64)
    close(S.ndtr(S.ndtri(p)), p, 1e-13)
    x = T.linspace(-30, 1, 200, dtype=F64)
    close(S.log_ndtr(x), T.log(S.ndtr(x)), 1e-12)
    close(S.erfcx(X[:100]), T.exp(X[:100] ** 2) * T.erfc(X[:100]), 1e-11)


def test_polynomials_of_low_degree():
    x = T.linspace(-2, 2, 41, dtype=F64)
    expected = {
        "chebyshev_polynomial_t": 4 * x**3 - 3 * x,
        "chebyshev_polynomial_u": 8 * x**3 - 4 * x,
        "hermite_polynomial_h": 8 * x**3 - 12 * x,
        "hermite_polynomial_he": x**3 - 3 * x,
        "legendre_polynomial_p": (5 * x**3 - 3 * x) / 2,
        "laguerre_polynomial_l": (-(x**3) + 9 * x**2 - 18 * x + 6) / 6,
    }
    for name, want in expected.items():
        T.testing.assert_close(getattr(S, name)(x, 3), want, rtol=1e-12, atol=1e-12)
        assert getattr(S, name)(x, -1).eq(0).all()
    # A degree that no loop should walk up to.
    assert S.legendre_polynomial_p(v(0.5), 1e300).isnan().all()


def test_airy_function_solves_its_equation():
    x = T.linspace(-12, 6, 61, dtype=F64)
    h = 1e-3
    second = (S.airy_ai(x + h) - 2 * S.airy_ai(x) + S.airy_ai(x - h)) / h**2
    T.testing.assert_close(second, x * S.airy_ai(x), rtol=1e-4, atol=1e-5)
    assert abs(S.airy_ai(v(0.0)).item() - 0.355028053887817239) < 1e-16
