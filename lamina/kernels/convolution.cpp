// Convolution and its derivatives, by cpu/conv. Complex numbers are four real convolutions.
#include "lamina/shape/convolution.h"
#include "lamina/core/error.h"
#include "lamina/cpu/conv.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"
#include "lamina/tile/tile.h"

namespace lamina::kernels {

namespace {

// `part` of a complex tensor (0 real, 1 imaginary) as an array of its real type.
cpu::ConvArray array_of(const Tensor& t, int part = 0) {
  const int64_t scale = is_complex(t.dtype()) ? 2 : 1;
  cpu::ConvArray a;
  a.data = static_cast<char*>(t.data()) + static_cast<size_t>(part) * item_size(to_real(t.dtype()));
  a.outer = t.strides()[0] * scale;
  a.channel = t.strides()[1] * scale;
  const auto spatial = static_cast<size_t>(t.dim() - 2);
  for (size_t i = 0; i < spatial; ++i) a.space[3 - spatial + i] = t.strides()[i + 2] * scale;
  return a;
}

cpu::ConvBias bias_of(const Tensor& bias, int part = 0) {
  if (!bias.defined()) return {};
  const bool complex = is_complex(bias.dtype());
  return {static_cast<const char*>(bias.data()) +
              static_cast<size_t>(part) * item_size(to_real(bias.dtype())),
          bias.strides()[0] * (complex ? 2 : 1)};
}

// `large` is what the taps read, `small` has their points: input and output, or the reverse of it
// for a transposed convolution.
cpu::ConvSizes sizes_of(IntList large, IntList small, IntList weight, IntList stride,
                        IntList padding, IntList dilation, int64_t groups) {
  cpu::ConvSizes s;
  const auto n = static_cast<int64_t>(weight.size()) - 2;
  s.batch = large[0];
  s.groups = groups;
  s.out_channels = weight[0] / groups;
  s.in_channels = weight[1];
  for (int64_t i = 0; i < n; ++i) {
    const auto to = static_cast<size_t>(3 - n + i), from = static_cast<size_t>(i + 2);
    s.input[to] = large[from];
    s.output[to] = small[from];
    s.kernel[to] = weight[from];
  }
  s.stride = spatial_list(stride, n, "stride", 1);
  s.padding = spatial_list(padding, n, "padding", 0);
  s.dilation = spatial_list(dilation, n, "dilation", 1);
  return s;
}

// out = f(a, b) for an f that is linear in both; `bias` goes with the real and imaginary part.
template <class F>
void bilinear(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& bias, F&& f) {
  const ScalarType type = out.dtype();
  if (!is_complex(type)) {
    f(type, array_of(a), array_of(b), bias_of(bias), array_of(out));
    return;
  }
  const ScalarType real = to_real(type);
  Tensor parts[4];
  for (int i = 0; i < 4; ++i) {
    parts[i] = empty_preserving(out, real);
    f(real, array_of(a, i & 1), array_of(b, i == 1 || i == 2),
      i == 0   ? bias_of(bias, 0)
      : i == 3 ? bias_of(bias, 1)
               : cpu::ConvBias{},
      array_of(parts[i]));
  }
  // real * real - imaginary * imaginary; the rest is real * imaginary and imaginary * real.
  const auto combine = [&](auto zero) {
    using T = decltype(zero);
    T* to = out.data_as<T>();
    const T *rr = parts[0].data_as<T>(), *ii = parts[1].data_as<T>();
    const T *ri = parts[2].data_as<T>(), *ir = parts[3].data_as<T>();
    for (int64_t i = 0; i < out.numel(); ++i) {
      to[2 * i] = rr[i] - ii[i];
      to[2 * i + 1] = ri[i] + ir[i];
    }
  };
  if (real == ScalarType::Float64)
    combine(double{});
  else
    combine(float{});
}

}  // namespace

void convolution(const Tensor& result, const Tensor& input, const Tensor& weight,
                 const Tensor& bias, IntList stride, IntList padding, IntList dilation,
                 bool transposed, IntList, int64_t groups) {
  const Tensor& large = transposed ? result : input;
  const Tensor& small = transposed ? input : result;
  const cpu::ConvSizes s =
      sizes_of(large.sizes(), small.sizes(), weight.sizes(), stride, padding, dilation, groups);
  bilinear(result, input, weight, bias, [&](auto... args) {
    if (transposed)
      cpu::conv_input_grad(s, args...);
    else
      cpu::conv_forward(s, args...);
  });
}

void convolution_input_grad(const Tensor& result, const Tensor& grad_output, const Tensor& weight,
                            IntList input_size, IntList stride, IntList padding, IntList dilation,
                            bool transposed, IntList, int64_t groups) {
  const IntList grad = grad_output.sizes();
  const cpu::ConvSizes s = sizes_of(transposed ? grad : input_size, transposed ? input_size : grad,
                                    weight.sizes(), stride, padding, dilation, groups);
  bilinear(result, grad_output, weight, Tensor(), [&](auto... args) {
    if (transposed)
      cpu::conv_forward(s, args...);
    else
      cpu::conv_input_grad(s, args...);
  });
}

void convolution_weight_grad(const Tensor& result, const Tensor& grad_output, const Tensor& input,
                             IntList weight_size, IntList stride, IntList padding, IntList dilation,
                             bool transposed, IntList, int64_t groups) {
  const Tensor& large = transposed ? grad_output : input;
  const Tensor& small = transposed ? input : grad_output;
  const cpu::ConvSizes s =
      sizes_of(large.sizes(), small.sizes(), weight_size, stride, padding, dilation, groups);
  if (large.numel() == 0 || small.numel() == 0) return zero_bytes(result);
  bilinear(
      result, small, large, Tensor(),
      [&](ScalarType type, const cpu::ConvArray& a, const cpu::ConvArray& b, const cpu::ConvBias&,
          const cpu::ConvArray& out) { cpu::conv_weight_grad(s, type, a, b, out); });
}

void convolution_bias_grad(const Tensor& result, const Tensor& grad_output, const Tensor&,
                           const Tensor&) {
  if (grad_output.numel() == 0) return zero_bytes(result);
  bool reduced[tile::kMaxDims];
  int64_t strides[tile::kMaxDims] = {};
  for (int64_t i = 0; i < grad_output.dim(); ++i) reduced[i] = i != 1;
  strides[1] = result.strides()[0];
  tile::ReduceCall call;
  call.kind = tile::Reduce::sum;
  call.accumulate = compute_type(result.dtype());
  call.ndim = static_cast<int>(grad_output.dim());
  call.sizes = grad_output.sizes().data();
  call.reduced = reduced;
  call.input = {grad_output.data(), grad_output.dtype(), grad_output.strides().data()};
  call.out = {result.data(), result.dtype(), strides};
  tile::reduce(call);
}

}  // namespace lamina::kernels
