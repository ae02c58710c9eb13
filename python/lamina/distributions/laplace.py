"""The Laplace distribution."""

import lamina
from lamina import Size, Tensor

from ._location import LocationScale

__all__ = ["Laplace"]


class Laplace(LocationScale):
    """Density exp(-|x - loc| / scale) / (2 scale)."""

    _parameters = {"loc": 0, "scale": 0}

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        eps = lamina.finfo(self.loc.dtype).eps
        u = self.loc.new_empty(self._extended_shape(sample_shape)).uniform_(eps - 1, 1)
        return self.loc - self.scale * u.sign() * lamina.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        return -lamina.log(2 * self.scale) - lamina.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        away = self._checked(value) - self.loc
        return 0.5 - 0.5 * away.sign() * lamina.expm1(-away.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * lamina.log1p(-2 * term.abs())

    def entropy(self) -> Tensor:
        return 1 + lamina.log(2 * self.scale)
