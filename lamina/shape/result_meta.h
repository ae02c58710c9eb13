// What a shape rule says of one result before any number exists.
#pragma once

#include <array>

#include "lamina/core/tensor.h"

namespace lamina {

struct ResultMeta {
  Sizes sizes;
  ScalarType dtype = ScalarType::Float32;
  Device device = kCpu;
  MemoryFormat format = MemoryFormat::Contiguous;  // how a fresh result lies
};

}  // namespace lamina
