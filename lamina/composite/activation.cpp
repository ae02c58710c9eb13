// Activations as calls of other operators.
#include <limits>

#include "lamina/autograd/formulas.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/ops.h"
#include "lamina/shape/broadcast.h"

namespace lamina::composite {

namespace {
// Klambauer et al. (2017), equation 14.
constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;
}  // namespace

Tensor elu_backward(const Tensor& grad_output, const Scalar& alpha, const Scalar& scale,
                    const Scalar& input_scale, bool is_result, const Tensor& self_or_result) {
  if (!is_result) return ops::_elu_backward(grad_output, self_or_result, alpha, scale, input_scale);
  LAMINA_CHECK(!(alpha.to_double() < 0),
               "elu_backward: the operand cannot be told from the result with a negative slope; "
               "got alpha=",
               alpha.to_double());
  const Tensor slope = (self_or_result + alpha * scale) * input_scale;
  return grad_output * ops::where(self_or_result <= Scalar(0), slope, scale);
}

Tensor celu(const Tensor& self, const Scalar& alpha) {
  LAMINA_CHECK(alpha.to_double() != 0, "celu: ZeroDivisionError: alpha cannot be 0 for CELU");
  return ops::elu(self, alpha, Scalar(1.0), Scalar(1.0 / alpha.to_double()));
}

Tensor selu(const Tensor& self) {
  return ops::elu(self, Scalar(kSeluAlpha), Scalar(kSeluScale), Scalar(1.0));
}

Tensor relu6(const Tensor& self) { return ops::hardtanh(self, Scalar(0), Scalar(6)); }

Tensor softshrink(const Tensor& self, const Scalar& lambd) {
  LAMINA_CHECK(lambd.to_double() >= 0,
               "softshrink: lambda must be greater or equal to 0, but found to be ",
               lambd.to_double(), ".");
  return ops::_softshrink(self, lambd);
}

Tensor prelu(const Tensor& self, const Tensor& weight) {
  LAMINA_CHECK(self.dtype() == weight.dtype(), "prelu: Type promoting not supported. Got ",
               self.dtype(), " and ", weight.dtype());
  if (weight.numel() != 1) {
    LAMINA_CHECK(self.dim() > 0, "prelu: Not allow zero-dim input tensor.");
    const int64_t channels = self.dim() >= 2 ? self.sizes()[1] : 1;
    LAMINA_CHECK(channels == weight.numel(),
                 "prelu: Mismatch of parameter numbers and input channel size. Found parameter "
                 "numbers = ",
                 weight.numel(), " and channel size = ", channels, ".");
  }
  LAMINA_CHECK(weight.dim() <= 1, "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ",
               "ndim = ", weight.dim());
  Tensor w = weight;
  if (self.dim() == 0) {
    w = weight.dim() == 1 ? ops::squeeze(weight) : weight;
  } else {
    Sizes shape(static_cast<size_t>(self.dim()), 1);
    if (self.dim() > 1) shape[1] = weight.dim() == 1 ? weight.sizes()[0] : 1;
    w = ops::view(weight, shape);
  }
  return ops::_prelu_kernel(self, w);
}

Tensor rrelu(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
             const Generator& generator) {
  const double lo = lower.to_double(), hi = upper.to_double();
  LAMINA_CHECK(lo <= hi, "rrelu: lower bound should be less than or equal to upper bound; got ", lo,
               " and ", hi);
  if (!training) return ops::leaky_relu(self, Scalar((lo + hi) / 2));
  const Tensor x = ops::detach(self);
  const Tensor slope = ops::uniform_(ops::empty_like(x), lo, hi, generator);
  return self * ops::where(x <= Scalar(0), slope, Scalar(1.0));
}

Tensor glu(const Tensor& self, int64_t dim) {
  LAMINA_CHECK(self.dim() > 0, "glu: does not support 0-dimensional tensors");
  const int64_t d = wrap_dim(dim, self.dim(), "glu");
  const int64_t size = self.sizes()[d];
  LAMINA_CHECK(size % 2 == 0, "glu: Halving dimension must be even, but dimension ", d, " is size ",
               size);
  return ops::narrow(self, d, 0, size / 2) * ops::sigmoid(ops::narrow(self, d, size / 2, size / 2));
}

}  // namespace lamina::composite
