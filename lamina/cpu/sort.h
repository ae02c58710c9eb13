// Sorting on the CPU, on raw pointers. NaN counts as larger than every number, as in the peer.
#pragma once

#include <cstdint>

#include "lamina/core/scalar_type.h"

namespace lamina::cpu {

// `rows` rows of n elements each, contiguous in the outputs (rows, n); row r of the input starts at
// r * row_stride and has its elements `stride` apart. Always stable, so `indices` is a function of
// the input alone.
void sort_rows(void* values, int64_t* indices, const void* self, int64_t rows, int64_t n,
               int64_t row_stride, int64_t stride, ScalarType dtype, bool descending);

// The k largest (or smallest) of each row, best first; outputs are contiguous (rows, k). Ties:
// lower index first.
void topk_rows(void* values, int64_t* indices, const void* self, int64_t rows, int64_t n, int64_t k,
               int64_t row_stride, int64_t stride, ScalarType dtype, bool largest);

// out[i] = first position in the sorted row at which values[i] can be inserted (right: after equal
// ones). The sequence has `rows` rows of n elements, or one row (rows == 1) for all values; values
// is (rows or 1, per_row), all contiguous.
void searchsorted(int64_t* out, const void* sequence, int64_t rows, int64_t n, const void* values,
                  int64_t value_rows, int64_t per_row, ScalarType dtype, bool right);

}  // namespace lamina::cpu
