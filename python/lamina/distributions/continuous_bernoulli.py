"""The continuous Bernoulli distribution."""

import math

import lamina
from lamina import Size, Tensor
from lamina.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from ._chances import Chances
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, given_shape

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Chances, ExponentialFamily):
    """Density C(p) p^x (1 - p)^(1 - x) on [0, 1] (Loaiza-Ganem, Cunningham 2019).

    Between the two `lims` the formulas lose their digits and give way to series about p = 1/2. Raises
    ValueError unless exactly one of `probs` and `logits` is given.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _parameters = {"probs": 0, "logits": 0}

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        value, self._by_probs = self._choose(probs, logits)
        batch_shape = given_shape(value)
        (value,) = broadcast_all(value)
        if self._by_probs:
            if validate_args is not None and not self.arg_constraints["probs"].check(value).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(value)
        else:
            self.logits = value
        self._lims = lims
        super().__init__(batch_shape, validate_args=validate_args)

    def _outside(self):
        """Where the plain formulas are good."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _by_region(self, plain, series):
        """``plain(p)`` outside the limits, ``series(p - 1/2)`` between them."""
        safe = lamina.where(self._outside(), self.probs, self._lims[0])
        return lamina.where(self._outside(), plain(safe), series(self.probs - 0.5))

    @staticmethod
    def _log_odds(p):
        """log((1 - p) / p)."""
        return lamina.log1p(-p) - p.log()

    def _cont_bern_log_norm(self):
        """log C(p), C(p) = log((1 - p) / p) / (1 - 2 p)."""
        return self._by_region(
            lambda p: (self._log_odds(p).abs() / (1 - 2 * p).abs()).log(),
            lambda d: math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * d**2) * d**2,
        )

    @property
    def mean(self) -> Tensor:
        return self._by_region(
            lambda p: p / (2.0 * p - 1.0) + 1.0 / self._log_odds(p),
            lambda d: 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * d**2) * d,
        )

    @property
    def variance(self) -> Tensor:
        return self._by_region(
            lambda p: p * (p - 1.0) / (1.0 - 2.0 * p) ** 2 + 1.0 / self._log_odds(p) ** 2,
            lambda d: 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * d**2) * d**2,
        )

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def rsample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        return self.icdf(lamina.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, self._checked(value))
        cross = binary_cross_entropy_with_logits(logits, value, reduction="none")
        return self._cont_bern_log_norm() - cross

    def cdf(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        inside = self._by_region(
            lambda p: (p**value * (1.0 - p) ** (1.0 - value) + p - 1.0) / (2.0 * p - 1.0),
            lambda d: value + 0 * d,
        )
        return lamina.where(value <= 0, 0.0, lamina.where(value >= 1, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        return self._by_region(
            lambda p: (
                (lamina.log1p(-p + value * (2.0 * p - 1.0)) - lamina.log1p(-p)) / -self._log_odds(p)
            ),
            lambda d: value + 0 * d,
        )

    def entropy(self) -> Tensor:
        rest = lamina.log1p(-self.probs)
        return self.mean * (rest - self.probs.log()) - self._cont_bern_log_norm() - rest

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        # log((exp(x) - 1) / x), about 0 by its series.
        near = (x.abs() < 4 * (0.5 - self._lims[0])).detach()
        safe = x.masked_fill(near, 1.0)
        plain = lamina.log(lamina.expm1(safe) / safe)
        return lamina.where(near, 0.5 * x + x**2 / 24.0 - x**4 / 2880.0, plain)
