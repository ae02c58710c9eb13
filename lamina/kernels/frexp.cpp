// Numbers taken apart into mantissa and exponent.
#include <cmath>

#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"

namespace lamina::kernels {

void frexp(const Tensor& mantissa, const Tensor& exponent, const Tensor& self) {
  // Every floating type is exact in float64.
  const Tensor in = contiguous_values(converted(self, ScalarType::Float64));
  const Tensor parts = empty_contiguous(self.sizes(), ScalarType::Float64, kCpu);
  const Tensor powers = empty_contiguous(self.sizes(), ScalarType::Int32, kCpu);
  const auto* x = in.data_as<double>();
  auto* m = parts.data_as<double>();
  auto* e = powers.data_as<int32_t>();
  for (int64_t i = 0; i < self.numel(); ++i) {
    int power = 0;
    m[i] = std::frexp(x[i], &power);
    e[i] = std::isfinite(x[i]) ? power : 0;
  }
  copy_values(mantissa, parts);
  copy_values(exponent, powers);
}

}  // namespace lamina::kernels
