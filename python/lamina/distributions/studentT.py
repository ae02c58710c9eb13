"""Student's t-distribution."""

import math

import lamina
from lamina import Size, Tensor

from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import _standard_normal, broadcast_all, given_shape

__all__ = ["StudentT"]


class StudentT(Distribution):
    """loc + scale X / sqrt(Z / df), X standard normal, Z chi-squared with `df` degrees of freedom."""

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    _parameters = {"df": 0, "loc": 0, "scale": 0}

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        batch_shape = given_shape(df, loc, scale)
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df, validate_args=validate_args)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, lamina.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        return finite.masked_fill(self.df <= 2, lamina.inf).masked_fill(self.df <= 1, lamina.nan)

    def rsample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        x = _standard_normal(shape, self.df.dtype, self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * x * lamina.rsqrt(z / self.df)

    def log_prob(self, value: Tensor) -> Tensor:
        y = (self._checked(value) - self.loc) / self.scale
        half = 0.5 * self.df
        return (
            -0.5 * (self.df + 1.0) * lamina.log1p(y**2.0 / self.df)
            - self.scale.log()
            - 0.5 * (self.df.log() + math.log(math.pi))
            - lamina.lgamma(half)
            + lamina.lgamma(half + 0.5)
        )

    def entropy(self) -> Tensor:
        half, above = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = lamina.lgamma(half) + math.lgamma(0.5) - lamina.lgamma(above)
        spread = above * (lamina.digamma(above) - lamina.digamma(half))
        return self.scale.log() + spread + 0.5 * self.df.log() + log_beta
