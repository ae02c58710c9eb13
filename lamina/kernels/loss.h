// How losses are reduced; the numbers of the reduction parameter.
#pragma once

#include <cstdint>

#include "lamina/tile/tile.h"

namespace lamina {

inline constexpr int64_t kReductionNone = 0, kReductionMean = 1, kReductionSum = 2;

}  // namespace lamina
