"""What multivariate normal and Wishart distributions share: a covariance in one of three forms."""

import lamina
from lamina import Tensor

from . import constraints
from .distribution import Distribution
from .utils import lazy_property

COVARIANCE_FORMS = {
    "covariance_matrix": constraints.positive_definite,
    "precision_matrix": constraints.positive_definite,
    "scale_tril": constraints.lower_cholesky,
}


def square_mahalanobis(lower: Tensor, x: Tensor) -> Tensor:
    """x^T (L L^T)^-1 x for vectors (..., n) and lower triangular L (..., n, n)."""
    if lower.dim() == 2:  # one solve for all vectors
        flat = x.reshape(-1, x.shape[-1]).mT
        solved = lamina.linalg.solve_triangular(lower, flat, upper=False)
        return solved.pow(2).sum(0).reshape(x.shape[:-1])
    return lamina.linalg.solve_triangular(lower, x.unsqueeze(-1), upper=False).pow(2).sum([-2, -1])


def log_diagonal(lower: Tensor) -> Tensor:
    """Sum of the logarithms of a diagonal: half the log-determinant of L L^T."""
    return lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse: J L'^-T J, where J P J = L' L'^T and J reverses the order."""
    flipped = lamina.linalg.cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    identity = lamina.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return lamina.linalg.solve_triangular(flipped, identity.expand_as(flipped), upper=False)


class WithCovariance(Distribution):
    """A distribution with a covariance, given as itself, as its inverse or as its Cholesky factor."""

    def _take_covariance(
        self, covariance_matrix, precision_matrix, scale_tril, other_shape, missing
    ):
        """Keep the form that was given, broadcast with `other_shape`; the batch shape."""
        forms = dict(zip(COVARIANCE_FORMS, (covariance_matrix, precision_matrix, scale_tril)))
        given = {name: value for name, value in forms.items() if value is not None}
        if len(given) != 1:
            raise missing(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
            )
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch_shape = lamina.broadcast_shapes(matrix.shape[:-2], other_shape)
        setattr(self, name, matrix.expand(batch_shape + matrix.shape[-2:]))
        return name, matrix, batch_shape

    def _factor(self, name, matrix):
        """The Cholesky factor of the covariance, without broadcast dimensions."""
        if name == "scale_tril":
            return matrix
        if name == "covariance_matrix":
            return lamina.linalg.cholesky(matrix)
        return precision_to_scale_tril(matrix)

    def _spread(self, matrix):
        return matrix.expand(self._batch_shape + matrix.shape[-2:])

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return self._spread(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self._spread(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self._spread(lamina.cholesky_inverse(self._unbroadcasted_scale_tril))
