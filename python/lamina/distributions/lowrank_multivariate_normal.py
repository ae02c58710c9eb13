"""The multivariate normal distribution with a covariance of low rank and a diagonal."""

import math

import lamina
from lamina import Size, Tensor

from . import constraints
from ._location import Centred
from ._matrices import log_diagonal
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Centred):
    """Normal vectors (..., n) of covariance W W^T + D, W = cov_factor (..., n, m), D = diag(cov_diag) (..., n).

    The inverse and the determinant cost O(n m^2): Woodbury's identity and the matrix determinant lemma, by the
    capacitance matrix I + W^T D^-1 W. Raises ValueError where shapes do not fit.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _parameters = {
        "loc": 1,
        "cov_factor": 2,
        "cov_diag": 1,
        "covariance_matrix": 2,
        "precision_matrix": 2,
        "scale_tril": 2,
        "variance": 1,
    }

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch dimensions"
            )
        event_shape = loc.shape[-1:]
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m"
            )
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        try:
            batch_shape = lamina.broadcast_shapes(
                loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
            )
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand(batch_shape + event_shape)
        self.cov_factor = cov_factor.expand(batch_shape + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch_shape + event_shape)
        scaled = cov_factor.mT / cov_diag.unsqueeze(-2)
        capacitance = scaled @ cov_factor
        identity = lamina.eye(
            cov_factor.shape[-1], dtype=capacitance.dtype, device=capacitance.device
        )
        self._capacitance_tril = lamina.linalg.cholesky(capacitance + identity)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    @lazy_property
    def variance(self) -> Tensor:
        """The variance, of shape batch_shape + event_shape."""
        squares = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return squares.expand(self._batch_shape + self._event_shape)

    def _spread(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        # D^(1/2) chol(I + D^(-1/2) W W^T D^(-1/2)): well conditioned.
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        inner = scaled @ scaled.mT
        inner = inner + lamina.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)
        return self._spread(root * lamina.linalg.cholesky(inner))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        return self._spread(factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance: D^-1 - D^-1 W C^-1 W^T D^-1, C the capacitance matrix."""
        diag = self._unbroadcasted_cov_diag
        scaled = self._unbroadcasted_cov_factor.mT / diag.unsqueeze(-2)
        half = lamina.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self._spread(diag.reciprocal().diag_embed() - half.mT @ half)

    def rsample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        of_factor = shape[:-1] + self.cov_factor.shape[-1:]
        noise = _standard_normal(of_factor, self.loc.dtype, self.loc.device)
        own = _standard_normal(shape, self.loc.dtype, self.loc.device)
        spread = (self._unbroadcasted_cov_factor @ noise.unsqueeze(-1)).squeeze(-1)
        return self.loc + spread + self._unbroadcasted_cov_diag.sqrt() * own

    def _square_mahalanobis(self, x):
        """x^T (W W^T + D)^-1 x."""
        diag = self._unbroadcasted_cov_diag
        inner = (self._unbroadcasted_cov_factor.mT / diag.unsqueeze(-2)) @ x.unsqueeze(-1)
        half = lamina.linalg.solve_triangular(self._capacitance_tril, inner, upper=False)
        return (x.pow(2) / diag).sum(-1) - half.pow(2).sum([-2, -1])

    def _log_det(self):
        return 2 * log_diagonal(self._capacitance_tril) + self._unbroadcasted_cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        squares = self._square_mahalanobis(self._checked(value) - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + self._log_det() + squares)

    def entropy(self) -> Tensor:
        constant = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (0.5 * (constant + self._log_det())).expand(self._batch_shape)
