"""The multivariate normal distribution."""

import math

from lamina import Size, Tensor

from . import constraints
from ._location import Centred
from ._matrices import COVARIANCE_FORMS, WithCovariance, log_diagonal, square_mahalanobis
from .utils import _standard_normal

__all__ = ["MultivariateNormal"]


class MultivariateNormal(Centred, WithCovariance):
    """Normal vectors (..., n) with mean `loc` and a covariance (..., n, n).

    The covariance is given as itself, as its inverse or, cheapest, as its lower Cholesky factor. Raises
    ValueError unless exactly one of the three is given.
    """

    arg_constraints = {"loc": constraints.real_vector, **COVARIANCE_FORMS}
    support = constraints.real_vector
    has_rsample = True
    _parameters = {"loc": 1, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix, batch_shape = self._take_covariance(
            covariance_matrix, precision_matrix, scale_tril, loc.shape[:-1], ValueError
        )
        self.loc = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = self._factor(name, matrix)

    @property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        noise = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + (self._unbroadcasted_scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        squares = square_mahalanobis(
            self._unbroadcasted_scale_tril, self._checked(value) - self.loc
        )
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + squares) - log_diagonal(self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (constant + log_diagonal(self._unbroadcasted_scale_tril)).expand(self._batch_shape)
