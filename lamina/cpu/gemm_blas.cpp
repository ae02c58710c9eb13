// OpenBLAS runs on one thread; C is cut by us, by sizes alone. Operands go to it as they lie where
// it can take them (one unit stride, the other at least the length of a row), and as copies
// otherwise.
#include "lamina/cpu/gemm_blas.h"

#include <algorithm>
#include <climits>
#include <complex>
#include <cstring>
#include <optional>
#include <string>

#include "lamina/cpu/blas_library.h"
#include "lamina/cpu/scratch.h"
#include "lamina/queue/parallel.h"

namespace lamina::cpu {
namespace {

constexpr int64_t kChunkWork = 1 << 20;  // multiply-adds that are worth a chunk of a parallel loop
constexpr int64_t kWantedBlocks = 16;
constexpr int64_t kLeastEdge = 64;

const char* at(const void* base, int64_t elements, size_t item) {
  return static_cast<const char*>(base) + elements * static_cast<int64_t>(item);
}
char* at(void* base, int64_t elements, size_t item) {
  return static_cast<char*>(base) + elements * static_cast<int64_t>(item);
}

bool fits(int64_t leading, int64_t length) {
  return leading >= std::max<int64_t>(length, 1) && leading <= INT_MAX;
}

// A matrix as BLAS sees it: adjacent elements along rows (by_rows) or along columns.
struct Layout {
  bool by_rows;
  int64_t leading;
};
std::optional<Layout> layout_of(int64_t rows, int64_t cols, int64_t row_stride,
                                int64_t col_stride) {
  // The stride of a dimension of size 1 does not matter.
  if (rows == 1) row_stride = std::max(row_stride, cols);
  if (cols == 1) col_stride = std::max(col_stride, rows);
  if ((col_stride == 1 || cols == 1) && fits(row_stride, cols)) return Layout{true, row_stride};
  if ((row_stride == 1 || rows == 1) && fits(col_stride, rows)) return Layout{false, col_stride};
  return std::nullopt;
}

template <class T>
void copy_matrix(T* out, const T* in, int64_t rows, int64_t cols, int64_t row_stride,
                 int64_t col_stride, int64_t out_row, int64_t out_col) {
  // Squares, so that neither side is walked across its lines for long.
  constexpr int64_t kSide = 32;
  const int64_t bands = (rows + kSide - 1) / kSide;
  const int64_t grain = std::max<int64_t>(1, 32768 / (cols * kSide + 1));
  queue::parallel_for(0, bands, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i0 = begin * kSide; i0 < std::min(end * kSide, rows); i0 += kSide)
      for (int64_t j0 = 0; j0 < cols; j0 += kSide)
        for (int64_t i = i0; i < std::min(i0 + kSide, rows); ++i)
          for (int64_t j = j0; j < std::min(j0 + kSide, cols); ++j)
            out[i * out_row + j * out_col] = in[i * row_stride + j * col_stride];
  });
}

void copy_any(void* out, const void* in, size_t item, int64_t rows, int64_t cols,
              int64_t row_stride, int64_t col_stride, int64_t out_row, int64_t out_col) {
  const auto run = [&](auto tag) {
    using T = decltype(tag);
    copy_matrix(static_cast<T*>(out), static_cast<const T*>(in), rows, cols, row_stride, col_stride,
                out_row, out_col);
  };
  if (item == 4)
    run(float());
  else if (item == 8)
    run(double());
  else
    run(std::complex<double>());
}

// What one call of BLAS needs, whatever the type.
struct Call {
  CBLAS_ORDER order;
  CBLAS_TRANSPOSE trans_a, trans_b;
  int lda, ldb, ldc;
};

void call_blas(const Call& call, const Gemm& g, int m, int n, const void* a, const void* b,
               void* c) {
  const int k = static_cast<int>(g.k);
  switch (g.dtype) {
    case ScalarType::Float32:
      return blas_library()->sgemm(
          call.order, call.trans_a, call.trans_b, m, n, k, static_cast<float>(g.alpha.to_double()),
          static_cast<const float*>(a), call.lda, static_cast<const float*>(b), call.ldb,
          static_cast<float>(g.beta.to_double()), static_cast<float*>(c), call.ldc);
    case ScalarType::Float64:
      return blas_library()->dgemm(call.order, call.trans_a, call.trans_b, m, n, k,
                                   g.alpha.to_double(), static_cast<const double*>(a), call.lda,
                                   static_cast<const double*>(b), call.ldb, g.beta.to_double(),
                                   static_cast<double*>(c), call.ldc);
    case ScalarType::Complex64: {
      const std::complex<float> alpha(g.alpha.to_complex()), beta(g.beta.to_complex());
      return blas_library()->cgemm(call.order, call.trans_a, call.trans_b, m, n, k, &alpha, a,
                                   call.lda, b, call.ldb, &beta, c, call.ldc);
    }
    default: {
      const std::complex<double> alpha = g.alpha.to_complex(), beta = g.beta.to_complex();
      return blas_library()->zgemm(call.order, call.trans_a, call.trans_b, m, n, k, &alpha, a,
                                   call.lda, b, call.ldb, &beta, c, call.ldc);
    }
  }
}

CBLAS_TRANSPOSE transposition(bool as_it_lies, bool conjugate) {
  if (as_it_lies) return conjugate ? CblasConjNoTrans : CblasNoTrans;
  return conjugate ? CblasConjTrans : CblasTrans;
}

}  // namespace

bool blas_accepts(const Gemm& g, const char** reason) {
  if (!is_complex(g.dtype) && g.dtype != ScalarType::Float32 && g.dtype != ScalarType::Float64) {
    *reason = "BLAS computes float32, float64, complex64 and complex128 only";
    return false;
  }
  if (g.m > INT_MAX || g.n > INT_MAX || g.k > INT_MAX) {
    *reason = "a size is above what this BLAS counts with (2^31 - 1)";
    return false;
  }
  if (!blas_library()) {
    *reason = "libscipy_openblas.so was not found";
    return false;
  }
  return true;
}

void run_blas(const Gemm& whole) {
  Gemm g = whole;
  const size_t item = item_size(g.dtype);
  std::optional<Layout> a = layout_of(g.m, g.k, g.a_row_stride, g.a_col_stride);
  std::optional<Layout> b = layout_of(g.k, g.n, g.b_row_stride, g.b_col_stride);
  std::optional<Layout> c = layout_of(g.m, g.n, g.c_row_stride, g.c_col_stride);
  std::optional<Scratch> a_copy, b_copy, c_copy;
  if (!a) {
    a_copy.emplace(bytes_of(g.m * g.k, item));
    copy_any(a_copy->get(), g.a, item, g.m, g.k, g.a_row_stride, g.a_col_stride, g.k, 1);
    g.a = a_copy->get();
    g.a_row_stride = g.k;
    g.a_col_stride = 1;
    a = Layout{true, g.k};
  }
  if (!b) {
    b_copy.emplace(bytes_of(g.k * g.n, item));
    copy_any(b_copy->get(), g.b, item, g.k, g.n, g.b_row_stride, g.b_col_stride, g.n, 1);
    g.b = b_copy->get();
    g.b_row_stride = g.n;
    g.b_col_stride = 1;
    b = Layout{true, g.n};
  }
  if (!c) {
    c_copy.emplace(bytes_of(g.m * g.n, item));
    if (!g.beta.equals(0))
      copy_any(c_copy->get(), g.c, item, g.m, g.n, g.c_row_stride, g.c_col_stride, g.n, 1);
    g.c = c_copy->get();
    g.c_row_stride = g.n;
    g.c_col_stride = 1;
    c = Layout{true, g.n};
  }
  const bool conj_a = g.conj_a && is_complex(g.dtype), conj_b = g.conj_b && is_complex(g.dtype);
  const Call call{c->by_rows ? CblasRowMajor : CblasColMajor,
                  transposition(a->by_rows == c->by_rows, conj_a),
                  transposition(b->by_rows == c->by_rows, conj_b),
                  static_cast<int>(a->leading),
                  static_cast<int>(b->leading),
                  static_cast<int>(c->leading)};

  // Halve the longer edge until there are enough blocks or they get too small.
  int64_t rows = g.m, cols = g.n;
  const auto count = [&] { return ((g.m + rows - 1) / rows) * ((g.n + cols - 1) / cols); };
  while (count() < kWantedBlocks && double(rows) * double(cols) * double(g.k) >= 2 * kChunkWork &&
         std::max(rows, cols) >= 2 * kLeastEdge) {
    int64_t& edge = rows >= cols ? rows : cols;
    edge = ((edge + 1) / 2 + 15) / 16 * 16;
  }
  const int64_t row_blocks = (g.m + rows - 1) / rows;
  queue::parallel_for(0, count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t i = t % row_blocks * rows, j = t / row_blocks * cols;
      call_blas(call, g, static_cast<int>(std::min(rows, g.m - i)),
                static_cast<int>(std::min(cols, g.n - j)), at(g.a, i * g.a_row_stride, item),
                at(g.b, j * g.b_col_stride, item),
                at(g.c, i * g.c_row_stride + j * g.c_col_stride, item));
    }
  });
  if (c_copy)
    copy_any(whole.c, c_copy->get(), item, g.m, g.n, g.n, 1, whole.c_row_stride,
             whole.c_col_stride);
}

bool blas_accepts_gemv(const Gemv& g) {
  return (g.dtype == ScalarType::Float32 || g.dtype == ScalarType::Float64) && g.m <= INT_MAX &&
         g.n <= INT_MAX && g.x_stride > 0 && g.x_stride <= INT_MAX && g.y_stride > 0 &&
         g.y_stride <= INT_MAX && blas_library() &&
         layout_of(g.m, g.n, g.a_row_stride, g.a_col_stride).has_value();
}

void run_blas_gemv(const Gemv& g) {
  const Layout a = *layout_of(g.m, g.n, g.a_row_stride, g.a_col_stride);
  const size_t item = item_size(g.dtype);
  // Blocks of y: multiples of 64, each at least 128 Ki elements of A.
  const int64_t rows =
      std::max<int64_t>((128 * 1024 / std::max<int64_t>(g.n, 1) + 63) / 64 * 64, 64);
  queue::parallel_for(0, g.m, rows, [&](int64_t begin, int64_t end) {
    const void* block = at(g.a, begin * g.a_row_stride, item);
    void* y = at(g.y, begin * g.y_stride, item);
    const CBLAS_ORDER order = a.by_rows ? CblasRowMajor : CblasColMajor;
    const int m = static_cast<int>(end - begin), n = static_cast<int>(g.n);
    const int lda = static_cast<int>(a.leading);
    if (g.beta.equals(0))
      for (int64_t i = 0; i < m; ++i) std::memset(at(y, i * g.y_stride, item), 0, item);
    if (g.dtype == ScalarType::Float32)
      blas_library()->sgemv(order, CblasNoTrans, m, n, static_cast<float>(g.alpha.to_double()),
                            static_cast<const float*>(block), lda, static_cast<const float*>(g.x),
                            static_cast<int>(g.x_stride), static_cast<float>(g.beta.to_double()),
                            static_cast<float*>(y), static_cast<int>(g.y_stride));
    else
      blas_library()->dgemv(order, CblasNoTrans, m, n, g.alpha.to_double(),
                            static_cast<const double*>(block), lda, static_cast<const double*>(g.x),
                            static_cast<int>(g.x_stride), g.beta.to_double(),
                            static_cast<double*>(y), static_cast<int>(g.y_stride));
  });
}

const char* blas_name() {
  static const std::string name = [] {
    const BlasLibrary* blas = blas_library();
    if (!blas) return std::string("none");
    const std::string config = blas->config();  // "OpenBLAS 0.3.30 ..."
    const size_t second = config.find(' ', config.find(' ') + 1);
    return config.substr(0, second) + " " + blas->corename();
  }();
  return name.c_str();
}

}  // namespace lamina::cpu
