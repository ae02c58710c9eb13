// Argument rules of convolution that its kernels and composites share.
#pragma once

#include <array>

#include "lamina/core/tensor.h"

namespace lamina {

// channels_last where the strides say so and row-major does not fit; else contiguous.
MemoryFormat suggested_format(const Tensor& t);

// One number for each spatial dimension; a list of one stands for all. Raises Runtime with the name
// of the argument.
std::array<int64_t, 3> spatial_list(IntList list, int64_t spatial, const char* what,
                                    int64_t leading);

}  // namespace lamina
