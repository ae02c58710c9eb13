// Inverses, linear systems, least squares, pseudo-inverses.
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/matrices.h"
#include "lamina/ops.h"

namespace lamina::kernels {

using cpu::Lapack;
using cpu::lapack;
using cpu::lapack_routine;

namespace {

// Solves with every matrix of `a`, whose LU takes its place. The result is that of A X = B or, with
// `transposed`, of A^T X = B; sources[i] is the matrix for block i of b.
void run_solve(const Columns& a, const Columns& b, const std::vector<int64_t>& sources,
               bool transposed, int32_t* info) {
  void* const getrf = lapack_routine(Lapack::getrf, a.type(), a.elements());
  void* const getrs = lapack_routine(Lapack::getrs, a.type(), a.elements());
  const int n = a.columns(), ld = a.leading(), k = b.columns(), ldb = b.leading();
  const char how = transposed ? 'T' : 'N';
  std::vector<int32_t> pivots(static_cast<size_t>(a.count()) * static_cast<size_t>(n));
  each_chunk(a.count(), double(n) * n * n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      lapack(getrf, &n, &n, a.at(i), &ld, pivots.data() + i * n, info + i);
  });
  each_chunk(b.count(), double(n) * n * k, [&](int64_t begin, int64_t end) {
    int none;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t s = sources.empty() ? i : sources[static_cast<size_t>(i)];
      lapack(getrs, &how, &n, &k, a.at(s), &ld, pivots.data() + s * n, b.at(i), &ldb, &none,
             size_t{1});
    }
  });
}

// B broadcast to a batch, as a copy.
Columns broadcast_copy(const Tensor& B, IntList batch) {
  Columns out(batch, rows_of(B), columns_of(B), B.dtype());
  copy_values(out.tensor(), B);
  return out;
}

std::vector<int64_t> sources_of(const Tensor& A, IntList batch) {
  const Sizes own = batch_of(A);
  if (IntList(own) == batch) return {};
  return batch_sources(own, batch);
}

}  // namespace

void linalg_inv(const Tensor& inverse, const Tensor& info, const Tensor& A, bool check_errors) {
  if (A.numel() == 0) return zero_bytes(info);
  const Columns a(A), x(batch_of(A), rows_of(A), columns_of(A), A.dtype());
  zero_bytes(x.tensor());
  const Tensor diagonal = ops::diagonal(x.tensor(), 0, -2, -1);
  ops::fill_(diagonal, 1);
  run_solve(a, x, {}, false, ints(info));
  copy_values(inverse, x.tensor());
  if (check_errors) check_inverse_info(info, "linalg.inv_ex");
}

void linalg_solve(const Tensor& result, const Tensor& info, const Tensor& A, const Tensor& B,
                  bool left, bool check_errors) {
  if (A.numel() == 0 || result.numel() == 0) {
    zero_bytes(info);
    if (A.numel() == 0) return;
  }
  const bool vector = is_vector_side(A, B);
  const Tensor out = vector ? ops::unsqueeze(result, -1) : left ? result : ops::mT(result);
  const Tensor right = vector ? ops::unsqueeze(B, -1) : left ? B : ops::mT(B);
  const Sizes batch = batch_of(out);
  const Columns a(A), x = broadcast_copy(right, batch);
  run_solve(a, x, sources_of(A, batch), !left, ints(info));
  copy_values(out, x.tensor());
  if (check_errors) check_solve_info(info, "linalg.solve_ex");
}

void solve_triangular(const Tensor& result, const Tensor& self, const Tensor& B, bool upper,
                      bool left, bool unitriangular) {
  if (result.numel() == 0) return;
  const Sizes batch = batch_of(result);
  const Columns a(self), x = broadcast_copy(B, batch);
  const std::vector<int64_t> sources = sources_of(self, batch);
  void* const trsm = lapack_routine(Lapack::trsm, a.type(), a.elements());
  const void* const one = cpu::lapack_one(a.type());
  const char side = left ? 'L' : 'R', triangle = upper ? 'U' : 'L', how = 'N',
             diagonal = unitriangular ? 'U' : 'N';
  const int m = x.rows(), n = x.columns(), lda = a.leading(), ldx = x.leading();
  each_chunk(x.count(), double(m) * n * a.columns(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      lapack(trsm, &side, &triangle, &how, &diagonal, &m, &n, one,
             a.at(sources.empty() ? i : sources[static_cast<size_t>(i)]), &lda, x.at(i), &ldx,
             size_t{1}, size_t{1}, size_t{1}, size_t{1});
  });
  copy_values(result, x.tensor());
}

void ldl_solve(const Tensor& result, const Tensor& LD, const Tensor& pivots, const Tensor& B,
               bool hermitian) {
  if (result.numel() == 0) return;
  const Sizes batch = batch_of(result);
  const Columns a(LD), x = broadcast_copy(B, batch);
  const std::vector<int64_t> sources = sources_of(LD, batch);
  const int n = a.columns(), k = x.columns(), lda = a.leading(), ldx = x.leading();
  const Tensor swaps = contiguous_values(pivots);
  // LAPACK believes its pivots: row numbers from 1, or two equal negative ones for a block of two.
  for (int64_t i = 0; i < swaps.numel(); ++i) {
    const int32_t p = ints(swaps)[i];
    LAMINA_CHECK(p != 0 && p <= n && p >= -n,
                 "linalg.ldl_solve: pivots must be row numbers from 1 to n; got ", p);
    if (p > 0) continue;
    LAMINA_CHECK(i % n + 1 < n && ints(swaps)[i + 1] == p,
                 "linalg.ldl_solve: negative pivots must come in pairs; got ", p, " alone");
    ++i;
  }
  void* const sytrs =
      lapack_routine(hermitian ? Lapack::hetrs : Lapack::sytrs, a.type(), a.elements());
  const char triangle = 'L';
  each_chunk(x.count(), double(n) * n * k, [&](int64_t begin, int64_t end) {
    int info;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t s = sources.empty() ? i : sources[static_cast<size_t>(i)];
      lapack(sytrs, &triangle, &n, &k, a.at(s), &lda, ints(swaps) + s * n, x.at(i), &ldx, &info,
             size_t{1});
    }
  });
  copy_values(result, x.tensor());
}

namespace {

// One call of a least squares driver: A (m, n) is overwritten, b (max(m, n), k) takes X.
struct LeastSquares {
  Lapack routine;
  void* function;
  int m, n, k, lda, ldb;
  double rcond64;
  float rcond32;
  ScalarType type;

  const void* rcond() const {
    return to_real(type) == ScalarType::Float64 ? static_cast<const void*>(&rcond64) : &rcond32;
  }
  void call(void* a, void* b, void* s, int32_t* jpvt, int32_t* rank, void* work, int size,
            void* real_work, int32_t* int_work, int32_t* info) const {
    const char how = 'N';
    const bool complex = is_complex(type);
    switch (routine) {
      case Lapack::gels:
        return lapack(function, &how, &m, &n, &k, a, &lda, b, &ldb, work, &size, info, size_t{1});
      case Lapack::gelsy:
        std::fill_n(jpvt, n, 0);
        if (complex)
          return lapack(function, &m, &n, &k, a, &lda, b, &ldb, jpvt, rcond(), rank, work, &size,
                        real_work, info);
        return lapack(function, &m, &n, &k, a, &lda, b, &ldb, jpvt, rcond(), rank, work, &size,
                      info);
      case Lapack::gelsd:
        if (complex)
          return lapack(function, &m, &n, &k, a, &lda, b, &ldb, s, rcond(), rank, work, &size,
                        real_work, int_work, info);
        return lapack(function, &m, &n, &k, a, &lda, b, &ldb, s, rcond(), rank, work, &size,
                      int_work, info);
      default:
        if (complex)
          return lapack(function, &m, &n, &k, a, &lda, b, &ldb, s, rcond(), rank, work, &size,
                        real_work, info);
        return lapack(function, &m, &n, &k, a, &lda, b, &ldb, s, rcond(), rank, work, &size, info);
    }
  }
};

}  // namespace

void linalg_lstsq(const Tensor& solution, const Tensor& rank, const Tensor& singular_values,
                  const Tensor& self, const Tensor& b, double rcond, std::string_view driver) {
  const int64_t m = rows_of(self), n = columns_of(self), k = columns_of(b);
  zero_bytes(rank);
  zero_bytes(singular_values);
  if (self.numel() == 0 || k == 0) return zero_bytes(solution);
  const Columns a(self), x(batch_of(self), std::max(m, n), k, self.dtype());
  if (n > m) zero_bytes(x.tensor());
  copy_values(ops::narrow(x.tensor(), -2, 0, m), b);
  const ScalarType type = a.type(), real = to_real(type);
  LeastSquares ls;
  ls.routine = driver == "gels"    ? Lapack::gels
               : driver == "gelsd" ? Lapack::gelsd
               : driver == "gelss" ? Lapack::gelss
                                   : Lapack::gelsy;
  ls.function = lapack_routine(ls.routine, type, a.elements());
  ls.m = a.rows();
  ls.n = a.columns();
  ls.k = x.columns();
  ls.lda = a.leading();
  ls.ldb = x.leading();
  ls.rcond64 = rcond;
  ls.rcond32 = static_cast<float>(rcond);
  ls.type = type;
  const int64_t least = std::min(m, n);
  double answer[2], real_answer[2] = {0, 0};
  int32_t int_answer = 1, info = 0, found = 0;
  std::vector<int32_t> jpvt(static_cast<size_t>(n));
  ls.call(a.at(0), x.at(0), singular_values.data(), jpvt.data(), &found, answer, -1, real_answer,
          &int_answer, &info);
  const int size = cpu::lapack_work_size(answer, type);
  const int64_t reals = std::max<int64_t>({2 * n, 5 * least,
                                           ls.routine == Lapack::gelsd && is_complex(type)
                                               ? int64_t{cpu::lapack_work_size(real_answer, real)}
                                               : 1});
  const int64_t integers = std::max(int_answer, 1);
  std::vector<int32_t> infos(static_cast<size_t>(a.count())), ranks(infos.size());
  each_chunk(a.count(), 2.0 * double(m) * double(n) * double(least + k),
             [&](int64_t begin, int64_t end) {
               const cpu::Scratch work(work_bytes(size, type)), real_work(work_bytes(reals, real)),
                   int_work(work_bytes(integers + n, ScalarType::Int32));
               for (int64_t i = begin; i < end; ++i) {
                 const auto at = static_cast<size_t>(i);
                 // The drivers do not end well with NaN.
                 if (!cpu::all_finite(a.at(i), m * n, type) ||
                     !cpu::all_finite(x.at(i), std::max(m, n) * k, type)) {
                   infos[at] = -1;
                   continue;
                 }
                 ls.call(a.at(i), x.at(i),
                         static_cast<char*>(singular_values.data()) +
                             static_cast<size_t>(i * least) * item_size(real),
                         int_work.get<int32_t>() + integers, &ranks[at], work.get(), size,
                         real_work.get(), int_work.get<int32_t>(), &infos[at]);
               }
             });
  for (size_t i = 0; i < infos.size(); ++i) {
    rank.data_as<int64_t>()[i] = ranks[i];
    if (infos[i] == 0) continue;
    raise(
        ErrorKind::LinAlg,
        str("linalg.lstsq: (Batch element ", i, "): ",
            infos[i] < 0 ? "The least squares problem could not be solved because the input "
                           "contained non-finite values."
            : ls.routine == Lapack::gels
                ? "The least squares solution could not be computed because the input matrix does "
                  "not have full rank."
                : "The computation of singular values did not converge."));
  }
  copy_values(solution, ops::narrow(x.tensor(), -2, 0, n));
}

namespace {
// atol and rtol as a cut-off for values of which `largest` (..., 1) are the largest.
Tensor cut_off(const Tensor& largest, const Tensor& atol, const Tensor& rtol) {
  const auto fitting = [&](const Tensor& t) {
    const Tensor real = ops::_to_dtype(t, largest.dtype());
    return real.dim() > 0 ? ops::unsqueeze(real, -1) : real;
  };
  const Tensor relative = ops::mul(largest, fitting(rtol));
  return ops::maximum(relative, fitting(atol));
}
}  // namespace

void linalg_pinv(const Tensor& result, const Tensor& self, const Tensor& atol, const Tensor& rtol,
                 bool hermitian) {
  if (result.numel() == 0) return;
  Tensor left, values, right;  // self = left diag(values) right
  if (hermitian) {
    std::tie(values, left) = ops::_linalg_eigh(self, "L", true);
    right = ops::mH(left);
  } else {
    std::tie(left, values, right) = ops::_linalg_svd(self, false, true);
  }
  const Tensor sizes = ops::abs(values);
  const Tensor kept = ops::gt(sizes, cut_off(ops::amax(sizes, {-1}, true), atol, rtol));
  const Tensor inverse = ops::where(kept, ops::reciprocal(values), Scalar(0.0));
  copy_values(result,
              ops::matmul(ops::mul(ops::mH(right), ops::unsqueeze(inverse, -2)), ops::mH(left)));
}

}  // namespace lamina::kernels
