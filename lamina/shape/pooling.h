// Windows of pooling.
#pragma once

#include <array>

#include "lamina/core/tensor.h"

namespace lamina {

// Sizes of the last `spatial` dimensions, right-aligned in three.
struct PoolGeometry {
  int64_t spatial = 0;
  std::array<int64_t, 3> input{1, 1, 1}, output{1, 1, 1};
  std::array<int64_t, 3> kernel{1, 1, 1}, stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
};

// Checks the arguments against an input of these sizes; raises Runtime. An empty stride is the
// kernel's size.
PoolGeometry pool_geometry(IntList input, int64_t spatial, IntList kernel, IntList stride,
                           IntList padding, IntList dilation, bool ceil_mode, const char* op);

}  // namespace lamina
