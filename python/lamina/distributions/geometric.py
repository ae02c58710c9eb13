"""The geometric distribution."""

import lamina
from lamina import Size, Tensor
from lamina.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from ._chances import Chances
from .distribution import _named_shape
from .utils import broadcast_all

__all__ = ["Geometric"]


class Geometric(Chances):
    """How many failures come before the first success: probability (1 - p)^k p of k = 0, 1, ...

    Raises ValueError unless exactly one of `probs` and `logits` is given, or where probs is outside (0, 1].
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _parameters = {"probs": 0, "logits": 0}

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(self._take(probs, logits), validate_args=validate_args)
        if self._validate_args and self._by_probs:
            wrong = ~(self.probs > 0)
            if wrong.any():
                raise ValueError(
                    f"Expected parameter probs ({type(self.probs).__name__} of shape "
                    f"{_named_shape(self.probs.shape)}) of distribution {self!r} to be positive "
                    f"but found invalid values:\n{self.probs[wrong]}"
                )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return lamina.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        tiny = lamina.finfo(self.probs.dtype).tiny
        with lamina.no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape)).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        value, probs = broadcast_all(self._checked(value), self.probs)
        # 0 log 0 is 0: with certain success no failure is certain.
        safe = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-safe).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return (
            binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
        )
