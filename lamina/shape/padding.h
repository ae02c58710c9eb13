// How borders are filled.
#pragma once

#include "lamina/core/tensor.h"

namespace lamina {

enum class Border : int64_t { Reflect = 0, Replicate = 1, Circular = 2 };

}  // namespace lamina
