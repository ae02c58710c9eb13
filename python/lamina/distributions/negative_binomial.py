"""The negative binomial distribution."""

import lamina
from lamina import Size, Tensor
from lamina.nn.functional import logsigmoid

from . import constraints
from ._chances import Chances
from .gamma import Gamma
from .utils import lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Chances):
    """How many successes, each with probability `probs`, come before `total_count` failures.

    `total_count` may be any real number of at least 0. Raises ValueError unless exactly one of `probs` and
    `logits` is given, or where probs is outside [0, 1).
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _parameters = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(
        self,
        total_count: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        batch_shape = self._take_counted(total_count, probs, logits)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * lamina.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / lamina.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        # The rate of the Poisson numbers of which this distribution is a mixture.
        return Gamma(self.total_count, lamina.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        with lamina.no_grad():
            return lamina.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        value, n = self._checked(value), self.total_count
        chance = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        ways = lamina.lgamma(n + value) - lamina.lgamma(1.0 + value) - lamina.lgamma(n)
        return chance + ways.masked_fill(n + value == 0.0, 0.0)
