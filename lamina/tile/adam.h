// One step of Adam over adjacent values, in one pass.
#pragma once

#include <cstdint>

#include "lamina/core/scalar_type.h"

namespace lamina::tile {

// The numbers of a step. Each is rounded to the type of the values first, as a program's numbers
// are.
struct AdamStep {
  double decay;    // of the weights: a factor with `shrink`, a part of the gradient with `penalty`
  double weight1;  // of the gradient in its running mean
  double keep2;    // of the running mean of squares
  double weight2;  // of the square in it
  double correction2;  // root of the second bias correction
  double epsilon;
  double rate;  // minus the step size
  bool shrink, penalty, maximize;
};

// Float32 or Float64, n values each; on the calling thread. The bits are those of the operations
// one by one: mul, lerp, mul, addcmul, sqrt, div, add, addcdiv.
void adam_step(ScalarType type, void* param, const void* grad, void* mean, void* square,
               const AdamStep& step, int64_t n);

}  // namespace lamina::tile
