// Sizes and strides of views.
#pragma once

#include <optional>

#include "lamina/core/tensor.h"

namespace lamina {

// Fills in one size of -1. Raises Runtime where the sizes do not hold `numel` elements.
Sizes infer_size(IntList size, int64_t numel, const char* op);
// Strides with which a window can be read as `to`; none where a dimension of `to` would span two of
// the window's that do not follow each other.
std::optional<Sizes> view_strides(IntList sizes, IntList strides, IntList to);

struct SliceRange {
  int64_t start;
  int64_t count;
};
// Python's rules. Raises Value for a step of zero.
SliceRange slice_range(int64_t size, std::optional<int64_t> start, std::optional<int64_t> end,
                       int64_t step);
int64_t diagonal_size(int64_t rows, int64_t columns, int64_t offset);

}  // namespace lamina
