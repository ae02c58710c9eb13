// Shape rules of convolution.
#include "lamina/shape/convolution.h"

#include "lamina/core/dim.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"

namespace lamina {

MemoryFormat suggested_format(const Tensor& t) {
  if (t.is_contiguous()) return MemoryFormat::Contiguous;
  for (const MemoryFormat f : {MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d})
    if (t.is_contiguous(f)) return f;
  return MemoryFormat::Contiguous;
}

std::array<int64_t, 3> spatial_list(IntList list, int64_t spatial, const char* what,
                                    int64_t leading) {
  LAMINA_CHECK(list.size() == 1 || list.size() == static_cast<size_t>(spatial),
               "convolution: expected ", what, " to be a single integer value or a list of ",
               spatial, " values to match the convolution dimensions, but got ", what, "=", list);
  std::array<int64_t, 3> out{leading, leading, leading};
  for (int64_t i = 0; i < spatial; ++i)
    out[static_cast<size_t>(3 - spatial + i)] = list[list.size() == 1 ? 0 : static_cast<size_t>(i)];
  return out;
}

namespace shape {

namespace {

struct Geometry {
  int64_t spatial;
  std::array<int64_t, 3> stride, padding, dilation, output_padding;
};

Geometry checked_geometry(int64_t dims, IntList stride, IntList padding, IntList dilation,
                          IntList output_padding, int64_t groups) {
  LAMINA_CHECK(dims >= 3 && dims <= 5,
               "convolution: expected a batch with one to three spatial dimensions; got ", dims,
               " dimensions");
  const int64_t n = dims - 2;
  Geometry g{n, spatial_list(stride, n, "stride", 1), spatial_list(padding, n, "padding", 0),
             spatial_list(dilation, n, "dilation", 1),
             spatial_list(output_padding, n, "output_padding", 0)};
  for (size_t i = 0; i < 3; ++i) {
    LAMINA_CHECK(g.padding[i] >= 0, "convolution: negative padding is not supported; got ",
                 padding);
    LAMINA_CHECK(g.output_padding[i] >= 0,
                 "convolution: negative output_padding is not supported; got ", output_padding);
    LAMINA_CHECK(g.stride[i] > 0, "convolution: non-positive stride is not supported; got ",
                 stride);
    LAMINA_CHECK(g.dilation[i] > 0, "convolution: dilation should be greater than zero, but got ",
                 dilation);
  }
  LAMINA_CHECK(groups > 0, "convolution: non-positive groups is not supported; got ", groups);
  return g;
}

void check_types(const Tensor& input, const Tensor& weight, const char* op) {
  LAMINA_CHECK(input.dtype() == weight.dtype(), op, ": Input type (", legacy_name(input.dtype()),
               ") and weight type (", legacy_name(weight.dtype()), ") should be the same");
  LAMINA_CHECK_IMPLEMENTED(!is_bool(input.dtype()) && !is_float8(input.dtype()),
                           "\"slow_conv2d_cpu\" not implemented for '", legacy_name(input.dtype()),
                           "'");
}

MemoryFormat result_format(const Tensor& a, const Tensor& b) {
  const MemoryFormat f = suggested_format(a);
  return f != MemoryFormat::Contiguous ? f : suggested_format(b);
}

}  // namespace

ResultMeta convolution_shape(const Tensor& input, const Tensor& weight, const Tensor& bias,
                             IntList stride, IntList padding, IntList dilation, bool transposed,
                             IntList output_padding, int64_t groups) {
  const int64_t dims = weight.dim();
  const Geometry g = checked_geometry(dims, stride, padding, dilation, output_padding, groups);
  check_types(input, weight, "convolution");
  const IntList w = weight.sizes(), x = input.sizes();
  LAMINA_CHECK(input.dim() == dims, "convolution: Expected ", dims, "-dimensional input for ", dims,
               "-dimensional weight ", w, ", but got ", input.dim(), "-dimensional input of size ",
               x, " instead");
  LAMINA_CHECK(w[0] >= groups, "convolution: Given groups=", groups,
               ", expected weight to be at least ", groups,
               " at dimension 0, but got weight of size ", w, " instead");
  LAMINA_CHECK(w[0] % groups == 0, "convolution: Given groups=", groups,
               ", expected weight to be divisible by ", groups,
               " at dimension 0, but got weight of size ", w, " instead");
  const int64_t channels = transposed ? w[0] : (Dim(w[1]) * Dim(groups)).value();
  LAMINA_CHECK(x[1] == channels, "convolution: Given ",
               transposed ? "transposed=1" : str("groups=", groups), ", weight of size ", w,
               ", expected input", x, " to have ", channels, " channels, but got ", x[1],
               " channels instead");
  const int64_t out_channels = transposed ? (Dim(w[1]) * Dim(groups)).value() : w[0];
  if (bias.defined()) {
    LAMINA_CHECK(bias.dim() == 1 && bias.sizes()[0] == out_channels, "convolution: Given ",
                 transposed ? "transposed=1, " : "", "weight of size ", w,
                 ", expected bias to be 1-dimensional with ", out_channels,
                 " elements, but got bias of size ", bias.sizes(), " instead");
    LAMINA_CHECK(bias.dtype() == input.dtype(), "convolution: Input type (",
                 legacy_name(input.dtype()), ") and bias type (", legacy_name(bias.dtype()),
                 ") should be the same");
  }
  Sizes sizes;
  sizes.push_back(x[0]);
  sizes.push_back(out_channels);
  for (int64_t i = 0; i < g.spatial; ++i) {
    const auto at = static_cast<size_t>(3 - g.spatial + i), d = static_cast<size_t>(i + 2);
    LAMINA_CHECK(w[d] > 0, "convolution: kernel size should be greater than zero, but got weight ",
                 w);
    const Dim reach = Dim(g.dilation[at]) * Dim(w[d] - 1);
    LAMINA_CHECK(x[d] > 0 || x[0] == 0 || x[1] == 0,
                 "convolution: Only zero batch or zero channel inputs are supported, but got "
                 "input shape: ",
                 x);
    if (transposed) {
      LAMINA_CHECK(g.output_padding[at] < std::max(g.stride[at], g.dilation[at]),
                   "convolution: output padding must be smaller than either stride or dilation, "
                   "but got output_padding ",
                   output_padding, ", stride ", stride, " and dilation ", dilation);
      const Dim size = Dim(x[d] - 1) * Dim(g.stride[at]) - Dim(2) * Dim(g.padding[at]) + reach +
                       Dim(g.output_padding[at]) + Dim(1);
      LAMINA_CHECK(
          size.value() >= 1 || x[d] == 0, "convolution: Given input size per channel: ", x[d],
          ". Calculated output size per channel: ", size.value(), ". Output size is too small");
      sizes.push_back(std::max<int64_t>(size.value(), 0));
    } else {
      const Dim padded = Dim(x[d]) + Dim(2) * Dim(g.padding[at]);
      LAMINA_CHECK(padded.value() > reach.value(),
                   "convolution: Calculated padded input size per channel: ", padded.value(),
                   ". Kernel size: ", (reach + Dim(1)).value(),
                   ". Kernel size can't be greater than actual input size");
      sizes.push_back((padded - reach - Dim(1)).value() / g.stride[at] + 1);
    }
  }
  return {sizes, input.dtype(), input.device(), result_format(input, weight)};
}

namespace {

// The sizes that the forward pass gives must be those of the gradient.
void check_against_forward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                           IntList input_size, IntList weight_size, IntList stride, IntList padding,
                           IntList dilation, bool transposed, IntList output_padding,
                           int64_t groups, const char* op) {
  const auto dims = static_cast<int64_t>(weight_size.size());
  const Geometry g = checked_geometry(dims, stride, padding, dilation, output_padding, groups);
  check_types(grad, input.defined() ? input : weight, op);
  LAMINA_CHECK(input_size.size() == weight_size.size() && grad.dim() == dims, op,
               ": numbers of dimensions differ; got ", grad, ", input ", input_size, " and weight ",
               weight_size);
  bool fits = weight_size[0] % groups == 0 && grad.sizes()[0] == input_size[0];
  const int64_t inner = Dim(weight_size[1]) * Dim(groups);
  fits = fits && input_size[1] == (transposed ? weight_size[0] : inner) &&
         grad.sizes()[1] == (transposed ? inner : weight_size[0]);
  for (int64_t i = 0; fits && i < g.spatial; ++i) {
    const auto at = static_cast<size_t>(3 - g.spatial + i), d = static_cast<size_t>(i + 2);
    // `large` is read by the taps, `small` has the points.
    const int64_t large = transposed ? grad.sizes()[d] : input_size[d];
    const int64_t small = transposed ? input_size[d] : grad.sizes()[d];
    if (weight_size[d] <= 0) {
      fits = false;
      break;
    }
    const Dim reach = Dim(g.dilation[at]) * Dim(weight_size[d] - 1);
    const Dim room = Dim(large) + Dim(2) * Dim(g.padding[at]) - reach - Dim(1);
    fits = small >= 0 && large >= 0 &&
           (small == 0 || (Dim(small - 1) * Dim(g.stride[at])).value() <= room.value());
  }
  LAMINA_CHECK(fits, op, ": the gradient does not have the shape of a result; got ", grad,
               " for input ", input_size, " and weight ", weight_size);
}

}  // namespace

ResultMeta convolution_input_grad_shape(const Tensor& grad_output, const Tensor& weight,
                                        IntList input_size, IntList stride, IntList padding,
                                        IntList dilation, bool transposed, IntList output_padding,
                                        int64_t groups) {
  check_against_forward(grad_output, Tensor(), weight, input_size, weight.sizes(), stride, padding,
                        dilation, transposed, output_padding, groups, "convolution_backward");
  return {Sizes(std::span<const int64_t>(input_size)), grad_output.dtype(), grad_output.device(),
          result_format(grad_output, weight)};
}

ResultMeta convolution_weight_grad_shape(const Tensor& grad_output, const Tensor& input,
                                         IntList weight_size, IntList stride, IntList padding,
                                         IntList dilation, bool transposed, IntList output_padding,
                                         int64_t groups) {
  check_against_forward(grad_output, input, Tensor(), input.sizes(), weight_size, stride, padding,
                        dilation, transposed, output_padding, groups, "convolution_backward");
  return {Sizes(std::span<const int64_t>(weight_size)), grad_output.dtype(), grad_output.device(),
          result_format(input, grad_output)};
}

}  // namespace shape
}  // namespace lamina
