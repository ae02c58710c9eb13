"""Writes lamina/tile/special_tables.inl: Chebyshev series of smooth parts of special functions.

Each table fits one function on [-1, 1] by interpolation at Chebyshev points in 60 digits, cut where its terms fall below
2e-18 of the largest. Needs mpmath; run it by hand when a fit changes.
"""

from pathlib import Path

import mpmath as mp

mp.mp.dps = 60
OUT = Path(__file__).resolve().parent.parent / "lamina" / "tile" / "special_tables.inl"


def coefficients(f, n=90):
    """c with f(t) = c[0] / 2 + sum c[k] T_k(t), without what is too small to matter."""
    points = [mp.cos(mp.pi * (k + mp.mpf(1) / 2) / n) for k in range(n)]
    values = [f(t) for t in points]
    angles = [mp.pi * (k + mp.mpf(1) / 2) / n for k in range(n)]
    c = [2 * mp.fsum(v * mp.cos(j * a) for v, a in zip(values, angles)) / n for j in range(n)]
    largest = max(abs(x) for x in c)
    while abs(c[-1]) < largest * mp.mpf("2e-18"):
        c.pop()
    return c


def reciprocal(t, low):
    """x from t = 2 low / x - 1: from low at 1 to infinity at -1."""
    return 2 * low / (t + 1)


def airy_parts(t):
    """P and Q * zeta of Ai(-z) = (P cos(a) + Q sin(a)) / sqrt(pi sqrt(z)), a = zeta - pi / 4; t = 2 (zeta0 / zeta)^2 - 1."""
    zeta0 = mp.mpf(2) / 3 * mp.mpf(3) ** mp.mpf("1.5")
    zeta = zeta0 / mp.sqrt((t + 1) / 2)
    z = (3 * zeta / 2) ** (mp.mpf(2) / 3)
    a = zeta - mp.pi / 4
    scale = mp.sqrt(mp.pi * mp.sqrt(z))
    ai, bi = mp.airyai(-z) * scale, mp.airybi(-z) * scale
    return ai * mp.cos(a) - bi * mp.sin(a), (ai * mp.sin(a) + bi * mp.cos(a)) * zeta


def decaying(t):
    zeta0 = mp.mpf(2) / 3 * mp.mpf(2) ** mp.mpf("1.5")
    zeta = 2 * zeta0 / (t + 1)
    z = (3 * zeta / 2) ** (mp.mpf(2) / 3)
    return mp.airyai(z) * 2 * mp.sqrt(mp.pi) * mp.sqrt(mp.sqrt(z)) * mp.exp(zeta)


def near(order):
    def f(t):
        x = mp.sqrt(2 * (t + 1))
        if order == 0:
            return mp.besselk(0, x) + mp.log(x / 2) * mp.besseli(0, x)
        return x * (mp.besselk(1, x) - mp.log(x / 2) * mp.besseli(1, x))

    return f


def far(function, order, low, sign):
    def f(t):
        x = reciprocal(t, low)
        return mp.sqrt(x) * mp.exp(sign * x) * function(order, x)

    return f


TABLES = {
    "kI0Near": lambda t: mp.exp(-4 * (t + 1)) * mp.besseli(0, 4 * (t + 1)),
    "kI0Far": far(mp.besseli, 0, mp.mpf(8), -1),
    "kI1Near": lambda t: mp.exp(-4 * (t + 1)) * mp.besseli(1, 4 * (t + 1)) / (4 * (t + 1)),
    "kI1Far": far(mp.besseli, 1, mp.mpf(8), -1),
    "kK0Near": near(0),
    "kK0Far": far(mp.besselk, 0, mp.mpf(2), 1),
    "kK1Near": near(1),
    "kK1Far": far(mp.besselk, 1, mp.mpf(2), 1),
    "kErfcx": lambda t: (lambda x: (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x))(4 * (1 + t) / (1 - t)),
    "kAiryPositive": lambda t: mp.airyai(t + 1),
    "kAiryNegative": lambda t: mp.airyai(mp.mpf(3) / 2 * (t - 1)),
    "kAiryFar": decaying,
    "kAiryCos": lambda t: airy_parts(t)[0],
    "kAirySin": lambda t: airy_parts(t)[1],
}


def main():
    text = "// Written by tools/special_tables.py: Chebyshev series, the first term to be halved.\n"
    for name, f in TABLES.items():
        c = coefficients(f)
        rows = ", ".join(mp.nstr(x, 18) for x in c)
        text += f"constexpr double {name}[] = {{{rows}}};\n"
    OUT.write_text("// clang-format off\n" + text + "// clang-format on\n")


main()
