// Derivatives of pointwise operators that need more than one expression.
#include <numbers>

#include "lamina/autograd/formulas.h"

namespace lamina::autograd::formulas {

using namespace ops;  // NOLINT: formulas are written in public operators

Tensor scaled(const Tensor& t, const Scalar& factor) {
  if (factor.equals(1)) return t;
  return factor.equals(0) ? ops::zeros_like(t) : ops::mul(t, factor);
}

Tensor real_of(const Tensor& grad) { return ops::real(grad); }
Tensor imag_of(const Tensor& grad) {
  return grad.is_complex() ? ops::imag(grad) : ops::zeros_like(grad);
}

Tensor pow_grad_self(const Tensor& grad, const Tensor& self, const Scalar& exponent) {
  if (exponent.equals(0)) return ops::zeros_like(grad);
  if (exponent.equals(1)) return grad;
  return mul_zero(grad, conj_of(exponent * ops::pow(self, exponent - Scalar(1))));
}

Tensor pow_grad_self(const Tensor& grad, const Tensor& self, const Tensor& exponent) {
  // x ** 0 is 1 everywhere, also at 0 where the formula has 0 * inf.
  const Tensor slope = exponent * ops::pow(self, exponent - Scalar(1));
  return mul_zero(grad, conj_of(ops::where(exponent == Scalar(0), Scalar(0), slope)));
}

namespace {
Tensor exponent_slope(const Tensor& zero_base, const Tensor& log_base, const Tensor& exponent,
                      const Tensor& result) {
  // 0 ** y is flat for y >= 0.
  const Tensor flat = exponent.is_complex()
                          ? ops::logical_and(zero_base, ops::ge(ops::real(exponent), Scalar(0)))
                          : ops::logical_and(zero_base, exponent >= Scalar(0));
  return ops::where(flat, Scalar(0), result * log_base);
}
}  // namespace

Tensor pow_grad_exponent(const Tensor& grad, const Tensor& self, const Tensor& exponent,
                         const Tensor& result) {
  return mul_zero(grad,
                  conj_of(exponent_slope(self == Scalar(0), ops::log(self), exponent, result)));
}
Tensor pow_grad_exponent(const Tensor& grad, const Scalar& self, const Tensor& exponent,
                         const Tensor& result) {
  // The base in the type of the result; a negative real base has no real logarithm.
  const Tensor base = ops::full({}, self, result.dtype(), std::nullopt, result.device());
  return pow_grad_exponent(grad, base, exponent, result);
}

Tensor split_tie(const Tensor& loses, const Tensor& equal) {
  return ops::where(loses, Scalar(0), ops::where(equal, Scalar(0.5), Scalar(1.0)));
}

Tensor copysign_grad(const Tensor& self, const Tensor& result) {
  return ops::where(self == Scalar(0), Scalar(0), result / self);
}

namespace {
// Both operands at the same infinity: the sum is infinite whatever the shares are; they are equal.
Tensor share(const Tensor& self, const Tensor& other, const Tensor& ratio) {
  return ops::where(ops::logical_and(ops::isinf(self), self == other), Scalar(0.5), ratio);
}
}  // namespace
Tensor logaddexp_weight(const Tensor& self, const Tensor& other) {
  return share(self, other, ops::sigmoid(self - other));
}
Tensor logaddexp2_weight(const Tensor& self, const Tensor& other) {
  return share(self, other, ops::sigmoid((self - other) * Scalar(std::numbers::ln2)));
}

Tensor xlogy_weight(const Tensor& self, const Tensor& other) {
  return ops::masked_fill(ops::log(other), ops::logical_and(self == Scalar(0), other <= Scalar(0)),
                          Scalar(0));
}
Tensor xlogy_weight(const Tensor& self, const Scalar& other) {
  return xlogy_weight(self, ops::full({}, other, self.dtype(), std::nullopt, self.device()));
}

Tensor sgn_grad(const Tensor& grad, const Tensor& self, const Tensor& result) {
  if (!self.is_complex()) return ops::zeros_like(grad);
  const Tensor size = ops::abs(self);
  const Tensor along = ops::real(grad * ops::conj(result));
  return ops::where(size == Scalar(0), Scalar(0), (grad - along * result) / size);
}

Tensor angle_grad(const Tensor& grad, const Tensor& self) {
  if (!self.is_complex()) return ops::zeros_like(grad);
  const Tensor size = ops::abs(self);
  const Tensor turned = ops::complex(ops::neg(ops::imag(self)), ops::contiguous(ops::real(self)));
  return ops::where(size == Scalar(0), Scalar(0), turned * (grad / (size * size)));
}

Tensor floor_quotient(const Tensor& self, const Tensor& other) {
  return ops::floor_divide(self, other);
}
Tensor floor_quotient(const Tensor& self, const Scalar& other) {
  return ops::floor_divide(self, other);
}
Tensor floor_quotient(const Scalar& self, const Tensor& other) {
  return ops::floor_divide(ops::full({}, self, other.dtype(), std::nullopt, other.device()), other);
}

Tensor acosh_slope(const Tensor& self) {
  // The two roots apart, or the sign is wrong on half of the complex plane.
  if (self.is_complex()) return ops::rsqrt(self - Scalar(1)) * ops::rsqrt(self + Scalar(1));
  return ops::rsqrt(self * self - Scalar(1));
}

Tensor gelu_tanh_second(const Tensor& self) {
  constexpr double kBeta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kKappa = 0.044715;
  const Tensor square = self * self;
  const Tensor t = ops::tanh((self * Scalar(kBeta)) * (square * Scalar(kKappa) + Scalar(1)));
  const Tensor inner = (square * Scalar(3 * kKappa) + Scalar(1)) * Scalar(kBeta);
  const Tensor bend = self * Scalar(6 * kBeta * kKappa) - (t * (inner * inner)) * Scalar(2);
  return (Scalar(1) - t * t) * (inner + (self * bend) * Scalar(0.5));
}

Tensor silu_derivative(const Tensor& self) {
  const Tensor s = ops::sigmoid(self);
  return s * (self * (Scalar(1) - s) + Scalar(1));
}

Tensor softplus_second(const Tensor& grad_output, const Tensor& self, const Scalar& beta,
                       const Scalar& threshold) {
  const Tensor s = ops::sigmoid(self * beta);
  return grad_output *
         ops::where((self * beta) > threshold, Scalar(0), (s * (Scalar(1) - s)) * beta);
}

}  // namespace lamina::autograd::formulas
