// Derivatives of factorizations and solvers. A tangent is dA, a cotangent gA; <X, Y> = Re tr(X^H
// Y), and each gradient is the adjoint of the tangent's formula.
#include "lamina/autograd/formulas_linalg.h"

#include "lamina/autograd/formulas.h"
#include "lamina/autograd/matrices.h"
#include "lamina/core/error.h"
#include "lamina/kernels/result.h"
#include "lamina/shape/linalg.h"

namespace lamina::autograd::formulas {

namespace {

Tensor solved(const Tensor& A, const Tensor& B, bool upper, bool left = true, bool unit = false) {
  return ops::linalg_solve_triangular(A, B, upper, left, unit);
}
Tensor as_matrix(const Tensor& t) { return ops::unsqueeze(ops::unsqueeze(t, -1), -1); }
Tensor identity(int64_t n, const Tensor& like) {
  return ops::eye(n, like.dtype(), std::nullopt, like.device());
}
Tensor summed_to(const Tensor& t, IntList sizes) { return ops::sum_to_size(t, sizes); }

Tensor rows(const Tensor& t, int64_t from, int64_t count) {
  return ops::narrow(t, -2, from, count);
}
Tensor columns(const Tensor& t, int64_t from, int64_t count) {
  return ops::narrow(t, -1, from, count);
}
Tensor stacked_rows(const Tensor& a, const Tensor& b) {
  return ops::cat(std::vector<Tensor>{a, b}, -2);
}
Tensor side_by_side(const Tensor& a, const Tensor& b) {
  return ops::cat(std::vector<Tensor>{a, b}, -1);
}

// Rows of t permuted by P (inverse) or P^T.
Tensor permuted(const Tensor& t, const Tensor& pivots, bool inverse) {
  const Tensor order = ops::_lu_permutation(pivots, rows_of(t), inverse);
  return ops::gather(
      t, -2, ops::expand(ops::unsqueeze(order, -1), Sizes(std::span<const int64_t>(t.sizes()))));
}

// L and U of a square LU; the unit diagonal of L is left to the solver.
Tensor unit_lower(const Tensor& LU) {
  return ops::add(ops::tril(LU, -1), identity(columns_of(LU), LU));
}

}  // namespace

void raise_no_derivative(const char* op, const char* instead) {
  raise(ErrorKind::Runtime,
        str(op, ": the derivative of this compact form is not implemented; ", instead, " has one"));
}

// Square: with M = L^-1 P^T dA U^-1, dL = L tril(M, -1) and dU = triu(M) U. What A is taller or
// wider by follows from L2 = A2 U^-1 and U2 = L^-1 A2.
Tensor lu_factor_tangent(const Tensor& tangent, const Tensor& LU, const Tensor& pivots) {
  const int64_t m = rows_of(LU), n = columns_of(LU), k = std::min(m, n);
  const Tensor dA = permuted(tangent, pivots, false);
  const Tensor square = rows(columns(LU, 0, k), 0, k), L = unit_lower(square),
               U = ops::triu(square);
  const Tensor M =
      solved(U, solved(L, rows(columns(dA, 0, k), 0, k), false, true, true), true, false);
  const Tensor dL = product(L, ops::tril(M, -1)), dU = product(ops::triu(M), U);
  const Tensor both = ops::add(dL, dU);
  if (n > k) {
    const Tensor U2 = columns(LU, k, n - k);
    const Tensor dU2 =
        solved(L, ops::sub(columns(dA, k, n - k), product(dL, U2)), false, true, true);
    return side_by_side(both, dU2);
  }
  if (m > k) {
    const Tensor L2 = rows(LU, k, m - k);
    const Tensor dL2 = solved(U, ops::sub(rows(dA, k, m - k), product(L2, dU)), true, false);
    return stacked_rows(both, dL2);
  }
  return both;
}

Tensor lu_factor_grad(const Tensor& grad, const Tensor& LU, const Tensor& pivots) {
  const int64_t m = rows_of(LU), n = columns_of(LU), k = std::min(m, n);
  const Tensor square = rows(columns(LU, 0, k), 0, k), g = rows(columns(grad, 0, k), 0, k);
  const Tensor L = unit_lower(square), U = ops::triu(square);
  Tensor below = product(H(L), ops::tril(g, -1)), above = product(ops::triu(g), H(U));
  if (n > k) below = ops::sub(below, product(columns(grad, k, n - k), H(columns(LU, k, n - k))));
  if (m > k) above = ops::sub(above, product(H(rows(LU, k, m - k)), rows(grad, k, m - k)));
  const Tensor phi = ops::add(ops::tril(below, -1), ops::triu(above));
  const Tensor LH = H(L), UH = H(U);
  Tensor gA = solved(LH, solved(UH, phi, false, false), true, true, true);
  if (n > k) gA = side_by_side(gA, solved(LH, columns(grad, k, n - k), true, true, true));
  if (m > k) gA = stacked_rows(gA, solved(UH, rows(grad, k, m - k), false, false));
  return permuted(gA, pivots, true);
}

namespace {

// Whether some matrix is so near to a singular one that its inverse is of no use for derivatives.
bool some_singular(const Tensor& A) {
  if (A.is_meta() || A.numel() == 0) return false;
  const Tensor LU = std::get<0>(ops::linalg_lu_factor_ex(ops::detach(A), true, false));
  const Tensor size = ops::abs(diagonal(LU));
  const double least = to_real(A.dtype()) == ScalarType::Float64 ? 1e-9 : 1e-4;
  const Tensor small = ops::le(ops::amin(size, {-1}), ops::mul(ops::amax(size, {-1}), least));
  return !scalar_of(ops::any(small)).equals(0);
}

// Cofactors and determinant of (..., q, q) without a division by an element, so that derivatives of
// every order are right where the matrix is singular: the method of Faddeev and Le Verrier.
std::array<Tensor, 2> cofactors_by_products(const Tensor& C) {
  const int64_t q = columns_of(C);
  const Tensor unit = identity(q, C);
  Tensor M = unit, step = C, coefficient;
  for (int64_t k = 1; k <= q; ++k) {
    step = k == 1 ? C : product(C, M);
    coefficient = ops::mul(ops::sum(diagonal(step), IntList({-1}), false), -1.0 / double(k));
    if (k < q) M = ops::add(step, ops::mul(as_matrix(coefficient), unit));
  }
  const Scalar sign = q % 2 == 0 ? -1.0 : 1.0;
  if (q == 1) M = ops::expand(M, Sizes(std::span<const int64_t>(C.sizes())));
  return {ops::mul(ops::mT(M), sign), ops::mul(coefficient, -sign.to_double())};
}

// The cofactors (..., n, n): det(A) A^-T or, near singular matrices, the same in the bases of the
// singular vectors at this point, held fixed: B = U^H A V is nearly diagonal, and of
// det B = det(B11) det(C), C = B22 - B21 B11^-1 B12, only the small block C is singular.
Tensor cofactors(const Tensor& A) {
  const auto plain = [&] {
    return ops::mul(as_matrix(ops::linalg_det(A)),
                    ops::mT(std::get<0>(ops::linalg_inv_ex(A, false))));
  };
  if (!some_singular(A)) return plain();
  const auto [U, S, Vh] = ops::_linalg_svd(ops::detach(A), false, true);
  const Tensor large = ops::gt(S, ops::mul(ops::narrow(S, -1, 0, 1), 1e-3));
  Sizes batch;
  for (int64_t d = 0; d + 1 < large.dim(); ++d) batch.push_back(d);
  const Tensor in_all = batch.empty() ? large : ops::all(large, IntList(batch), false);
  const int64_t n = columns_of(A), r = scalar_of(ops::sum(in_all)).to_int();
  if (r == n) return plain();
  const Tensor det = as_matrix(ops::mul(ops::linalg_det(U), ops::linalg_det(Vh)));
  const Tensor B = product(H(U), A, H(Vh));
  const Tensor B22 = columns(rows(B, r, n - r), r, n - r);
  Tensor inner;
  if (r == 0) {
    inner = cofactors_by_products(B22)[0];
  } else {
    const Tensor B11 = columns(rows(B, 0, r), 0, r), B12 = columns(rows(B, 0, r), r, n - r),
                 B21 = columns(rows(B, r, n - r), 0, r);
    const Tensor X = std::get<0>(ops::linalg_inv_ex(B11, false));
    const Tensor Y = product(B21, X), Z = product(X, B12);
    const auto [small, det_small] = cofactors_by_products(ops::sub(B22, product(Y, B12)));
    const Tensor left = ops::neg(product(ops::mT(Y), small));
    const Tensor corner =
        ops::sub(ops::mul(as_matrix(det_small), ops::mT(X)), product(left, ops::mT(Z)));
    const Tensor below = ops::neg(product(small, ops::mT(Z)));
    inner = ops::mul(as_matrix(ops::linalg_det(B11)),
                     stacked_rows(side_by_side(corner, left), side_by_side(below, small)));
  }
  return ops::mul(det, product(conj_of(U), inner, conj_of(Vh)));
}

}  // namespace

// d det = sum of C * dA, C the cofactors: true of singular matrices, too.
Tensor det_grad(const Tensor& grad, const Tensor& A) {
  return ops::mul(as_matrix(grad), conj_of(cofactors(A)));
}
Tensor det_tangent(const Tensor& tangent, const Tensor& A) {
  return ops::sum(ops::mul(cofactors(A), tangent), IntList({-2, -1}), false);
}

// With t = tr(A^-1 dA): d log|det| = Re t, d sign = i Im(t) sign.
Tensor slogdet_grad(Cotangents cotangents, const Tensor& A, const Tensor& sign) {
  const Tensor &gs = cotangents[0], &gl = cotangents[1];
  Tensor factor = gl;
  if (A.is_complex() && gs.defined()) {
    const Tensor turn = ops::imag(ops::mul(conj_of(gs), sign));
    factor = ops::complex(gl.defined() ? gl : ops::zeros_like(turn), ops::neg(turn));
  }
  if (!factor.defined()) return ops::zeros_like(A);
  return ops::mul(as_matrix(factor), H(std::get<0>(ops::linalg_inv_ex(A, false))));
}
namespace {
Tensor log_det_tangent(const Tensor& tangent, const Tensor& A) {
  return ops::sum(diagonal(std::get<0>(ops::linalg_solve_ex(A, tangent))), IntList({-1}), false);
}
}  // namespace
Tensor slogdet_sign_tangent(const Tensor& tangent, const Tensor& A, const Tensor& sign) {
  if (!A.is_complex()) return ops::zeros_like(sign);
  const Tensor turn = ops::imag(log_det_tangent(tangent, A));
  return ops::mul(ops::complex(ops::zeros_like(turn), turn), sign);
}
Tensor slogdet_log_tangent(const Tensor& tangent, const Tensor& A) {
  return real_of(log_det_tangent(tangent, A));
}

Tensor inv_grad(const Tensor& grad, const Tensor& inverse) {
  const Tensor XH = H(inverse);
  return ops::neg(product(XH, grad, XH));
}
Tensor inv_tangent(const Tensor& tangent, const Tensor& inverse) {
  return ops::neg(product(inverse, tangent, inverse));
}

// A dX = dB - dA X, so gB = A^-H gX and gA = -gB X^H; mirrored for X A = B.
std::array<Tensor, 2> solve_grads(const Tensor& grad, const Tensor& A, const Tensor& X,
                                  IntList b_sizes, bool left, Wants wants) {
  const bool vector =
      b_sizes.size() == 1 || (b_sizes.size() + 1 == A.sizes().size() &&
                              std::equal(b_sizes.begin(), b_sizes.end(), A.sizes().begin()));
  const Tensor g = vector ? ops::unsqueeze(grad, -1) : grad, x = vector ? ops::unsqueeze(X, -1) : X;
  const Tensor gB = std::get<0>(ops::linalg_solve_ex(H(A), g, left));
  std::array<Tensor, 2> out;
  if (wants[0])
    out[0] = summed_to(ops::neg(left ? product(gB, H(x)) : product(H(x), gB)), A.sizes());
  if (wants[1]) out[1] = summed_to(vector ? ops::squeeze(gB, -1) : gB, b_sizes);
  return out;
}
Tensor solve_tangent(const Tensor& tangent, const Tensor& A, const Tensor& X, const Tensor& B,
                     bool left) {
  const bool vector = is_vector_side(A, B);
  const Tensor x = vector ? ops::unsqueeze(X, -1) : X;
  const Tensor right = ops::neg(left ? product(tangent, x) : product(x, tangent));
  const Tensor out = std::get<0>(ops::linalg_solve_ex(A, right, left));
  return vector ? ops::squeeze(out, -1) : out;
}
Tensor solve_tangent_b(const Tensor& tangent, const Tensor& A, bool left) {
  return std::get<0>(ops::linalg_solve_ex(A, tangent, left));
}

namespace {
Tensor triangle(const Tensor& t, bool upper, bool unit) {
  return upper ? ops::triu(t, unit ? 1 : 0) : ops::tril(t, unit ? -1 : 0);
}
}  // namespace
std::array<Tensor, 2> solve_triangular_grads(const Tensor& grad, const Tensor& A, const Tensor& X,
                                             IntList b_sizes, bool upper, bool left, bool unit,
                                             Wants wants) {
  const Tensor gB = solved(H(A), grad, !upper, left, unit);
  std::array<Tensor, 2> out;
  if (wants[0]) {
    const Tensor gA = summed_to(left ? product(gB, H(X)) : product(H(X), gB), A.sizes());
    out[0] = ops::neg(triangle(gA, upper, unit));
  }
  if (wants[1]) out[1] = summed_to(gB, b_sizes);
  return out;
}
Tensor solve_triangular_tangent(const Tensor& tangent, const Tensor& A, const Tensor& X, bool upper,
                                bool left, bool unit) {
  const Tensor dA = triangle(tangent, upper, unit);
  return ops::neg(solved(A, left ? product(dA, X) : product(X, dA), upper, left, unit));
}

Tensor ldl_solve_grad(const Tensor& grad, const Tensor& LD, const Tensor& pivots, bool hermitian) {
  if (hermitian || !grad.is_complex()) return ops::linalg_ldl_solve(LD, pivots, grad, hermitian);
  return conj_of(ops::linalg_ldl_solve(LD, pivots, conj_of(grad), false));
}

Tensor pseudo_inverse(const Tensor& A) {
  const ScalarType real = to_real(A.dtype());
  const double eps = real == ScalarType::Float64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  const auto number = [&](double v) { return ops::full({}, v, real, std::nullopt, A.device()); };
  return ops::_linalg_pinv(
      A, number(0), number(eps * static_cast<double>(std::max(rows_of(A), columns_of(A)))), false);
}
// X = A^+ B.
std::array<Tensor, 2> lstsq_grads(const Tensor& grad, const Tensor& A, const Tensor& B,
                                  Wants wants) {
  const Tensor P = pseudo_inverse(A);
  std::array<Tensor, 2> out;
  if (wants[0]) out[0] = pinv_grad(product(grad, H(B)), P, A);
  if (wants[1]) out[1] = product(H(P), grad);
  return out;
}
Tensor lstsq_tangent(const Tensor& tangent, const Tensor& A, const Tensor& B) {
  return product(pinv_tangent(tangent, pseudo_inverse(A), A), B);
}

// Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems
// whose variables separate" (1973): dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P, for
// changes that keep the rank.
Tensor pinv_tangent(const Tensor& tangent, const Tensor& P, const Tensor& A) {
  const Tensor dAH = H(tangent), PH = H(P);
  const Tensor PPd = product(P, product(PH, dAH)), dPP = product(product(dAH, PH), P);
  Tensor out = ops::neg(product(P, tangent, P));
  out = ops::add(out, ops::sub(PPd, product(product(PPd, A), P)));
  return ops::add(out, ops::sub(dPP, product(P, product(A, dPP))));
}
Tensor pinv_grad(const Tensor& grad, const Tensor& P, const Tensor& A) {
  const Tensor gH = H(grad), PH = H(P);
  const Tensor gPP = product(product(gH, P), PH), PPg = product(PH, product(P, gH));
  Tensor out = ops::neg(product(PH, grad, PH));
  out = ops::add(out, ops::sub(gPP, product(A, product(P, gPP))));
  return ops::add(out, ops::sub(PPg, product(product(PPg, P), A)));
}

namespace {
// The lower triangle with half of the diagonal.
Tensor half_lower(const Tensor& t) {
  return ops::sub(ops::tril(t), ops::mul(ops::diag_embed(diagonal(t)), Scalar(0.5)));
}
}  // namespace

// Murray, "Differentiation of the Cholesky decomposition" (2016): dL = L F(L^-1 dA L^-H), F the
// lower triangle with half of the diagonal. The gradient is Hermitian.
Tensor cholesky_tangent(const Tensor& tangent, const Tensor& given, bool upper) {
  const Tensor L = upper ? H(given) : given;
  const Tensor middle = solved(H(L), solved(L, tangent, false), true, false);
  const Tensor dL = product(L, half_lower(middle));
  return upper ? H(dL) : dL;
}
Tensor cholesky_grad(const Tensor& grad, const Tensor& given, bool upper) {
  const Tensor L = upper ? H(given) : given, g = upper ? H(grad) : grad;
  const Tensor F = half_lower(product(H(L), g));
  const Tensor phi = ops::mul(ops::add(F, H(F)), Scalar(0.5));
  return solved(L, solved(H(L), phi, true), false, false);
}

namespace {

void check_qr_mode(const Tensor& Q, const Tensor& R, std::string_view mode) {
  LAMINA_CHECK(mode != "r",
               "linalg.qr: The derivative depends on Q, which is not computed when mode='r'; "
               "expected mode='reduced'");
  LAMINA_CHECK(
      mode != "complete" || rows_of(Q) <= columns_of(R),
      "linalg.qr: The QR decomposition is not differentiable when mode='complete' and nrows "
      "> ncols");
}

// What dR R^-1 is of M = Q^H dA R^-1: upper triangular with a real diagonal, M minus what is
// anti-Hermitian; Walter, Lehmann and Lamour, "On evaluating higher-order derivatives of the QR
// decomposition of tall matrices with full column rank" (2012).
Tensor upper_part(const Tensor& M) {
  const Tensor out = ops::add(ops::triu(M, 1), H(ops::tril(M, -1)));
  return ops::add(out, ops::_to_dtype(ops::diag_embed(real_of(diagonal(M))), M.dtype()));
}
// The adjoint of that.
Tensor upper_part_adjoint(const Tensor& Y) {
  const Tensor strict = ops::triu(Y, 1);
  return ops::add(ops::add(strict, H(strict)),
                  ops::_to_dtype(ops::diag_embed(real_of(diagonal(Y))), Y.dtype()));
}

// dQ and dR of the first k columns, k = rows of R.
std::array<Tensor, 2> qr_square(const Tensor& dA, const Tensor& Q, const Tensor& R) {
  const Tensor scaled = solved(R, dA, true, false);
  const Tensor T = upper_part(product(H(Q), scaled));
  return {ops::sub(scaled, product(Q, T)), product(T, R)};
}

}  // namespace

Tensor qr_q_tangent(const Tensor& tangent, const Tensor& Q, const Tensor& R,
                    std::string_view mode) {
  check_qr_mode(Q, R, mode);
  const int64_t k = rows_of(R);
  return qr_square(columns(tangent, 0, k), Q, columns(R, 0, k))[0];
}
Tensor qr_r_tangent(const Tensor& tangent, const Tensor& Q, const Tensor& R,
                    std::string_view mode) {
  check_qr_mode(Q, R, mode);
  const int64_t k = rows_of(R), n = columns_of(R);
  const auto [dQ, dR] = qr_square(columns(tangent, 0, k), Q, columns(R, 0, k));
  if (n == k) return dR;
  // The columns on the right are Q R2.
  const Tensor A2 = product(Q, columns(R, k, n - k));
  return side_by_side(dR, ops::add(product(H(dQ), A2), product(H(Q), columns(tangent, k, n - k))));
}
// With W = Q^H gQ, gA = (Q (tril(W - W^H) with half of the diagonal + P(gR R^H)) + (I - Q Q^H) gQ)
// R^-H, P the adjoint of upper_part. Columns of R beyond the square are Q^H A2: gA2 = Q gR2, and W
// gets R2 gR2^H.
Tensor qr_grad(Cotangents cotangents, const Tensor& Q, const Tensor& R, std::string_view mode) {
  check_qr_mode(Q, R, mode);
  const int64_t k = rows_of(R), n = columns_of(R);
  const Tensor &gQ = cotangents[0], &gR = cotangents[1], square = columns(R, 0, k);
  Tensor W = gQ.defined() ? product(H(Q), gQ) : Tensor(), gA2, middle;
  Tensor perpendicular;
  if (gQ.defined() && rows_of(Q) > k) perpendicular = ops::sub(gQ, product(Q, W));
  if (n > k && gR.defined()) {
    const Tensor gR2 = columns(gR, k, n - k);
    gA2 = product(Q, gR2);
    const Tensor more = product(columns(R, k, n - k), H(gR2));
    W = W.defined() ? ops::add(W, more) : more;
  }
  if (gR.defined()) middle = upper_part_adjoint(product(columns(gR, 0, k), H(square)));
  if (W.defined()) {
    const Tensor turned = half_lower(ops::sub(W, H(W)));
    middle = middle.defined() ? ops::add(middle, turned) : turned;
  }
  Tensor inside = product(Q, middle);
  if (perpendicular.defined()) inside = ops::add(inside, perpendicular);
  const Tensor gA = solved(H(square), inside, false, false);
  if (n == k) return gA;
  if (!gA2.defined()) {
    Sizes sizes(std::span<const int64_t>(gA.sizes()));
    sizes.back() = n - k;
    gA2 = zeros_of(gA, sizes);
  }
  return side_by_side(gA, gA2);
}

}  // namespace lamina::autograd::formulas
