// Helpers that gradient formulas use beside the public operators.
#pragma once

#include "lamina/autograd/saved_tensor.h"
#include "lamina/core/scalar.h"
#include "lamina/ops.h"

namespace lamina {

// Arithmetic on tensors and numbers.
#define LAMINA_TENSOR_OPERATOR(symbol, function)                                                            \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return ops::function(a, b); }           \
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
inline Tensor operator/(const Scalar& a, const Tensor& b) { return ops::mul(ops::reciprocal(b), a); }
inline bool operator==(const Scalar& a, int64_t b) { return a.equals(static_cast<double>(b)); }
inline Scalar operator*(const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) return a.to_complex() * b.to_complex();
  if (a.is_floating() || b.is_floating()) return a.to_double() * b.to_double();
  return static_cast<int64_t>(static_cast<uint64_t>(a.to_int()) * static_cast<uint64_t>(b.to_int()));
}
inline Scalar operator-(const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) return a.to_complex() - b.to_complex();
  if (a.is_floating() || b.is_floating()) return a.to_double() - b.to_double();
  return static_cast<int64_t>(static_cast<uint64_t>(a.to_int()) - static_cast<uint64_t>(b.to_int()));
}

namespace autograd::formulas {

// What a formula may know of an input without keeping it.
inline Sizes sizes(const Tensor& t) { return Sizes(std::span<const int64_t>(t.sizes())); }
inline std::vector<Sizes> sizes_list(TensorList list) {
  std::vector<Sizes> out;
  for (const Tensor& t : list) out.push_back(sizes(t));
  return out;
}

// A pointwise gradient brought back to its input: summed over what broadcasting stretched, the real part for a real
// input, in the input's type.
Tensor fit(const Tensor& grad, IntList sizes, ScalarType dtype);
// The same without sizes: for formulas whose result has the input's sizes already.
Tensor fit_dtype(const Tensor& grad, ScalarType dtype);
std::vector<Tensor> fit_dtype(const std::vector<Tensor>& grads, ScalarType dtype);

Scalar conj(const Scalar& s);
Tensor conj(const Tensor& t);  // t itself where it is real
// Zero where the cotangent is exactly zero: what a mask cut off stays cut off.
inline Tensor mul_zero(const Tensor& grad, const Tensor& x) { return ops::_mul_zero(grad, x); }
inline Tensor mul_zero(const Tensor& grad, const Scalar& x) { return ops::mul(grad, x); }
inline Tensor div_zero(const Tensor& grad, const Tensor& x) { return ops::_div_zero(grad, x); }
inline Tensor div_zero(const Tensor& grad, const Scalar& x) { return ops::div(grad, x); }

// A reduced gradient spread over the dimensions that were reduced: sizes are those of the input.
Tensor spread(const Tensor& grad, IntList sizes, std::optional<IntList> dims, bool keepdim);
// A result of a reduction shaped so that it broadcasts with the input.
Tensor unreduce(const Tensor& t, IntList sizes, std::optional<IntList> dims, bool keepdim);
// Number of elements that go into one result.
int64_t reduced_count(IntList sizes, std::optional<IntList> dims);
// Dimensions as a list, for parameters that are one int.
inline std::optional<IntList> one_dim(const int64_t& dim) { return IntList(&dim, 1); }

}  // namespace autograd::formulas
}  // namespace lamina
