// Forward-mode rules that need more than one expression.
#include <algorithm>

#include "lamina/autograd/formulas.h"
#include "lamina/shape/broadcast.h"

namespace lamina::autograd::formulas {

Tensor reduced_tangent(const Tensor& slope, const Tensor& tangent, Dims dims, bool keepdim) {
  return ops::sum(mul_zero(tangent, conj_of(slope)), dims, keepdim);
}

Tensor taken_along(const Tensor& tangent, int64_t dim, const Tensor& indices, bool keepdim) {
  if (tangent.dim() == 0) return ops::reshape(tangent, indices.sizes());
  if (keepdim) return ops::gather(tangent, dim, indices);
  return ops::squeeze(ops::gather(tangent, dim, ops::unsqueeze(indices, dim)), dim);
}

Tensor angle_tangent(const Tensor& tangent, const Tensor& self) {
  if (!self.is_complex()) return ops::zeros_like(tangent);
  const Tensor x = ops::real(self), y = ops::imag(self);
  const Tensor across = x * ops::imag(tangent) - y * ops::real(tangent);
  return ops::where(self == Scalar(0), Scalar(0), div_zero(across, x * x + y * y));
}

Tensor cumprod_tangent(const Tensor& tangent, const Tensor& self, int64_t dim,
                       std::optional<ScalarType> dtype) {
  const auto in_type = [&](const Tensor& t) { return dtype ? ops::_to_dtype(t, *dtype) : t; };
  if (self.dim() == 0) return in_type(tangent);
  const Tensor x = in_type(self), t = in_type(tangent);
  const int64_t n = x.size(dim);
  // The product rule from one product to the next: no division, so zeros are no matter.
  Tensor product, slope;
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < n; ++i) {
    const Tensor xi = ops::slice(x, dim, i, i + 1, 1), ti = ops::slice(t, dim, i, i + 1, 1);
    slope = i == 0 ? ti : slope * xi + ti * product;
    product = i == 0 ? xi : product * xi;
    parts.push_back(slope);
  }
  return n == 0 ? t : ops::cat(parts, dim);
}

Tensor softmax_tangent(const Tensor& tangent, const Tensor& result, int64_t dim) {
  // The matrix of derivatives is symmetric.
  return ops::_softmax_backward(fit_dtype(tangent, result.dtype()), result, dim);
}
Tensor log_softmax_tangent(const Tensor& tangent, const Tensor& result, int64_t dim) {
  return log_softmax_second_grad(fit_dtype(tangent, result.dtype()), result, dim);
}
Tensor softmax_second_tangent(const Tensor& tangent, const Tensor& grad_output,
                              const Tensor& output, int64_t dim) {
  if (output.dim() == 0) return ops::zeros_like(tangent);
  const IntList dims(&dim, 1);
  return tangent * (grad_output - ops::sum(grad_output * output, dims, true)) -
         output * ops::sum(grad_output * tangent, dims, true);
}
Tensor log_softmax_second_tangent(const Tensor& tangent, const Tensor& grad_output,
                                  const Tensor& output, int64_t dim) {
  if (output.dim() == 0) return ops::zeros_like(tangent);
  return ops::neg((tangent * ops::exp(output)) * ops::sum(grad_output, IntList(&dim, 1), true));
}

namespace {
// First and last address of a window, in elements.
std::pair<int64_t, int64_t> reach_of(IntList sizes, IntList strides, int64_t offset) {
  int64_t low = offset, high = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t reach = (sizes[i] - 1) * strides[i];
    (reach < 0 ? low : high) += reach;
  }
  return {low, high};
}
}  // namespace

Tensor as_strided_tangent(const Tensor& tangent, const Tensor& self, IntList size, IntList stride,
                          std::optional<int64_t> storage_offset) {
  const int64_t offset = storage_offset.value_or(self.storage_offset());
  if (numel_of(size) == 0 || self.numel() == 0) return zeros_of(tangent, size);
  const auto own = reach_of(self.sizes(), self.strides(), self.storage_offset());
  const auto window = reach_of(size, stride, offset);
  const int64_t shift = tangent.storage_offset() - self.storage_offset();
  const bool inside = window.first >= own.first && window.second <= own.second;
  if (inside && tangent.strides() == self.strides())
    return ops::as_strided(tangent, size, stride, offset + shift);
  // Room for both windows; what self does not cover does not change.
  const int64_t low = std::min(own.first, window.first);
  const int64_t high = std::max(own.second, window.second);
  const Tensor room = zeros_of(tangent, {high - low + 1});
  ops::copy_(ops::as_strided(room, self.sizes(), self.strides(), self.storage_offset() - low),
             tangent);
  return ops::as_strided(room, size, stride, offset - low);
}

}  // namespace lamina::autograd::formulas
