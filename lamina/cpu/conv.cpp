// Convolution and its derivatives as sums over taps.
#include "lamina/cpu/conv.h"

#include <algorithm>

#include "lamina/cpu/conv_taps.h"

namespace lamina::cpu {

namespace {

TapSum sum_of(const ConvSizes& s, ScalarType dtype, const ConvArray& source,
              const ConvArray& weight, const ConvBias& bias, const ConvArray& target) {
  TapSum t;
  t.dtype = dtype;
  t.batch = s.batch;
  t.groups = s.groups;
  t.source = source;
  t.target = target;
  t.weight = weight.data;
  t.weight_group = s.out_channels * weight.outer;
  t.bias = bias;
  return t;
}

}  // namespace

void conv_forward(const ConvSizes& s, ScalarType dtype, const ConvArray& input,
                  const ConvArray& weight, const ConvBias& bias, const ConvArray& output) {
  TapSum t = sum_of(s, dtype, input, weight, bias, output);
  t.channels = s.in_channels;
  t.rows = s.out_channels;
  t.weight_row = weight.outer;
  t.weight_channel = weight.channel;
  for (int i = 0; i < 3; ++i) {
    TapAxis& axis = t.axes[i];
    axis = {s.output[i], s.input[i], s.stride[i], {}, {}};
    for (int64_t j = 0; j < s.kernel[i]; ++j) {
      axis.taps.push_back(j * s.dilation[i] - s.padding[i]);
      axis.weights.push_back(j * weight.space[i]);
    }
  }
  run_tap_sum(t);
}

// Points of the input that are `stride` apart are read by the same taps: one sum for each residue.
void conv_input_grad(const ConvSizes& s, ScalarType dtype, const ConvArray& grad,
                     const ConvArray& weight, const ConvBias& bias, const ConvArray& input_grad) {
  TapSum t = sum_of(s, dtype, grad, weight, bias, input_grad);
  t.channels = s.out_channels;
  t.rows = s.in_channels;
  t.weight_row = weight.channel;
  t.weight_channel = weight.outer;
  const auto item = static_cast<int64_t>(item_size(dtype));
  const auto residues = [&](int i) { return std::min(s.stride[i], s.input[i]); };
  for (int64_t z = 0; z < residues(0); ++z)
    for (int64_t y = 0; y < residues(1); ++y)
      for (int64_t x = 0; x < residues(2); ++x) {
        const int64_t residue[] = {z, y, x};
        auto* target = static_cast<char*>(input_grad.data);
        for (int i = 0; i < 3; ++i) {
          TapAxis& axis = t.axes[i];
          const int64_t step = s.stride[i];
          axis = {(s.input[i] - residue[i] + step - 1) / step, s.output[i], 1, {}, {}};
          for (int64_t j = 0; j < s.kernel[i]; ++j) {
            const int64_t distance = residue[i] + s.padding[i] - j * s.dilation[i];
            if (distance % step != 0) continue;
            axis.taps.push_back(distance / step);
            axis.weights.push_back(j * weight.space[i]);
          }
          t.target.space[i] = step * input_grad.space[i];
          target += residue[i] * input_grad.space[i] * item;
        }
        t.target.data = target;
        run_tap_sum(t);
      }
}

}  // namespace lamina::cpu
