"""The Dirichlet distribution."""

import lamina
from lamina import Size, Tensor

from . import constraints
from .exp_family import ExponentialFamily
from .gamma import standard_gamma

__all__ = ["Dirichlet"]


def _normalized_gammas(concentration: Tensor) -> Tensor:
    """Points of the simplex (..., K), differentiable: gammas, computed in double, over their sum.

    Where all gammas of a point underflow, which needs concentrations below about 1/100, they are drawn
    by their logarithms: log gamma(a) = log gamma(a + 1) + log(u) / a.
    """
    wide = concentration.double()
    gammas = standard_gamma(wide)
    tiny = lamina.finfo(lamina.double).tiny
    lost = gammas.detach().amax(-1, keepdim=True) <= tiny * 1e10
    if lost.any():
        logs = standard_gamma(wide + 1).log() + lamina.rand_like(wide).log() / wide
        gammas = lamina.where(lost, (logs - logs.detach().amax(-1, keepdim=True)).exp(), gammas)
    points = (gammas / gammas.sum(-1, keepdim=True)).to(concentration.dtype)
    info = lamina.finfo(concentration.dtype)
    points.detach().clamp_(min=info.tiny, max=1 - info.eps / 2)
    return points


class Dirichlet(ExponentialFamily):
    """Density prod of x_i^(a_i - 1) / B(a) on the simplex, a = concentration (..., K).

    Raises ValueError where concentration has no dimension or is not positive.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _parameters = {"concentration": 1}

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(
            concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args
        )

    def rsample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        return _normalized_gammas(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        value, a = self._checked(value), self.concentration
        return (
            lamina.xlogy(a - 1.0, value).sum(-1)
            + lamina.lgamma(a.sum(-1))
            - lamina.lgamma(a).sum(-1)
        )

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        corner = lamina.nn.functional.one_hot(
            self.concentration.argmax(-1), above.shape[-1]
        ).to(mode)  # fmt: skip
        return lamina.where((self.concentration < 1).all(-1, keepdim=True), corner, mode)

    @property
    def variance(self) -> Tensor:
        a, total = self.concentration, self.concentration.sum(-1, True)
        return a * (total - a) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        a, k = self.concentration, self.concentration.size(-1)
        total = a.sum(-1)
        return (
            lamina.lgamma(a).sum(-1)
            - lamina.lgamma(total)
            - (k - total) * lamina.digamma(total)
            - ((a - 1.0) * lamina.digamma(a)).sum(-1)
        )

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, x):
        return x.lgamma().sum(-1) - lamina.lgamma(x.sum(-1))
