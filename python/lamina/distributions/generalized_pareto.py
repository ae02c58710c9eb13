"""The generalized Pareto distribution."""

import lamina
from lamina import Size, Tensor

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, given_shape

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """P(x > loc + scale z) = (1 + c z)^(-1 / c), c = concentration; exp(-z) where c = 0.

    The support ends at loc - scale / c where c < 0.
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    _parameters = {"loc": 0, "scale": 0, "concentration": 0}

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(given_shape(loc, scale, concentration), validate_args=validate_args)

    def _by_case(self, at_zero, elsewhere):
        """`at_zero` where the concentration is 0, else ``elsewhere(concentration)``."""
        zero = lamina.isclose(self.concentration, lamina.zeros_like(self.concentration))
        safe = self.concentration.masked_fill(zero, 1)
        return lamina.where(zero, at_zero, elsewhere(safe))

    def rsample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        return self.icdf(lamina.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def _z(self, value):
        return (value - self.loc) / self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._z(self._checked(value))
        power = self._by_case(z, lambda c: (1 + 1 / c) * lamina.log1p(c * z))
        return -power - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Logarithm of the probability of a draw above `value`."""
        z = self._z(self._checked(value))
        return -self._by_case(z, lambda c: lamina.log1p(c * z) / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Logarithm of the cumulative distribution function."""
        return lamina.log1p(-lamina.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return -lamina.expm1(self.log_survival_function(value))

    def icdf(self, value: Tensor) -> Tensor:
        tail = lamina.log1p(-value)
        return self.loc + self.scale * self._by_case(-tail, lambda c: lamina.expm1(-c * tail) / c)

    @property
    def mean(self) -> Tensor:
        c = self.concentration
        return (self.loc + self.scale / (1 - c)).masked_fill(c >= 1, lamina.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        finite = self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c))
        return finite.masked_fill(c >= 0.5, lamina.nan)

    def entropy(self) -> Tensor:
        return (self.scale.log() + self.concentration + 1).expand(self._batch_shape)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        """[loc, inf], or [loc, loc - scale / c] for negative concentrations c."""
        end = self.loc - self.scale / self.concentration
        upper = lamina.where(self.concentration < 0, end, lamina.inf)
        return constraints.interval(self.loc, upper)
