"""The half-Cauchy distribution."""

import lamina
from lamina import Tensor

from ._half import Half
from .cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """|x| for Cauchy x of location 0 and the given scale. Mean and variance are infinite."""

    _base = Cauchy

    @property
    def mean(self) -> Tensor:
        return lamina.full_like(self.scale, lamina.inf)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance
