// Derivatives of eigenvalues, eigenvectors and singular values. Vectors are known up to their
// phase; a gradient that depends on it means nothing and is refused.
#include "lamina/autograd/formulas.h"
#include "lamina/autograd/formulas_linalg.h"
#include "lamina/autograd/matrices.h"
#include "lamina/core/error.h"
#include "lamina/kernels/result.h"
#include "lamina/shape/linalg.h"

namespace lamina::autograd::formulas {

namespace {

Tensor row(const Tensor& t) { return ops::unsqueeze(t, -2); }
Tensor column(const Tensor& t) { return ops::unsqueeze(t, -1); }
Tensor typed(const Tensor& t, const Tensor& like) { return ops::_to_dtype(t, like.dtype()); }

// t / (v_j - v_i) off the diagonal, 0 on it.
Tensor over_gaps(const Tensor& t, const Tensor& gaps) {
  const Tensor unit = ops::eye(columns_of(t), ScalarType::Bool, std::nullopt, t.device());
  return ops::masked_fill(ops::div(t, ops::masked_fill(gaps, unit, Scalar(1))), unit, Scalar(0));
}
Tensor gaps_of(const Tensor& values) { return ops::sub(row(values), column(values)); }

void check_phase(const Tensor& diagonal, const char* op, const char* what) {
  if (!diagonal.is_complex() || diagonal.is_meta() || diagonal.numel() == 0) return;
  const Tensor turn = ops::abs(ops::imag(ops::detach(diagonal)));
  const double tolerance = diagonal.dtype() == ScalarType::Complex128 ? 1e-7 : 1e-2;
  const Tensor limit =
      ops::add(ops::mul(ops::abs(ops::detach(diagonal)), Scalar(tolerance)), Scalar(tolerance));
  LAMINA_CHECK(
      scalar_of(ops::any(ops::gt(turn, limit))).equals(0), op, ": ", what,
      " are specified up to multiplication by e^(i phi) in the complex case. The specified "
      "loss function depends on this quantity, so it is ill-defined.");
}

void check_vectors(const Tensor& V, const char* op) {
  LAMINA_CHECK(V.dim() >= 2, op, ": the derivative needs the vectors, which were not computed");
}

}  // namespace

// A V = V diag(L), V unitary: with M = V^H dA V, dL = diag(M) and dV = V (M / (L_j - L_i)).
Tensor eigh_value_tangent(const Tensor& tangent, const Tensor& V) {
  check_vectors(V, "linalg.eigh");
  return real_of(diagonal(product(H(V), tangent, V)));
}
Tensor eigh_vector_tangent(const Tensor& tangent, const Tensor& L, const Tensor& V) {
  check_vectors(V, "linalg.eigh");
  return product(V, over_gaps(product(H(V), tangent, V), typed(gaps_of(L), V)));
}
Tensor eigh_grad(Cotangents cotangents, const Tensor& L, const Tensor& V) {
  check_vectors(V, "linalg.eigh");
  const Tensor &gL = cotangents[0], &gV = cotangents[1];
  if (!gV.defined()) return product(ops::mul(V, row(typed(gL, V))), H(V));
  const Tensor inner = product(H(V), gV);
  check_phase(diagonal(inner), "linalg.eigh", "The eigenvectors");
  Tensor middle = over_gaps(inner, typed(gaps_of(L), V));
  if (gL.defined()) middle = ops::add(middle, ops::diag_embed(typed(gL, V)));
  return product(V, middle, H(V));
}

// The same with V^-1 for V^H; vectors keep the norm 1, which takes Re diag(V^H dV) away again.
Tensor eig_value_tangent(const Tensor& tangent, const Tensor& V) {
  check_vectors(V, "linalg.eig");
  return diagonal(std::get<0>(ops::linalg_solve_ex(V, product(typed(tangent, V), V))));
}
Tensor eig_vector_tangent(const Tensor& tangent, const Tensor& L, const Tensor& V) {
  check_vectors(V, "linalg.eig");
  const Tensor M = std::get<0>(ops::linalg_solve_ex(V, product(typed(tangent, V), V)));
  const Tensor dV = product(V, over_gaps(M, gaps_of(L)));
  const Tensor along = real_of(ops::sum(ops::mul(conj_of(V), dV), IntList({-2}), false));
  return ops::sub(dV, ops::mul(V, row(typed(along, V))));
}
Tensor eig_grad(Cotangents cotangents, const Tensor& L, const Tensor& V) {
  check_vectors(V, "linalg.eig");
  const Tensor &gL = cotangents[0], &gV = cotangents[1];
  const Tensor VH = H(V);
  Tensor middle;
  if (gV.defined()) {
    const Tensor inner = product(VH, gV);
    check_phase(diagonal(inner), "linalg.eig", "The eigenvectors");
    const Tensor along = typed(real_of(diagonal(inner)), V);
    middle = over_gaps(ops::sub(inner, ops::mul(product(VH, V), row(along))), conj_of(gaps_of(L)));
    if (gL.defined()) middle = ops::add(middle, ops::diag_embed(gL));
  } else {
    middle = ops::diag_embed(gL);
  }
  return std::get<0>(ops::linalg_solve_ex(VH, product(middle, VH)));
}

namespace {

// The part of U and Vh that has singular values, and what a tangent is in their bases.
struct Singular {
  Tensor U, S, Vh;  // (m, k), (k), (k, n)
  Tensor M;         // U^H dA V
  Tensor gaps;      // S_j^2 - S_i^2
};
Singular singular(const Tensor& U, const Tensor& S, const Tensor& Vh) {
  check_vectors(U, "linalg.svd");
  const int64_t k = S.sizes().back();
  Singular s{ops::narrow(U, -1, 0, k), S, ops::narrow(Vh, -2, 0, k), {}, {}};
  // (S_j - S_i)(S_j + S_i) keeps the digits that squares lose.
  s.gaps = typed(ops::mul(gaps_of(S), ops::add(row(S), column(S))), U);
  return s;
}
Singular singular(const Tensor& tangent, const Tensor& U, const Tensor& S, const Tensor& Vh) {
  Singular s = singular(U, S, Vh);
  s.M = product(H(s.U), tangent, H(s.Vh));
  return s;
}
// i Im(diag M) / (2 S): the phase that one of U and V must take, shared by both.
Tensor phase(const Singular& s) {
  const Tensor turn = ops::div(ops::imag(diagonal(s.M)), ops::mul(s.S, Scalar(2.0)));
  return ops::diag_embed(ops::complex(ops::zeros_like(turn), turn));
}
// t without its part in the span of the columns of B, where B is not square.
Tensor outside(const Tensor& t, const Tensor& B) {
  return ops::sub(t, product(B, product(H(B), t)));
}

// Columns B of a full basis that stand beside those of A: only what turns their span is defined, dB
// = -A dA^H B.
Tensor beside(const Tensor& full, const Tensor& A, const Tensor& dA) {
  const int64_t k = columns_of(A), more = columns_of(full) - k;
  if (more == 0) return dA;
  const Tensor B = ops::narrow(full, -1, k, more);
  return ops::cat(std::vector<Tensor>{dA, ops::neg(product(A, product(H(dA), B)))}, -1);
}
// The adjoint: what the cotangent of the full basis is for A.
Tensor beside_adjoint(const Tensor& full, const Tensor& A, const Tensor& grad) {
  const int64_t k = columns_of(A), more = columns_of(full) - k;
  if (more == 0) return grad;
  const Tensor B = ops::narrow(full, -1, k, more), gB = ops::narrow(grad, -1, k, more);
  return ops::sub(ops::narrow(grad, -1, 0, k), product(B, product(H(gB), A)));
}

}  // namespace

// Townsend, "Differentiating the singular value decomposition" (2016). With M = U^H dA V: dS =
// diag(M); dU = U X + (I - U U^H) dA V S^-1, X_ij = (M_ij S_j + S_i conj(M_ji)) / (S_j^2 - S_i^2);
// V alike.
Tensor svd_s_tangent(const Tensor& tangent, const Tensor& U, const Tensor& S, const Tensor& Vh) {
  return real_of(diagonal(singular(tangent, U, S, Vh).M));
}
Tensor svd_u_tangent(const Tensor& tangent, const Tensor& U, const Tensor& S, const Tensor& Vh) {
  const Singular s = singular(tangent, U, S, Vh);
  const Tensor scaled = ops::mul(s.M, row(typed(S, U)));
  Tensor X = over_gaps(ops::add(scaled, H(scaled)), s.gaps);
  if (U.is_complex()) X = ops::add(X, phase(s));
  Tensor dU = product(s.U, X);
  if (rows_of(U) > columns_of(s.U))
    dU = ops::add(dU, outside(ops::div(product(tangent, H(s.Vh)), row(typed(S, U))), s.U));
  return beside(U, s.U, dU);
}
Tensor svd_v_tangent(const Tensor& tangent, const Tensor& U, const Tensor& S, const Tensor& Vh) {
  const Singular s = singular(tangent, U, S, Vh);
  const Tensor scaled = ops::mul(column(typed(S, U)), s.M);
  Tensor X = over_gaps(ops::add(scaled, H(scaled)), s.gaps);
  if (U.is_complex()) X = ops::sub(X, phase(s));
  const Tensor V = H(s.Vh);
  Tensor dV = product(V, X);
  if (columns_of(Vh) > rows_of(s.Vh))
    dV = ops::add(dV, outside(ops::div(product(H(tangent), s.U), row(typed(S, U))), V));
  return H(beside(H(Vh), V, dV));
}

Tensor svd_grad(Cotangents cotangents, const Tensor& U, const Tensor& S, const Tensor& Vh) {
  const Singular s = singular(U, S, Vh);
  const int64_t k = S.sizes().back();
  const Tensor &gS = cotangents[1], V = H(s.Vh), values = typed(S, U);
  Tensor gU = cotangents[0], gV = cotangents[2];
  if (gU.defined()) gU = beside_adjoint(U, s.U, gU);
  if (gV.defined()) gV = beside_adjoint(H(Vh), V, H(gV));
  if (!gU.defined() && !gV.defined()) return product(ops::mul(s.U, row(typed(gS, U))), s.Vh);
  // X is anti-Hermitian off its diagonal, so only that part of U^H gU counts; the same of V.
  const auto skew = [](const Tensor& t) { return ops::sub(t, H(t)); };
  const Tensor left = gU.defined() ? product(H(s.U), gU) : Tensor(),
               right = gV.defined() ? product(H(V), gV) : Tensor();
  if (U.is_complex()) {
    const Tensor both = left.defined() && right.defined() ? ops::add(left, right)
                        : left.defined()                  ? left
                                                          : right;
    check_phase(diagonal(both), "linalg.svd", "The singular vectors");
  }
  Tensor middle;
  const auto add = [&](const Tensor& t) { middle = middle.defined() ? ops::add(middle, t) : t; };
  if (left.defined()) add(ops::mul(over_gaps(skew(left), s.gaps), row(values)));
  if (right.defined()) add(ops::mul(column(values), over_gaps(skew(right), s.gaps)));
  if (gS.defined()) add(ops::diag_embed(typed(gS, U)));
  if (U.is_complex() && left.defined()) {
    const Tensor turn = ops::div(ops::imag(diagonal(left)), S);
    add(ops::diag_embed(ops::complex(ops::zeros_like(turn), turn)));
  }
  Tensor gA = product(s.U, middle, s.Vh);
  if (gU.defined() && rows_of(U) > k)
    gA = ops::add(gA, product(outside(ops::div(gU, row(values)), s.U), s.Vh));
  if (gV.defined() && columns_of(Vh) > k)
    gA = ops::add(gA, product(s.U, H(outside(ops::div(gV, row(values)), V))));
  return gA;
}

}  // namespace lamina::autograd::formulas
