// Derivatives of activations and losses that need more than one expression.
#include "lamina/autograd/formulas.h"

namespace lamina::autograd::formulas {

Tensor elu_second(const Tensor& grad_output, const Tensor& self, const Scalar& factor,
                  const Scalar& input_scale) {
  // At the kink, where the second derivative jumps, that of the right side.
  return ops::where(self < Scalar(0), grad_output * (ops::exp(self * input_scale) * factor),
                    Scalar(0.0));
}

Tensor hardswish_second(const Tensor& grad_output, const Tensor& self) {
  const Tensor inside = ops::logical_and(self > Scalar(-3), self < Scalar(3));
  return ops::where(inside, grad_output * Scalar(1.0 / 3), Scalar(0.0));
}

Tensor mish_second(const Tensor& grad_output, const Tensor& self) {
  // With t = tanh(softplus(x)) and s = sigmoid(x): t' = s (1 - t^2), s' = s (1 - s).
  const Tensor s = ops::sigmoid(self), t = ops::tanh(-ops::log_sigmoid(-self));
  const Tensor slope = s * (Scalar(1) - t * t);
  const Tensor bend = slope * ((Scalar(1) - s) - (t * s) * Scalar(2));
  return grad_output * (slope * Scalar(2) + self * bend);
}

Tensor prelu_below(const Tensor& grad_output, const Tensor& self) {
  return ops::where(self > Scalar(0), Scalar(0.0), grad_output);
}

Tensor smooth_l1_slope(const Tensor& self, const Tensor& target, double beta) {
  return ops::clamp((self - target) / Scalar(beta), Scalar(-1.0), Scalar(1.0));
}

Tensor huber_slope(const Tensor& self, const Tensor& target, double delta) {
  return ops::clamp(self - target, Scalar(-delta), Scalar(delta));
}

Tensor bce_slope(const Tensor& self, const Tensor& target) {
  // The floor keeps probabilities of exactly 0 and 1 from dividing by zero.
  const Tensor spread = ops::clamp_min((Scalar(1) - self) * self, Scalar(1e-12));
  return (self - target) / spread;
}

Tensor bce_target_slope(const Tensor& self) {
  return ops::clamp_min(ops::log1p(-self), Scalar(-100.0)) -
         ops::clamp_min(ops::log(self), Scalar(-100.0));
}

}  // namespace lamina::autograd::formulas
