// Convolution on the CPU, on raw pointers: the operator and the derivatives by its two operands,
// for real types that have a packed product (packed.h). Results do not depend on the number of
// threads. docs/decisions/0009-convolution.md says how it works.
#pragma once

#include <array>
#include <cstdint>

#include "lamina/core/scalar_type.h"

namespace lamina::cpu {

// Sizes of one convolution, groups apart; what has fewer than three spatial dimensions has leading
// dimensions of size 1. output[i] * stride[i] - padding[i] + j * dilation[i] is the place in the
// input.
struct ConvSizes {
  int64_t batch = 0, groups = 1;
  int64_t in_channels = 0, out_channels = 0;  // of one group
  std::array<int64_t, 3> input{1, 1, 1}, kernel{1, 1, 1}, output{1, 1, 1};
  std::array<int64_t, 3> stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
};

// An image (n, groups * c, spatial) or a weight (groups * out, in, spatial): strides in elements.
struct ConvArray {
  void* data = nullptr;
  int64_t outer = 0, channel = 0;
  std::array<int64_t, 3> space{0, 0, 0};
};

struct ConvBias {
  const void* data = nullptr;  // null: none
  int64_t stride = 1;
};

// output = convolution of input with weight, plus bias.
void conv_forward(const ConvSizes& s, ScalarType dtype, const ConvArray& input,
                  const ConvArray& weight, const ConvBias& bias, const ConvArray& output);
// The derivative by the input, applied to `grad` (of the output's shape); also the transposed
// convolution, whose bias counts the channels of the input.
void conv_input_grad(const ConvSizes& s, ScalarType dtype, const ConvArray& grad,
                     const ConvArray& weight, const ConvBias& bias, const ConvArray& input_grad);
// The derivative by the weight.
void conv_weight_grad(const ConvSizes& s, ScalarType dtype, const ConvArray& grad,
                      const ConvArray& input, const ConvArray& weight_grad);

}  // namespace lamina::cpu
