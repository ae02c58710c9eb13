"""Linear algebra: what factors multiply to, what solvers solve, edges (no elements, singular, NaN), errors that name the matrix."""

import math
import subprocess
import sys

import numpy as np
import pytest

import lamina

L = lamina.linalg
F32, F64, C64, C128 = lamina.float32, lamina.float64, lamina.complex64, lamina.complex128
TYPES = (F32, F64, C64, C128)
TOLERANCE = {F32: 2e-4, C64: 2e-4, F64: 1e-11, C128: 1e-11}
NAN, INF = math.nan, math.inf


def numbers(*shape, dtype=F64, seed=0):
    g = lamina.Generator()
    g.manual_seed(seed)
    real = lamina.randn(shape, generator=g, dtype=F64)
    if dtype.is_complex:
        real = lamina.complex(real, lamina.randn(shape, generator=g, dtype=F64))
    return real.to(dtype)


def near(a, b, dtype=None):
    a, b = lamina.as_tensor(a), lamina.as_tensor(b)
    assert a.shape == b.shape, f"{tuple(a.shape)} != {tuple(b.shape)}"
    tolerance = TOLERANCE[dtype or a.dtype]
    assert a.numel() == 0 or (a - b).abs().max().item() <= tolerance * max(1, b.abs().max().item())


def unit(n, dtype):
    return lamina.eye(n, dtype=dtype)


def scaled(matrix, values):
    """matrix diag(values)."""
    return matrix * values.to(matrix.dtype).unsqueeze(-2)


SHAPES = [(3, 3), (5, 3), (3, 5), (2, 4, 3), (2, 3, 3, 4), (1, 1), (0, 0), (0, 3), (3, 0), (0, 2, 2), (2, 0, 3)]  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_factors_of_any_shape_multiply_to_the_matrix(shape, dtype):
    a = numbers(*shape, dtype=dtype)
    n, m = shape[-2:]
    for full in (False, True):
        u, s, vh = L.svd(a, full_matrices=full)
        k = min(n, m)
        near(scaled(u[..., :k], s) @ vh[..., :k, :], a)
        near(u.mH @ u, unit(u.shape[-1], dtype).expand(*shape[:-2], -1, -1))
        near(vh @ vh.mH, unit(vh.shape[-2], dtype).expand(*shape[:-2], -1, -1))
        near(L.svdvals(a), s)
    for mode in ("reduced", "complete"):
        q, r = L.qr(a, mode)
        near(q @ r, a)
        near(q.mH @ q, unit(q.shape[-1], dtype).expand(*shape[:-2], -1, -1))
        assert lamina.equal(r, r.triu())
    assert L.qr(a, "r")[0].shape == (0,)
    p, low, up = L.lu(a)
    near(p @ low @ up, a)
    near(L.pinv(a) @ a @ L.pinv(a), L.pinv(a))
    assert L.matrix_rank(a).tolist() == np.full(shape[:-2], min(n, m)).tolist()
    if n >= m:
        h, tau = lamina.geqrf(a)
        near(lamina.orgqr(h, tau), L.qr(a)[0])
        c = numbers(*shape[:-2], n, 2, dtype=dtype, seed=1)
        near(lamina.ormqr(h, tau, c), L.qr(a, "complete")[0] @ c)
        near(lamina.ormqr(h, tau, c.mH, left=False, transpose=True), c.mH @ L.qr(a, "complete")[0].mH)  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", [s for s in SHAPES if s[-1] == s[-2]], ids=str)
def test_square_matrices(shape, dtype):
    n = shape[-1]
    a = numbers(*shape, dtype=dtype)
    eye = unit(n, dtype).expand(shape)
    near(L.inv(a) @ a, eye)
    near(lamina.inverse(a), L.inv_ex(a).inverse)
    near(L.det(a), lamina.from_numpy(np.asarray(np.linalg.det(a.numpy()))).to(dtype))
    sign, log = L.slogdet(a)
    near(sign * log.exp().to(dtype), L.det(a))
    b = numbers(*shape[:-1], 2, dtype=dtype, seed=1)
    near(a @ L.solve(a, b), b)
    near(L.solve(a, b.mT, left=False) @ a, b.mT)
    near(lamina.lu_solve(b, *L.lu_factor(a)), L.solve(a, b))
    near(L.lu_solve(*L.lu_factor(a), b, adjoint=True), L.solve(a.mH, b))
    h = a + a.mH
    values, vectors = L.eigh(h)
    near(scaled(vectors, values) @ vectors.mH, h)
    near(L.eigvalsh(h, UPLO="U"), values)
    values, vectors = L.eig(a)
    near(a.to(vectors.dtype) @ vectors, scaled(vectors, values))
    d = a @ a.mH + unit(n, dtype)
    c = L.cholesky(d)
    near(c @ c.mH, d)
    near(L.cholesky(d, upper=True), c.mH)
    near(d @ lamina.cholesky_solve(b, c), b)
    near(lamina.cholesky_inverse(c) @ d, eye)
    symmetric = a + a.mT
    near(symmetric @ L.ldl_solve(*L.ldl_factor(symmetric), b), b)
    near(h @ L.ldl_solve(*L.ldl_factor(h, hermitian=True), b, hermitian=True), b)
    near(lamina.matrix_exp(a) @ lamina.matrix_exp(-a), eye)
    near(lamina.matrix_power(a, -3) @ a @ a @ a, eye)
    assert lamina.equal(lamina.matrix_power(a, 0), eye.contiguous())


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 3), (3, 3), (0, 3), (3, 0)], ids=str)
def test_least_squares(shape, driver, dtype):
    a, b = numbers(*shape, dtype=dtype), numbers(*shape[:-1], 2, dtype=dtype, seed=1)
    n, m = shape[-2:]
    x, residuals, rank, values = L.lstsq(a, b, driver=driver)
    near(x, L.pinv(a) @ b)
    if n > m and driver != "gelsy":
        near(residuals, (a @ x - b).abs().square().sum(-2))
    else:
        assert residuals.numel() == 0
    if driver == "gels":
        assert rank.numel() == 0 and rank.dtype == lamina.int64
    else:
        assert rank.tolist() == np.full(shape[:-2], min(n, m)).tolist()
    if driver in ("gelsd", "gelss"):
        near(values, L.svdvals(a))


def test_least_squares_of_deficient_rank():
    a = lamina.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]], dtype=F64)
    b = lamina.tensor([[1.0], [0.0], [2.0]], dtype=F64)
    for driver in ("gelsy", "gelsd", "gelss"):
        result = L.lstsq(a, b, driver=driver)
        assert result.rank.item() == 1
        near(result.solution, L.pinv(a) @ b)


def test_batches_broadcast():
    a, b = numbers(2, 1, 3, 3), numbers(4, 3, 2, seed=1)
    near(a @ L.solve(a, b), b.expand(2, 4, 3, 2))
    near(a.tril() @ L.solve_triangular(a, b, upper=False), b.expand(2, 4, 3, 2))
    near(L.lu_solve(*L.lu_factor(a), b), L.solve(a, b))
    c = L.cholesky(a @ a.mH)
    near(lamina.cholesky_solve(b, c), L.solve(a @ a.mH, b))
    vectors = numbers(2, 3, seed=2)
    near(L.solve(a[:, 0], vectors), L.inv(a[:, 0]).matmul(vectors.unsqueeze(-1)).squeeze(-1))
    near(L.solve(a, vectors[0]), L.inv(a).matmul(vectors[0]))


def test_strided_and_conjugated_operands():
    a = numbers(3, 6, dtype=C128)[:, ::2]
    near(L.inv(a.mH) @ a.mH, unit(3, C128))
    near(L.inv(a.conj()), L.inv(a).conj().resolve_conj())
    near(L.det(a.t()), L.det(a))
    out = lamina.empty(3, 3, dtype=C128)
    L.lu_solve(*L.lu_factor(a), unit(3, C128), left=False, out=out)
    near(out, L.inv(a))


SINGULAR = {
    "inv": (L.inv, "diagonal element 2 is zero"),
    "inverse": (lamina.inverse, "singular"),
    "solve": (lambda a: L.solve(a, a), "singular"),
    "solve_ex": (lambda a: L.solve_ex(a, a, check_errors=True), "singular"),
    "lu_factor": (L.lu_factor, "diagonal element 2 of U"),
    "lu_factor_ex": (lambda a: L.lu_factor_ex(a, check_errors=True), "U"),
    "cholesky": (L.cholesky, "minor of order 2"),
    "cholesky (old)": (lamina.cholesky, "minor of order 2"),
    "cholesky_ex": (lambda a: L.cholesky_ex(a, check_errors=True), "minor of order 2"),
    "ldl_factor": (L.ldl_factor, "singular"),
    "matrix_power": (lambda a: L.matrix_power(a, -1), "singular"),
    "tensorinv": (lambda a: L.tensorinv(a[-1].unsqueeze(0), 2), "singular"),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_errors_name_the_matrix(name):
    call, words = SINGULAR[name]
    a = unit(2, F64).repeat(3, 1, 1)
    a[2] = lamina.tensor([[1.0, 1.0], [1.0, 1.0]])
    place = r"\(Batch element 2\)" if name != "tensorinv" else ""
    with pytest.raises(L.LinAlgError, match=rf"{place}.*{words}"):
        call(a)
    if name != "tensorinv":
        with pytest.raises(L.LinAlgError, match=words) as caught:
            call(a[2])
        assert "Batch" not in str(caught.value)


def test_the_exception_type():
    assert issubclass(L.LinAlgError, RuntimeError) and L.LinAlgError is lamina._C._LinAlgError


def test_info_instead_of_errors():
    a = lamina.zeros(2, 3, 3)
    a[0] = unit(3, F32)
    assert L.inv_ex(a).info.tolist() == [0, 1] and L.inv_ex(a).info.dtype == lamina.int32
    assert L.solve_ex(a, a).info.tolist() == [0, 1]
    assert L.lu_factor_ex(a).info.tolist() == [0, 1]
    assert L.cholesky_ex(a).info.tolist() == [0, 1]
    assert L.ldl_factor_ex(a).info.tolist() == [0, 1]


FINITE_ONLY = ("svd", "svdvals", "eig", "eigvals", "eigh", "eigvalsh", "lstsq", "pinv", "matrix_rank")  # fmt: skip


@pytest.mark.parametrize("value", [NAN, INF, -INF], ids=str)
def test_nan_and_infinities_neither_hang_nor_crash(value):
    for dtype in TYPES:
        for n in (2, 5, 40):
            a = numbers(n, n, dtype=dtype)
            a[n // 2, 1] = value
            for name in FINITE_ONLY:
                args = (a, a) if name == "lstsq" else (a,)
                with pytest.raises(RuntimeError, match="infs or NaNs|non-finite"):
                    getattr(L, name)(*args)
            for name in ("det", "slogdet", "inv_ex", "lu_factor_ex", "cholesky_ex", "ldl_factor_ex", "qr", "lu"):  # fmt: skip
                getattr(L, name)(a)
            lamina.geqrf(a)
            lamina.matrix_exp(a)
            L.solve_ex(a, a)
            L.solve_triangular(a, a, upper=True)
            lamina.matrix_power(a, 3)


def test_scale_survives():
    tiny, huge = 1e-200 * numbers(4, 4), 1e150 * numbers(4, 4)
    for a in (tiny, huge):
        u, s, vh = L.svd(a)
        near(scaled(u, s / s[0]) @ vh, a / s[0])
    assert L.det(tiny).item() == 0 and math.isfinite(L.slogdet(tiny).logabsdet.item())


def test_determinants_of_singular_matrices_have_the_right_gradient():
    a = lamina.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=F64, requires_grad=True)
    lamina.det(a).backward()
    near(a.grad, lamina.tensor([[4.0, -2.0], [-2.0, 1.0]], dtype=F64))
    zero = lamina.zeros(2, 2, dtype=F64, requires_grad=True)
    hessian = lamina.autograd.functional.hessian(lamina.det, zero)
    assert hessian.reshape(4, 4).tolist() == [[0, 0, 0, 1], [0, 0, -1, 0], [0, -1, 0, 0], [1, 0, 0, 0]]  # fmt: skip


def test_gradients_that_depend_on_a_phase_are_refused():
    a = numbers(3, 3, dtype=C128).requires_grad_()
    for pick in (lambda: L.svd(a)[0], lambda: L.eigh(a + a.mH)[1], lambda: L.eig(a)[1]):
        with pytest.raises(RuntimeError, match="ill-defined"):
            (pick() * (1 + 2j)).real.sum().backward()


def test_gradients_without_vectors_need_no_gaps():
    a = unit(3, F64).requires_grad_()
    for call in (lambda x: L.svd(x)[1], L.svdvals, L.eigvalsh, lambda x: L.eigh(x)[0]):
        (grad,) = lamina.autograd.grad(call(a).sum(), a)
        near(grad, unit(3, F64))


def test_norms_and_condition_numbers():
    a = numbers(4, 3)
    n = a.numpy()

    def near(x, y, dtype):
        assert abs(x - y) <= 1e-11 * abs(y)

    for order in ("fro", "nuc", 2, -2, 1, -1, INF, -INF):
        want = np.linalg.norm(n, order)
        near(L.matrix_norm(a, order).item(), want, F64)
        near(L.norm(a, order).item(), want, F64)
        assert L.matrix_norm(a.expand(2, 4, 3), order, (0, 2), True).shape == (1, 4, 1)
        square = numbers(3, 3, seed=5)
        near(L.cond(square, order).item(), np.linalg.cond(square.numpy(), order), F64)
    near(lamina.norm(a, "nuc").item(), np.linalg.norm(n, "nuc"), F64)
    near(lamina.nuclear_norm(a).item(), np.linalg.norm(n, "nuc"), F64)
    assert L.cond(lamina.zeros(2, 2), 1).item() == INF
    near(L.norm(a.reshape(-1), 3).item(), np.linalg.norm(n.reshape(-1), 3), F64)
    for wrong in (3, "wrong", 0):
        with pytest.raises(RuntimeError, match="not supported|invalid"):
            L.matrix_norm(a, wrong)


def test_products_of_many():
    shapes = [(2, 7), (7, 3), (3, 9), (9, 4)]
    m = [numbers(*s, seed=i) for i, s in enumerate(shapes)]
    near(L.multi_dot(m), m[0] @ m[1] @ m[2] @ m[3])
    near(lamina.chain_matmul(*m), L.multi_dot(m))
    near(L.multi_dot([m[0][0], m[1], m[2][:, 0]]), m[0][0] @ m[1] @ m[2][:, 0])
    a = numbers(2, 3, 6)
    near(lamina.tensordot(L.tensorinv(a), numbers(2, 3, seed=1), 2), L.tensorsolve(a, numbers(2, 3, seed=1)))  # fmt: skip


def test_exponentials():
    a = lamina.tensor([[0.0, -math.pi], [math.pi, 0.0]], dtype=F64)
    near(lamina.matrix_exp(a), -unit(2, F64))
    nilpotent = lamina.tensor([[0.0, 1.0], [0.0, 0.0]], dtype=F64)
    near(lamina.matrix_exp(1e6 * nilpotent), lamina.tensor([[1.0, 1e6], [0.0, 1.0]], dtype=F64))
    diagonal = lamina.tensor([-700.0, 0.5, 20.0], dtype=F64)
    near(lamina.matrix_exp(diagonal.diag()), diagonal.exp().diag())
    near(lamina.matrix_exp(diagonal[1:].diag().to(F32)), diagonal[1:].exp().diag().to(F32))


def test_low_rank():
    lamina.manual_seed(3)
    a = numbers(20, 3) @ numbers(3, 12, seed=1)
    u, s, v = lamina.svd_lowrank(a, q=4)
    near(scaled(u, s) @ v.mH, a)
    u, s, v = lamina.pca_lowrank(a, q=4)
    near(scaled(u, s) @ v.mH, a - a.mean(0))


def test_lobpcg():
    lamina.manual_seed(4)
    base = numbers(30, 30)
    a = base @ base.mT
    b = unit(30, F64) + 0.1 * (base + base.mT).cos()
    b = b @ b.mT
    for largest in (True, False):
        values, vectors = lamina.lobpcg(a, k=2, largest=largest, tol=1e-12)
        exact = L.eigvalsh(a)
        want = exact.flip(0)[:2] if largest else exact[:2]
        assert ((values - want).abs() < 1e-7 * exact[-1]).all()
        values, vectors = lamina.lobpcg(a, k=2, B=b, largest=largest, tol=1e-12)
        residual = a @ vectors - scaled(b @ vectors, values)
        assert residual.abs().max() < 1e-6 * exact[-1]


def test_meta_tensors_have_shapes():
    a = lamina.empty(2, 5, 3, device="meta")
    s = lamina.empty(2, 3, 3, device="meta")
    for call in (L.svd, L.qr, L.lu, L.pinv, L.svdvals, lamina.geqrf, L.matrix_norm):
        real = call(numbers(2, 5, 3, dtype=F32))
        meta = call(a)
        for r, m in zip((real,) if isinstance(real, lamina.Tensor) else real, (meta,) if isinstance(meta, lamina.Tensor) else meta):  # fmt: skip
            assert m.is_meta and (r.shape, r.dtype) == (m.shape, m.dtype), call
    for call in (L.inv, L.det, L.slogdet, L.eig, L.eigh, L.cholesky, lamina.matrix_exp, L.eigvals, L.lu_factor):  # fmt: skip
        real, meta = call(numbers(2, 3, 3, dtype=F32) @ numbers(2, 3, 3, dtype=F32).mT + unit(3, F32)), call(s)  # fmt: skip
        for r, m in zip((real,) if isinstance(real, lamina.Tensor) else real, (meta,) if isinstance(meta, lamina.Tensor) else meta):  # fmt: skip
            assert m.is_meta and (r.shape, r.dtype) == (m.shape, m.dtype), call


WRONG = [
    lambda: L.inv(lamina.ones(3)),
    lambda: L.inv(lamina.ones(2, 3)),
    lambda: L.inv(lamina.ones(2, 2, dtype=lamina.int64)),
    lambda: L.inv(lamina.ones(2, 2, dtype=lamina.float16)),
    lambda: L.solve(lamina.ones(2, 2), lamina.ones(3, 2)),
    lambda: L.solve(lamina.ones(2, 2), lamina.ones(2, 2, dtype=F64)),
    lambda: L.eigh(lamina.ones(2, 2), UPLO="X"),
    lambda: L.qr(lamina.ones(2, 2), "other"),
    lambda: L.lu_factor(lamina.ones(2, 2), pivot=False),
    lambda: lamina.lu_unpack(lamina.ones(2, 2), lamina.tensor([9, 9], dtype=lamina.int32)),
    lambda: lamina.lu_unpack(lamina.ones(2, 2), lamina.tensor([0, -1], dtype=lamina.int32)),
    lambda: L.lu_solve(lamina.ones(2, 2), lamina.tensor([1, 2]), lamina.ones(2, 2)),
    lambda: L.lu_solve(
        lamina.ones(2, 2), lamina.tensor([7, 7], dtype=lamina.int32), lamina.ones(2, 2)
    ),  # fmt: skip
    lambda: L.ldl_solve(
        lamina.ones(2, 2), lamina.tensor([5, 1], dtype=lamina.int32), lamina.ones(2, 2)
    ),  # fmt: skip
    lambda: L.ldl_solve(
        lamina.ones(2, 2), lamina.tensor([1, -2], dtype=lamina.int32), lamina.ones(2, 2)
    ),  # fmt: skip
    lambda: L.ldl_solve(
        lamina.ones(3, 3), lamina.tensor([-1, -1, -1], dtype=lamina.int32), lamina.ones(3, 2)
    ),  # fmt: skip
    lambda: L.ldl_solve(
        lamina.ones(2, 2), lamina.tensor([0, 0], dtype=lamina.int32), lamina.ones(2, 2)
    ),  # fmt: skip
    lambda: L.householder_product(lamina.ones(2, 3), lamina.ones(2)),
    lambda: L.lstsq(lamina.ones(3, 2), lamina.ones(2, 2)),
    lambda: L.lstsq(lamina.ones(3, 2), lamina.ones(3, 2), driver="other"),
    lambda: L.multi_dot([lamina.ones(2, 2)]),
    lambda: L.multi_dot([lamina.ones(2, 3), lamina.ones(2, 3)]),
    lambda: L.tensorinv(lamina.ones(2, 3), ind=1),
    lambda: L.tensorinv(lamina.ones(2, 2), ind=0),
    lambda: L.tensorsolve(lamina.ones(2, 3), lamina.ones(2)),
    lambda: lamina.cholesky_solve(lamina.ones(2), lamina.ones(2, 2)),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_arguments(number):
    with pytest.raises(RuntimeError):
        WRONG[number]()


def test_bits_do_not_depend_on_threads():
    code = """
import lamina, zlib
L = lamina.linalg
lamina.manual_seed(0)
a = lamina.randn(300, 12, 12, dtype=lamina.float64)
big = lamina.randn(3, 200, 200)
for n in (1, 2, 7):
    lamina.set_num_threads(n)
    results = []
    for x in (a, big):
        h = x + x.mT
        for r in (L.inv(x), L.det(x), *L.svd(x), *L.eigh(h), *L.eig(x), *L.qr(x), L.solve(x, h), L.pinv(x),
                  L.cholesky(x @ x.mT + 100 * lamina.eye(x.shape[-1], dtype=x.dtype)), L.matrix_exp(x / 20), *L.lstsq(x, h)):
            results.append(zlib.crc32(r.contiguous().numpy().tobytes()))
    print(results)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    one, two, seven = done.stdout.splitlines()
    assert one == two == seven


def test_explain_names_the_routine():
    text = str(lamina.explain(lambda: L.svd(numbers(3, 3))))
    assert "ran LAPACK: gesdd (OpenBLAS" in text and "gesvd" not in text


def test_compact_forms_refuse_derivatives():
    a = numbers(3, 3).requires_grad_()
    b = numbers(3, 1, seed=1).requires_grad_()
    for value in (
        lamina.geqrf(a)[1],
        L.ldl_factor(a)[0],
        L.ldl_solve(*L.ldl_factor(a), b),
        L.ldl_solve(*L.ldl_factor(a), b.detach()),
    ):
        with pytest.raises(RuntimeError, match="not implemented; linalg"):
            value.sum().backward()
    L.ldl_solve(*L.ldl_factor(a.detach()), b).sum().backward()
    assert b.grad is not None
