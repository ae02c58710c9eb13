// Sizes of the results of reductions.
#pragma once

#include <bitset>
#include <optional>

#include "lamina/core/tensor.h"

namespace lamina {

using DimMask = std::bitset<64>;

// Which dimensions are reduced. An absent list means all of them, and so does an empty one where
// `empty_is_all`. Raises Index for a dimension out of range and Runtime for one given twice.
DimMask reduced_dims(int64_t ndim, std::optional<IntList> dims, bool empty_is_all, const char* op);
Sizes reduced_sizes(IntList sizes, const DimMask& mask, bool keepdim);

}  // namespace lamina
