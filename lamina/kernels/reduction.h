// Runs a reduction: dimensions, result or target, then the tile machine.
#pragma once

#include <optional>

#include "lamina/core/tensor.h"
#include "lamina/kernels/pointwise.h"
#include "lamina/tile/tile.h"

namespace lamina::kernels {

enum class Accumulate : uint8_t {
  Self,   // in the input's type
  Sum,    // integers and bool in int64
  Float,  // floating and complex only
  Bool,   // result is bool (uint8 for uint8 input, as any and all have it)
  Index,  // result is int64
};

struct Reduction {
  const char* name;
  tile::Reduce kind;
  Accumulate accumulate;
  uint8_t categories;  // accepted element types
  bool empty_is_all;   // an empty list of dimensions means all of them
};

struct ReductionArgs {
  std::optional<IntList> dims;
  bool keepdim = false;
  std::optional<ScalarType> dtype;
  double correction = 1;
};

Tensor reduction(const Reduction& op, const Tensor& self, const ReductionArgs& args);
void reduction_out(const Reduction& op, const Tensor& out, const Tensor& self,
                   const ReductionArgs& args);

}  // namespace lamina::kernels
