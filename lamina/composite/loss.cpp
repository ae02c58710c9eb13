// Losses as calls of other operators.
#include "lamina/kernels/loss.h"
#include "lamina/autograd/formulas.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/ops.h"
#include "lamina/shape/broadcast.h"

namespace lamina::composite {

namespace {
Tensor reduced(const Tensor& t, int64_t reduction) {
  return reduction == kReductionMean ? ops::mean(t) : reduction == kReductionSum ? ops::sum(t) : t;
}
}  // namespace

Tensor nll_loss(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                int64_t ignore_index) {
  return std::get<0>(ops::_nll_loss(self, target, weight, reduction, ignore_index));
}

Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, const Tensor& weight,
                          int64_t reduction, int64_t ignore_index, double label_smoothing) {
  LAMINA_CHECK(
      label_smoothing >= 0 && label_smoothing <= 1,
      "cross_entropy: label_smoothing must be between 0.0 and 1.0. Got: ", label_smoothing);
  LAMINA_CHECK(self.dim() > 0, "cross_entropy: the input needs a dimension of classes; got ", self);
  const int64_t class_dim = self.dim() == 1 ? 0 : 1;
  const int64_t classes = self.sizes()[class_dim];
  LAMINA_CHECK(!weight.defined() || (weight.dim() == 1 && weight.numel() == classes),
               "cross_entropy: weight tensor should be defined either for all ", classes,
               " classes or no classes but got weight "
               "tensor of shape: ",
               weight.defined() ? weight.sizes() : IntList());
  Sizes weight_sizes(static_cast<size_t>(self.dim()), 1);
  weight_sizes[class_dim] = classes;
  if (self.sizes() == target.sizes() && is_floating(target.dtype())) {
    LAMINA_CHECK(is_floating(target.dtype()),
                 "cross_entropy: Expected floating point type for target with class "
                 "probabilities, got ",
                 legacy_name(target.dtype()));
    Tensor p = target;
    if (label_smoothing > 0)
      p = ops::add(ops::mul(p, Scalar(1 - label_smoothing)),
                   Scalar(label_smoothing / static_cast<double>(classes)));
    Tensor product = ops::mul(ops::log_softmax(self, class_dim, std::nullopt), p);
    if (weight.defined()) product = ops::mul(product, ops::view(weight, weight_sizes));
    if (reduction == kReductionNone)
      return ops::neg(ops::sum(product, IntList({class_dim}), false));
    const Tensor sum = ops::neg(ops::sum(product));
    if (reduction == kReductionSum) return sum;
    return ops::div(sum,
                    Scalar(std::max<int64_t>(self.numel() / std::max<int64_t>(classes, 1), 1)));
  }
  const Tensor logp = ops::log_softmax(self, class_dim, std::nullopt);
  const auto [nll, total] = ops::_nll_loss(logp, target, weight, reduction, ignore_index);
  if (label_smoothing == 0) return nll;
  // The smooth part counts every class, weighted, of the rows that are not ignored.
  Tensor smooth = weight.defined() ? ops::mul(logp, ops::view(weight, weight_sizes)) : logp;
  smooth = ops::neg(ops::sum(smooth, IntList({class_dim}), false));
  const Tensor ignored = ops::eq(ops::view(target, smooth.sizes()), Scalar(ignore_index));
  smooth = ops::masked_fill(smooth, ignored, Scalar(0));
  Tensor part;
  if (reduction == kReductionMean)
    part = ops::div(ops::sum(smooth),
                    weight.defined()
                        ? ops::detach(total)
                        : ops::_to_dtype(ops::sum(ops::logical_not(ignored)), self.dtype()));
  else
    part = reduced(smooth, reduction);
  return ops::add(ops::mul(nll, Scalar(1 - label_smoothing)),
                  ops::mul(part, Scalar(label_smoothing / static_cast<double>(classes))));
}

Tensor mse_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return reduced(ops::square(ops::sub(self, target)), reduction);
}

}  // namespace lamina::composite
