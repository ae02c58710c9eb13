// What is made of the factorizations in kernels/factor.cpp and kernels/eigen.cpp.
#include <cmath>

#include "lamina/autograd/forward.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/matrices.h"
#include "lamina/ops.h"
#include "lamina/shape/broadcast.h"

namespace lamina::composite {

namespace {

// Whether somebody may ask for the derivative of what is computed from `t`.
bool derivative_wanted(const Tensor& t) {
  return autograd::recording(t) ||
         (autograd::forward::t_visible && autograd::forward::highest_level(t) >= 0);
}

Tensor identity(int64_t n, const Tensor& like) {
  return ops::eye(n, like.dtype(), std::nullopt, like.device());
}
Tensor no_elements(const Tensor& like) {
  return ops::empty({0}, like.dtype(), std::nullopt, like.device());
}

// The rows of `t` (..., n, k) in the order (..., n).
Tensor rows_in_order(const Tensor& t, const Tensor& order) {
  Sizes sizes(std::span<const int64_t>(t.sizes()));
  return ops::gather(t, -2, ops::expand(ops::unsqueeze(order, -1), sizes));
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& A, bool pivot) {
  const auto [LU, pivots, info] = ops::linalg_lu_factor_ex(A, pivot, false);
  kernels::check_lu_info(info, "linalg.lu_factor");
  return {LU, pivots};
}

std::tuple<Tensor, Tensor, Tensor> lu_with_info(const Tensor& self, bool pivot, bool check_errors) {
  return ops::linalg_lu_factor_ex(self, pivot, check_errors);
}

std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots,
                                             bool unpack_data, bool unpack_pivots) {
  check_matrix(LU_data, "lu_unpack", "LU_data");
  const int64_t m = rows_of(LU_data), n = columns_of(LU_data), k = std::min(m, n);
  Tensor P = no_elements(LU_data), L = P, U = P;
  if (unpack_data) {
    U = ops::triu(ops::narrow(LU_data, -2, 0, k));
    Tensor unit = ops::eye(m, k, LU_data.dtype(), std::nullopt, LU_data.device());
    L = ops::add(ops::tril(ops::narrow(LU_data, -1, 0, k), -1), unit);
  }
  if (unpack_pivots) {
    LAMINA_CHECK(LU_pivots.dtype() == ScalarType::Int32,
                 "lu_unpack: LU_pivots is expected to be of int32, the type that linalg.lu_factor "
                 "gives; got ",
                 LU_pivots);
    LAMINA_CHECK(IntList(with_sizes(batch_of(LU_data), k)) == LU_pivots.sizes(),
                 "lu_unpack: pivots do not fit; got ", LU_data, " and ", LU_pivots);
    const Tensor order = ops::_lu_permutation(LU_pivots, m);
    const Tensor rows = ops::arange(Scalar(m), ScalarType::Int64, std::nullopt, LU_data.device());
    P = ops::_to_dtype(ops::eq(ops::unsqueeze(rows, -1), ops::unsqueeze(order, -2)),
                       LU_data.dtype());
  }
  return {P, L, U};
}

std::tuple<Tensor, Tensor, Tensor> linalg_lu(const Tensor& A, bool pivot) {
  const auto [LU, pivots, info] = ops::linalg_lu_factor_ex(A, pivot, false);
  return lu_unpack(LU, pivots, true, true);
}

Tensor linalg_lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left,
                       bool adjoint) {
  const char* const op = "linalg.lu_solve";
  check_square(LU, op, "LU");
  check_lapack_type(LU, op);
  check_matrix(B, op, "B");
  LAMINA_CHECK(pivots.dtype() == ScalarType::Int32, op,
               ": pivots should be a Tensor of int32; got ", pivots);
  const int64_t n = rows_of(LU);
  LAMINA_CHECK(
      pivots.sizes() == IntList(with_sizes(batch_of(LU), n)), op,
      ": Number of pivots per batch should be the same as the dimension of the matrix, and "
      "batches the same; got ",
      pivots, " and ", LU);
  LAMINA_CHECK((left ? rows_of(B) : columns_of(B)) == n, op,
               ": Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B",
               "; got ", LU, " and ", B);
  // X A = B is A^H X^H = B^H.
  if (!left) return ops::mH(linalg_lu_solve(LU, pivots, ops::mH(B), true, !adjoint));
  const auto solve = [&](const Tensor& A, const Tensor& X, bool upper, bool unit) {
    return ops::linalg_solve_triangular(A, X, upper, true, unit);
  };
  const Sizes batch = broadcast_sizes(batch_of(LU), batch_of(B), op);
  const auto permuted = [&](const Tensor& X, bool inverse) {
    return rows_in_order(
        ops::expand(X, with_sizes(batch, n, columns_of(X))),
        ops::expand(ops::_lu_permutation(pivots, n, inverse), with_sizes(batch, n)));
  };
  if (adjoint) {
    const Tensor H = ops::mH(LU);
    return permuted(solve(H, solve(H, B, false, false), true, true), true);
  }
  return solve(LU, solve(LU, permuted(B, false), false, true), true, false);
}

Tensor logdet(const Tensor& self) {
  check_square(self, "logdet");
  const auto [sign, log] = ops::linalg_slogdet(self);
  if (self.is_complex()) return ops::add(ops::log(sign), log);
  // NaN for negative determinants; the logarithm of a sign of 1 is 0 and has no part in the
  // gradient.
  return ops::where(ops::lt(sign, 0), Scalar(NAN), log);
}

Tensor linalg_cholesky(const Tensor& self, bool upper) {
  const auto [L, info] = ops::linalg_cholesky_ex(self, upper, false);
  kernels::check_cholesky_info(info, "linalg.cholesky");
  return L;
}

Tensor cholesky(const Tensor& self, bool upper) {
  check_square(self, "cholesky");
  check_lapack_type(self, "cholesky", ErrorKind::NotImplemented);
  const auto [L, info] = ops::linalg_cholesky_ex(self, upper, false);
  kernels::check_cholesky_info(info, "cholesky");
  return L;
}

Tensor cholesky_solve(const Tensor& self, const Tensor& input2, bool upper) {
  const char* const op = "cholesky_solve";
  LAMINA_CHECK(self.dim() >= 2, op, ": b should have at least 2 dimensions; got ", self);
  LAMINA_CHECK(input2.dim() >= 2, op, ": u should have at least 2 dimensions; got ", input2);
  check_square(input2, op);
  LAMINA_CHECK(self.dtype() == input2.dtype(), op,
               ": Expected b and A to have the same dtype; got ", self, " and ", input2);
  const Tensor L = upper ? ops::mH(input2) : input2;
  const Tensor half = ops::linalg_solve_triangular(L, self, false);
  return ops::linalg_solve_triangular(ops::mH(L), half, true);
}

namespace {
// As the info of a routine: the number of the first zero on the diagonal, from 1, or 0.
Tensor zero_pivots(const Tensor& t) {
  const Tensor zero = ops::eq(ops::diagonal(ops::detach(t), 0, -2, -1), Scalar(0));
  if (t.is_meta() || t.numel() == 0 || scalar_of(ops::any(zero)).equals(0))
    return ops::zeros(IntList(), ScalarType::Int32);
  const Tensor first = ops::add(ops::argmax(ops::_to_dtype(zero, ScalarType::Int32), -1), 1);
  return ops::_to_dtype(ops::where(ops::any(zero, IntList({-1}), false), first, Scalar(0)),
                        ScalarType::Int32);
}
}  // namespace

Tensor cholesky_inverse(const Tensor& self, bool upper) {
  check_square(self, "cholesky_inverse");
  check_lapack_type(self, "cholesky_inverse", ErrorKind::NotImplemented);
  kernels::check_inverse_info(zero_pivots(self), "cholesky_inverse");
  const Tensor L = upper ? ops::mH(self) : self;
  const Tensor inverse = ops::linalg_solve_triangular(L, identity(rows_of(self), self), false);
  return ops::matmul(ops::mH(inverse), inverse);
}

std::tuple<Tensor, Tensor> linalg_ldl_factor(const Tensor& self, bool hermitian) {
  const auto [LD, pivots, info] = ops::linalg_ldl_factor_ex(self, hermitian, false);
  kernels::check_ldl_info(info, "linalg.ldl_factor");
  return {LD, pivots};
}

std::tuple<Tensor, Tensor> qr(const Tensor& self, bool some) {
  return ops::linalg_qr(self, some ? "reduced" : "complete");
}

namespace {

void check_reflectors(const Tensor& a, const Tensor& tau, const char* op) {
  check_matrix(a, op, "input");
  check_lapack_type(a, op);
  LAMINA_CHECK(rows_of(a) >= columns_of(a), op,
               ": input.shape[-2] must be greater than or equal to input.shape[-1]; got ", a);
  LAMINA_CHECK(tau.dim() == a.dim() - 1 && tau.sizes().back() <= columns_of(a), op,
               ": input.shape[-1] must be greater than or equal to tau.shape[-1], and batches the "
               "same; got ",
               a, " and ", tau);
  const Sizes batch = batch_of(a);
  LAMINA_CHECK(std::equal(batch.begin(), batch.end(), tau.sizes().begin()), op,
               ": Expected batch dimensions of tau to be equal to input.shape[:-2]; got ", a,
               " and ", tau);
  LAMINA_CHECK(a.dtype() == tau.dtype(), op, ": tau dtype does not match input dtype; got ", a,
               " and ", tau);
}

// V and T with H_1 ... H_k = I - V T V^H, V unit lower trapezoidal. T^-1 has 1 / tau on its
// diagonal and V^H V above it (Joffrain et al., "Accumulating Householder transformations,
// revisited", 2006); written so that tau = 0 divides nothing.
std::tuple<Tensor, Tensor> block_reflector(const Tensor& a, const Tensor& tau) {
  const int64_t m = rows_of(a), k = tau.sizes().back();
  const Tensor V = ops::add(ops::tril(ops::narrow(a, -1, 0, k), -1),
                            ops::eye(m, k, a.dtype(), std::nullopt, a.device()));
  const Tensor S = ops::mul(ops::triu(ops::matmul(ops::mH(V), V), 1), ops::unsqueeze(tau, -2));
  const Tensor inverse =
      ops::linalg_solve_triangular(ops::add(S, identity(k, a)), identity(k, a), true, true, true);
  return {V, ops::mul(ops::unsqueeze(tau, -1), inverse)};
}

}  // namespace

Tensor householder_product(const Tensor& input, const Tensor& tau) {
  check_reflectors(input, tau, "linalg.householder_product");
  const int64_t n = columns_of(input);
  const auto [V, T] = block_reflector(input, tau);
  const Tensor first = ops::mH(ops::narrow(V, -2, 0, n));
  return ops::sub(ops::eye(rows_of(input), n, input.dtype(), std::nullopt, input.device()),
                  ops::matmul(V, ops::matmul(T, first)));
}

Tensor ormqr(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left,
             bool transpose) {
  const char* const op = "ormqr";
  check_matrix(self, op, "input");
  check_lapack_type(self, op);
  check_matrix(input3, op, "other");
  LAMINA_CHECK(
      input2.dim() == self.dim() - 1 && input2.sizes().back() <= columns_of(self) &&
          input2.sizes().back() <= rows_of(self),
      op, ": tau must have the batch of input and at most min(input.shape[-2:]) elements; got ",
      self, " and ", input2);
  LAMINA_CHECK(input2.sizes().back() ==
                   std::min(left ? rows_of(input3) : columns_of(input3), columns_of(self)),
               op, ": tau.shape[-1] must be equal to min(other.shape[", left ? "-2" : "-1",
               "], input.shape[-1]); got ", input2, " for ", self, " and ", input3);
  LAMINA_CHECK((left ? rows_of(input3) : columns_of(input3)) == rows_of(self), op, ": ",
               left ? "other.shape[-2] must be equal to input.shape[-2]"
                    : "other.shape[-1] must be equal to input.shape[-2]",
               "; got ", self, " and ", input3);
  const Sizes batch = batch_of(self);
  LAMINA_CHECK(IntList(batch) == IntList(batch_of(input3)) &&
                   std::equal(batch.begin(), batch.end(), input2.sizes().begin()),
               op, ": Expected batch dimensions of input, tau and other to be equal; got ", self,
               ", ", input2, " and ", input3);
  LAMINA_CHECK(self.dtype() == input2.dtype() && self.dtype() == input3.dtype(), op,
               ": Expected input, tau and other to have the same dtype; got ", self, ", ", input2,
               " and ", input3);
  const auto [V, T] = block_reflector(self, input2);
  const Tensor middle = transpose ? ops::mH(T) : T, adjoint = ops::mH(V);
  const auto times = [](const Tensor& a, const Tensor& b) { return ops::matmul(a, b); };
  return ops::sub(input3, left ? times(V, times(middle, times(adjoint, input3)))
                               : times(times(times(input3, V), middle), adjoint));
}

std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& self, std::string_view UPLO) {
  return ops::_linalg_eigh(self, UPLO, true);
}
Tensor linalg_eigvalsh(const Tensor& self, std::string_view UPLO) {
  return std::get<0>(ops::_linalg_eigh(self, UPLO, derivative_wanted(self)));
}
std::tuple<Tensor, Tensor> linalg_eig(const Tensor& self) { return ops::_linalg_eig(self, true); }
Tensor linalg_eigvals(const Tensor& self) {
  return std::get<0>(ops::_linalg_eig(self, derivative_wanted(self)));
}

std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& A, bool full_matrices,
                                              std::optional<std::string_view> driver) {
  return ops::_linalg_svd(A, full_matrices, true, driver);
}
Tensor linalg_svdvals(const Tensor& A, std::optional<std::string_view> driver) {
  return std::get<1>(ops::_linalg_svd(A, false, derivative_wanted(A), driver));
}
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, bool some, bool compute_uv) {
  check_matrix(self, "svd", "input");
  const int64_t m = rows_of(self), n = columns_of(self);
  if (!compute_uv) {
    const auto zeros = [&](int64_t size) {
      return ops::zeros(with_sizes(batch_of(self), size, size), self.dtype(), std::nullopt,
                        self.device());
    };
    return {zeros(m), linalg_svdvals(self, std::nullopt), zeros(n)};
  }
  const auto [U, S, Vh] = ops::_linalg_svd(self, !some, true);
  return {U, S, ops::mH(Vh)};
}

}  // namespace lamina::composite
