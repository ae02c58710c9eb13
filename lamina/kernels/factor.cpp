// LU, Cholesky, LDL and QR of batches of matrices, determinants.
#include <cmath>
#include <complex>

#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/matrices.h"
#include "lamina/ops.h"

namespace lamina::kernels {

using cpu::Lapack;
using cpu::lapack;
using cpu::lapack_routine;

namespace {

// LU of every matrix, in place; pivots are int32 (count, min(rows, columns)).
void run_getrf(const Columns& a, int32_t* pivots, int32_t* info) {
  void* const getrf = lapack_routine(Lapack::getrf, a.type(), a.elements());
  const int m = a.rows(), n = a.columns(), ld = a.leading(), k = std::min(m, n);
  each_chunk(a.count(), double(m) * n * k, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      lapack(getrf, &m, &n, a.at(i), &ld, pivots + i * k, info + i);
  });
}

std::complex<double> element(const void* p, ScalarType type) {
  switch (type) {
    case ScalarType::Float32:
      return *static_cast<const float*>(p);
    case ScalarType::Float64:
      return *static_cast<const double*>(p);
    case ScalarType::Complex64:
      return *static_cast<const std::complex<float>*>(p);
    default:
      return *static_cast<const std::complex<double>*>(p);
  }
}

void store(void* data, int64_t at, ScalarType type, std::complex<double> v) {
  switch (type) {
    case ScalarType::Float32:
      static_cast<float*>(data)[at] = static_cast<float>(v.real());
      break;
    case ScalarType::Float64:
      static_cast<double*>(data)[at] = v.real();
      break;
    case ScalarType::Complex64:
      static_cast<std::complex<float>*>(data)[at] = std::complex<float>(v);
      break;
    default:
      static_cast<std::complex<double>*>(data)[at] = v;
  }
}

// Calls each(i, j, u) for the diagonal of U of every matrix, with the sign of its permutation in
// start(i, sign).
template <class Start, class Each>
void each_pivot(const Tensor& A, Start&& start, Each&& each) {
  const Columns lu(A);
  const int n = lu.columns();
  std::vector<int32_t> pivots(static_cast<size_t>(lu.count()) * static_cast<size_t>(n)),
      info(static_cast<size_t>(lu.count()));
  run_getrf(lu, pivots.data(), info.data());
  for (int64_t i = 0; i < lu.count(); ++i) {
    double sign = 1;
    for (int j = 0; j < n; ++j)
      if (pivots[static_cast<size_t>(i * n + j)] != j + 1) sign = -sign;
    start(i, sign);
    for (int j = 0; j < n; ++j) each(i, element(lu.element(i, j, j), lu.type()));
  }
}

// The plain product: that of std::complex asks for infinities at every step.
std::complex<double> times(std::complex<double> a, std::complex<double> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

void lu_factor(const Tensor& LU, const Tensor& pivots, const Tensor& info, const Tensor& A, bool,
               bool check_errors) {
  if (LU.numel() == 0) return zero_bytes(info);
  const Columns a(A);
  run_getrf(a, ints(pivots), ints(info));
  copy_values(LU, a.tensor());
  if (check_errors) check_lu_info(info, "linalg.lu_factor_ex");
}

void lu_permutation(const Tensor& result, const Tensor& pivots, int64_t rows, bool inverse) {
  const Tensor swaps = contiguous_values(pivots);
  const int64_t k = pivots.sizes().back(), count = rows == 0 ? 0 : result.numel() / rows;
  std::vector<int64_t> order(static_cast<size_t>(rows));
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t r = 0; r < rows; ++r) order[static_cast<size_t>(r)] = r;
    for (int64_t j = 0; j < k; ++j) {
      const int64_t other = int64_t{ints(swaps)[i * k + j]} - 1;
      LAMINA_CHECK(other >= 0 && other < rows && j < rows,
                   "lu_unpack: pivots must be row numbers from 1 to ", rows, "; got ", other + 1);
      std::swap(order[static_cast<size_t>(j)], order[static_cast<size_t>(other)]);
    }
    int64_t* out = result.data_as<int64_t>() + i * rows;
    for (int64_t r = 0; r < rows; ++r) {
      if (inverse)
        out[order[static_cast<size_t>(r)]] = r;
      else
        out[r] = order[static_cast<size_t>(r)];
    }
  }
}

void linalg_det(const Tensor& result, const Tensor& A) {
  std::vector<std::complex<double>> det(static_cast<size_t>(result.numel()), 1.0);
  if (A.numel() > 0)
    each_pivot(
        A, [&](int64_t i, double sign) { det[static_cast<size_t>(i)] = sign; },
        [&](int64_t i, std::complex<double> u) {
          auto& d = det[static_cast<size_t>(i)];
          d = A.is_complex() ? times(d, u) : d.real() * u.real();
        });
  for (int64_t i = 0; i < result.numel(); ++i)
    store(result.data(), i, result.dtype(), det[static_cast<size_t>(i)]);
}

void linalg_slogdet(const Tensor& sign, const Tensor& logabsdet, const Tensor& A) {
  struct Value {
    std::complex<double> sign = 1;
    double log = 0;
  };
  std::vector<Value> values(static_cast<size_t>(sign.numel()));
  if (A.numel() > 0)
    each_pivot(
        A, [&](int64_t i, double s) { values[static_cast<size_t>(i)].sign = s; },
        [&](int64_t i, std::complex<double> u) {
          Value& v = values[static_cast<size_t>(i)];
          const double size = std::hypot(u.real(), u.imag());
          v.sign = size == 0 ? 0 : times(v.sign, {u.real() / size, u.imag() / size});
          v.log += std::log(size);
        });
  for (int64_t i = 0; i < sign.numel(); ++i) {
    store(sign.data(), i, sign.dtype(), values[static_cast<size_t>(i)].sign);
    store(logabsdet.data(), i, logabsdet.dtype(), values[static_cast<size_t>(i)].log);
  }
}

void cholesky(const Tensor& L, const Tensor& info, const Tensor& self, bool upper,
              bool check_errors) {
  if (L.numel() == 0) return zero_bytes(info);
  const Columns a(self);
  void* const potrf = lapack_routine(Lapack::potrf, a.type(), a.elements());
  const int n = a.columns(), ld = a.leading();
  const char triangle = upper ? 'U' : 'L';
  each_chunk(a.count(), double(n) * n * n / 3, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      lapack(potrf, &triangle, &n, a.at(i), &ld, ints(info) + i, size_t{1});
      int32_t& state = ints(info)[i];
      // OpenBLAS lets NaN pass as positive.
      for (int j = 0; j < n && state == 0; ++j)
        if (std::isnan(element(a.element(i, j, j), a.type()).real())) state = j + 1;
      for (int j = 0; j < n; ++j) {  // the other triangle
        const size_t item = item_size(a.type());
        if (upper)
          std::fill_n(a.element(i, j, j) + item, item * static_cast<size_t>(n - 1 - j), 0);
        else
          std::fill_n(a.element(i, 0, j), item * static_cast<size_t>(j), 0);
      }
    }
  });
  copy_values(L, a.tensor());
  if (check_errors) check_cholesky_info(info, "linalg.cholesky_ex");
}

void ldl_factor(const Tensor& LD, const Tensor& pivots, const Tensor& info, const Tensor& self,
                bool hermitian, bool check_errors) {
  if (LD.numel() == 0) return zero_bytes(info);
  const Columns a(self);
  void* const sytrf =
      lapack_routine(hermitian ? Lapack::hetrf : Lapack::sytrf, a.type(), a.elements());
  const int n = a.columns(), ld = a.leading(), query = -1;
  const char triangle = 'L';
  double answer[2];
  int none;
  lapack(sytrf, &triangle, &n, a.at(0), &ld, ints(pivots), &answer[0], &query, &none, size_t{1});
  const int size = cpu::lapack_work_size(answer, a.type());
  each_chunk(a.count(), double(n) * n * n / 3, [&](int64_t begin, int64_t end) {
    const cpu::Scratch work(work_bytes(size, a.type()));
    for (int64_t i = begin; i < end; ++i)
      lapack(sytrf, &triangle, &n, a.at(i), &ld, ints(pivots) + i * n, work.get(), &size,
             ints(info) + i, size_t{1});
  });
  copy_values(LD, ops::tril(a.tensor()));
  if (check_errors) check_ldl_info(info, "linalg.ldl_factor_ex");
}

namespace {
// Reflectors of every matrix, in place, and their factors (count, min(rows, columns)).
void run_geqrf(const Columns& a, const Tensor& tau) {
  void* const geqrf = lapack_routine(Lapack::geqrf, a.type(), a.elements());
  const int m = a.rows(), n = a.columns(), ld = a.leading(), k = std::min(m, n), query = -1;
  const size_t item = item_size(a.type());
  double answer[2];
  int none;
  lapack(geqrf, &m, &n, a.at(0), &ld, tau.data(), &answer[0], &query, &none);
  const int size = cpu::lapack_work_size(answer, a.type());
  each_chunk(a.count(), 2.0 * m * n * k, [&](int64_t begin, int64_t end) {
    const cpu::Scratch work(work_bytes(size, a.type()));
    int info;
    for (int64_t i = begin; i < end; ++i)
      lapack(geqrf, &m, &n, a.at(i), &ld,
             static_cast<char*>(tau.data()) + static_cast<size_t>(i * k) * item, work.get(), &size,
             &info);
  });
}
}  // namespace

void geqrf(const Tensor& a, const Tensor& tau, const Tensor& self) {
  if (a.numel() == 0) return;
  const Columns columns(self);
  run_geqrf(columns, tau);
  copy_values(a, columns.tensor());
}

void linalg_qr(const Tensor& Q, const Tensor& R, const Tensor& A, std::string_view mode) {
  const int64_t m = rows_of(A), n = columns_of(A), k = std::min(m, n);
  if (A.numel() == 0) {
    zero_bytes(R);
    if (Q.numel() > 0) copy_values(Q, ops::eye(m, Q.dtype()));
    return;
  }
  const Columns a(A);
  const Tensor tau = empty_contiguous(with_sizes(batch_of(A), k), A.dtype(), kCpu);
  run_geqrf(a, tau);
  copy_values(R, ops::triu(ops::narrow(a.tensor(), -2, 0, rows_of(R))));
  if (mode == "r") return;
  const Columns q(batch_of(A), m, columns_of(Q), A.dtype());
  copy_values(ops::narrow(q.tensor(), -1, 0, k), ops::narrow(a.tensor(), -1, 0, k));
  void* const orgqr = lapack_routine(Lapack::orgqr, a.type(), a.elements());
  const int rows = q.rows(), columns = q.columns(), reflectors = static_cast<int>(k),
            ld = q.leading(), query = -1;
  const size_t item = item_size(a.type());
  double answer[2];
  int none;
  lapack(orgqr, &rows, &columns, &reflectors, q.at(0), &ld, tau.data(), &answer[0], &query, &none);
  const int size = cpu::lapack_work_size(answer, a.type());
  each_chunk(q.count(), 2.0 * rows * columns * reflectors, [&](int64_t begin, int64_t end) {
    const cpu::Scratch work(work_bytes(size, a.type()));
    int info;
    for (int64_t i = begin; i < end; ++i)
      lapack(orgqr, &rows, &columns, &reflectors, q.at(i), &ld,
             static_cast<char*>(tau.data()) + static_cast<size_t>(i * k) * item, work.get(), &size,
             &info);
  });
  copy_values(Q, q.tensor());
}

}  // namespace lamina::kernels
