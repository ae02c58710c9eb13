"""The LKJ distribution of correlation matrices, by their Cholesky factors."""

import math

import lamina
from lamina import Size, Tensor

from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all, given_shape

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors L (..., dim, dim) of correlation matrices of density proportional to det(L L^T)^(concentration - 1).

    Concentration 1 is uniform over correlation matrices. Draws by the onion method; densities after
    Lewandowski, Kurowicka, Joe 2009. Raises ValueError for dim below 2.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _parameters = {"concentration": 0}

    def __init__(
        self,
        dim: int,
        concentration: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        batch_shape = given_shape(concentration)
        (self.concentration,) = broadcast_all(concentration)
        # Row i has length sqrt(y) before its diagonal, y beta of i / 2 and what is left.
        like = self.concentration
        before = lamina.arange(dim, dtype=like.dtype, device=like.device)
        first = (0.5 * before).masked_fill(before == 0, 0.5)
        rest = (like + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * (before - 1).clamp(min=0)
        self._beta = Beta(*broadcast_all(first, rest))
        super().__init__(batch_shape, Size((dim, dim)), validate_args=validate_args)

    def _inner_batch_shape(self, name, batch_shape):
        return batch_shape + (self.dim,)

    def sample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        like = self.concentration
        with lamina.no_grad():
            length = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            below = lamina.randn(shape, dtype=like.dtype, device=like.device).tril(-1)
            direction = below / below.norm(dim=-1, keepdim=True)
            direction[..., 0, :].fill_(0.0)
            w = lamina.sqrt(length) * direction
            tiny = lamina.finfo(w.dtype).tiny
            diagonal = (1 - w.pow(2).sum(-1)).clamp(min=tiny).sqrt()
            return w + diagonal.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        # Density prod of L_ii^(dim - i + 2 (concentration - 1)) over rows i = 2 ... dim, over a constant.
        value = self._checked(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        rows = lamina.arange(2, self.dim + 1, dtype=value.dtype, device=value.device)
        power = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - rows
        own = (power * diagonal.log()).sum(-1)
        count = self.dim - 1
        alpha = self.concentration + 0.5 * count
        constant = 0.5 * count * math.log(math.pi) + lamina.mvlgamma(alpha - 0.5, count)
        return own - constant + lamina.lgamma(alpha) * count
