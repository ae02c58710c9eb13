"""The inverse of the error function.

Rational approximations of the normal distribution's quantiles: M. J. Wichura, "Algorithm AS 241", Applied Statistics
37 (1988), relative error about 1e-16. erfinv(x) is the quantile of (1 + x) / 2 divided by sqrt(2).
"""

from __future__ import annotations

import math

from lamina import _C
from lamina._out import given
from lamina.autograd import Function
from lamina.functional import overridable

# Numerators and denominators, highest power first: near the middle, and in two parts of the ends.
_MIDDLE = (
    (
        2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
        4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
        1.3314166789178437745e2, 3.3871328727963666080,
    ),
    (
        5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
        2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
        4.2313330701600911252e1, 1.0,
    ),
)  # fmt: skip
_NEAR = (
    (
        7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
        1.27045825245236838258, 3.64784832476320460504, 5.76949722146069140550,
        4.63033784615654529590, 1.42343711074968357734,
    ),
    (
        1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
        1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940,
        2.05319162663775882187, 1.0,
    ),
)  # fmt: skip
_FAR = (
    (
        2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
        2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580,
        5.46378491116411436990, 6.65790464350110377720,
    ),
    (
        2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
        7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
        5.99832206555887937690e-1, 1.0,
    ),
)  # fmt: skip


def _ratio(coefficients, x):
    numerator, denominator = (_C.full_like(x, c[0]) for c in coefficients)
    for a, b in zip(coefficients[0][1:], coefficients[1][1:]):
        numerator, denominator = numerator * x + a, denominator * x + b
    return numerator / denominator


def _values(x):
    """erfinv of float64 numbers: NaN outside of [-1, 1], infinite at its ends."""
    q = x / 2
    size = x.abs()
    middle = q * _ratio(_MIDDLE, 0.180625 - q * q)
    r = (-((1 - size) / 2).log()).sqrt()
    ends = _C.where(r <= 5, _ratio(_NEAR, r - 1.6), _ratio(_FAR, r - 5))
    ends = _C.where(size == 1, float("inf"), ends) * x.sgn()
    result = _C.where(size <= 0.85, middle, ends) / math.sqrt(2)
    return _C.where(size <= 1, result, float("nan"))


class _Erfinv(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(ctx, x):
        result = _values(x.double()).to(x.dtype)
        ctx.save_for_backward(result)
        ctx.save_for_forward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * (math.sqrt(math.pi) / 2 * (result * result).exp())

    @staticmethod
    def jvp(ctx, tangent):
        (result,) = ctx.saved_tensors
        return tangent * (math.sqrt(math.pi) / 2 * (result * result).exp())


@overridable
def erfinv(input, *, out=None):
    """The number whose error function is `input`. Floating dtype; whole numbers give the default one."""
    if input.is_complex():
        raise NotImplementedError(f"erfinv: not implemented for {input.dtype}")
    if not input.is_floating_point():
        input = input.to(_C.get_default_dtype())
    return given("erfinv", _Erfinv.apply(input), out)


def erfinv_(self):
    """`erfinv` in place."""
    if not self.is_floating_point():
        raise RuntimeError(
            f"erfinv_: a result of {_C.get_default_dtype()} can't be cast to {self.dtype}"
        )
    return self.copy_(erfinv(self))
