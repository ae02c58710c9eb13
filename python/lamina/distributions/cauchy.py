"""The Cauchy distribution."""

import math

import lamina
from lamina import Size, Tensor

from ._location import LocationScale

__all__ = ["Cauchy"]


class Cauchy(LocationScale):
    """Density 1 / (pi scale (1 + z^2)), z = (x - loc) / scale. There is no mean; the variance is infinite."""

    _parameters = {"loc": 0, "scale": 0}

    @property
    def mean(self) -> Tensor:
        return lamina.full_like(self.loc, lamina.nan)

    @property
    def variance(self) -> Tensor:
        return lamina.full_like(self.loc, lamina.inf)

    def rsample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        drawn = self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + drawn * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - (z**2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return lamina.atan((self._checked(value) - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return lamina.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
