"""Weights that are orthogonal, of norm one, or split into length and direction, whatever is trained."""

from __future__ import annotations

from enum import Enum, auto

import lamina
from lamina.nn import functional as F
from lamina.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from lamina.nn.modules.module import Module
from lamina.nn.utils import parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _is_orthogonal(Q, eps=None):
    n, k = Q.size(-2), Q.size(-1)
    identity = lamina.eye(k, dtype=Q.dtype, device=Q.device)
    if eps is None:
        eps = 10.0 * n * lamina.finfo(Q.dtype).eps
    return bool(lamina.allclose(Q.mH @ Q, identity, atol=eps))


def _make_orthogonal(A):
    """The nearest thing to `A` with orthonormal columns, by its QR decomposition."""
    from lamina.nn.init import _orthonormal

    return _orthonormal(A)


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


class _Orthogonal(Module):
    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X):
        n, k = X.size(-2), X.size(-1)
        wide = n < k
        if wide:
            X, n, k = X.mT, k, n
        if self.orthogonal_map == _OrthMaps.householder:
            Q = self._householder(X)
        else:
            Q = self._of_skew(X, n, k)
        if hasattr(self, "base") and self.base is not None:
            Q = self.base @ Q
        return Q.mT if wide else Q

    def _of_skew(self, X, n, k):
        A = X.tril()
        if n != k:
            A = lamina.cat([A, A.new_zeros((*A.shape[:-2], n, n - k))], dim=-1)
        A = A - A.mH
        if self.orthogonal_map == _OrthMaps.matrix_exp:
            Q = lamina.matrix_exp(A)
        else:
            identity = lamina.eye(n, dtype=A.dtype, device=A.device)
            Q = lamina.linalg.solve(identity - A / 2, identity + A / 2)
        return Q[..., :k] if n != k else Q

    def _householder(self, X):
        A = X.tril(diagonal=-1)
        tau = 2.0 / (1.0 + (A * A).sum(dim=-2))
        Q = lamina.linalg.householder_product(A, tau)
        # The last column's sign is free; together with X's diagonal all matrices are reached.
        return Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    @lamina.no_grad()
    def right_inverse(self, Q):
        if Q.shape != self.shape:
            raise ValueError(
                "Expected a matrix or batch of matrices of shape "
                f"{self.shape}. Got a tensor of shape {Q.shape}."
            )
        source = Q
        n, k = Q.size(-2), Q.size(-1)
        wide = n < k
        if wide:
            Q, n, k = Q.mT, k, n
        if not hasattr(self, "base"):
            if self.orthogonal_map in (_OrthMaps.cayley, _OrthMaps.matrix_exp):
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley "
                    "parametrizations when use_trivialization=False."
                )
            A, tau = lamina.geqrf(Q)
            A.diagonal(dim1=-2, dim2=-1).sign_()
            A.diagonal(dim1=-2, dim2=-1)[tau == 0.0] *= -1
            return A.mT if wide else A
        if n == k:
            Q = Q.clone() if _is_orthogonal(Q) else _make_orthogonal(Q)
        else:
            rest = lamina.randn(*(*Q.shape[:-2], n, n - k), dtype=Q.dtype, device=Q.device)
            Q = _make_orthogonal(lamina.cat([Q, rest], dim=-1))
        self.base = Q
        negated = lamina.zeros_like(source)
        negated.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return negated


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Keep a matrix, or a batch of them, orthogonal, or its rows or columns orthonormal.

    Parameters
    ----------
    module : Module
    name : str
    orthogonal_map : str, optional
        'matrix_exp', 'cayley' or 'householder'; the first for square and complex matrices, else the last.
    use_trivialization : bool
        Whether the result is multiplied by a fixed orthogonal matrix, so that training starts at zero.

    Returns `module`. Raises ValueError where there is no such tensor, it has less than 2 dimensions, or the map is unknown.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, lamina.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    kind = getattr(_OrthMaps, orthogonal_map, None)
    if kind is None:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    orth = _Orthogonal(weight, kind, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, orth, unsafe=True)


def _norm_except_dim(v, p, dim):
    """Norms of `v` over all dimensions but one, which keep their places; over all for None or -1."""
    if dim is None or dim == -1:
        return lamina.linalg.vector_norm(v, p)
    dims = [d for d in range(v.dim()) if d != dim % v.dim()]
    if not dims:
        return v.abs()
    return lamina.linalg.vector_norm(v, p, dim=dims, keepdim=True)


class _WeightNorm(Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return weight_v * (weight_g / _norm_except_dim(weight_v, 2, self.dim))

    def right_inverse(self, weight):
        return _norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Train length and direction of a weight apart (Salimans and Kingma, 2016).

    Lengths, one for each place along `dim` or one in all for None, are ``parametrizations.<name>.original0``, directions
    `original1`. Returns `module`.
    """
    _weight_norm = _WeightNorm(dim)
    parametrize.register_parametrization(module, name, _weight_norm, unsafe=True)

    def read_old(
        state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """States of the older weight_norm have `_g` and `_v`."""
        g, v = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if g in state_dict and v in state_dict:
            state_dict[f"{prefix}parametrizations.{name}.original0"] = state_dict.pop(g)
            state_dict[f"{prefix}parametrizations.{name}.original1"] = state_dict.pop(v)

    module._register_load_state_dict_pre_hook(read_old)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but "
                f"got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            h, w = matrix.size()
            u = matrix.new_empty(h).normal_(0, 1)
            v = matrix.new_empty(w).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=self.eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=self.eps))
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight):
        if self.dim != 0:
            rest = (d for d in range(weight.dim()) if d != self.dim)
            weight = weight.permute(self.dim, *rest)
        return weight.flatten(1)

    @lamina.no_grad()
    def _power_method(self, weight_mat, n_power_iterations):
        for _ in range(n_power_iterations):
            self._u.copy_(F.normalize(weight_mat @ self._v, dim=0, eps=self.eps))
            self._v.copy_(F.normalize(weight_mat.mH @ self._u, dim=0, eps=self.eps))

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies: a second forward before backward changes the buffers.
        u, v = self._u.clone(), self._v.clone()
        sigma = (u * (matrix @ v)).sum()
        return weight / sigma

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide a weight by its largest singular value, found by power iteration (Miyato et al., 2018).

    `dim` is the outputs' dimension, 0, or 1 for transposed convolutions. Returns `module`. Raises ValueError where there is
    no such tensor.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, lamina.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        transposed = (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
        dim = 1 if isinstance(module, transposed) else 0
    parametrize.register_parametrization(
        module, name, _SpectralNorm(weight, n_power_iterations, dim, eps)
    )
    return module
