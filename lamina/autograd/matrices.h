// Short names for what the formulas about matrices are written in.
#pragma once

#include "lamina/ops.h"

namespace lamina::autograd::formulas {

inline Tensor H(const Tensor& t) { return ops::mH(t); }
inline Tensor product(const Tensor& a, const Tensor& b) { return ops::matmul(a, b); }
inline Tensor product(const Tensor& a, const Tensor& b, const Tensor& c) {
  return ops::matmul(ops::matmul(a, b), c);
}
inline Tensor diagonal(const Tensor& t) { return ops::diagonal(t, 0, -2, -1); }

}  // namespace lamina::autograd::formulas
