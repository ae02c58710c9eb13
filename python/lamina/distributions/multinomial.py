"""The multinomial distribution."""

import lamina
from lamina import Size, Tensor

from . import constraints
from ._chances import OverCategorical
from .binomial import Binomial
from .categorical import Categorical
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(OverCategorical):
    """How many of `total_count` draws of a categorical distribution fall on each category, (..., K).

    `total_count` is one int for all. Raises NotImplementedError for others, ValueError as `Categorical`.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _parameters: dict[str, int] = {}

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        super().__init__(
            self._categorical.batch_shape,
            self._categorical.param_shape[-1:],
            validate_args=validate_args,
        )

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        """Counts that sum to at most total_count."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        sample_shape = Size(sample_shape)
        drawn = self._categorical.sample(Size((self.total_count,)) + sample_shape).movedim(0, -1)
        counts = self.probs.detach().new_zeros(self._extended_shape(sample_shape))
        return counts.scatter_add_(-1, drawn, lamina.ones_like(drawn).type_as(counts))

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, self._checked(value))
        # 0 log 0 is 0.
        logits = logits.masked_fill((value == 0) & (logits == -lamina.inf), 0)
        ways = lamina.lgamma(value.sum(-1) + 1) - lamina.lgamma(value + 1).sum(-1)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        # -log(n!) - n sum p log p + the mean of log(x_i!) over binomial x_i.
        n = lamina.tensor(self.total_count, dtype=self.probs.dtype, device=self.probs.device)
        counts = Binomial(self.total_count, probs=self.probs)
        values = counts.enumerate_support(expand=False)[1:]
        means = (counts.log_prob(values).exp() * lamina.lgamma(values + 1)).sum([0, -1])
        return n * self._categorical.entropy() - lamina.lgamma(n + 1) + means
