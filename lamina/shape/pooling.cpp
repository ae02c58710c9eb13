// Shape rules of pooling.
#include "lamina/shape/pooling.h"

#include "lamina/core/dim.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/shape/convolution.h"

namespace lamina {

namespace {

// A list of one or `n` numbers, right-aligned in three.
std::array<int64_t, 3> window_list(IntList list, int64_t n, int64_t leading, const char* what,
                                   const char* op) {
  LAMINA_CHECK(list.size() == 1 || list.size() == static_cast<size_t>(n), op, ": ", what,
               " must either be a single int, or a tuple of ", n, " ints; got ", list);
  std::array<int64_t, 3> out{leading, leading, leading};
  for (int64_t i = 0; i < n; ++i)
    out[static_cast<size_t>(3 - n + i)] = list[list.size() == 1 ? 0 : static_cast<size_t>(i)];
  return out;
}

void check_spatial(int64_t n, const char* op) {
  LAMINA_CHECK(n >= 1 && n <= 3, op, ": expected one to three spatial dimensions; got ", n);
}

// What both tensors have before the spatial dimensions.
void check_same_planes(IntList a, IntList b, int64_t n, const char* op) {
  check_spatial(n, op);
  const auto leading = static_cast<int64_t>(a.size()) - n;
  bool fits = a.size() == b.size() && leading >= 0;
  for (int64_t d = 0; fits && d < leading; ++d)
    fits = a[static_cast<size_t>(d)] == b[static_cast<size_t>(d)];
  LAMINA_CHECK(fits, op, ": sizes before the ", n, " spatial dimensions differ; got ", a, " and ",
               b);
}

// A batch may be empty; channels and places may not.
void check_pooled(IntList sizes, int64_t n, bool empty_channels, const char* op) {
  const auto dims = static_cast<int64_t>(sizes.size());
  LAMINA_CHECK(dims == n + 1 || dims == n + 2, op, ": Expected ", n + 1, "D or ", n + 2,
               "D (batch mode) tensor with optional 0 dim batch size for input, but got:", sizes);
  const int64_t first = empty_channels ? dims - n : dims - n - 1;
  for (int64_t d = first; d < dims; ++d)
    LAMINA_CHECK(sizes[static_cast<size_t>(d)] > 0, op, ": Expected ", n + 1, "D or ", n + 2,
                 "D (batch mode) tensor with optional 0 dim batch size for input and non-zero "
                 "sizes for the other dimensions, but got:",
                 sizes, " with dimension ", d, " being empty");
}

Sizes with_spatial(IntList sizes, const std::array<int64_t, 3>& spatial, int64_t n) {
  Sizes out{std::span<const int64_t>(sizes)};
  for (int64_t i = 0; i < n; ++i)
    out[out.size() - static_cast<size_t>(n - i)] = spatial[static_cast<size_t>(3 - n + i)];
  return out;
}

void check_computes(const Tensor& self, bool integers, const char* op) {
  const ScalarType t = self.dtype();
  LAMINA_CHECK_IMPLEMENTED((is_floating(t) && !is_float8(t)) || (integers && is_integral(t)), "\"",
                           op, "\" not implemented for '", legacy_name(t), "'");
}

}  // namespace

PoolGeometry pool_geometry(IntList input, int64_t n, IntList kernel, IntList stride,
                           IntList padding, IntList dilation, bool ceil_mode, const char* op) {
  check_spatial(n, op);
  PoolGeometry g;
  g.spatial = n;
  g.kernel = window_list(kernel, n, 1, "kernel_size", op);
  g.stride = stride.empty() ? g.kernel : window_list(stride, n, 1, "stride", op);
  g.padding = window_list(padding, n, 0, "padding", op);
  g.dilation = window_list(dilation, n, 1, "dilation", op);
  for (size_t i = 0; i < 3; ++i) {
    LAMINA_CHECK(g.kernel[i] > 0, op, ": kernel_size must be greater than zero, but got ", kernel);
    LAMINA_CHECK(g.stride[i] > 0, op, ": stride must be greater than zero, but got ", stride);
    LAMINA_CHECK(g.dilation[i] > 0, op, ": dilation must be greater than zero, but got ", dilation);
    LAMINA_CHECK(g.padding[i] >= 0, op, ": pad must be non-negative, but got pad: ", padding);
    const Dim reach = Dim(g.kernel[i] - 1) * Dim(g.dilation[i]) + Dim(1);
    LAMINA_CHECK(g.padding[i] <= reach.value() / 2, op,
                 ": pad should be at most half of effective kernel size, but got pad=",
                 g.padding[i], ", kernel_size=", g.kernel[i], " and dilation=", g.dilation[i]);
  }
  check_pooled(input, n, false, op);
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(3 - n + i);
    const int64_t size = input[input.size() - static_cast<size_t>(n - i)];
    const Dim reach = Dim(g.kernel[at] - 1) * Dim(g.dilation[at]) + Dim(1);
    const int64_t room = Dim(size) + Dim(2) * Dim(g.padding[at]) - reach;
    const int64_t step = g.stride[at];
    int64_t out = room < 0 ? 0 : room / step + 1;
    // The last window must begin inside of the input or the padding before it.
    if (ceil_mode && (room < 0 ? room + step > 0 : room % step != 0) &&
        (Dim(out) * Dim(step)).value() < size + g.padding[at])
      ++out;
    LAMINA_CHECK(out >= 1, op, ": Given input size: ", input,
                 ". Calculated output size in dimension ", i, ": ", out,
                 ". Output size is too small");
    g.input[at] = size;
    g.output[at] = out;
  }
  return g;
}

namespace shape {

namespace {

ResultMeta pooled(const Tensor& self, const PoolGeometry& g) {
  return {with_spatial(self.sizes(), g.output, g.spatial), self.dtype(), self.device(),
          suggested_format(self)};
}

std::array<ResultMeta, 2> with_indices(const ResultMeta& values) {
  ResultMeta indices = values;
  indices.dtype = ScalarType::Int64;
  return {values, indices};
}

ResultMeta max_pool_meta(const Tensor& self, int64_t n, IntList kernel, IntList stride,
                         IntList padding, IntList dilation, bool ceil_mode) {
  const char* op = n == 2 ? "max_pool2d" : "max_pool3d";
  check_computes(self, true, op);
  return pooled(self,
                pool_geometry(self.sizes(), n, kernel, stride, padding, dilation, ceil_mode, op));
}

ResultMeta adaptive_meta(const Tensor& self, IntList output, int64_t n, const char* op) {
  check_computes(self, false, op);
  LAMINA_CHECK(output.size() == static_cast<size_t>(n), op, ": output_size must be ", n, "; got ",
               output);
  for (const int64_t s : output)
    LAMINA_CHECK(s >= 0, op,
                 ": elements of output_size must be greater than or equal to 0 but received ",
                 output);
  check_pooled(self.sizes(), n, true, op);
  PoolGeometry g;
  g.spatial = n;
  g.output = window_list(output, n, 1, "output_size", op);
  return pooled(self, g);
}

ResultMeta fractional_meta(const Tensor& self, IntList kernel, IntList output,
                           const Tensor& samples, int64_t n, const char* op) {
  check_computes(self, false, op);
  check_pooled(self.sizes(), n, false, op);
  LAMINA_CHECK(kernel.size() == 1 || kernel.size() == static_cast<size_t>(n), op,
               ": kernel_size must either be a single int or tuple of ints; got ", kernel);
  LAMINA_CHECK(output.size() == static_cast<size_t>(n), op,
               ": output_size must either be a single int or tuple of ints; got ", output);
  LAMINA_CHECK(samples.dtype() == self.dtype(), op,
               ": expected samples to have the type of the input; got ", samples, " and ", self);
  const bool batched = self.dim() == n + 2;
  const int64_t batch = batched ? self.sizes()[0] : 1;
  LAMINA_CHECK(samples.dim() == 3 && samples.sizes()[0] >= batch &&
                   samples.sizes()[1] >= self.sizes()[batched ? 1 : 0] && samples.sizes()[2] == n,
               op, ": Expect _random_samples to be of size (n, c, ", n, "); got ", samples,
               " for input ", self);
  PoolGeometry g;
  g.spatial = n;
  g.output = window_list(output, n, 1, "output_size", op);
  const auto k = window_list(kernel, n, 1, "kernel_size", op);
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(3 - n + i);
    const int64_t size = self.sizes()[static_cast<size_t>(self.dim() - n + i)];
    LAMINA_CHECK(
        g.output[at] > 0 && k[at] > 0 && (Dim(g.output[at]) + Dim(k[at]) - Dim(1)).value() <= size,
        op, ": pool size ", kernel, " and output size ", output, " do not fit the input; got ",
        self);
  }
  return pooled(self, g);
}

ResultMeta unpool_meta(const Tensor& self, const Tensor& indices, IntList output, int64_t n,
                       const char* op) {
  LAMINA_CHECK(indices.dtype() == ScalarType::Int64, op,
               ": elements in indices should be type int64 but got: ", indices.dtype());
  LAMINA_CHECK(output.size() == static_cast<size_t>(n), op, ": There should be exactly ", n,
               " elements in output_size, but got ", output.size(), " elements.");
  LAMINA_CHECK_IMPLEMENTED(!is_bool(self.dtype()) && !is_complex(self.dtype()), "\"", op,
                           "\" not implemented for '", legacy_name(self.dtype()), "'");
  check_pooled(self.sizes(), n, false, op);
  LAMINA_CHECK(self.sizes() == indices.sizes(), op,
               ": Expected shape of indices to be same as that of the input tensor (", self.sizes(),
               ") but got indices tensor with shape: ", indices.sizes());
  PoolGeometry g;
  g.spatial = n;
  g.output = window_list(output, n, 1, "output_size", op);
  for (const int64_t s : output)
    LAMINA_CHECK(s >= 0, op, ": output_size must not be negative; got ", output);
  return pooled(self, g);
}

ResultMeta gradient_of(const Tensor& grad, IntList input) {
  return {Sizes(std::span<const int64_t>(input)), grad.dtype(), grad.device(),
          suggested_format(grad)};
}

}  // namespace

std::array<ResultMeta, 2> max_pool2d_shape(const Tensor& self, IntList kernel, IntList stride,
                                           IntList padding, IntList dilation, bool ceil_mode) {
  return with_indices(max_pool_meta(self, 2, kernel, stride, padding, dilation, ceil_mode));
}
std::array<ResultMeta, 2> max_pool3d_shape(const Tensor& self, IntList kernel, IntList stride,
                                           IntList padding, IntList dilation, bool ceil_mode) {
  return with_indices(max_pool_meta(self, 3, kernel, stride, padding, dilation, ceil_mode));
}
ResultMeta max_pool_values_shape(const Tensor& self, IntList kernel, IntList stride,
                                 IntList padding, IntList dilation, bool ceil_mode) {
  return max_pool_meta(self, static_cast<int64_t>(kernel.size()), kernel, stride, padding, dilation,
                       ceil_mode);
}

ResultMeta max_pool_scatter_shape(const Tensor& grad_output, const Tensor& indices,
                                  const Tensor& self, int64_t spatial) {
  const IntList input_size = self.sizes();
  check_computes(grad_output, false, "max_pool_backward");
  check_same_planes(grad_output.sizes(), input_size, spatial, "max_pool_backward");
  LAMINA_CHECK(grad_output.sizes() == indices.sizes() && indices.dtype() == ScalarType::Int64 &&
                   input_size.size() == indices.sizes().size(),
               "max_pool_backward: expected int64 indices of the shape of the gradient; got ",
               grad_output, " and ", indices);
  return gradient_of(grad_output, input_size);
}

std::array<ResultMeta, 2> adaptive_max_pool2d_shape(const Tensor& self, IntList output) {
  return with_indices(adaptive_meta(self, output, 2, "adaptive_max_pool2d"));
}
std::array<ResultMeta, 2> adaptive_max_pool3d_shape(const Tensor& self, IntList output) {
  return with_indices(adaptive_meta(self, output, 3, "adaptive_max_pool3d"));
}
ResultMeta adaptive_avg_pool2d_shape(const Tensor& self, IntList output) {
  return adaptive_meta(self, output, 2, "adaptive_avg_pool2d");
}
ResultMeta adaptive_avg_pool3d_shape(const Tensor& self, IntList output) {
  return adaptive_meta(self, output, 3, "adaptive_avg_pool3d");
}
ResultMeta adaptive_avg_pool_backward_shape(const Tensor& grad_output, const Tensor& self,
                                            int64_t spatial) {
  constexpr const char* kName = "adaptive_avg_pool_backward";
  check_computes(grad_output, false, kName);
  check_same_planes(grad_output.sizes(), self.sizes(), spatial, kName);
  LAMINA_CHECK(grad_output.numel() == 0 || self.numel() > 0, kName,
               ": an empty input has no gradient; got ", self);
  return gradient_of(grad_output, self.sizes());
}

std::array<ResultMeta, 2> fractional_max_pool2d_shape(const Tensor& self, IntList kernel,
                                                      IntList output, const Tensor& samples) {
  return with_indices(fractional_meta(self, kernel, output, samples, 2, "fractional_max_pool2d"));
}
std::array<ResultMeta, 2> fractional_max_pool3d_shape(const Tensor& self, IntList kernel,
                                                      IntList output, const Tensor& samples) {
  return with_indices(fractional_meta(self, kernel, output, samples, 3, "fractional_max_pool3d"));
}

ResultMeta max_unpool2d_shape(const Tensor& self, const Tensor& indices, IntList output) {
  return unpool_meta(self, indices, output, 2, "max_unpool2d");
}
ResultMeta max_unpool3d_shape(const Tensor& self, const Tensor& indices, IntList output,
                              IntList stride, IntList padding) {
  LAMINA_CHECK(stride.size() == 3 && padding.size() == 3,
               "max_unpool3d: There should be exactly 3 elements in stride and padding, but got: ",
               stride, " and ", padding);
  for (const int64_t s : stride)
    LAMINA_CHECK(s > 0,
                 "max_unpool3d: strides should be greater than zero, but got stride: ", stride);
  return unpool_meta(self, indices, output, 3, "max_unpool3d");
}

namespace {
ResultMeta avg_pool_meta(const Tensor& self, IntList kernel, IntList stride, IntList padding,
                         bool ceil_mode, std::optional<int64_t> divisor, int64_t n,
                         const char* op) {
  LAMINA_CHECK_IMPLEMENTED(
      self.dtype() == ScalarType::Int64 || (is_floating(self.dtype()) && !is_float8(self.dtype())),
      "\"", op, "\" not implemented for '", legacy_name(self.dtype()), "'");
  LAMINA_CHECK(!divisor || *divisor != 0, op, ": divisor must be not zero");
  return pooled(self, pool_geometry(self.sizes(), n, kernel, stride, padding, {1}, ceil_mode, op));
}
}  // namespace

ResultMeta avg_pool2d_shape(const Tensor& self, IntList kernel, IntList stride, IntList padding,
                            bool ceil_mode, bool, std::optional<int64_t> divisor) {
  return avg_pool_meta(self, kernel, stride, padding, ceil_mode, divisor, 2, "avg_pool2d");
}
ResultMeta avg_pool3d_shape(const Tensor& self, IntList kernel, IntList stride, IntList padding,
                            bool ceil_mode, bool, std::optional<int64_t> divisor) {
  return avg_pool_meta(self, kernel, stride, padding, ceil_mode, divisor, 3, "avg_pool3d");
}
ResultMeta avg_pool_backward_shape(const Tensor& grad_output, const Tensor& self, IntList kernel,
                                   IntList stride, IntList padding, bool ceil_mode, bool,
                                   std::optional<int64_t>, int64_t spatial) {
  const IntList input_size = self.sizes();
  check_computes(grad_output, false, "avg_pool_backward");
  const PoolGeometry g = pool_geometry(input_size, spatial, kernel, stride, padding, {1}, ceil_mode,
                                       "avg_pool_backward");
  LAMINA_CHECK(grad_output.sizes() == IntList(with_spatial(input_size, g.output, spatial)),
               "avg_pool_backward: grad_output does not have the size of the result; got ",
               grad_output);
  return gradient_of(grad_output, input_size);
}

}  // namespace shape
}  // namespace lamina
