// Results of factorizations and solvers.
#include "lamina/shape/linalg.h"

#include <algorithm>
#include <climits>

#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/shape/broadcast.h"

namespace lamina {

void check_matrix(const Tensor& t, const char* op, const char* name) {
  LAMINA_CHECK(t.dim() >= 2, op, ": The input tensor ", name,
               " must have at least 2 dimensions; got ", t);
  LAMINA_CHECK(rows_of(t) <= INT_MAX && columns_of(t) <= INT_MAX, op,
               ": a matrix is larger than LAPACK counts (2^31 - 1); got ", t);
}

void check_square(const Tensor& t, const char* op, const char* name) {
  check_matrix(t, op, name);
  LAMINA_CHECK(rows_of(t) == columns_of(t), op, ": ", name,
               " must be batches of square matrices, but they are ", rows_of(t), " by ",
               columns_of(t), " matrices; got ", t);
}

void check_lapack_type(const Tensor& t, const char* op, ErrorKind integers,
                       ErrorKind small_floats) {
  const ScalarType type = t.dtype();
  LAMINA_CHECK_KIND(integers, is_differentiable(type), op,
                    ": Expected a floating point or complex tensor as input. Got ",
                    legacy_name(type));
  LAMINA_CHECK_KIND(small_floats,
                    is_complex(type) || type == ScalarType::Float32 || type == ScalarType::Float64,
                    op, ": Low precision dtypes not supported. Got ", legacy_name(type),
                    "; expected float32 or float64");
}

Sizes batch_of(const Tensor& t) {
  return Sizes(std::span<const int64_t>(t.sizes().data(),
                                        static_cast<size_t>(std::max<int64_t>(t.dim(), 2) - 2)));
}

Sizes with_sizes(Sizes batch, int64_t n) {
  batch.push_back(n);
  return batch;
}
Sizes with_sizes(Sizes batch, int64_t n, int64_t m) {
  batch.push_back(n);
  batch.push_back(m);
  return batch;
}

bool is_vector_side(const Tensor& A, const Tensor& B) {
  if (B.dim() == 1) return true;
  if (B.dim() != A.dim() - 1) return false;
  return std::equal(B.sizes().begin(), B.sizes().end(), A.sizes().begin());
}

bool is_upper(std::string_view uplo, const char* op) {
  const char c = uplo.size() == 1 ? uplo[0] : 0;
  const bool upper = c == 'U' || c == 'u';
  LAMINA_CHECK(upper || c == 'L' || c == 'l', op,
               ": Expected UPLO argument to be 'L' or 'U', but got ", uplo);
  return upper;
}

namespace shape {

namespace {

void check_same_type(const Tensor& a, const Tensor& b, const char* op) {
  LAMINA_CHECK(a.dtype() == b.dtype(), op, ": Expected A and B to have the same dtype; got ", a,
               " and ", b);
  LAMINA_CHECK(a.device() == b.device(), op,
               ": Expected all tensors to be on the same device; got ", a, " and ", b);
}

ResultMeta like(const Tensor& t, Sizes sizes) { return {std::move(sizes), t.dtype(), t.device()}; }
ResultMeta of_type(const Tensor& t, Sizes sizes, ScalarType type) {
  return {std::move(sizes), type, t.device()};
}
ResultMeta infos(const Tensor& t) { return of_type(t, batch_of(t), ScalarType::Int32); }

// Sizes of X in A X = B or X A = B, batches broadcast.
Sizes solved(const Tensor& A, const Tensor& B, bool left, bool vector, const char* op) {
  const int64_t n = rows_of(A);
  if (vector) {
    LAMINA_CHECK(
        left, op,
        ": Vector broadcasting of the left hand side is not supported for left=False; B is "
        "a vector; got A ",
        A, " and B ", B);
    LAMINA_CHECK(B.sizes().back() == n, op, ": incompatible shapes of A and B; got ", A, " and ",
                 B);
    const IntList own = B.sizes();
    const IntList batch_b(own.data(), own.size() - 1);
    return with_sizes(broadcast_sizes(batch_of(A), batch_b, op), n);
  }
  check_matrix(B, op, "B");
  LAMINA_CHECK((left ? rows_of(B) : columns_of(B)) == n, op,
               ": Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B",
               "; got ", A, " and ", B);
  return with_sizes(broadcast_sizes(batch_of(A), batch_of(B), op), rows_of(B), columns_of(B));
}

}  // namespace

std::array<ResultMeta, 3> lu_factor_shape(const Tensor& A, bool pivot, bool) {
  check_matrix(A, "linalg.lu_factor");
  check_lapack_type(A, "linalg.lu_factor", ErrorKind::NotImplemented);
  LAMINA_CHECK(pivot, "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
  return {
      like(A, Sizes(std::span<const int64_t>(A.sizes()))),
      of_type(A, with_sizes(batch_of(A), std::min(rows_of(A), columns_of(A))), ScalarType::Int32),
      infos(A)};
}

ResultMeta lu_permutation_shape(const Tensor& pivots, int64_t rows, bool) {
  LAMINA_CHECK(
      pivots.dim() >= 1 && pivots.dtype() == ScalarType::Int32,
      "lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype; got ",
      pivots);
  Sizes sizes(std::span<const int64_t>(pivots.sizes()));
  sizes.back() = rows;
  return of_type(pivots, std::move(sizes), ScalarType::Int64);
}

ResultMeta det_shape(const Tensor& A) {
  check_square(A, "linalg.det");
  check_lapack_type(A, "linalg.det");
  return like(A, batch_of(A));
}

std::array<ResultMeta, 2> slogdet_shape(const Tensor& A) {
  check_square(A, "linalg.slogdet");
  check_lapack_type(A, "linalg.slogdet", ErrorKind::Runtime, ErrorKind::Runtime);
  return {like(A, batch_of(A)), of_type(A, batch_of(A), to_real(A.dtype()))};
}

std::array<ResultMeta, 2> inv_shape(const Tensor& A, bool) {
  check_square(A, "linalg.inv");
  check_lapack_type(A, "linalg.inv", ErrorKind::Runtime, ErrorKind::Runtime);
  return {like(A, Sizes(std::span<const int64_t>(A.sizes()))), infos(A)};
}

std::array<ResultMeta, 2> solve_shape(const Tensor& A, const Tensor& B, bool left, bool) {
  const char* const op = "linalg.solve";
  check_square(A, op);
  check_lapack_type(A, op);
  check_same_type(A, B, op);
  LAMINA_CHECK(B.dim() >= 1, op, ": The right-hand side B must have at least 1 dimension; got ", B);
  const bool vector = is_vector_side(A, B);
  return {like(A, solved(A, B, left, vector, op)), infos(A)};
}

ResultMeta solve_triangular_shape(const Tensor& self, const Tensor& B, bool, bool left, bool) {
  const char* const op = "linalg.solve_triangular";
  check_square(self, op);
  check_lapack_type(self, op, ErrorKind::NotImplemented);
  check_same_type(self, B, op);
  return like(self, solved(self, B, left, false, op));
}

std::array<ResultMeta, 3> lstsq_shape(const Tensor& self, const Tensor& b, double,
                                      std::string_view) {
  const Sizes batch = batch_of(self);
  const int64_t n = columns_of(self);
  return {like(self, with_sizes(batch, n, columns_of(b))), of_type(self, batch, ScalarType::Int64),
          of_type(self, with_sizes(batch, std::min(rows_of(self), n)), to_real(self.dtype()))};
}

ResultMeta pinv_shape(const Tensor& self, const Tensor&, const Tensor&, bool hermitian) {
  if (hermitian)
    check_square(self, "linalg.pinv");
  else
    check_matrix(self, "linalg.pinv");
  check_lapack_type(self, "linalg.pinv", ErrorKind::Runtime, ErrorKind::Runtime);
  return like(self, with_sizes(batch_of(self), columns_of(self), rows_of(self)));
}

std::array<ResultMeta, 2> cholesky_shape(const Tensor& self, bool, bool) {
  check_square(self, "linalg.cholesky");
  check_lapack_type(self, "linalg.cholesky");
  return {like(self, Sizes(std::span<const int64_t>(self.sizes()))), infos(self)};
}

std::array<ResultMeta, 3> ldl_factor_shape(const Tensor& self, bool, bool) {
  check_square(self, "linalg.ldl_factor_ex");
  check_lapack_type(self, "linalg.ldl_factor_ex");
  return {like(self, Sizes(std::span<const int64_t>(self.sizes()))),
          of_type(self, with_sizes(batch_of(self), columns_of(self)), ScalarType::Int32),
          infos(self)};
}

ResultMeta ldl_solve_shape(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool) {
  const char* const op = "linalg.ldl_solve";
  check_square(LD, op, "LD");
  check_lapack_type(LD, op);
  check_same_type(LD, B, op);
  LAMINA_CHECK(pivots.dtype() == ScalarType::Int32 && pivots.dim() >= 1 &&
                   pivots.sizes() == IntList(with_sizes(batch_of(LD), columns_of(LD))),
               op, ": Expected pivots of the batch and the size of LD, int32; got ", pivots,
               " and ", LD);
  return like(LD, solved(LD, B, true, false, op));
}

std::array<ResultMeta, 2> qr_shape(const Tensor& A, std::string_view mode) {
  const char* const op = "linalg.qr";
  check_matrix(A, op);
  check_lapack_type(A, op);
  const bool complete = mode == "complete", r = mode == "r";
  LAMINA_CHECK(complete || r || mode == "reduced", op, ": received unrecognized mode '", mode,
               "'; expected one of 'reduced' (default), 'r', or 'complete'");
  const int64_t m = rows_of(A), n = columns_of(A), k = complete ? m : std::min(m, n);
  const Sizes batch = batch_of(A);
  return {like(A, r ? Sizes{0} : with_sizes(batch, m, k)), like(A, with_sizes(batch, k, n))};
}

std::array<ResultMeta, 2> geqrf_shape(const Tensor& self) {
  check_matrix(self, "geqrf", "input");
  check_lapack_type(self, "geqrf", ErrorKind::NotImplemented);
  return {like(self, Sizes(std::span<const int64_t>(self.sizes()))),
          like(self, with_sizes(batch_of(self), std::min(rows_of(self), columns_of(self))))};
}

std::array<ResultMeta, 2> eigh_shape(const Tensor& A, std::string_view UPLO, bool compute_v) {
  check_square(A, "linalg.eigh");
  check_lapack_type(A, "linalg.eigh", ErrorKind::NotImplemented);
  is_upper(UPLO, "linalg.eigh");
  return {of_type(A, with_sizes(batch_of(A), columns_of(A)), to_real(A.dtype())),
          like(A, compute_v ? Sizes(std::span<const int64_t>(A.sizes())) : Sizes{0})};
}

std::array<ResultMeta, 2> eig_shape(const Tensor& A, bool compute_v) {
  check_square(A, "linalg.eig");
  check_lapack_type(A, "linalg.eig");
  const ScalarType type = to_complex(A.dtype());
  return {of_type(A, with_sizes(batch_of(A), columns_of(A)), type),
          of_type(A, compute_v ? Sizes(std::span<const int64_t>(A.sizes())) : Sizes{0}, type)};
}

std::array<ResultMeta, 3> svd_shape(const Tensor& A, bool full_matrices, bool compute_uv,
                                    std::optional<std::string_view> driver) {
  check_matrix(A, "linalg.svd");
  check_lapack_type(A, "linalg.svd");
  LAMINA_CHECK(!driver, "linalg.svd: keyword argument `driver=` is only supported on CUDA inputs");
  const Sizes batch = batch_of(A);
  const int64_t m = rows_of(A), n = columns_of(A), k = std::min(m, n);
  return {like(A, compute_uv ? with_sizes(batch, m, full_matrices ? m : k) : Sizes{0}),
          of_type(A, with_sizes(batch, k), to_real(A.dtype())),
          like(A, compute_uv ? with_sizes(batch, full_matrices ? n : k, n) : Sizes{0})};
}

}  // namespace shape
}  // namespace lamina
