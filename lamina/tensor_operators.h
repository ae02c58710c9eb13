// Arithmetic, comparison and logic on tensors and numbers, written with C++'s operators.
#pragma once

#include "lamina/ops/add.h"
#include "lamina/ops/bitwise_and.h"
#include "lamina/ops/bitwise_not.h"
#include "lamina/ops/bitwise_or.h"
#include "lamina/ops/div.h"
#include "lamina/ops/eq.h"
#include "lamina/ops/ge.h"
#include "lamina/ops/gt.h"
#include "lamina/ops/le.h"
#include "lamina/ops/lt.h"
#include "lamina/ops/mul.h"
#include "lamina/ops/ne.h"
#include "lamina/ops/neg.h"
#include "lamina/ops/reciprocal.h"
#include "lamina/ops/rsub.h"
#include "lamina/ops/sub.h"

namespace lamina {

#define LAMINA_TENSOR_OPERATOR(symbol, function)                                                  \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return ops::function(a, b); } \
  inline Tensor operator symbol(const Tensor& a, const Scalar& b) { return ops::function(a, b); }
LAMINA_TENSOR_OPERATOR(+, add)
LAMINA_TENSOR_OPERATOR(-, sub)
LAMINA_TENSOR_OPERATOR(*, mul)
LAMINA_TENSOR_OPERATOR(/, div)
LAMINA_TENSOR_OPERATOR(==, eq)
LAMINA_TENSOR_OPERATOR(!=, ne)
LAMINA_TENSOR_OPERATOR(<, lt)
LAMINA_TENSOR_OPERATOR(<=, le)
LAMINA_TENSOR_OPERATOR(>, gt)
LAMINA_TENSOR_OPERATOR(>=, ge)
#undef LAMINA_TENSOR_OPERATOR
inline Tensor operator&(const Tensor& a, const Tensor& b) { return ops::bitwise_and(a, b); }
inline Tensor operator|(const Tensor& a, const Tensor& b) { return ops::bitwise_or(a, b); }
inline Tensor operator~(const Tensor& a) { return ops::bitwise_not(a); }
inline Tensor operator-(const Tensor& a) { return ops::neg(a); }
inline Tensor operator+(const Scalar& a, const Tensor& b) { return ops::add(b, a); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return ops::mul(b, a); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return ops::rsub(b, a); }
inline Tensor operator/(const Scalar& a, const Tensor& b) {
  return ops::mul(ops::reciprocal(b), a);
}

}  // namespace lamina
