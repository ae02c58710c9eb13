// Derivatives of factorizations, solvers, eigenvalues and singular values. `cotangents` are those
// of all results of an operator, undefined where there is none.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "lamina/core/tensor.h"

namespace lamina::autograd::formulas {

using Cotangents = std::span<Tensor>;
using Wants = std::array<bool, 2>;

// Raises Runtime: `op` has no derivative, `instead` has.
[[noreturn]] void raise_no_derivative(const char* op, const char* instead);
template <class T>
Tensor no_derivative(const T& /*cotangents*/, const char* op, const char* instead) {
  raise_no_derivative(op, instead);
}

// --- LU and determinants ---
Tensor lu_factor_grad(const Tensor& grad, const Tensor& LU, const Tensor& pivots);
Tensor lu_factor_tangent(const Tensor& tangent, const Tensor& LU, const Tensor& pivots);
Tensor det_grad(const Tensor& grad, const Tensor& A);
Tensor det_tangent(const Tensor& tangent, const Tensor& A);
Tensor slogdet_grad(Cotangents cotangents, const Tensor& A, const Tensor& sign);
Tensor slogdet_sign_tangent(const Tensor& tangent, const Tensor& A, const Tensor& sign);
Tensor slogdet_log_tangent(const Tensor& tangent, const Tensor& A);

// --- inverses and solvers ---
Tensor inv_grad(const Tensor& grad, const Tensor& inverse);
Tensor inv_tangent(const Tensor& tangent, const Tensor& inverse);
std::array<Tensor, 2> solve_grads(const Tensor& grad, const Tensor& A, const Tensor& X,
                                  IntList b_sizes, bool left, Wants wants);
Tensor solve_tangent(const Tensor& tangent, const Tensor& A, const Tensor& X, const Tensor& B,
                     bool left);
Tensor solve_tangent_b(const Tensor& tangent, const Tensor& A, bool left);
std::array<Tensor, 2> solve_triangular_grads(const Tensor& grad, const Tensor& A, const Tensor& X,
                                             IntList b_sizes, bool upper, bool left, bool unit,
                                             Wants wants);
Tensor solve_triangular_tangent(const Tensor& tangent, const Tensor& A, const Tensor& X, bool upper,
                                bool left, bool unit);
Tensor ldl_solve_grad(const Tensor& grad, const Tensor& LD, const Tensor& pivots, bool hermitian);
Tensor pseudo_inverse(const Tensor& A);  // as least squares see it
std::array<Tensor, 2> lstsq_grads(const Tensor& grad, const Tensor& A, const Tensor& B,
                                  Wants wants);
Tensor lstsq_tangent(const Tensor& tangent, const Tensor& A, const Tensor& B);
Tensor pinv_grad(const Tensor& grad, const Tensor& P, const Tensor& A);
Tensor pinv_tangent(const Tensor& tangent, const Tensor& P, const Tensor& A);

// --- Cholesky and QR ---
Tensor cholesky_grad(const Tensor& grad, const Tensor& L, bool upper);
Tensor cholesky_tangent(const Tensor& tangent, const Tensor& L, bool upper);
Tensor qr_grad(Cotangents cotangents, const Tensor& Q, const Tensor& R, std::string_view mode);
Tensor qr_q_tangent(const Tensor& tangent, const Tensor& Q, const Tensor& R, std::string_view mode);
Tensor qr_r_tangent(const Tensor& tangent, const Tensor& Q, const Tensor& R, std::string_view mode);

// --- eigenvalues and singular values ---
Tensor eigh_grad(Cotangents cotangents, const Tensor& L, const Tensor& V);
Tensor eigh_value_tangent(const Tensor& tangent, const Tensor& V);
Tensor eigh_vector_tangent(const Tensor& tangent, const Tensor& L, const Tensor& V);
Tensor eig_grad(Cotangents cotangents, const Tensor& L, const Tensor& V);
Tensor eig_value_tangent(const Tensor& tangent, const Tensor& V);
Tensor eig_vector_tangent(const Tensor& tangent, const Tensor& L, const Tensor& V);
Tensor svd_grad(Cotangents cotangents, const Tensor& U, const Tensor& S, const Tensor& Vh);
Tensor svd_u_tangent(const Tensor& tangent, const Tensor& U, const Tensor& S, const Tensor& Vh);
Tensor svd_s_tangent(const Tensor& tangent, const Tensor& U, const Tensor& S, const Tensor& Vh);
Tensor svd_v_tangent(const Tensor& tangent, const Tensor& U, const Tensor& S, const Tensor& Vh);

}  // namespace lamina::autograd::formulas
