// Solvers that are calls of those in kernels/solve.cpp.
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/matrices.h"
#include "lamina/ops.h"
#include "lamina/shape/broadcast.h"

namespace lamina::composite {

Tensor linalg_inv(const Tensor& A) {
  const auto [inverse, info] = ops::linalg_inv_ex(A, false);
  kernels::check_inverse_info(info, "linalg.inv");
  return inverse;
}

Tensor linalg_solve(const Tensor& A, const Tensor& B, bool left) {
  const auto [result, info] = ops::linalg_solve_ex(A, B, left, false);
  kernels::check_solve_info(info, "linalg.solve");
  return result;
}

std::tuple<Tensor, Tensor> triangular_solve(const Tensor& self, const Tensor& A, bool upper,
                                            bool transpose, bool unitriangular) {
  LAMINA_CHECK(self.dim() >= 2, "triangular_solve: Expected b to have at least 2 dimensions; got ",
               self);
  check_square(A, "triangular_solve");
  const Tensor matrix = transpose ? ops::mT(A) : A;
  const Tensor X =
      ops::linalg_solve_triangular(matrix, self, upper != transpose, true, unitriangular);
  return {X, ops::clone(ops::expand(A, with_sizes(batch_of(X), rows_of(A), columns_of(A))))};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq(const Tensor& self, const Tensor& b,
                                                        std::optional<double> rcond,
                                                        std::optional<std::string_view> driver) {
  const char* const op = "linalg.lstsq";
  LAMINA_CHECK(self.dim() >= 2, op, ": input must have at least 2 dimensions; got ", self);
  LAMINA_CHECK(b.dim() >= 1, op, ": other must have at least 1 dimension; got ", b);
  check_matrix(self, op, "input");
  check_lapack_type(self, op, ErrorKind::Runtime, ErrorKind::Runtime);
  LAMINA_CHECK(self.dtype() == b.dtype(), op,
               ": Expected input and other to have the same dtype; got ", self, " and ", b);
  const int64_t extra = self.dim() - b.dim();
  LAMINA_CHECK(extra == 0 || extra == 1, op,
               ": input.dim() must be greater or equal to other.dim() and (input.dim() - "
               "other.dim()) <= 1; got ",
               self, " and ", b);
  const bool vector = is_vector_side(self, b);
  const Tensor right = vector ? ops::unsqueeze(b, -1) : b;
  LAMINA_CHECK(right.dim() >= 2 && rows_of(right) == rows_of(self), op,
               ": input.size(-2) should match other.size(-", vector ? 1 : 2, "); got ", self,
               " and ", b);
  const std::string_view which = driver.value_or("gelsy");
  const bool gels = which == "gels", gelsy = which == "gelsy",
             values = which == "gelsd" || which == "gelss";
  LAMINA_CHECK(gels || gelsy || values, op,
               ": parameter `driver` should be one of (gels, gelsy, gelsd, gelss); got ", which);
  const int64_t m = rows_of(self), n = columns_of(self);
  const double eps =
      to_real(self.dtype()) == ScalarType::Float64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  const double cut = rcond.value_or(eps * static_cast<double>(std::max(m, n)));
  // Batches broadcast.
  const Sizes batch = broadcast_sizes(batch_of(self), batch_of(right), op);
  const Tensor A = ops::expand(self, with_sizes(batch, m, n)),
               B = ops::expand(right, with_sizes(batch, m, columns_of(right)));
  const auto [X, rank, singular] = ops::_linalg_lstsq(A, B, cut, which);
  const auto none = [&](ScalarType type) {
    return ops::empty({0}, type, std::nullopt, self.device());
  };
  // Nothing, but of the graph: a program may ask for the derivative of every result.
  Tensor residuals = ops::narrow(ops::reshape(self.is_complex() ? ops::real(X) : X, {-1}), 0, 0, 0);
  // Sums of squares of what is left over, where A has full rank and there is something left over.
  if (m > n && !gelsy &&
      (gels || self.is_meta() || scalar_of(ops::any(ops::ne(rank, n))).equals(0))) {
    const Tensor rest = ops::sub(ops::matmul(A, X), B);
    const Tensor squares =
        self.is_complex() ? ops::real(ops::mul(rest, ops::conj(rest))) : ops::mul(rest, rest);
    residuals = ops::sum(squares, IntList({-2}), false);
  }
  return {vector ? ops::squeeze(X, -1) : X, residuals, gels ? none(ScalarType::Int64) : rank,
          values ? singular : none(to_real(self.dtype()))};
}

Tensor pinverse(const Tensor& self, double rcond) {
  const auto number = [&](double v) {
    return ops::full({}, v, to_real(self.dtype()), std::nullopt, self.device());
  };
  check_matrix(self, "pinverse", "input");
  check_lapack_type(self, "pinverse", ErrorKind::Runtime, ErrorKind::Runtime);
  return ops::_linalg_pinv(self, number(0), number(rcond), false);
}

Tensor linalg_tensorinv(const Tensor& self, int64_t ind) {
  const char* const op = "linalg.tensorinv";
  LAMINA_CHECK(ind > 0, op, ": Expected a strictly positive integer for 'ind', but got ", ind);
  LAMINA_CHECK(ind < self.dim() || (ind == self.dim() && self.dim() > 0), op,
               ": Expected 'ind' to be at most the number of dimensions; got ", ind, " for ", self);
  int64_t rows = 1, columns = 1;
  Sizes result;
  for (int64_t d = ind; d < self.dim(); ++d) {
    columns *= self.sizes()[static_cast<size_t>(d)];
    result.push_back(self.sizes()[static_cast<size_t>(d)]);
  }
  for (int64_t d = 0; d < ind; ++d) {
    rows *= self.sizes()[static_cast<size_t>(d)];
    result.push_back(self.sizes()[static_cast<size_t>(d)]);
  }
  LAMINA_CHECK(rows == columns, op,
               ": Expected self to satisfy the requirement prod(self.shape[ind:]) == "
               "prod(self.shape[:ind]), but got ",
               columns, " != ", rows);
  const auto [inverse, info] = ops::linalg_inv_ex(ops::reshape(self, {rows, columns}), false);
  kernels::check_inverse_info(info, op);
  return ops::reshape(inverse, result);
}

Tensor linalg_tensorsolve(const Tensor& self, const Tensor& other, std::optional<IntList> dims) {
  const char* const op = "linalg.tensorsolve";
  Tensor A = self;
  if (dims) {
    Sizes to;
    for (size_t i = 0; i < dims->size(); ++i)
      to.push_back(self.dim() - static_cast<int64_t>(dims->size() - i));
    A = ops::movedim(A, *dims, to);
  }
  LAMINA_CHECK(A.dim() >= other.dim(), op, ": self has fewer dimensions than other; got ", self,
               " and ", other);
  Sizes result;
  int64_t n = 1;
  for (int64_t d = other.dim(); d < A.dim(); ++d) {
    result.push_back(A.sizes()[static_cast<size_t>(d)]);
    n *= result.back();
  }
  LAMINA_CHECK(other.numel() == n, op,
               ": Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
               "prod(self.shape[:other.ndim]), but got ",
               n, " != ", other.numel());
  LAMINA_CHECK(A.numel() == n * n, op, ": self must be as a square matrix; got ", self, " for ",
               other);
  return ops::reshape(linalg_solve(ops::reshape(A, {n, n}), ops::reshape(other, {n}), true),
                      result);
}

}  // namespace lamina::composite
