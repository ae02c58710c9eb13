"""Operators of lamina.special."""

import lamina
from lamina import _C
from lamina.functional import overridable

# Operators of the top module that have a name here, too.
_SHARED = {
    "digamma": "digamma",
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "exp2": "exp2",
    "expit": "sigmoid",
    "expm1": "expm1",
    "gammaln": "lgamma",
    "i0": "i0",
    "log1p": "log1p",
    "log_softmax": "log_softmax",
    "logit": "logit",
    "logsumexp": "logsumexp",
    "multigammaln": "mvlgamma",
    "polygamma": "polygamma",
    "psi": "digamma",
    "round": "round",
    "sinc": "sinc",
    "softmax": "softmax",
    "xlogy": "xlogy",
}

for _name, _function in _C._submodule_functions.get("special", {}).items():
    globals()[_name] = _function
for _name, _top in _SHARED.items():
    if hasattr(_C, _top) or _top == "erfinv":  # written in Python
        globals().setdefault(_name, getattr(lamina, _top))
globals().update({n: getattr(_C, t) for n, t in (("gammainc", "igamma"), ("gammaincc", "igammac"))})

# Functions without derivatives, by their numbers in lamina/tile/special.h.
_OF_ONE = {
    "modified_bessel_i0": 0, "modified_bessel_i1": 2, "modified_bessel_k0": 4,
    "scaled_modified_bessel_k0": 5, "modified_bessel_k1": 6, "scaled_modified_bessel_k1": 7,
    "bessel_j0": 8, "bessel_j1": 9, "bessel_y0": 10, "bessel_y1": 11, "spherical_bessel_j0": 12,
    "airy_ai": 18,
}  # fmt: skip
_OF_TWO = (
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v",
    "chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he",
    "laguerre_polynomial_l", "legendre_polynomial_p", "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
)  # fmt: skip


def _named(function, name, doc):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return overridable(function)


def _of_one(name, which):
    def function(input, *, out=None):
        return _C._special_function(input, which, out=out)

    return _named(function, name, f"The function {name.replace('_', ' ')}, element by element.")


def _of_two(name, which):
    def function(x, n, *, out=None):
        return _C._special_function2(x, n, which, out=out)

    return _named(function, name, f"The {name.replace('_', ' ')} of degree `n` at `x`.")


for _name, _which in _OF_ONE.items():
    globals()[_name] = _of_one(_name, _which)
for _which, _name in enumerate(_OF_TWO, 4):
    globals()[_name] = _of_two(_name, _which)
__all__ = sorted(
    n for n in globals() if not n.startswith("_") and n not in ("lamina", "overridable")
)
