"""The Weibull distribution."""

import lamina
from lamina import Tensor

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """scale E^(1 / k) for exponential E of rate 1, k = concentration."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _parameters = {"scale": 0, "concentration": 0, "concentration_reciprocal": 0}

    def __init__(
        self,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(lamina.ones_like(self.scale), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, power):
        """Logarithm of the mean of (x / scale)^power."""
        return lamina.lgamma(1 + power * self.concentration_reciprocal)

    @property
    def mean(self) -> Tensor:
        return self.scale * lamina.exp(self._moment(1))

    @property
    def mode(self) -> Tensor:
        # For concentrations up to 1 the density falls from 0 on.
        ratio = ((self.concentration - 1) / self.concentration).clamp(min=0)
        return self.scale * ratio**self.concentration_reciprocal

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (self._moment(2).exp() - (2 * self._moment(1)).exp())

    def entropy(self) -> Tensor:
        reciprocal = self.concentration_reciprocal
        return euler_constant * (1 - reciprocal) + lamina.log(self.scale * reciprocal) + 1
