// The innermost loops of convolution. conv_kernels.inl is compiled once per instruction set; the
// types that compute are those of the packed matrix product (packed.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "lamina/core/scalar_type.h"
#include "lamina/cpu/packed.h"

namespace lamina::cpu {

// C (rows, cols) = A * B, added to what C holds where `accumulate`. A lies in panels of mr rows and
// k steps; row p of B starts at b + offsets[p] and is read in place, without packing. Without masks
// cols is a multiple of `lanes`; B and C are readable that far.
struct ConvProduct {
  const void* a = nullptr;
  const void* b = nullptr;
  const int64_t* offsets = nullptr;  // k of them, in elements
  int64_t k = 0;
  void* c = nullptr;
  int64_t c_stride = 0;
  int64_t rows = 0, cols = 0;
  bool accumulate = false;
};

// C (m, n) += A * B^T, where row i of A and row j of B are `images` images of `lines` lines of
// `cols` adjacent elements: line l of image q of row i starts at a + i * a_stride + q * a_image +
// l * a_line, of row j at b + offsets[j] + q * b_image + l * b_line. A is zero (and readable) up to
// the next multiple of `lanes` columns; B is readable there, and what it holds does not count.
// Kernels that have masks want one for each vector of a line instead: bit i tells whether column i
// of the vector counts. Then several lines, with what lies between them, may pass for one.
struct ConvDots {
  const void* a = nullptr;
  int64_t a_stride = 0, a_image = 0, a_line = 0;
  const void* b = nullptr;
  const int64_t* offsets = nullptr;  // n of them
  int64_t b_image = 0, b_line = 0;
  int64_t images = 1, lines = 0, cols = 0;
  const uint16_t* masks = nullptr;
  int64_t m = 0, n = 0;
  void* c = nullptr;
  int64_t c_stride = 0;
};

struct ConvKernels {
  int mr, lanes;  // rows of a panel, elements of a vector
  size_t item;    // bytes of the computing type
  bool has_masks;
  void (*multiply)(const ConvProduct& product);
  void (*dots)(const ConvDots& dots);
  // Writes k steps of mr lanes: lane i of step p is in[offsets[p] + i * lane_stride], and 0 from
  // `lanes` on.
  void (*pack)(void* out, const void* in, ScalarType type, int64_t lanes, int64_t lane_stride,
               const int64_t* offsets, int64_t k);
  // n elements, `stride` apart, converted to the computing type.
  void (*load)(void* out, const void* in, ScalarType type, int64_t n, int64_t stride);
  // The way back: `bias` (one value of the computing type, or null) is added first.
  void (*store)(void* out, ScalarType type, int64_t stride, const void* in, int64_t n,
                const void* bias);
  // `lines` lines of n adjacent elements of the computing type, `to_line` and `from_line` apart.
  void (*copy)(void* to, int64_t to_line, const void* from, int64_t from_line, int64_t n,
               int64_t lines);
  // to[i] plus the sum of from[j * stride + i], in order of j < count, for i < n.
  void (*add)(void* to, const void* from, int64_t count, int64_t stride, int64_t n);
};

struct ConvLevel {
  ConvKernels kernels[kPackedTypes];
};

namespace packed_baseline {
extern const ConvLevel kConvLevel;
}
#if defined(__x86_64__)
namespace packed_avx2 {
extern const ConvLevel kConvLevel;
}
namespace packed_avx512 {
extern const ConvLevel kConvLevel;
}
#endif

// Of the level of packed_level(). `type` must have a packed product.
const ConvKernels& conv_kernels(ScalarType type);

}  // namespace lamina::cpu
