// Pooling in one dimension, and what is a call of another operator.
#include "lamina/autograd/forward.h"
#include "lamina/autograd/variable.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/ops.h"

namespace lamina::composite {

namespace {

bool derivatives_wanted(const Tensor& t) {
  return autograd::recording(t) || autograd::forward::t_visible;
}

void check_line(const Tensor& self, const char* op) {
  LAMINA_CHECK(self.dim() == 2 || self.dim() == 3, op,
               ": Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, "
               "but got:",
               self.sizes());
}

// A list for one dimension as one for a plane of one row.
Sizes with_row(IntList list, int64_t row, const char* what, const char* op) {
  LAMINA_CHECK(list.size() <= 1, op, ": ", what, " should contain one int; got ", list);
  return list.empty() ? Sizes{} : Sizes{row, list[0]};
}

std::tuple<Tensor, Tensor> squeezed(const std::tuple<Tensor, Tensor>& r) {
  return {ops::squeeze(std::get<0>(r), -2), ops::squeeze(std::get<1>(r), -2)};
}

Tensor max_pool(const Tensor& self, IntList kernel, IntList stride, IntList padding,
                IntList dilation, bool ceil_mode, size_t n) {
  if (!derivatives_wanted(self)) {
    Sizes all{std::span<const int64_t>(kernel)};
    while (all.size() < n && !all.empty()) all.push_back(all[0]);
    if (all.size() == n)
      return ops::_max_pool_values(self, all, stride, padding, dilation, ceil_mode);
  }
  return std::get<0>(
      n == 2 ? ops::max_pool2d_with_indices(self, kernel, stride, padding, dilation, ceil_mode)
             : ops::max_pool3d_with_indices(self, kernel, stride, padding, dilation, ceil_mode));
}

}  // namespace

std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& self, IntList kernel,
                                                   IntList stride, IntList padding,
                                                   IntList dilation, bool ceil_mode) {
  check_line(self, "max_pool1d");
  return squeezed(ops::max_pool2d_with_indices(
      ops::unsqueeze(self, -2), with_row(kernel, 1, "kernel_size", "max_pool1d"),
      with_row(stride, 1, "stride", "max_pool1d"), with_row(padding, 0, "padding", "max_pool1d"),
      with_row(dilation, 1, "dilation", "max_pool1d"), ceil_mode));
}

Tensor max_pool1d(const Tensor& self, IntList kernel, IntList stride, IntList padding,
                  IntList dilation, bool ceil_mode) {
  check_line(self, "max_pool1d");
  return ops::squeeze(
      max_pool(ops::unsqueeze(self, -2), with_row(kernel, 1, "kernel_size", "max_pool1d"),
               with_row(stride, 1, "stride", "max_pool1d"),
               with_row(padding, 0, "padding", "max_pool1d"),
               with_row(dilation, 1, "dilation", "max_pool1d"), ceil_mode, 2),
      -2);
}
Tensor max_pool2d(const Tensor& self, IntList kernel, IntList stride, IntList padding,
                  IntList dilation, bool ceil_mode) {
  return max_pool(self, kernel, stride, padding, dilation, ceil_mode, 2);
}
Tensor max_pool3d(const Tensor& self, IntList kernel, IntList stride, IntList padding,
                  IntList dilation, bool ceil_mode) {
  return max_pool(self, kernel, stride, padding, dilation, ceil_mode, 3);
}

Tensor max_pool2d_with_indices_backward(const Tensor& grad_output, const Tensor& self, IntList,
                                        IntList, IntList, IntList, bool, const Tensor& indices) {
  return ops::_max_pool_scatter(grad_output, indices, self, 2);
}
Tensor max_pool3d_with_indices_backward(const Tensor& grad_output, const Tensor& self, IntList,
                                        IntList, IntList, IntList, bool, const Tensor& indices) {
  return ops::_max_pool_scatter(grad_output, indices, self, 3);
}

Tensor max_pool_gather(const Tensor& self, const Tensor& indices, int64_t spatial) {
  const int64_t first = self.dim() - spatial;
  const Tensor flat = ops::flatten(self, first, -1);
  return ops::view(ops::gather(flat, -1, ops::flatten(indices, first, -1)), indices.sizes());
}

std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& self, IntList output_size) {
  check_line(self, "adaptive_max_pool1d");
  LAMINA_CHECK(output_size.size() == 1,
               "adaptive_max_pool1d: output_size should contain one int; got ", output_size);
  return squeezed(ops::adaptive_max_pool2d(ops::unsqueeze(self, -2), {1, output_size[0]}));
}

Tensor avg_pool(const Tensor& self, IntList kernel, IntList stride, IntList padding, bool ceil_mode,
                bool include_pad, std::optional<int64_t> divisor, int64_t spatial) {
  return spatial == 2
             ? ops::avg_pool2d(self, kernel, stride, padding, ceil_mode, include_pad, divisor)
             : ops::avg_pool3d(self, kernel, stride, padding, ceil_mode, include_pad, divisor);
}

Tensor avg_pool1d(const Tensor& self, IntList kernel, IntList stride, IntList padding,
                  bool ceil_mode, bool include_pad) {
  check_line(self, "avg_pool1d");
  return ops::squeeze(
      ops::avg_pool2d(ops::unsqueeze(self, -2), with_row(kernel, 1, "kernel_size", "avg_pool1d"),
                      with_row(stride, 1, "stride", "avg_pool1d"),
                      with_row(padding, 0, "padding", "avg_pool1d"), ceil_mode, include_pad,
                      std::nullopt),
      -2);
}

Tensor adaptive_avg_pool1d(const Tensor& self, IntList output_size) {
  check_line(self, "adaptive_avg_pool1d");
  LAMINA_CHECK(output_size.size() == 1,
               "adaptive_avg_pool1d: output_size should contain one int; got ", output_size);
  return ops::squeeze(ops::adaptive_avg_pool2d(ops::unsqueeze(self, -2), {1, output_size[0]}), -2);
}

namespace {
bool all_ones(IntList list) {
  for (const int64_t v : list)
    if (v != 1) return false;
  return true;
}
}  // namespace

// One window that is everything is a mean.
Tensor adaptive_avg_pool2d(const Tensor& self, IntList output_size) {
  const int64_t d = self.dim();
  if (all_ones(output_size) && output_size.size() == 2 && (d == 3 || d == 4) &&
      self.sizes()[static_cast<size_t>(d - 1)] > 0 && self.sizes()[static_cast<size_t>(d - 2)] > 0)
    return ops::mean(self, IntList({-1, -2}), true);
  return ops::_adaptive_avg_pool2d(self, output_size);
}
Tensor adaptive_avg_pool3d(const Tensor& self, IntList output_size) {
  const int64_t d = self.dim();
  if (all_ones(output_size) && output_size.size() == 3 && (d == 4 || d == 5) &&
      self.sizes()[static_cast<size_t>(d - 1)] > 0 &&
      self.sizes()[static_cast<size_t>(d - 2)] > 0 && self.sizes()[static_cast<size_t>(d - 3)] > 0)
    return ops::mean(self, IntList({-1, -2, -3}), true);
  return ops::_adaptive_avg_pool3d(self, output_size);
}

Tensor adaptive_avg_pool_again(const Tensor& self, IntList result_size, int64_t spatial) {
  LAMINA_CHECK(
      (spatial == 2 || spatial == 3) && static_cast<int64_t>(result_size.size()) >= spatial,
      "adaptive_avg_pool: expected the last 2 or 3 of the sizes; got ", spatial, " of ",
      result_size);
  const IntList output(result_size.data() + (result_size.size() - static_cast<size_t>(spatial)),
                       static_cast<size_t>(spatial));
  return spatial == 2 ? ops::_adaptive_avg_pool2d(self, output)
                      : ops::_adaptive_avg_pool3d(self, output);
}

}  // namespace lamina::composite
