// Matrix products on the CPU, on raw pointers. Results do not depend on the number of threads: C is
// cut into blocks by sizes alone, and every block is one call of a single-threaded kernel.
#pragma once

#include <cstdint>
#include <span>

#include "lamina/core/scalar.h"
#include "lamina/core/scalar_type.h"

namespace lamina::cpu {

// C = alpha * A * B + beta * C with A (m, k), B (k, n), C (m, n). Strides are in elements, any
// sign, and 0 in A and B. beta == 0 ignores what C holds; alpha == 0 or k == 0 ignores A and B.
// Integers wrap, bool is or-of-ands, float16 and bfloat16 accumulate in float32 and round once. C
// must not overlap A, B or itself.
struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  int64_t a_row_stride = 0, a_col_stride = 0;
  const void* b = nullptr;
  int64_t b_row_stride = 0, b_col_stride = 0;
  void* c = nullptr;
  int64_t c_row_stride = 0, c_col_stride = 0;
  Scalar alpha = 1, beta = 0;
  ScalarType dtype = ScalarType::Float32;
  bool conj_a = false, conj_b = false;
};

void gemm(const Gemm& g);

// `batch` products; operand i starts at i times its batch stride (elements).
struct BatchedGemm {
  Gemm gemm;
  int64_t batch = 0;
  int64_t a_batch_stride = 0, b_batch_stride = 0, c_batch_stride = 0;
};
void bmm(const BatchedGemm& g);

// y = alpha * A * x + beta * y with A (m, n); the same rules as gemm.
struct Gemv {
  int64_t m = 0, n = 0;
  const void* a = nullptr;
  int64_t a_row_stride = 0, a_col_stride = 0;
  const void* x = nullptr;
  int64_t x_stride = 0;
  void* y = nullptr;
  int64_t y_stride = 0;
  Scalar alpha = 1, beta = 0;
  ScalarType dtype = ScalarType::Float32;
  bool conj_a = false, conj_x = false;
};
void gemv(const Gemv& g);

// *out = sum of x[i] * y[i]; conj_x gives vdot. One tree over fixed chunks.
void dot(int64_t n, const void* x, int64_t x_stride, const void* y, int64_t y_stride, void* out,
         ScalarType dtype, bool conj_x = false, bool conj_y = false);

// Writes each row of C (m, n) with `bias` (n values, any stride; 0 repeats one); gemm with beta 1
// then adds the product.
void fill_rows(int64_t m, int64_t n, const void* bias, int64_t bias_stride, void* c,
               int64_t c_row_stride, int64_t c_col_stride, ScalarType dtype);

// The kernels in order of preference; the last accepts everything. `accepts` names its reason when
// it refuses.
struct GemmCandidate {
  const char* name;
  const char* description;
  bool (*accepts)(const Gemm& g, const char** reason);
  void (*run)(const Gemm& g);
};
std::span<const GemmCandidate> gemm_candidates();

// The candidate that gemm(g) uses; explain calls it, and asks those before it why they refused.
const GemmCandidate& choose_gemm(const Gemm& g);

// Tests force a candidate by name on this thread (nullptr: the usual choice); a forced candidate
// that refuses raises.
void force_gemm(const char* name);

// Name and version of the BLAS behind the candidates, e.g. "OpenBLAS 0.3.30 Zen".
const char* blas_name();

}  // namespace lamina::cpu
