"""Cases of derivatives for linear algebra; vectors that are known up to their phase appear in what does not depend on it."""

import lamina.autograd.forward_ad as fw

import lamina

L = lamina.linalg
call = lamina._C._call_operator


def _flat(*parts):
    return lamina.cat([p.reshape(-1) for p in parts])


def _definite(a):
    return a @ a.mH + lamina.eye(a.shape[-1], dtype=a.dtype)


def _svd(a, full):
    u, s, vh = call("aten::_linalg_svd", a, full, True)
    k = s.shape[-1]
    weight = (lamina.arange(k) + 1).to(s.dtype)
    near = (u[..., :k] * (weight * s * s).to(u.dtype).unsqueeze(-2)) @ vh[..., :k, :]
    beside = u[..., k:] @ u[..., k:].mH, vh[..., k:, :].mH @ vh[..., k:, :]
    return _flat(near, *beside) if full else near


def _eigh(a, uplo):
    values, vectors = call("aten::_linalg_eigh", a + a.mH, uplo, True)
    weight = (lamina.arange(values.shape[-1]) + 1).to(values.dtype)
    return (vectors * (weight * values.exp()).to(vectors.dtype).unsqueeze(-2)) @ vectors.mH


def _eig(a):
    """Sorted, so that a small change changes no order; magnitudes of vectors depend on their norm."""
    values, vectors = call("aten::_linalg_eig", a, True)
    order = values.detach().real.argsort()
    values, vectors = values[order], vectors[:, order]
    weight = (lamina.arange(values.shape[-1]) + 1).to(values.dtype)
    return _flat((vectors * (weight * values)) @ vectors.inverse(), vectors.abs().to(values.dtype))


def _det_slope(a):
    """The derivative of the determinant along a fixed direction."""
    u = (lamina.arange(a.shape[-1] ** 2) + 1).sin().reshape(a.shape[-2:]).to(a.dtype)
    with fw.dual_level():
        return fw.unpack_dual(L.det(fw.make_dual(a, u.expand(a.shape)))).tangent


def linalg_cases(dtype, Case, shaped):
    def of(name, function, *shapes, seed=3, **ranges):
        return Case(f"aten::{name}", function, shaped(dtype, *shapes, seed=seed, **ranges))

    def op(name, *args, **kwargs):
        return lambda *t: call(f"aten::{name}", *t, *args, **kwargs)

    square, batch = (3, 3), (2, 3, 3)
    yield of("linalg_lu_factor_ex", op("linalg_lu_factor_ex"), batch)
    yield of("linalg_lu_factor_ex", op("linalg_lu_factor_ex"), (2, 4))
    yield of("linalg_lu_factor_ex", op("linalg_lu_factor_ex"), (4, 2))
    yield of("lu_solve", lambda a, b: L.lu_solve(*L.lu_factor(a), b), square, (2, 3, 2))
    yield of("lu_solve", lambda a, b: L.lu_solve(*L.lu_factor(a), b, left=False, adjoint=True), batch, (2, 3))  # fmt: skip
    yield of("linalg_det", L.det, batch)
    for rank in (0, 1, 2):  # derivatives are polynomials at singular matrices, too
        a, b = shaped(dtype, (3, rank), (rank, 3), seed=40)
        yield Case("aten::linalg_det", L.det, (a @ b,))
        yield Case("aten::linalg_det", _det_slope, (a @ b,))  # one order more
    yield of("linalg_det", _det_slope, batch)
    yield of("linalg_slogdet", lambda a: lamina.mul(*L.slogdet(a)), batch)
    yield of("logdet", lambda a: lamina.logdet(_definite(a)), square)
    yield of("linalg_inv_ex", op("linalg_inv_ex"), batch)
    yield of("linalg_solve_ex", op("linalg_solve_ex"), batch, (3, 2))
    yield of("linalg_solve_ex", op("linalg_solve_ex"), (2, 1, 3, 3), (2, 3, 2))
    yield of("linalg_solve_ex", op("linalg_solve_ex", left=False), batch, (1, 2, 3))
    yield of("linalg_solve_ex", op("linalg_solve_ex"), batch, (2, 3))
    yield of("linalg_solve_ex", op("linalg_solve_ex"), batch, (3,))
    for upper in (False, True):
        for left in (False, True):
            for unit in (False, True):

                def solve(a, b, upper=upper, left=left, unit=unit):
                    a = a + 2 * lamina.eye(3, dtype=a.dtype)
                    options = {"upper": upper, "left": left, "unitriangular": unit}
                    return L.solve_triangular(a, b, **options)

                shape = (2, 3, 2) if left else (2, 2, 3)
                yield of("linalg_solve_triangular", solve, square, shape)
    yield of("triangular_solve", lambda b, a: lamina.triangular_solve(b, a + 2 * lamina.eye(3, dtype=a.dtype), transpose=True)[0], (3, 2), square)  # fmt: skip
    for shape in ((4, 2), (3, 3), (2, 4)):
        yield of("_linalg_lstsq", op("_linalg_lstsq", 1e-12, "gelsd"), shape, (shape[0], 2))
    yield of("linalg_lstsq", lambda a, b: L.lstsq(a, b, driver="gels")[1], (4, 2), (4, 3))
    yield of("_linalg_pinv", L.pinv, (2, 4, 3))
    yield of("_linalg_pinv", L.pinv, (2, 3))
    yield of("_linalg_pinv", lambda a: L.pinv(a @ a.mH, hermitian=True), square)
    # Rank 1 stays rank 1.
    yield of("_linalg_pinv", lambda a, b: L.pinv(a.unsqueeze(1) * b), (4,), (3,))
    for upper in (False, True):
        yield of("linalg_cholesky_ex", lambda a, u=upper: call("aten::linalg_cholesky_ex", _definite(a), upper=u), batch)  # fmt: skip
    yield of("cholesky_solve", lambda a, b: lamina.cholesky_solve(b, L.cholesky(_definite(a))), square, (2, 3, 2))  # fmt: skip
    yield of("cholesky_inverse", lambda a: lamina.cholesky_inverse(L.cholesky(_definite(a), upper=True), upper=True), square)  # fmt: skip
    (fixed,) = shaped(dtype, square, seed=50)
    for hermitian in (False, True):
        factors = L.ldl_factor(fixed + (fixed.mH if hermitian else fixed.mT), hermitian=hermitian)
        yield of("linalg_ldl_solve", lambda b, f=factors, h=hermitian: L.ldl_solve(*f, b, hermitian=h), (2, 3, 2))  # fmt: skip
    for shape in ((2, 3, 3), (4, 2), (2, 4)):
        yield of("linalg_qr", lambda a: _flat(*L.qr(a)), shape)
        yield of("linalg_qr", lambda a: L.qr(a)[1], shape)
    yield of("householder_product", L.householder_product, (4, 3), (2,))
    yield of("ormqr", lambda a, t, c: lamina.ormqr(a, t, c, left=False, transpose=True), (4, 3), (3,), (2, 4))  # fmt: skip
    yield of("_linalg_eigh", lambda a: _eigh(a, "L"), batch)
    yield of("_linalg_eigh", lambda a: _eigh(a, "U"), square)
    yield of("eigvalsh", lambda a: L.eigvalsh(a + a.mH), batch)
    yield of("_linalg_eig", _eig, square, seed=8)
    yield of("eigvals", lambda a: L.eigvals(a).abs().sort()[0], square, seed=8)
    for shape in ((2, 3, 3), (4, 2), (2, 4)):
        yield of("_linalg_svd", lambda a: _svd(a, False), shape)
        yield of("_linalg_svd", lambda a: _svd(a, True), shape)
        yield of("svdvals", L.svdvals, shape)
    yield of("matrix_exp", lamina.matrix_exp, batch)
    yield of("matrix_exp", lambda a: lamina.matrix_exp(4 * a), square)
    for power in (-2, 0, 1, 3, 5):
        yield of("matrix_power", lambda a, n=power: lamina.matrix_power(a, n), square)
    yield of("multi_dot", lambda a, b, c: L.multi_dot([a, b, c]), (3,), (3, 2), (2, 4))
    yield of("tensorinv", L.tensorinv, (2, 2, 4))
    yield of("tensorsolve", L.tensorsolve, (2, 2, 4), (2, 2))
    for order in ("fro", "nuc", 2, -2, 1, -1, float("inf"), -float("inf")):
        yield of("matrix_norm", lambda a, o=order: L.matrix_norm(a, o), (2, 4, 3))
    for order in (None, -2, "fro", 1):
        yield of("cond", lambda a, o=order: L.cond(a, o), batch)
