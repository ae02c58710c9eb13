// What one instruction-set level provides. The files in loops/ are compiled once per level, with
// LAMINA_TILE_LEVEL naming the namespace, and fill the tables of a Level; everything else of the
// tile machine is compiled once.
#pragma once

#include <cstdint>

#include "lamina/tile/tile.h"

namespace lamina::tile {

struct AdamStep;

// Slots of element types: those of detail::kSlotOf, then the types that exist only in memory.
inline constexpr int kNumSlots = 17;
constexpr int memory_slot(ScalarType t) {
  switch (t) {
    case ScalarType::Float16:
      return 13;
    case ScalarType::BFloat16:
      return 14;
    case ScalarType::Float8E5M2:
      return 15;
    case ScalarType::Float8E4M3FN:
      return 16;
    default:
      return detail::kSlotOf[index_of(t)];
  }
}
inline constexpr int kFloatSlot = memory_slot(ScalarType::Float32);

using ConvertLoop = void (*)(void* out, const void* in, int64_t n);
// Copies rows x cols items of one size between two strided places; strides in bytes.
using MoveLoop = void (*)(void* out, int64_t out_row, int64_t out_col, const void* in,
                          int64_t in_row, int64_t in_col, int64_t rows, int64_t cols);

// Copies adjacent bytes around the caches, for results too large to be read from them again. A
// thread that has used it calls it once more with no bytes before it lets others see the result.
using StreamLoop = void (*)(void* out, const void* in, int64_t bytes);

// Folds n adjacent values, leaf by leaf: parts[i] = fold over x[i * kLeaf, min((i + 1) * kLeaf,
// n)).
using FoldLeaf = void (*)(void* parts, const void* x, int64_t n);
// Column by column: parts[j] = fold over r of x[r * stride + j], r < rows; rows >= 1.
using FoldAcross = void (*)(void* parts, const void* x, int64_t stride, int64_t rows, int64_t n);

// Associative folds that reductions are made of.
enum class Fold : uint8_t { sum, prod, amax, amin, any, all, sum_squares };
inline constexpr int kNumFolds = 7;
inline constexpr int64_t kLeaf = 1024;

// Rows of normalizations: n adjacent values of type float or double. weight and bias are n values
// each, or null.
struct NormKernels {
  // out = (x - mean) * rstd * weight + bias. With `centered` mean and rstd come from mean and
  // variance of the row, else from the mean of squares alone, and mean is 0.
  void (*forward)(void* out, double* mean, double* rstd, const void* x, const void* weight,
                  const void* bias, double eps, bool centered, int64_t n) = nullptr;
  // The gradient of x.
  void (*backward)(void* dx, const void* grad, const void* x, const void* weight, double mean,
                   double rstd, bool centered, int64_t n) = nullptr;
  // weight_grad += grad * (x - mean) * rstd and bias_grad += grad; each may be null.
  void (*add_parameters)(void* weight_grad, void* bias_grad, const void* grad, const void* x,
                         double mean, double rstd, int64_t n) = nullptr;
  // out = x * a + b
  void (*affine)(void* out, const void* x, double a, double b, int64_t n) = nullptr;
  // out = g * a + (x - mean) * b + c
  void (*affine2)(void* out, const void* g, const void* x, double mean, double a, double b,
                  double c, int64_t n) = nullptr;
  // Sums of g and of g * (x - mean).
  void (*product_sums)(double* g_sum, double* gx_sum, const void* g, const void* x, double mean,
                       int64_t n) = nullptr;
};

// Rows of softmax and its relatives: n adjacent values of type float or double.
// Rows of softmax of at most kShortRow elements are worked on kShortRows together, a lane a row.
inline constexpr int64_t kShortRow = 64;
inline constexpr int kShortRows = 16;

struct RowKernels {
  void (*softmax)(void* out, const void* x, int64_t n) = nullptr;
  void (*log_softmax)(void* out, const void* x, int64_t n) = nullptr;
  void (*softmax_backward)(void* out, const void* grad, const void* y, int64_t n) = nullptr;
  void (*log_softmax_backward)(void* out, const void* grad, const void* y, int64_t n) = nullptr;
  // By Softmax; all operands are [n][kShortRows].
  void (*short_rows[4])(void* out, const void* first, const void* second, int64_t n) = {};
  // mean and sum of squared distances from it (two passes over a row that lies in cache)
  void (*moments)(double* mean, double* m2, const void* x, int64_t n) = nullptr;
  NormKernels norm;
};

struct Level {
  DirectLoop loops[kNumOps * detail::kTypeSlots] = {};
  ConvertLoop convert[kNumSlots][kNumSlots] = {};  // [to][from]; null: by way of float
  MoveLoop move[5] = {};                           // items of 1, 2, 4, 8, 16 bytes
  StreamLoop stream = nullptr;
  bool streams_results = false;  // of direct loops, too
  int64_t streams_from = int64_t{36}
                         << 20;  // bytes of a conversion or a copy out of order, with its operand
  FoldLeaf fold_leaf[kNumFolds][detail::kTypeSlots] = {};
  FoldAcross fold_across[kNumFolds][detail::kTypeSlots] = {};
  // *position = first place of the largest [0] or smallest [1] element or of a NaN; n <= kLeaf.
  void (*find[2][detail::kTypeSlots])(void* position, const void* x, int64_t n) = {};
  RowKernels rows[detail::kTypeSlots] = {};
  void (*adam[detail::kTypeSlots])(void* param, const void* grad, void* mean, void* square,
                                   const AdamStep& step, int64_t n) = {};

  void put(Op op, int slot, DirectLoop loop) {
    loops[static_cast<int>(op) * detail::kTypeSlots + slot] = loop;
  }
};

constexpr int size_index(int64_t bytes) {
  return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : 4;
}

const Level& level();  // the one in use

// Called at the end of a loop that met an integer division by zero.
[[noreturn]] void raise_zero_division();

#define LAMINA_TILE_DECLARE_LEVEL(ns) \
  namespace ns {                      \
  void fill_integers(Level&);         \
  void fill_floats(Level&);           \
  void fill_compares(Level&);         \
  void fill_math_float(Level&);       \
  void fill_math_double(Level&);      \
  void fill_complex(Level&);          \
  void fill_converts(Level&);         \
  void fill_moves(Level&);            \
  void fill_folds(Level&);            \
  void fill_rows(Level&);             \
  void fill_norms(Level&);            \
  void fill_adam(Level&);             \
  }
LAMINA_TILE_DECLARE_LEVEL(baseline)
LAMINA_TILE_DECLARE_LEVEL(avx2)
LAMINA_TILE_DECLARE_LEVEL(avx512)

// Complex functions of libm quality and others that no vector unit helps; compiled once.
void fill_complex_functions(Level&);
void fill_scalar_functions(Level&);

}  // namespace lamina::tile
