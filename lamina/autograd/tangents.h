// The tangents of one tensor: at most one for each live level of forward mode.
#pragma once

#include <cstdint>
#include <vector>

#include "lamina/core/intrusive_ptr.h"
#include "lamina/core/tensor.h"

namespace lamina::autograd::forward {

struct Tangent {
  uint64_t level;          // its number, never used twice
  Tensor value;            // undefined: none, and none is sought in the base either
  bool exclusive = false;  // nobody but the tensor and its views reads or writes these bytes
  bool viewed = false;     // tangents of views are windows of it, or it is one itself
  bool own_root = false;   // writes stay with this tensor and its views: its base is not told
};

// Shared by a tensor and the alias of it that a node keeps, since the tangent of a result is set
// after the result is saved. Read and written under one lock (forward.cpp); a level that ends drops
// the tangents that belong to it.
class Tangents : public RefCounted {
 public:
  ~Tangents() override;
  std::vector<Tangent> entries;
};

}  // namespace lamina::autograd::forward
