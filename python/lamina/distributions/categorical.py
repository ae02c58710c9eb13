"""The categorical distribution."""

import lamina
from lamina import Size, Tensor

from . import constraints
from ._chances import Chances

__all__ = ["Categorical"]


class Categorical(Chances):
    """Category i of 0 ... K - 1 with probability probs[..., i].

    `probs` (..., K) are divided by their sum; `logits` (..., K) are any log-probabilities up to a
    constant. Values are integers. Raises ValueError unless exactly one of the two is given, with at least
    one dimension.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False
    _parameters = {"probs": 1, "logits": 1}

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        value, self._by_probs = self._choose(probs, logits)
        if value.dim() < 1:
            name = "probs" if self._by_probs else "logits"
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if self._by_probs:
            self.probs = value / value.sum(-1, keepdim=True)
        else:
            self.logits = value - value.logsumexp(dim=-1, keepdim=True)
        self._num_events = value.size(-1)
        super().__init__(value.size()[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        """The integers from 0 to K - 1."""
        return constraints.integer_interval(0, self._num_events - 1)

    def _nans(self):
        return lamina.full(
            self._extended_shape(), lamina.nan, dtype=self.probs.dtype, device=self.probs.device
        )

    @property
    def mean(self) -> Tensor:
        return self._nans()

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return self._nans()

    def sample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        sample_shape = Size(sample_shape)
        rows = self.probs.detach().reshape(-1, self._num_events)
        drawn = lamina.multinomial(rows, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value).long().unsqueeze(-1)
        value, table = lamina.broadcast_tensors(value, self.logits)
        return table.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        # 0 log 0 is 0.
        logits = self.logits.clamp(min=lamina.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = lamina.arange(self._num_events, dtype=lamina.long, device=self._param.device)
        return self._enumerated(values, expand)
