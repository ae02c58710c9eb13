// Sizes and strides of the results of elementwise operators.
#pragma once

#include <span>

#include "lamina/core/tensor.h"

namespace lamina {

// Trailing dimensions match from the right; a size of one stretches. Raises Runtime naming `op` and
// the dimension.
Sizes broadcast_sizes(IntList a, IntList b, const char* op);
bool is_expandable(IntList from, IntList to);
// Strides with which a tensor of `sizes` is read as `to` (0 where stretched); `to` must be a
// broadcast of `sizes`.
Sizes broadcast_strides(IntList sizes, IntList strides, IntList to);

// Strides of a dense result whose dimensions lie in memory as in the operands, the first operand
// deciding. Each entry of `operands` has sizes.size() strides, 0 where broadcast.
Sizes result_strides(IntList sizes, std::span<const Sizes> operands);

}  // namespace lamina
