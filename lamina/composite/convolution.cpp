// Convolution by its number of spatial dimensions: lists of arguments, samples without a batch,
// padding by name.
#include "lamina/shape/convolution.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/ops.h"

namespace lamina::composite {

namespace {

Sizes filled(int64_t n, int64_t value) { return Sizes(static_cast<size_t>(n), value); }

void check_input(const Tensor& input, const Tensor& weight, int64_t n, const char* op) {
  LAMINA_CHECK(input.dim() == n + 1 || input.dim() == n + 2, op, ": Expected ", n + 1,
               "D (unbatched) or ", n + 2, "D (batched) input to ", op,
               ", but got input of size: ", input.sizes());
  LAMINA_CHECK(weight.dim() == n + 2, op, ": expected a weight of ", n + 2, " dimensions; got ",
               weight);
}

// Runs f on a batch; a single sample becomes a batch of one.
template <class F>
Tensor on_batch(const Tensor& input, int64_t n, F&& f) {
  if (input.dim() == n + 2) return f(input);
  return ops::squeeze(f(ops::unsqueeze(input, 0)), 0);
}

Tensor conv(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
            IntList padding, IntList dilation, int64_t groups, int64_t n, const char* op) {
  check_input(input, weight, n, op);
  return on_batch(input, n, [&](const Tensor& x) {
    return ops::convolution(x, weight, bias, stride, padding, dilation, false, filled(n, 0),
                            groups);
  });
}

Tensor conv(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
            std::string_view padding, IntList dilation, int64_t groups, int64_t n, const char* op) {
  check_input(input, weight, n, op);
  if (padding == "valid")
    return conv(input, weight, bias, stride, filled(n, 0), dilation, groups, n, op);
  LAMINA_CHECK(padding == "same", op, ": Invalid padding string: '", padding,
               "'; expected 'valid' or 'same'");
  for (const int64_t s : stride)
    LAMINA_CHECK(s == 1, op, ": padding='same' is not supported for strided convolutions; got ",
                 stride);
  const auto step = spatial_list(dilation, n, "dilation", 1);
  // What cannot be halved goes to the end, as a pad of its own.
  Sizes both = filled(n, 0), extra = filled(2 * n, 0);
  bool uneven = false;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t total = Dim(step[static_cast<size_t>(3 - n + i)]) *
                          Dim(weight.sizes()[static_cast<size_t>(i + 2)] - 1);
    both[static_cast<size_t>(i)] = total / 2;
    extra[static_cast<size_t>(2 * (n - 1 - i) + 1)] = total % 2;
    uneven = uneven || total % 2 != 0;
  }
  const Tensor x = uneven ? ops::constant_pad_nd(input, extra, Scalar(0)) : input;
  return conv(x, weight, bias, stride, both, dilation, groups, n, op);
}

Tensor transposed(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                  IntList padding, IntList output_padding, int64_t groups, IntList dilation,
                  int64_t n, const char* op) {
  check_input(input, weight, n, op);
  return on_batch(input, n, [&](const Tensor& x) {
    return ops::convolution(x, weight, bias, stride, padding, dilation, true, output_padding,
                            groups);
  });
}

}  // namespace

Tensor convolved(const Tensor& input, const Tensor& weight, IntList stride, IntList padding,
                 IntList dilation, bool transposed, IntList output_padding, int64_t groups) {
  return ops::convolution(input, weight, Tensor(), stride, padding, dilation, transposed,
                          output_padding, groups);
}

Tensor convolution_with_flags(const Tensor& input, const Tensor& weight, const Tensor& bias,
                              IntList stride, IntList padding, IntList dilation, bool transposed,
                              IntList output_padding, int64_t groups, bool, bool, bool, bool) {
  return ops::convolution(input, weight, bias, stride, padding, dilation, transposed,
                          output_padding, groups);
}

Tensor channels_expanded(const Tensor& channels, IntList sizes) {
  LAMINA_CHECK(sizes.size() >= 2, "convolution: expected sizes (n, c, ...); got ", sizes);
  Sizes one = filled(static_cast<int64_t>(sizes.size()), 1);
  one[1] = sizes[1];
  return ops::expand(ops::view(channels, one), sizes);
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& grad_output,
                                                        const Tensor& input, const Tensor& weight,
                                                        std::optional<IntList>, IntList stride,
                                                        IntList padding, IntList dilation,
                                                        bool transposed, IntList output_padding,
                                                        int64_t groups, IntList output_mask) {
  LAMINA_CHECK(output_mask.size() == 3,
               "convolution_backward: output_mask has one entry for each of input, weight and "
               "bias; got ",
               output_mask);
  std::tuple<Tensor, Tensor, Tensor> grads;
  if (output_mask[0])
    std::get<0>(grads) =
        ops::_convolution_input_grad(grad_output, weight, input.sizes(), stride, padding, dilation,
                                     transposed, output_padding, groups);
  if (output_mask[1])
    std::get<1>(grads) =
        ops::_convolution_weight_grad(grad_output, input, weight.sizes(), stride, padding, dilation,
                                      transposed, output_padding, groups);
  if (output_mask[2]) std::get<2>(grads) = ops::_convolution_bias_grad(grad_output, input, weight);
  return grads;
}

#define LAMINA_CONV(n)                                                                             \
  Tensor conv##n##d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride, \
                    IntList padding, IntList dilation, int64_t groups) {                           \
    return conv(input, weight, bias, stride, padding, dilation, groups, n, "conv" #n "d");         \
  }                                                                                                \
  Tensor conv##n##d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias,         \
                            IntList stride, std::string_view padding, IntList dilation,            \
                            int64_t groups) {                                                      \
    return conv(input, weight, bias, stride, padding, dilation, groups, n, "conv" #n "d");         \
  }                                                                                                \
  Tensor conv_transpose##n##d(const Tensor& input, const Tensor& weight, const Tensor& bias,       \
                              IntList stride, IntList padding, IntList output_padding,             \
                              int64_t groups, IntList dilation) {                                  \
    return transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, n,   \
                      "conv_transpose" #n "d");                                                    \
  }
LAMINA_CONV(1)
LAMINA_CONV(2)
LAMINA_CONV(3)
#undef LAMINA_CONV

Tensor conv_tbc(const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad) {
  LAMINA_CHECK(self.dim() == 3 && weight.dim() == 3,
               "conv_tbc: Input must have 3 dims: time, batch, in_channel; got ", self, " and ",
               weight);
  return ops::permute(ops::conv1d(ops::permute(self, {1, 2, 0}), ops::permute(weight, {2, 1, 0}),
                                  bias, {1}, {pad}, {1}, 1),
                      {2, 0, 1});
}

}  // namespace lamina::composite
