// Chooses a kernel for a product and takes care of the cases that need none.
#include "lamina/cpu/gemm.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "lamina/core/error.h"
#include "lamina/core/float_types.h"
#include "lamina/cpu/gemm_blas.h"
#include "lamina/cpu/gemm_plain.h"
#include "lamina/cpu/packed.h"
#include "lamina/event/event.h"
#include "lamina/queue/parallel.h"
#include "lamina/tile/tile.h"

namespace lamina::cpu {
namespace {

bool is_vector_product(const Gemm& g) { return g.m == 1 || g.n == 1; }

// A product with one row or column as matrix times vector: y (n) = B^T a or y (m) = A b.
Gemv as_gemv(const Gemm& g) {
  Gemv v;
  v.dtype = g.dtype;
  v.alpha = g.alpha;
  v.beta = g.beta;
  v.y = g.c;
  if (g.n == 1) {
    v.m = g.m;
    v.n = g.k;
    v.a = g.a;
    v.a_row_stride = g.a_row_stride;
    v.a_col_stride = g.a_col_stride;
    v.x = g.b;
    v.x_stride = g.b_row_stride;
    v.y_stride = g.c_row_stride;
    v.conj_a = g.conj_a;
    v.conj_x = g.conj_b;
  } else {
    v.m = g.n;
    v.n = g.k;
    v.a = g.b;
    v.a_row_stride = g.b_col_stride;
    v.a_col_stride = g.b_row_stride;
    v.x = g.a;
    v.x_stride = g.a_col_stride;
    v.y_stride = g.c_col_stride;
    v.conj_a = g.conj_b;
    v.conj_x = g.conj_a;
  }
  // A vector of one element has no stride.
  if (v.n == 1) v.x_stride = 1;
  if (v.m == 1) v.y_stride = 1;
  return v;
}

Gemm as_gemm(const Gemv& v) {
  Gemm g;
  g.m = v.m;
  g.n = 1;
  g.k = v.n;
  g.a = v.a;
  g.a_row_stride = v.a_row_stride;
  g.a_col_stride = v.a_col_stride;
  g.b = v.x;
  g.b_row_stride = v.x_stride;
  g.b_col_stride = 1;
  g.c = v.y;
  g.c_row_stride = v.y_stride;
  g.c_col_stride = 1;
  g.alpha = v.alpha;
  g.beta = v.beta;
  g.dtype = v.dtype;
  g.conj_a = v.conj_a;
  g.conj_b = v.conj_x;
  return g;
}

bool gemv_accepts(const Gemm& g, const char** reason) {
  if (!is_vector_product(g)) {
    *reason = "neither operand is a vector";
    return false;
  }
  if (!blas_accepts_gemv(as_gemv(g))) {
    *reason = "gemv of BLAS takes float32 and float64 with one unit stride and positive strides";
    return false;
  }
  return true;
}
void run_gemv(const Gemm& g) { run_blas_gemv(as_gemv(g)); }

bool vector_product_accepts(const Gemm& g, const char** reason) {
  if (!is_vector_product(g)) {
    *reason = "neither operand is a vector";
    return false;
  }
  if (!vector_accepts(as_gemv(g))) {
    *reason = "the own product with a vector is for integers, float16 and bfloat16";
    return false;
  }
  return true;
}
void run_vector_product(const Gemm& g) { run_vector(as_gemv(g)); }

bool packed_accepts(const Gemm& g, const char** reason) {
  if (packed_type(g.dtype) >= 0) return true;
  *reason = "no packed product for complex and 8-bit floating types";
  return false;
}

// On AVX2 the packed product beats this BLAS by about a tenth from here on
// (docs/decisions/0005-gemm.md).
constexpr int64_t kPackedEdge = 24, kPackedWork = 96 * 96 * 96;
bool packed_first_accepts(const Gemm& g, const char** reason) {
  if (g.dtype != ScalarType::Float32 && g.dtype != ScalarType::Float64) {
    *reason = "preferred to BLAS for float32 and float64 only";
    return false;
  }
  if (std::strcmp(packed_level().name, "avx2") != 0) {
    *reason = "preferred to BLAS on machines with AVX2 and no AVX-512 only";
    return false;
  }
  if (g.m < kPackedEdge || g.n < kPackedEdge ||
      double(g.m) * double(g.n) * double(g.k) < kPackedWork) {
    *reason = "BLAS is faster on small matrices";
    return false;
  }
  return true;
}
bool accepts_all(const Gemm&, const char**) { return true; }

constexpr GemmCandidate kCandidates[] = {
    {"direct", "tiny matrices, three loops in registers and first cache", direct_accepts,
     run_direct},
    {"gemv", "matrix times vector by BLAS", gemv_accepts, run_gemv},
    {"vector", "matrix times vector without packing", vector_product_accepts, run_vector_product},
    {"small", "operands in the nearest caches, read where they lie", small_accepts, run_small},
    {"packed_first", "own packed kernel where it beats BLAS", packed_first_accepts, run_packed},
    {"blas", "OpenBLAS on blocks of C", blas_accepts, run_blas},
    {"packed", "own packed kernel for this machine's vectors", packed_accepts, run_packed},
    {"reference", "plain loops in any type", accepts_all, run_reference},
};

thread_local const GemmCandidate* t_forced = nullptr;

template <class T>
void scale_as(T* c, int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride,
              const Scalar& beta) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      T& v = c[i * row_stride + j * col_stride];
      if (beta.equals(0))
        v = T(0);
      else if constexpr (is_complex_type<T>)
        v = v * T(beta.to_complex());
      else if constexpr (std::is_same_v<T, bool>)
        v = v && beta.to_bool();
      else if constexpr (std::is_integral_v<T>)
        v = static_cast<T>(static_cast<uint64_t>(v) * static_cast<uint64_t>(beta.to_int()));
      else if constexpr (std::is_same_v<T, double>)
        v = v * beta.to_double();
      else
        v = T(static_cast<float>(v) * static_cast<float>(beta.to_double()));
    }
}

// C = beta * C.
void scale(const Gemm& g) {
  if (g.beta.equals(1)) return;
  queue::parallel_for(0, g.m, std::max<int64_t>(1, 65536 / g.n), [&](int64_t begin, int64_t end) {
    visit(g.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      scale_as(static_cast<T*>(g.c) + begin * g.c_row_stride, end - begin, g.n, g.c_row_stride,
               g.c_col_stride, g.beta);
    });
  });
}

// A scalar that the type turns into 0 is 0.
bool vanishes(const Scalar& s, ScalarType t) {
  return is_integral(t, true) ? s.to_int() == 0 : s.equals(0);
}

}  // namespace

std::span<const GemmCandidate> gemm_candidates() { return kCandidates; }

const GemmCandidate& choose_gemm(const Gemm& g) {
  const char* reason = nullptr;
  if (t_forced) [[unlikely]] {
    LAMINA_CHECK(t_forced->accepts(g, &reason), "gemm: the forced kernel ", t_forced->name,
                 " refuses: ", reason);
    return *t_forced;
  }
  const GemmCandidate* c = kCandidates;
  while (!c->accepts(g, &reason)) ++c;
  return *c;
}

void force_gemm(const char* name) {
  t_forced = nullptr;
  if (!name) return;
  for (const GemmCandidate& c : kCandidates)
    if (!std::strcmp(c.name, name)) t_forced = &c;
  LAMINA_CHECK_VALUE(t_forced, "force_gemm: no kernel of this name; got ", name);
}

namespace {
// What ran, and why those before it would not.
[[gnu::cold]] void report(const Gemm& g, const GemmCandidate& chosen) {
  for (const GemmCandidate& c : kCandidates) {
    if (&c == &chosen) break;
    const char* reason = nullptr;
    if (!c.accepts(g, &reason)) event::t_listener->on_refusal(c.name, reason);
  }
  const char* on = tile::isa_name().data();
  if (!std::strcmp(chosen.name, "blas"))
    on = blas_name();
  else if (chosen.run == run_packed)
    packed_kernels(g.dtype, &on);
  event::report({"gemm", chosen.name, on, g.m * g.n * g.k});
}
}  // namespace

void gemm(const Gemm& g) {
  if (g.m <= 0 || g.n <= 0) return;
  if (g.k <= 0 || vanishes(g.alpha, g.dtype)) return scale(g);
  const GemmCandidate& chosen = choose_gemm(g);
  if (event::listening()) [[unlikely]]
    report(g, chosen);
  chosen.run(g);
}

void bmm(const BatchedGemm& b) {
  if (b.batch <= 0 || b.gemm.m <= 0 || b.gemm.n <= 0) return;
  const auto item = static_cast<int64_t>(item_size(b.gemm.dtype));
  const auto product = [&](int64_t i) {
    Gemm g = b.gemm;
    g.a = static_cast<const char*>(g.a) + i * b.a_batch_stride * item;
    g.b = static_cast<const char*>(g.b) + i * b.b_batch_stride * item;
    g.c = static_cast<char*>(g.c) + i * b.c_batch_stride * item;
    gemm(g);
  };
  // Large matrices are cut each; of small ones each thread takes some. The bits are the same either
  // way.
  constexpr double kLarge = 1 << 23, kChunk = 1 << 19;
  const double work =
      std::max(1.0, double(b.gemm.m) * double(b.gemm.n) * double(std::max<int64_t>(b.gemm.k, 1)));
  if (work >= kLarge && b.batch < 16) {
    for (int64_t i = 0; i < b.batch; ++i) product(i);
    return;
  }
  const GemmCandidate* forced = t_forced;
  const auto grain = static_cast<int64_t>(std::max(1.0, kChunk / work));
  queue::parallel_for(0, b.batch, grain, [&](int64_t begin, int64_t end) {
    const GemmCandidate* before = t_forced;
    t_forced = forced;
    struct Restore {
      const GemmCandidate* value;
      ~Restore() { t_forced = value; }
    } restore{before};
    for (int64_t i = begin; i < end; ++i) product(i);
  });
}

void gemv(const Gemv& v) {
  if (v.m <= 0) return;
  gemm(as_gemm(v));
}

void fill_rows(int64_t m, int64_t n, const void* bias, int64_t bias_stride, void* c,
               int64_t c_row_stride, int64_t c_col_stride, ScalarType dtype) {
  if (m <= 0 || n <= 0) return;
  const size_t item = item_size(dtype);
  const auto fill = [&](auto tag) {
    using T = decltype(tag);
    const auto* from = static_cast<const T*>(bias);
    queue::parallel_for(0, m, std::max<int64_t>(1, 65536 / n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* row = static_cast<T*>(c) + i * c_row_stride;
        if (bias_stride == 1 && c_col_stride == 1)
          std::memcpy(row, from, static_cast<size_t>(n) * sizeof(T));
        else
          for (int64_t j = 0; j < n; ++j) row[j * c_col_stride] = from[j * bias_stride];
      }
    });
  };
  switch (item) {
    case 1:
      return fill(uint8_t());
    case 2:
      return fill(uint16_t());
    case 4:
      return fill(uint32_t());
    case 8:
      return fill(uint64_t());
    default:
      return fill(std::complex<double>());
  }
}

}  // namespace lamina::cpu
