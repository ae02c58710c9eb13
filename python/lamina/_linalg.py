"""Linear algebra that is a few calls of operators: norms, ranks, condition numbers, approximations of low rank."""

import math

from lamina import _C
from lamina._dims import wrap_dim
from lamina._out import given
from lamina._type_info import finfo
from lamina.autograd.grad_mode import no_grad
from lamina.functional import overridable

_linalg = _C._submodule_functions["linalg"]
_vector_norm, _svdvals, _eigvalsh = (_linalg[n] for n in ("vector_norm", "svdvals", "eigvalsh"))
_ORDERS = (2, -2, 1, -1, math.inf, -math.inf)


def _check_matrix(name, A, square=False):
    if not isinstance(A, _C.Tensor):
        raise TypeError(
            f"{name}(): argument 'A' (position 1) must be Tensor, not {type(A).__name__}"
        )
    if A.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if square and A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )


def _check_type(name, A, dtype=None):
    if not (A.is_floating_point() or A.is_complex()):
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {A.dtype}"
        )
    if dtype is None:
        return
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name}: dtype should be floating point or complex. Got {dtype}")
    if dtype.is_complex != A.is_complex():
        kind = "complex" if A.is_complex() else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {dtype}")
    if _C.promote_types(A.dtype, dtype) != dtype:
        raise RuntimeError(
            f"{name}: the dtype of the input ({A.dtype}) should be convertible without narrowing to {dtype}"
        )


def _check_small(name, A):
    if A.dtype in (_C.float16, _C.bfloat16):
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {A.dtype}")


def _two_dims(name, A, dim):
    if isinstance(dim, int):
        raise TypeError(f"{name}(): argument 'dim' must be tuple of ints, not int")
    if len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {dim}")
    a, b = (wrap_dim(d, A.dim()) for d in dim)
    if a == b:
        raise RuntimeError(f"{name}: dims must be different. Got {tuple(dim)}")
    return a, b


def _matrix_norm(name, A, ord, dim, keepdim, dtype):
    _check_matrix(name, A)
    _check_type(name, A, dtype)
    a, b = _two_dims(name, A, dim)
    if isinstance(ord, str):
        if ord not in ("fro", "nuc"):
            raise RuntimeError(f"{name}: Order {ord} not supported.")
    elif ord is not None and ord not in _ORDERS:
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    if ord in (None, "fro"):
        return _vector_norm(A, 2, (a, b), keepdim, dtype=dtype)
    if dtype is not None:
        A = A.to(dtype)
    if ord == "nuc" or abs(ord) == 2:
        _check_small(name, A)
        values = _svdvals(A.movedim((a, b), (-2, -1)))
        if ord == "nuc" or (ord == 2 and values.shape[-1] == 0):
            result = values.sum(-1)
        else:
            result = values.amax(-1) if ord > 0 else values.amin(-1)
        if keepdim:
            for d in sorted((a, b)):
                result = result.unsqueeze(d)
        return result
    along, left = (a, b) if abs(ord) == 1 else (b, a)
    sums = _vector_norm(A, 1, along, True)
    if ord > 0 and sums.shape[left] == 0:
        result = sums.sum(left, True)
    else:
        result = sums.amax(left, True) if ord > 0 else sums.amin(left, True)
    return result if keepdim else result.squeeze((a, b))


@overridable
def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None, out=None):
    """Norms of matrices, by default of the last two dimensions.

    Parameters
    ----------
    ord : str or float
        "fro" is the root of the sum of squares, "nuc" the sum of the singular values, 2 and -2 the largest and smallest of
        them, 1 and -1 the largest and smallest sum of magnitudes of a column, inf and -inf of a row.

    The result is real. Raises RuntimeError for other orders, for integers, and for less than two dimensions.
    """
    if ord is None:
        raise TypeError("linalg_matrix_norm(): argument 'ord' must be str or Number, not NoneType")
    result = _matrix_norm("linalg.matrix_norm", A, ord, dim, keepdim, dtype)
    return given("linalg.matrix_norm", result, out, same_type=True)


@overridable
def linalg_norm(A, ord=None, dim=None, keepdim=False, *, out=None, dtype=None):
    """The norm of vectors, or of matrices where `ord` and two dimensions, or a matrix, are given; see matrix_norm and vector_norm."""
    if not isinstance(A, _C.Tensor):
        raise TypeError(
            f"linalg_norm(): argument 'A' (position 1) must be Tensor, not {type(A).__name__}"
        )
    if dim is not None:
        dim = (dim,) if isinstance(dim, int) else tuple(dim)
        if len(dim) not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {dim}"
            )
    elif ord is not None and A.dim() not in (1, 2):
        raise RuntimeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
            f"{A.dim()}D."
        )
    matrix = len(dim) == 2 if dim is not None else A.dim() == 2
    if ord is not None and (matrix or isinstance(ord, str)):
        result = _matrix_norm(
            "linalg.matrix_norm", A, ord, (-2, -1) if dim is None else dim, keepdim, dtype
        )
        return given("linalg.norm", result, out, same_type=True)
    return _vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype, out=out)


@overridable
def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The norm of a tensor, or along dimensions; `p` is a number, inf, "fro", which is 2, or "nuc", the sum of singular values."""
    if p == "nuc":
        if dim is None and input.dim() != 2:
            raise RuntimeError(
                f"norm: the nuclear norm is that of matrices; got {input.dim()} dimensions and no dim"
            )
        return nuclear_norm(input, dim, keepdim, dtype=dtype, out=out)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"norm: only valid values of p are numbers, 'fro' and 'nuc'; got {p!r}")
    return _vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype, out=out)


@overridable
def nuclear_norm(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """Sums of singular values of matrices, of two dimensions `dim`, or of a matrix."""
    if isinstance(dim, bool):
        dim, keepdim = None, dim
    result = _matrix_norm(
        "linalg.matrix_norm", input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype
    )
    return given("nuclear_norm", result, out, same_type=True)


@overridable
def frobenius_norm(input, dim=(), keepdim=False, *, out=None):
    """Roots of sums of squares over `dim`, all dimensions by default."""
    return _vector_norm(input, 2, dim or None, keepdim, out=out)


@overridable
def cond(A, p=None, *, out=None):
    """Condition numbers (...) of matrices (..., n, m): norm(A, p) * norm(inverse of A, p).

    `p` is None or 2 (largest over smallest singular value), -2 (smallest over largest), or, for square matrices, any other order
    of matrix_norm. Infinite where a matrix is singular.
    """
    name = "linalg.cond"
    _check_matrix(name, A)
    _check_type(name, A)
    if p in (None, 2, -2):
        values = _svdvals(A)
        if A.numel() == 0:
            result = values.new_zeros(A.shape[:-2])
        else:
            largest, smallest = values[..., 0], values[..., -1]
            result = smallest / largest if p == -2 else largest / smallest
    else:
        if (
            isinstance(p, str)
            and p not in ("fro", "nuc")
            or not isinstance(p, str)
            and p not in _ORDERS
        ):
            raise RuntimeError(f"{name} got an invalid norm type: {p}")
        if A.numel() == 0:
            result = A.abs().new_zeros(A.shape[:-2])
        else:
            _check_matrix(name, A, square=True)
            inverse, info = _linalg["inv_ex"](A)
            singular = info != 0
            inverse = inverse.masked_fill(singular[..., None, None], 0.0)
            first = _matrix_norm(name, A, p, (-2, -1), False, None)
            second = _matrix_norm(name, inverse, p, (-2, -1), False, None)
            result = (first * second).masked_fill(singular, math.inf)
    return given(name, result, out, same_type=True)


def _tolerances(A, atol, rtol):
    """Absolute and relative tolerance as tensors: rtol is by default eps * max(n, m), and 0 where an atol above 0 is given."""
    real = A.real.dtype if A.is_complex() else A.dtype
    default = finfo(real).eps * max(A.shape[-2:])

    def tensor(value):
        if isinstance(value, _C.Tensor):
            if value.is_complex():
                raise RuntimeError("linalg: tolerances of complex type are not supported.")
            return value.to(real)
        return _C.full((), float(value), dtype=real, device=A.device)

    atol = tensor(atol) if isinstance(atol, _C.Tensor) else atol
    if rtol is None:
        if atol is None:
            rtol = default
        elif isinstance(atol, _C.Tensor):
            rtol = _C.where(atol > 0, 0.0, default)
        else:
            rtol = 0.0 if atol > 0 else default
    return tensor(0.0 if atol is None else atol), tensor(rtol)


@overridable
def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """How many singular values (eigenvalues' magnitudes where `hermitian`) are above max(atol, rtol * the largest): int64 (...).

    rtol is by default eps * max(n, m), 0 where an atol above 0 is given. `tol` is the older name of atol.
    """
    name = "linalg.matrix_rank"
    if isinstance(tol, bool):
        tol, hermitian = None, tol
    _check_matrix(name, A, square=hermitian)
    _check_type(name, A)
    _check_small(name, A)
    if tol is not None:
        atol, rtol = tol, 0.0
    if A.numel() == 0:
        return given(name, _C.zeros(A.shape[:-2], dtype=_C.int64, device=A.device), out)
    A = A.detach()
    values = _eigvalsh(A).abs() if hermitian else _svdvals(A)
    atol, rtol = _tolerances(A, atol, rtol)
    cut = _C.maximum(atol, rtol * values.amax(-1))
    return given(name, (values > cut.unsqueeze(-1)).sum(-1), out)


@overridable
def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """Pseudo-inverses (..., m, n) of (..., n, m).

    Singular values (eigenvalues' magnitudes where `hermitian`) up to max(atol, rtol * the largest) count as zero; rtol is by
    default eps * max(n, m), 0 where an atol above 0 is given. `rcond` is the older name of rtol. The gradient is that for changes
    that keep the rank (Golub and Pereyra, 1973).
    """
    name = "linalg.pinv"
    if isinstance(rcond, bool):
        rcond, hermitian = None, rcond
    _check_matrix(name, A, square=hermitian)
    if rcond is not None:
        if atol is not None or rtol is not None:
            raise TypeError(f"{name}: rcond and rtol are the same; give one of them")
        atol, rtol = 0.0, rcond
    _check_type(name, A)
    atol, rtol = _tolerances(A, atol, rtol)
    return given(name, _C._linalg_pinv(A, atol, rtol, hermitian), out)


@overridable
def chain_matmul(*matrices, out=None):
    """The product of matrices, in the order that needs the fewest multiplications; see linalg.multi_dot."""
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for m in matrices:
        if m.dim() != 2:
            raise RuntimeError(f"chain_matmul(): expected matrices; got {m.dim()} dimensions")
    result = matrices[0].clone() if len(matrices) == 1 else _linalg["multi_dot"](matrices)
    return given("chain_matmul", result, out)


@overridable
def lu(A, pivot=True, get_infos=False, out=None):
    """LU and pivots of matrices, with `get_infos` also info; see linalg.lu_factor_ex, which replaces it."""
    result = _C._lu_with_info(A, pivot, False)
    return given("lu", result if get_infos else tuple(result[:2]), out)


def _range_of(A, q, niter, M):
    """Orthonormal columns (..., n, q) that A nearly maps into, by random vectors; algorithm 4.4 of Halko, Martinsson and Tropp,
    "Finding structure with randomness" (2011)."""
    qr = _linalg["qr"]

    def times(x, adjoint=False):
        y = (A.mH if adjoint else A) @ x
        return y if M is None else y - (M.mH if adjoint else M) @ x

    Q = qr(times(_C.randn(A.shape[-1], q, dtype=A.dtype, device=A.device)))[0]
    for _ in range(niter):
        Q = qr(times(Q, adjoint=True))[0]
        Q = qr(times(Q))[0]
    return Q


@overridable
def svd_lowrank(A, q=6, niter=2, M=None):
    """U (..., n, q), S (..., q) and V (..., m, q) with A - M near to U diag(S) V^H, by random projections.

    `q` is somewhat above the rank, `niter` how often the approximation is improved. Uses the generator's random numbers.
    """
    q = 6 if q is None else q
    if not 0 <= niter <= 10000:  # after ten it hardly changes
        raise ValueError(f"niter(={niter}) must be from 0 to 10000")
    n, m = A.shape[-2:]
    if not 0 <= q <= min(n, m):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(n, m)}"
        )
    if M is not None:
        M = M.expand(A.shape)
    if n < m:
        V, S, U = svd_lowrank(A.mH, q, niter, None if M is None else M.mH)
        return U, S, V
    Q = _range_of(A, q, niter, M)
    B = Q.mH @ A
    if M is not None:
        B = B - Q.mH @ M
    U, S, Vh = _linalg["svd"](B, full_matrices=False)
    return Q @ U, S, Vh.mH


@overridable
def pca_lowrank(A, q=None, center=True, niter=2):
    """U, S and V of svd_lowrank of A with the mean of each column taken away (`center`); V are the principal directions."""
    n, m = A.shape[-2:]
    q = min(6, n, m) if q is None else q
    if not 0 <= q <= min(n, m):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(n, m)}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not (A.is_floating_point() or A.is_complex()):
        raise ValueError(f"pca_lowrank: expected a floating point tensor; got {A.dtype}")
    if center:
        A = A - A.mean(-2, keepdim=True)
    return svd_lowrank(A, q, niter)


@overridable
def lobpcg(
    A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None,
    tracker=None, ortho_iparams=None, ortho_fparams=None, ortho_bparams=None,
):  # fmt: skip
    """The k largest (or smallest) eigenvalues (..., k) and vectors (..., n, k) of A x = l B x, A symmetric, B positive definite.

    By iteration (Knyazev, "Toward the optimal preconditioned eigensolver", 2001), from `X` or `n` random vectors, with the
    preconditioner `iK`, until residuals are below `tol` (by default the root of eps) relative to norms, or `niter` steps.
    """
    _check_matrix("lobpcg", A, square=True)
    if A.dtype not in (_C.float32, _C.float64):
        raise RuntimeError(f"lobpcg: expected float32 or float64; got {A.dtype}")
    size = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if X is None else X.shape[-1]) if n is None else n
    if not 0 < k <= n or size < 3 * n:
        raise ValueError(
            f"LPBPCG algorithm is not applicable when the number of A rows (={size}) is smaller than 3 x the "
            f"number of requested eigenpairs (={n})"
        )
    largest = True if largest is None else largest
    tol = finfo(A.dtype).eps ** 0.5 if tol is None else tol
    niter = 1000 if niter is None or niter < 0 else min(niter, 1000000)
    if X is None:
        X = _C.randn((*A.shape[:-2], size, n), dtype=A.dtype, device=A.device)
    with no_grad():
        return _lobpcg(
            A.detach(), None if B is None else B.detach(), X.detach(), iK, k, niter, tol, largest
        )


def _lobpcg(A, B, X, iK, k, niter, tol, largest):
    def metric(t):
        return t if B is None else B @ t

    def ritz(S):
        """The eigenpairs of A in the span of S, best first."""
        Q = _linalg["qr"](S)[0]
        if B is None:
            values, C = _linalg["eigh"](Q.mT @ A @ Q)
        else:
            L = _linalg["cholesky"](Q.mT @ metric(Q))
            half = _linalg["solve_triangular"](L, Q.mT @ A @ Q, upper=False)
            inner = _linalg["solve_triangular"](L.mT, half, upper=True, left=False)
            values, C = _linalg["eigh"](inner)
            C = _linalg["solve_triangular"](L.mT, C, upper=True)
        if largest:
            values, C = values.flip(-1), C.flip(-1)
        return values, Q @ C

    n = X.shape[-1]
    values, vectors = ritz(X)
    P = None
    scale = _vector_norm(A, 2, (-2, -1))
    for _ in range(niter):
        R = A @ vectors - metric(vectors) * values.unsqueeze(-2)
        error = _vector_norm(R, 2, -2) / (scale.unsqueeze(-1) * _vector_norm(vectors, 2, -2))
        if not bool((error[..., :k] >= tol).any()):  # NaN does not get better
            break
        W = R if iK is None else iK @ R
        S = _C.cat([vectors, W] if P is None else [vectors, W, P], -1)
        old = vectors
        values, basis = ritz(S)
        values, vectors = values[..., :n], basis[..., :n]
        P = vectors - old @ (old.mT @ metric(vectors))
    return values[..., :k], vectors[..., :k]
