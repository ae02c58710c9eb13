// Helpers that gradient formulas use beside the public operators.
#pragma once

#include "lamina/autograd/formulas_linalg.h"
#include "lamina/autograd/formulas_nn.h"
#include "lamina/autograd/saved_tensor.h"
#include "lamina/core/scalar.h"
#include "lamina/ops.h"
#include "lamina/tensor_operators.h"

namespace lamina {

// Arithmetic on the numbers that formulas meet.
inline bool operator==(const Scalar& a, int64_t b) { return a.equals(static_cast<double>(b)); }
inline Scalar operator*(const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) return a.to_complex() * b.to_complex();
  if (a.is_floating() || b.is_floating()) return a.to_double() * b.to_double();
  return static_cast<int64_t>(static_cast<uint64_t>(a.to_int()) *
                              static_cast<uint64_t>(b.to_int()));
}
inline Scalar operator-(const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) return a.to_complex() - b.to_complex();
  if (a.is_floating() || b.is_floating()) return a.to_double() - b.to_double();
  return static_cast<int64_t>(static_cast<uint64_t>(a.to_int()) -
                              static_cast<uint64_t>(b.to_int()));
}

namespace autograd::formulas {

// What a formula may know of an input without keeping it.
// A view of the tensor's own.
inline std::span<const int64_t> sizes(const Tensor& t) { return t.sizes(); }
inline std::vector<Sizes> sizes_list(TensorList list) {
  std::vector<Sizes> out;
  for (const Tensor& t : list) out.emplace_back(sizes(t));
  return out;
}

inline std::vector<ScalarType> dtype_list(TensorList list) {
  std::vector<ScalarType> out;
  for (const Tensor& t : list) out.push_back(t.dtype());
  return out;
}

// Where a tensor lay on its storage.
struct Geometry {
  Sizes sizes, strides;
  int64_t offset = 0;
};
inline Geometry geometry(const Tensor& t) {
  return {Sizes(sizes(t)), Sizes(std::span<const int64_t>(t.strides())), t.storage_offset()};
}

// A pointwise gradient brought back to its input: summed over what broadcasting stretched, the real
// part for a real input, in the input's type.
Tensor fit(const Tensor& grad, IntList sizes, ScalarType dtype);
// The same without sizes: for formulas whose result has the input's sizes already.
Tensor fit_dtype(const Tensor& grad, ScalarType dtype);
std::vector<Tensor> fit_dtype(const std::vector<Tensor>& grads,
                              const std::vector<ScalarType>& dtypes);

Scalar conj_of(const Scalar& s);
Tensor conj_of(const Tensor& t);  // t itself where it is real
// Zero where the cotangent is exactly zero: what a mask cut off stays cut off.
inline Tensor mul_zero(const Tensor& grad, const Tensor& x) { return ops::_mul_zero(grad, x); }
inline Tensor mul_zero(const Tensor& grad, const Scalar& x) {
  return x.equals(1) ? grad : ops::mul(grad, x);
}
inline Tensor div_zero(const Tensor& grad, const Tensor& x) { return ops::_div_zero(grad, x); }
inline Tensor div_zero(const Tensor& grad, const Scalar& x) { return ops::div(grad, x); }

// A reduced gradient spread over the dimensions that were reduced: sizes are those of the input.
Tensor spread(const Tensor& grad, IntList sizes, std::optional<IntList> dims, bool keepdim);
// A result of a reduction shaped so that it broadcasts with the input.
Tensor unreduce(const Tensor& t, IntList sizes, std::optional<IntList> dims, bool keepdim);
// Number of elements that go into one result.
int64_t reduced_count(IntList sizes, std::optional<IntList> dims);

// t itself for a factor of one, zeros for a factor of zero.
Tensor scaled(const Tensor& t, const Scalar& factor);
Tensor zeros_of(const Tensor& like, IntList sizes);  // zeros of the type of `like`
Tensor flip(const Tensor& t, int64_t dim);           // a view with a negative stride
std::optional<Scalar> unbiased_correction(bool unbiased);
Sizes inverse_permutation(IntList dims);
Sizes negated(IntList list);
Tensor real_of(const Tensor& grad);
Tensor imag_of(const Tensor& grad);

// --- arithmetic: derivatives of one operator, by its name ---
Tensor pow_grad_self(const Tensor& grad, const Tensor& self, const Tensor& exponent);
Tensor pow_grad_self(const Tensor& grad, const Tensor& self, const Scalar& exponent);
Tensor pow_grad_exponent(const Tensor& grad, const Tensor& self, const Tensor& exponent,
                         const Tensor& result);
Tensor pow_grad_exponent(const Tensor& grad, const Scalar& self, const Tensor& exponent,
                         const Tensor& result);
Tensor split_tie(const Tensor& loses, const Tensor& equal);  // 0, one half or 1
Tensor copysign_grad(const Tensor& self, const Tensor& result);
Tensor logaddexp_weight(const Tensor& self, const Tensor& other);
Tensor logaddexp2_weight(const Tensor& self, const Tensor& other);
Tensor xlogy_weight(const Tensor& self, const Tensor& other);
Tensor xlogy_weight(const Tensor& self, const Scalar& other);
Tensor sgn_grad(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor angle_grad(const Tensor& grad, const Tensor& self);
Tensor floor_quotient(const Tensor& self, const Tensor& other);
Tensor floor_quotient(const Tensor& self, const Scalar& other);
Tensor floor_quotient(const Scalar& self, const Tensor& other);
Tensor gelu_tanh_second(const Tensor& self);
Tensor acosh_slope(const Tensor& self);
Tensor silu_derivative(const Tensor& self);
Tensor softplus_second(const Tensor& grad_output, const Tensor& self, const Scalar& beta,
                       const Scalar& threshold);

// --- reductions ---
using Dims = std::optional<IntList>;
Tensor var_grad(const Tensor& grad, const Tensor& self, Dims dims,
                const std::optional<Scalar>& correction, bool keepdim);
Tensor std_grad(const Tensor& grad, const Tensor& self, const Tensor& result, Dims dims,
                const std::optional<Scalar>& correction, bool keepdim);
Tensor prod_grad_all(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor prod_grad_dim(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim,
                     bool keepdim);
Tensor tie_grad(const Tensor& grad, const Tensor& self, const Tensor& result, IntList dims,
                bool keepdim);
Tensor index_grad(const Tensor& grad, IntList sizes, int64_t dim, const Tensor& indices,
                  bool keepdim);
Tensor logsumexp_grad(const Tensor& grad, const Tensor& self, const Tensor& result, IntList dims,
                      bool keepdim);
Tensor flip_cumsum(const Tensor& grad, int64_t dim);
Tensor cumprod_grad(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim);
Tensor softmax_second(const Tensor& grad, const Tensor& grad_output, const Tensor& output,
                      int64_t dim);
Tensor log_softmax_second_grad(const Tensor& grad, const Tensor& output, int64_t dim);
Tensor log_softmax_second(const Tensor& grad, const Tensor& grad_output, const Tensor& output,
                          int64_t dim);

// --- views and indexing ---
Tensor as_strided_grad(const Tensor& grad, const Geometry& self, IntList size, IntList stride,
                       std::optional<int64_t> storage_offset);
Tensor unfold_grad(const Tensor& grad, IntList sizes, int64_t dimension, int64_t size,
                   int64_t step);
std::vector<Tensor> cat_grad(const Tensor& grad, const std::vector<Sizes>& sizes, int64_t dim);
// Gradients of several results, along the dimension the operator took apart.
Tensor joined(std::span<const Tensor> grads, int64_t dim);
Tensor stacked(std::span<const Tensor> grads, int64_t dim);
Tensor scatter_src_grad(const Tensor& grad, IntList src_sizes);
// What is written to one place several times: only the last value counts. `grad` is that of what
// was written, and loses what was written over.
Tensor without_overwritten_scatter(const Tensor& grad, IntList sizes, int64_t dim,
                                   const Tensor& index);
Tensor without_overwritten_copy(const Tensor& grad, IntList sizes, int64_t dim,
                                const Tensor& index);
Tensor without_overwritten_put(const Tensor& grad, IntList sizes, TensorList indices);
Tensor masked_select_grad(const Tensor& grad, IntList sizes, const Tensor& mask);
Tensor masked_scatter_source_grad(const Tensor& grad, const Tensor& mask, IntList source_sizes);
Tensor index_grad_put(const Tensor& grad, IntList sizes, TensorList indices);
Tensor zero_at(const Tensor& grad, TensorList indices);
Tensor index_put_values_grad(const Tensor& grad, TensorList indices, IntList value_sizes,
                             bool accumulate);
Tensor copy_grad(const Tensor& grad, IntList src_sizes);

// What a view shows, in bytes of its own.
Tensor copied(const Tensor& view);
std::vector<Tensor> copied(const std::vector<Tensor>& views);
// Gradients of self and src; reduce is sum, prod, mean, amax or amin.
std::array<Tensor, 2> scatter_reduce_grad(const Tensor& grad, const Tensor& self, int64_t dim,
                                          const Tensor& index, const Tensor& src,
                                          std::string_view reduce, bool include_self,
                                          const Tensor& result);
Tensor scatter_reduce_self_tangent(const Tensor& tangent, const Tensor& self, int64_t dim,
                                   const Tensor& index, const Tensor& src, std::string_view reduce,
                                   bool include_self, const Tensor& result);
Tensor scatter_reduce_src_tangent(const Tensor& tangent, const Tensor& self, int64_t dim,
                                  const Tensor& index, const Tensor& src, std::string_view reduce,
                                  bool include_self, const Tensor& result);
Tensor logcumsumexp_grad(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim);
Tensor logcumsumexp_tangent(const Tensor& tangent, const Tensor& self, const Tensor& result,
                            int64_t dim);

// --- special functions: slopes ---
Tensor i1_slope(const Tensor& self, const Tensor& result);
Tensor i1e_slope(const Tensor& self, const Tensor& result);
Tensor sinc_slope(const Tensor& self);
Tensor logit_slope(const Tensor& self);
Tensor xlog1py_weight(const Tensor& self, const Tensor& other);
Tensor xlog1py_weight(const Tensor& self, const Scalar& other);
Tensor zeta_slope(const Tensor& self, const Tensor& other);
Tensor zeta_slope(const Scalar& self, const Tensor& other);
Tensor igamma_slope(const Tensor& self, const Tensor& other);
Tensor polar_grad_abs(const Tensor& grad, const Tensor& angle);
Tensor polar_grad_angle(const Tensor& grad, const Tensor& result);
Tensor polar_angle_tangent(const Tensor& tangent, const Tensor& result);

// --- products and losses ---
Tensor mm_grad_self(const Tensor& grad, IntList sizes, const Tensor& mat2);
Tensor mm_grad_mat2(const Tensor& grad, const Tensor& self, IntList sizes);
Tensor nll_loss_second(const Tensor& grad, const Tensor& target, const Tensor& weight,
                       int64_t reduction, int64_t ignore_index);

// --- forward mode: what an operand's tangent gives to the result's ---
// slope: the gradient of each result of a reduction; sums slope * tangent where it reduces.
Tensor reduced_tangent(const Tensor& slope, const Tensor& tangent, Dims dims, bool keepdim);
Tensor taken_along(const Tensor& tangent, int64_t dim, const Tensor& indices, bool keepdim);
Tensor angle_tangent(const Tensor& tangent, const Tensor& self);
Tensor cumprod_tangent(const Tensor& tangent, const Tensor& self, int64_t dim,
                       std::optional<ScalarType> dtype);
Tensor softmax_tangent(const Tensor& tangent, const Tensor& result, int64_t dim);
Tensor log_softmax_tangent(const Tensor& tangent, const Tensor& result, int64_t dim);
Tensor softmax_second_tangent(const Tensor& tangent, const Tensor& grad_output,
                              const Tensor& output, int64_t dim);
Tensor log_softmax_second_tangent(const Tensor& tangent, const Tensor& grad_output,
                                  const Tensor& output, int64_t dim);
// A window, also where it reaches beyond that of `self`: what lies there does not change.
Tensor as_strided_tangent(const Tensor& tangent, const Tensor& self, IntList size, IntList stride,
                          std::optional<int64_t> storage_offset);

}  // namespace autograd::formulas
}  // namespace lamina
