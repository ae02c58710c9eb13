// The packed matrix product: operands are copied into panels that the innermost kernel reads in
// order, converted to the type that computes (float for float16 and bfloat16, 32- or 64-bit
// integers, or the type itself). packed_kernels.inl is compiled once per instruction set. Each
// element of C is one chain of multiply-adds over k, however C is cut.
#pragma once

#include <cstdint>

#include "lamina/core/scalar_type.h"
#include "lamina/cpu/gemm.h"

namespace lamina::cpu {

inline constexpr int64_t kPackedKc =
    256;  // k is cut into pieces, so that a panel of B stays in the first cache

// C (rows, cols) of the computing type with unit column stride: C = beta * C + alpha * A * B; beta
// 0 does not read C.
struct PackedBlock {
  const void* a = nullptr;  // all panels of the first piece of k
  const void* b = nullptr;
  int64_t row = 0, col = 0;  // where this block starts in the panels; multiples of mr and nr
  int64_t a_piece = 0, b_piece = 0;  // elements from one full piece of k to the next
  int64_t k = 0;
  void* c = nullptr;
  int64_t c_stride = 0;
  int64_t rows = 0, cols = 0;
  Scalar alpha = 1, beta = 0;
};

// A product that fits the nearest caches: A is read where it lies, and so is B where its columns
// are adjacent. C has unit column stride; k is at most kSmallK.
inline constexpr int64_t kSmallK = 512;
struct SmallProduct {
  int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  int64_t a_row_stride = 0, a_col_stride = 0;
  const void* b = nullptr;
  int64_t b_row_stride = 0, b_col_stride = 0;
  void* c = nullptr;
  int64_t c_row_stride = 0;
  Scalar alpha = 1, beta = 0;
};

struct PackedKernels {
  int mr, nr;     // rows and columns of the innermost tile
  size_t item;    // bytes of an item of the panels and of the computing type
  int64_t depth;  // neighbours along k that make up an item; lengths and pieces of k in blocks
                  // count items
  // Writes ceil(lanes / width) panels of (ceil(k / depth), width), padded with zeros.
  void (*pack)(void* out, const void* in, ScalarType type, int64_t lanes, int64_t k,
               int64_t lane_stride, int64_t k_stride, int width);
  void (*block)(const PackedBlock& block);
  void (*small)(const SmallProduct& product);
  // C = alpha * work + beta * C in C's type, rounded once. work is (rows, cols) with row stride
  // work_stride.
  void (*finish)(void* c, ScalarType type, int64_t row_stride, int64_t col_stride, const void* work,
                 int64_t work_stride, int64_t rows, int64_t cols, const Scalar& alpha,
                 const Scalar& beta);
};

enum PackedType : int { kPackedFloat, kPackedDouble, kPackedInt32, kPackedInt64, kPackedTypes };

struct PackedLevel {
  const char* name;
  PackedKernels kernels[kPackedTypes];
};

namespace packed_baseline {
extern const PackedLevel kLevel;
}
#if defined(__x86_64__)
namespace packed_avx2 {
extern const PackedLevel kLevel;
}
namespace packed_avx512 {
extern const PackedLevel kLevel;
}
#endif

#if defined(__x86_64__)
namespace packed_pairs {
// Pairs of bfloat16, multiplied as they are and summed in float: twice as fast as float. The same
// chain of multiply-adds, with subnormal operands and sums taken for 0. Needs AVX512_BF16.
extern const PackedKernels kPairs;
}  // namespace packed_pairs
#endif

// The best level of this machine, or the one that LAMINA_CPU=avx2|baseline names.
const PackedLevel& packed_level();
// -1 for types that have no packed product.
int packed_type(ScalarType type);
// For a type that has one; `name` tells the instruction set.
const PackedKernels& packed_kernels(ScalarType type, const char** name = nullptr);
void run_packed(const Gemm& g);
bool small_accepts(const Gemm& g, const char** reason);
void run_small(const Gemm& g);

}  // namespace lamina::cpu
