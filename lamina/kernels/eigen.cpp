// Eigenvalues and singular values of batches of matrices.
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

// Iterations need not end with NaN or infinities; such a matrix never gets to LAPACK.
constexpr int32_t kNotFinite = -1;

void check_converged(const std::vector<int32_t>& info, const Tensor& A, const char* op) {
  for (size_t i = 0; i < info.size(); ++i) {
    if (info[i] == 0) continue;
    const std::string place = A.dim() > 2 ? str("(Batch element ", i, "): ") : std::string();
    raise(ErrorKind::LinAlg,
          str(op, ": ", place, "The algorithm failed to converge because the input matrix ",
              info[i] == kNotFinite ? "contained non-finite values."
                                    : "is ill-conditioned or has too many repeated values."));
  }
}

char* at(const Tensor& t, int64_t i, int64_t each) {
  return static_cast<char*>(t.data()) + static_cast<size_t>(i * each) * item_size(t.dtype());
}

}  // namespace

void linalg_eigh(const Tensor& values, const Tensor& vectors, const Tensor& A,
                 std::string_view UPLO, bool compute_v) {
  if (A.numel() == 0) return;
  const Columns a(A);
  const ScalarType type = a.type(), real = to_real(type);
  void* const syevd = lapack_routine(Lapack::syevd, type, a.elements());
  const int n = a.columns(), ld = a.leading();
  const char job = compute_v ? 'V' : 'N', triangle = is_upper(UPLO, "linalg.eigh") ? 'U' : 'L';
  const auto call = [&](int64_t i, void* work, int size, void* reals, int real_size,
                        int32_t* integers, int int_size, int32_t* info) {
    void* const w = at(values, i, n);
    if (is_complex(type))
      lapack(syevd, &job, &triangle, &n, a.at(i), &ld, w, work, &size, reals, &real_size, integers,
             &int_size, info, size_t{1}, size_t{1});
    else
      lapack(syevd, &job, &triangle, &n, a.at(i), &ld, w, work, &size, integers, &int_size, info,
             size_t{1}, size_t{1});
  };
  double answer[2], real_answer[2] = {0, 0};
  int32_t int_answer = 1, none;
  call(0, answer, -1, real_answer, -1, &int_answer, -1, &none);
  const int size = cpu::lapack_work_size(answer, type),
            reals = is_complex(type) ? cpu::lapack_work_size(real_answer, real) : 1,
            integers = std::max(int_answer, 1);
  std::vector<int32_t> info(static_cast<size_t>(a.count()));
  each_chunk(a.count(), 4.0 * n * n * n, [&](int64_t begin, int64_t end) {
    const cpu::Scratch work(work_bytes(size, type)), real_work(work_bytes(reals, real)),
        int_work(work_bytes(integers, ScalarType::Int32));
    for (int64_t i = begin; i < end; ++i) {
      int32_t& state = info[static_cast<size_t>(i)];
      if (!cpu::all_finite(a.at(i), int64_t{n} * n, type))
        state = kNotFinite;
      else
        call(i, work.get(), size, real_work.get(), reals, int_work.get<int32_t>(), integers,
             &state);
    }
  });
  check_converged(info, A, "linalg.eigh");
  if (compute_v) copy_values(vectors, a.tensor());
}

namespace {

// LAPACK gives eigenvectors of real matrices as real columns: two of a conjugate pair hold the real
// and the imaginary part of the first.
template <class T>
void pair_up(const Tensor& values, const T* re, const T* im, int64_t i, int n) {
  auto* out = values.data_as<std::complex<T>>() + i * n;
  for (int j = 0; j < n; ++j) out[j] = {re[j], im[j]};
}
template <class T>
void pair_up_vectors(std::complex<T>* out, const T* v, const T* im, int n) {
  for (int64_t j = 0; j < n; ++j) {
    const bool pair = im[j] > 0 && j + 1 < n;
    for (int64_t r = 0; r < n; ++r) {
      const T x = v[j * n + r], y = pair ? v[(j + 1) * n + r] : T(0);
      out[j * n + r] = {x, y};
      if (pair) out[(j + 1) * n + r] = {x, -y};
    }
    if (pair) ++j;
  }
}

}  // namespace

void linalg_eig(const Tensor& values, const Tensor& vectors, const Tensor& A, bool compute_v) {
  if (A.numel() == 0) return;
  const Columns a(A);
  const ScalarType type = a.type(), real = to_real(type);
  const int n = a.columns(), ld = a.leading(), one = 1;
  LAMINA_CHECK(cpu::all_finite(a.at(0), a.count() * n * n, type),
               "linalg.eig: input tensor should not contain infs or NaNs.");
  void* const geev = lapack_routine(Lapack::geev, type, a.elements());
  const Columns v(compute_v ? IntList(batch_of(A)) : IntList(Sizes{1}), compute_v ? n : 1,
                  compute_v ? n : 1, type);
  const int ldv = v.leading();
  const char left = 'N', right = compute_v ? 'V' : 'N';
  const bool complex = is_complex(type);
  // `w` is the values, or their real and imaginary parts, n each.
  const auto call = [&](int64_t i, void* w, void* work, int size, void* reals, int32_t* info) {
    void* const out = v.at(compute_v ? i : 0);
    if (complex)
      lapack(geev, &left, &right, &n, a.at(i), &ld, w, static_cast<void*>(nullptr), &one, out, &ldv,
             work, &size, reals, info, size_t{1}, size_t{1});
    else
      lapack(geev, &left, &right, &n, a.at(i), &ld, w,
             static_cast<char*>(w) + static_cast<size_t>(n) * item_size(real),
             static_cast<void*>(nullptr), &one, out, &ldv, work, &size, info, size_t{1}, size_t{1});
  };
  const Columns w({a.count()}, complex ? n : 2 * n, 1, type);
  double answer[2];
  int32_t none;
  call(0, w.at(0), answer, -1, answer, &none);
  const int size = cpu::lapack_work_size(answer, type);
  std::vector<int32_t> info(static_cast<size_t>(a.count()));
  each_chunk(a.count(), 10.0 * n * n * n, [&](int64_t begin, int64_t end) {
    const cpu::Scratch work(work_bytes(size, type)), reals(work_bytes(2 * int64_t{n}, real));
    for (int64_t i = begin; i < end; ++i)
      call(i, w.at(i), work.get(), size, reals.get(), &info[static_cast<size_t>(i)]);
  });
  check_converged(info, A, "linalg.eig");
  if (complex) {
    for (int64_t i = 0; i < a.count(); ++i)
      std::copy_n(w.at(i), static_cast<size_t>(n) * item_size(type), at(values, i, n));
    if (compute_v) copy_values(vectors, v.tensor());
    return;
  }
  const auto pair = [&](auto number) {
    using T = decltype(number);
    const Columns out(batch_of(A), n, n, to_complex(type));
    for (int64_t i = 0; i < a.count(); ++i) {
      const T* re = reinterpret_cast<const T*>(w.at(i));
      pair_up(values, re, re + n, i, n);
      if (compute_v)
        pair_up_vectors(reinterpret_cast<std::complex<T>*>(out.at(i)),
                        reinterpret_cast<const T*>(v.at(i)), re + n, n);
    }
    if (compute_v) copy_values(vectors, out.tensor());
  };
  if (type == ScalarType::Float64)
    pair(double{});
  else
    pair(float{});
}

void linalg_svd(const Tensor& U, const Tensor& S, const Tensor& Vh, const Tensor& A,
                bool full_matrices, bool compute_uv, std::optional<std::string_view>) {
  if (A.numel() == 0) {
    if (compute_uv) {  // full bases of what has no rank
      if (U.numel() > 0) copy_values(U, ops::eye(rows_of(U), columns_of(U), U.dtype()));
      if (Vh.numel() > 0) copy_values(Vh, ops::eye(rows_of(Vh), columns_of(Vh), Vh.dtype()));
    }
    return;
  }
  const Columns a(A);
  const ScalarType type = a.type(), real = to_real(type);
  const int m = a.rows(), n = a.columns(), ld = a.leading(), k = std::min(m, n);
  const int64_t most = std::max(m, n);
  const Sizes batch = compute_uv ? batch_of(A) : Sizes{1};
  const Columns u(batch, compute_uv ? m : 1, compute_uv ? columns_of(U) : 1, type),
      v(batch, compute_uv ? rows_of(Vh) : 1, compute_uv ? n : 1, type);
  const int ldu = u.leading(), ldv = v.leading();
  const char job = !compute_uv ? 'N' : full_matrices ? 'A' : 'S';
  const auto call = [&](void* routine, bool divide, int64_t i, void* work, int size, void* reals,
                        int32_t* integers, int32_t* info) {
    void* const left = u.at(compute_uv ? i : 0);
    void* const right = v.at(compute_uv ? i : 0);
    void* const s = at(S, i, k);
    if (divide && is_complex(type))
      lapack(routine, &job, &m, &n, a.at(i), &ld, s, left, &ldu, right, &ldv, work, &size, reals,
             integers, info, size_t{1});
    else if (divide)
      lapack(routine, &job, &m, &n, a.at(i), &ld, s, left, &ldu, right, &ldv, work, &size, integers,
             info, size_t{1});
    else if (is_complex(type))
      lapack(routine, &job, &job, &m, &n, a.at(i), &ld, s, left, &ldu, right, &ldv, work, &size,
             reals, info, size_t{1}, size_t{1});
    else
      lapack(routine, &job, &job, &m, &n, a.at(i), &ld, s, left, &ldu, right, &ldv, work, &size,
             info, size_t{1}, size_t{1});
  };
  void* const gesdd = lapack_routine(Lapack::gesdd, type, a.elements());
  void* const gesvd = lapack_routine(Lapack::gesvd, type, -1);
  double answer[2], second[2];
  int32_t int_answer = 1, none;
  call(gesdd, true, 0, answer, -1, answer, &int_answer, &none);
  call(gesvd, false, 0, second, -1, second, nullptr, &none);
  const int size =
      std::max(cpu::lapack_work_size(answer, type), cpu::lapack_work_size(second, type));
  const int64_t least = k;
  const int64_t reals = is_complex(type) ? std::max(5 * least * least + 7 * least,
                                                    2 * most * least + 2 * least * least + least)
                                         : 1;
  std::vector<int32_t> info(static_cast<size_t>(a.count()));
  each_chunk(a.count(), 8.0 * m * n * k, [&](int64_t begin, int64_t end) {
    const cpu::Scratch work(work_bytes(size, type)), real_work(work_bytes(reals, real)),
        integers(work_bytes(8 * least, ScalarType::Int32));
    for (int64_t i = begin; i < end; ++i) {
      int32_t& state = info[static_cast<size_t>(i)];
      if (!cpu::all_finite(a.at(i), int64_t{m} * n, type)) {
        state = kNotFinite;
        continue;
      }
      call(gesdd, true, i, work.get(), size, real_work.get(), integers.get<int32_t>(), &state);
      if (state <= 0) continue;
      // Divide and conquer did not converge: the slower QR iteration does more often.
      const Columns again(ops::select(ops::reshape(A, {-1, m, n}), 0, i));
      std::copy_n(again.at(0), static_cast<size_t>(m) * static_cast<size_t>(n) * item_size(type),
                  a.at(i));
      call(gesvd, false, i, work.get(), size, real_work.get(), nullptr, &state);
    }
  });
  check_converged(info, A, "linalg.svd");
  if (!compute_uv) return;
  copy_values(U, u.tensor());
  copy_values(Vh, v.tensor());
}

}  // namespace lamina::kernels
