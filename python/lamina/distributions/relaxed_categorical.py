"""Relaxed one-hot categorical distributions."""

import math

import lamina
from lamina import Size, Tensor

from . import constraints
from ._chances import OverCategorical, Relaxed
from .categorical import Categorical
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OverCategorical):
    """Logarithms of relaxed one-hot draws: log softmax((logits + Gumbel noise) / temperature).

    From Maddison, Mnih, Teh 2017 and Jang, Gu, Poole 2017.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    # Logarithms of points of the simplex; only that they are real is checked.
    support = constraints.real_vector
    has_rsample = True
    _parameters: dict[str, int] = {}

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(
            self._categorical.batch_shape,
            self._categorical.param_shape[-1:],
            validate_args=validate_args,
        )

    def rsample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(lamina.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        k = self._categorical._num_events
        logits, value = broadcast_all(self.logits, self._checked(value))
        temperature = lamina.as_tensor(self.temperature, dtype=logits.dtype, device=logits.device)
        constant = math.lgamma(k) + (k - 1) * temperature.log()
        score = logits - value.mul(temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + constant


class RelaxedOneHotCategorical(Relaxed):
    """Points of the simplex that tend to its corners as the temperature falls, with gradients of the chances."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    _parameters: dict[str, int] = {}

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
