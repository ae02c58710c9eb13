// Shape rules of resampling, windows as columns, rearranged pixels and grids.
#include "lamina/core/dim.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/shape/convolution.h"

namespace lamina::shape {

namespace {

void check_type(const Tensor& t, bool bytes, const char* op) {
  LAMINA_CHECK_IMPLEMENTED((is_floating(t.dtype()) && !is_float8(t.dtype())) ||
                               (bytes && t.dtype() == ScalarType::UInt8),
                           "\"", op, "\" not implemented for '", legacy_name(t.dtype()), "'");
}

ResultMeta upsampled(const Tensor& self, IntList output, int64_t n, bool bytes) {
  check_type(self, bytes, "upsample");
  LAMINA_CHECK(output.size() == static_cast<size_t>(n),
               "upsample: It is expected output_size equals to ", n, ", but got size ",
               output.size());
  LAMINA_CHECK(self.dim() == n + 2, "upsample: It is expected input_size equals to ", n + 2,
               ", but got size ", self.dim());
  Sizes sizes{std::span<const int64_t>(self.sizes())};
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i + 2);
    LAMINA_CHECK(sizes[at] > 0 && output[static_cast<size_t>(i)] > 0,
                 "upsample: Input and output sizes should be greater than 0, but got input ",
                 self.sizes(), " output ", output);
    sizes[at] = output[static_cast<size_t>(i)];
  }
  LAMINA_CHECK(self.sizes()[1] > 0 || self.sizes()[0] == 0, "upsample: Non-empty ", n + 2,
               "D data tensor expected but got a tensor with sizes ", self.sizes());
  return {sizes, self.dtype(), self.device(), suggested_format(self)};
}

}  // namespace

using Scale = std::optional<double>;

ResultMeta upsample1d_shape(const Tensor& self, IntList output, Scale) {
  return upsampled(self, output, 1, true);
}
ResultMeta upsample2d_shape(const Tensor& self, IntList output, Scale, Scale) {
  return upsampled(self, output, 2, true);
}
ResultMeta upsample3d_shape(const Tensor& self, IntList output, Scale, Scale, Scale) {
  return upsampled(self, output, 3, true);
}
ResultMeta upsample1d_aligned_shape(const Tensor& self, IntList output, bool, Scale) {
  return upsampled(self, output, 1, true);
}
ResultMeta upsample2d_aligned_shape(const Tensor& self, IntList output, bool, Scale, Scale) {
  return upsampled(self, output, 2, true);
}
ResultMeta upsample3d_aligned_shape(const Tensor& self, IntList output, bool, Scale, Scale, Scale) {
  return upsampled(self, output, 3, true);
}
ResultMeta aa_upsample2d_aligned_shape(const Tensor& self, IntList output, bool, Scale, Scale) {
  return upsampled(self, output, 2, true);
}

ResultMeta resample_backward_shape(const Tensor& grad_output, IntList output_size,
                                   IntList input_size, int64_t mode, bool, Scale, Scale, Scale) {
  check_type(grad_output, false, "upsample_backward");
  LAMINA_CHECK(mode >= 0 && mode <= 5, "upsample_backward: expected a mode from 0 to 5; got ",
               mode);
  bool fits = input_size.size() >= 3 && input_size.size() <= 5 &&
              input_size.size() == grad_output.sizes().size() &&
              input_size.size() == output_size.size() + 2;
  for (size_t i = 0; fits && i < input_size.size(); ++i)
    fits = i < 2 ? grad_output.sizes()[i] == input_size[i]
                 : grad_output.sizes()[i] == output_size[i - 2] && input_size[i] > 0 &&
                       output_size[i - 2] > 0;
  LAMINA_CHECK(fits, "upsample_backward: expected a gradient of the size of the result; got ",
               grad_output, " for input ", input_size, " and output size ", output_size);
  return {Sizes(std::span<const int64_t>(input_size)), grad_output.dtype(), grad_output.device(),
          suggested_format(grad_output)};
}

// ---- windows as columns ----
namespace {

int64_t windows(IntList image, IntList kernel, IntList dilation, IntList padding, IntList stride,
                const char* op) {
  for (const IntList list : {kernel, dilation, padding, stride})
    LAMINA_CHECK(list.size() == 2, op, ": It is expected that lists have 2 entries; got ", list);
  int64_t count = 1;
  for (size_t i = 0; i < 2; ++i) {
    LAMINA_CHECK(kernel[i] > 0, op, ": kernel size should be greater than zero, but got ", kernel);
    LAMINA_CHECK(dilation[i] > 0, op, ": dilation should be greater than zero, but got ", dilation);
    LAMINA_CHECK(padding[i] >= 0, op, ": padding should be non-negative, but got ", padding);
    LAMINA_CHECK(stride[i] > 0, op, ": stride should be greater than zero, but got ", stride);
    const int64_t room =
        Dim(image[i]) + Dim(2) * Dim(padding[i]) - Dim(dilation[i]) * Dim(kernel[i] - 1) - Dim(1);
    LAMINA_CHECK(room >= 0, op, ": Given input with spatial size ", image, ", kernel_size=", kernel,
                 ", dilation=", dilation, ", padding=", padding, ", stride=", stride,
                 ", calculated shape of the array of sliding blocks is too small (non-positive)");
    count = Dim(count) * Dim(room / stride[i] + 1);
  }
  return count;
}

void check_columns_type(const Tensor& self, const char* op) {
  LAMINA_CHECK_IMPLEMENTED(!is_integral(self.dtype()) && !is_float8(self.dtype()), "\"", op,
                           "\" not implemented for '", legacy_name(self.dtype()), "'");
}

}  // namespace

ResultMeta im2col_shape(const Tensor& self, IntList kernel, IntList dilation, IntList padding,
                        IntList stride) {
  check_columns_type(self, "im2col_out_cpu");
  const int64_t d = self.dim();
  const IntList x = self.sizes();
  LAMINA_CHECK((d == 3 || d == 4) && x[static_cast<size_t>(d - 1)] > 0 &&
                   x[static_cast<size_t>(d - 2)] > 0 && x[static_cast<size_t>(d - 3)] > 0,
               "im2col: Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other "
               "non-zero dimensions for input, but got: ",
               x);
  const int64_t image[] = {x[static_cast<size_t>(d - 2)], x[static_cast<size_t>(d - 1)]};
  const int64_t count = windows(IntList(image, 2), kernel, dilation, padding, stride, "im2col");
  Sizes sizes;
  if (d == 4) sizes.push_back(x[0]);
  sizes.push_back(Dim(x[static_cast<size_t>(d - 3)]) * Dim(kernel[0]) * Dim(kernel[1]));
  sizes.push_back(count);
  return {sizes, self.dtype(), self.device()};
}

ResultMeta col2im_shape(const Tensor& self, IntList output, IntList kernel, IntList dilation,
                        IntList padding, IntList stride) {
  check_columns_type(self, "col2im_out_cpu");
  LAMINA_CHECK(output.size() == 2 && output[0] > 0 && output[1] > 0,
               "col2im: It is expected output_size to be two positive numbers; got ", output);
  const int64_t d = self.dim();
  const IntList x = self.sizes();
  LAMINA_CHECK(
      (d == 2 || d == 3) && x[static_cast<size_t>(d - 1)] > 0 && x[static_cast<size_t>(d - 2)] > 0,
      "col2im: Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size "
      "and non-zero dimensions for input, but got: ",
      x);
  const int64_t count = windows(output, kernel, dilation, padding, stride, "col2im");
  const int64_t taps = Dim(kernel[0]) * Dim(kernel[1]);
  LAMINA_CHECK(x[static_cast<size_t>(d - 2)] % taps == 0,
               "col2im: Expected size of input's dimension 1 to be divisible by the product of "
               "kernel_size, but got input.size(1)=",
               x[static_cast<size_t>(d - 2)], " and kernel_size=", kernel);
  LAMINA_CHECK(x[static_cast<size_t>(d - 1)] == count, "col2im: Given output_size=", output,
               ", kernel_size=", kernel, ", dilation=", dilation, ", padding=", padding,
               ", stride=", stride,
               ", expected size of input's dimension 2 to match the calculated number of sliding "
               "blocks ",
               count, ", but got input.size(2)=", x[static_cast<size_t>(d - 1)]);
  Sizes sizes;
  if (d == 3) sizes.push_back(x[0]);
  sizes.push_back(x[static_cast<size_t>(d - 2)] / taps);
  sizes.push_back(output[0]);
  sizes.push_back(output[1]);
  return {sizes, self.dtype(), self.device()};
}

// ---- pixels and channels ----
ResultMeta pixel_shuffle_shape(const Tensor& self, int64_t r) {
  LAMINA_CHECK(self.dim() >= 3,
               "pixel_shuffle: expects input to have at least 3 dimensions, but got input with ",
               self.dim(), " dimension(s)");
  LAMINA_CHECK(r > 0, "pixel_shuffle: expects a positive upscale_factor, but got ", r);
  Sizes sizes{std::span<const int64_t>(self.sizes())};
  const size_t n = sizes.size();
  LAMINA_CHECK(sizes[n - 3] % (Dim(r) * Dim(r)).value() == 0,
               "pixel_shuffle: expects its input's 'channel' dimension to be divisible by the "
               "square of upscale_factor, but input.size(-3)=",
               sizes[n - 3], " is not divisible by ", r * r);
  sizes[n - 3] /= r * r;
  sizes[n - 2] = Dim(sizes[n - 2]) * Dim(r);
  sizes[n - 1] = Dim(sizes[n - 1]) * Dim(r);
  return {sizes, self.dtype(), self.device(),
          self.dim() == 4 ? suggested_format(self) : MemoryFormat::Contiguous};
}

ResultMeta pixel_unshuffle_shape(const Tensor& self, int64_t r) {
  LAMINA_CHECK(self.dim() >= 3,
               "pixel_unshuffle: expects input to have at least 3 dimensions, but got input with ",
               self.dim(), " dimension(s)");
  LAMINA_CHECK(r > 0, "pixel_unshuffle: expects a positive downscale_factor, but got ", r);
  Sizes sizes{std::span<const int64_t>(self.sizes())};
  const size_t n = sizes.size();
  LAMINA_CHECK(sizes[n - 2] % r == 0 && sizes[n - 1] % r == 0,
               "pixel_unshuffle: expects height and width to be divisible by downscale_factor, but "
               "got ",
               self, " and ", r);
  sizes[n - 3] = Dim(sizes[n - 3]) * Dim(r) * Dim(r);
  sizes[n - 2] /= r;
  sizes[n - 1] /= r;
  return {sizes, self.dtype(), self.device(),
          self.dim() == 4 ? suggested_format(self) : MemoryFormat::Contiguous};
}

ResultMeta channel_shuffle_shape(const Tensor& self, int64_t groups) {
  LAMINA_CHECK(self.dim() > 2,
               "channel_shuffle: expects input with > 2 dims, but got input with sizes ",
               self.sizes());
  LAMINA_CHECK(groups > 0,
               "channel_shuffle: Number of groups to divide channels in must be positive. Value of "
               "groups:",
               groups);
  LAMINA_CHECK(self.sizes()[1] % groups == 0,
               "channel_shuffle: Number of channels must be divisible by groups. Got ",
               self.sizes()[1], " channels and ", groups, " groups.");
  return {Sizes(std::span<const int64_t>(self.sizes())), self.dtype(), self.device(),
          suggested_format(self)};
}

// ---- grids ----
namespace {
void check_grid(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding) {
  LAMINA_CHECK(input.dim() == 4 || input.dim() == 5, "grid_sampler: expected 4D or 5D input; got ",
               input);
  LAMINA_CHECK(input.dtype() == grid.dtype(),
               "grid_sampler: expected input and grid to have same dtype, but input has ",
               input.dtype(), " and grid has ", grid.dtype());
  check_type(input, false, "grid_sampler_2d_cpu_kernel_impl");
  LAMINA_CHECK(grid.dim() == input.dim() && grid.sizes()[0] == input.sizes()[0],
               "grid_sampler: expected grid and input to have same batch size and number of "
               "dimensions, but got input with sizes ",
               input.sizes(), " and grid with sizes ", grid.sizes());
  LAMINA_CHECK(grid.sizes().back() == input.dim() - 2, "grid_sampler: expected grid to have size ",
               input.dim() - 2, " in last dimension, but got grid with sizes ", grid.sizes());
  for (size_t i = 2; i < input.sizes().size(); ++i)
    LAMINA_CHECK(input.sizes()[i] > 0,
                 "grid_sampler: expected input to have non-empty spatial dimensions, but input has "
                 "sizes ",
                 input.sizes(), " with dimension ", i, " being empty");
  LAMINA_CHECK(mode >= 0 && mode <= 2 && padding >= 0 && padding <= 2,
               "grid_sampler: expected modes 0 to 2; got interpolation_mode ", mode,
               " and padding_mode ", padding);
  LAMINA_CHECK(mode != 2 || input.dim() == 4,
               "grid_sampler: bicubic interpolation only supports 4D input");
}
}  // namespace

namespace {
Sizes sampled_sizes(const Tensor& input, const Tensor& grid) {
  Sizes sizes{input.sizes()[0], input.sizes()[1]};
  for (size_t i = 1; i + 1 < grid.sizes().size(); ++i) sizes.push_back(grid.sizes()[i]);
  return sizes;
}
void check_grid_gradient(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                         int64_t mode, int64_t padding) {
  check_grid(input, grid, mode, padding);
  LAMINA_CHECK(
      grad_output.sizes() == sampled_sizes(input, grid) && grad_output.dtype() == input.dtype(),
      "grid_sampler_backward: expected a gradient of the size and dtype of the result; got ",
      grad_output, " for input ", input, " and grid ", grid);
}
}  // namespace

ResultMeta grid_sample_shape(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                             bool) {
  check_grid(input, grid, mode, padding);
  return {sampled_sizes(input, grid), input.dtype(), input.device()};
}
ResultMeta grid_sample_input_grad_shape(const Tensor& grad_output, const Tensor& input,
                                        const Tensor& grid, int64_t mode, int64_t padding, bool) {
  check_grid_gradient(grad_output, input, grid, mode, padding);
  return {Sizes(std::span<const int64_t>(input.sizes())), input.dtype(), input.device()};
}
ResultMeta grid_sample_grid_grad_shape(const Tensor& grad_output, const Tensor& input,
                                       const Tensor& grid, int64_t mode, int64_t padding, bool) {
  check_grid_gradient(grad_output, input, grid, mode, padding);
  return {Sizes(std::span<const int64_t>(grid.sizes())), grid.dtype(), grid.device()};
}

}  // namespace lamina::shape
