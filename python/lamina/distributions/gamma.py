"""The gamma distribution."""

import lamina
from lamina import Size, Tensor

from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all, given_shape

__all__ = ["Gamma"]


def standard_gamma(concentration: Tensor) -> Tensor:
    """Draws of rate 1, differentiable in the concentration (implicit reparameterization)."""
    return lamina._C._standard_gamma(concentration)


def keep_above_zero(value: Tensor) -> Tensor:
    """`value`, whose numbers that underflowed became the smallest normal one, in place."""
    value.detach().clamp_(min=lamina.finfo(value.dtype).tiny)
    return value


class Gamma(ExponentialFamily):
    """Density rate^a x^(a - 1) exp(-rate x) / gamma(a), a = concentration, for x >= 0."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _parameters = {"concentration": 0, "rate": 0}

    def __init__(
        self,
        concentration: Tensor | float,
        rate: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(given_shape(concentration, rate), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        drawn = standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        return keep_above_zero(drawn)

    def log_prob(self, value: Tensor) -> Tensor:
        value = lamina.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        value = self._checked(value)
        return (
            lamina.xlogy(self.concentration, self.rate)
            + lamina.xlogy(self.concentration - 1, value)
            - self.rate * value
            - lamina.lgamma(self.concentration)
        )

    def cdf(self, value: Tensor) -> Tensor:
        return lamina.special.gammainc(self.concentration, self.rate * self._checked(value))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + lamina.lgamma(a) + (1.0 - a) * lamina.digamma(a)

    @property
    def _natural_params(self):
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x, y):
        return lamina.lgamma(x + 1) - (x + 1) * lamina.log(-y)
