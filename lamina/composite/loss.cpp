// Losses as calls of other operators.
#include "lamina/kernels/loss.h"

#include <algorithm>
#include <numbers>

#include "lamina/autograd/formulas.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"
#include "lamina/ops.h"
#include "lamina/shape/broadcast.h"
#include "lamina/shape/promotion.h"

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

Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return reduced(ops::abs(ops::sub(self, target)), reduction);
}

Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
  LAMINA_CHECK(beta >= 0, "smooth_l1_loss does not support negative values for beta.");
  if (beta == 0) return l1_loss(self, target, reduction);
  return reduced(ops::_smooth_l1(self, target, beta), reduction);
}

Tensor huber_loss(const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  LAMINA_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
  return reduced(ops::_huber(self, target, delta), reduction);
}

Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, const Tensor& weight,
                            int64_t reduction) {
  LAMINA_CHECK(self.dtype() == target.dtype(),
               "binary_cross_entropy: Found dtypes that differ; got ", self, " and ", target);
  if (self.device().is_cpu() && self.numel() > 0) {
    const Tensor x = ops::detach(self);
    const Tensor inside = ops::logical_and(x >= Scalar(0), x <= Scalar(1));
    LAMINA_CHECK(scalar_of(ops::all(inside)).to_bool(),
                 "all elements of input should be between 0 and 1");
  }
  Tensor loss = ops::_binary_cross_entropy(self, target);
  if (weight.defined()) loss = loss * weight;
  return reduced(loss, reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                        const Tensor& weight, const Tensor& pos_weight,
                                        int64_t reduction) {
  Tensor loss;
  if (pos_weight.defined()) {
    const Tensor factor = ops::add(ops::mul(target, pos_weight - Scalar(1)), Scalar(1));
    loss = (Scalar(1) - target) * self - factor * ops::log_sigmoid(self);
  } else {
    loss = ops::_bce_with_logits(self, target);
  }
  if (weight.defined()) loss = loss * weight;
  return reduced(loss, reduction);
}

Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
  LAMINA_CHECK(!self.is_complex() && !target.is_complex(),
               "kl_div: Complex inputs not supported; got ", self, " and ", target);
  LAMINA_CHECK(is_floating(self.dtype()) && is_floating(target.dtype()),
               "kl_div: Integral inputs not supported; got ", self, " and ", target);
  const Tensor loss =
      log_target ? ops::exp(target) * (target - self) : ops::xlogy(target, target) - target * self;
  return reduced(loss, reduction);
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full,
                        double eps, int64_t reduction) {
  Tensor loss =
      log_input ? ops::exp(input) - target * input : input - target * ops::log(input + Scalar(eps));
  if (full) {
    // Stirling's approximation of log(target!), for targets above one.
    const Tensor stirling = target * ops::log(target) - target +
                            ops::log(target * Scalar(2 * std::numbers::pi)) * Scalar(0.5);
    loss = loss + ops::masked_fill(stirling, target <= Scalar(1), Scalar(0));
  }
  return reduced(loss, reduction);
}

namespace {
Tensor above_zero(const Tensor& t) { return ops::clamp_min(t, Scalar(0)); }
}  // namespace

Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin,
                            int64_t reduction) {
  const Tensor zeros = ops::zeros_like(self);
  const Tensor far = ops::where(target != Scalar(1), above_zero(Scalar(margin) - self), zeros);
  const Tensor near = ops::where(target != Scalar(-1), self, zeros);
  return reduced(far + near, reduction);
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             double margin, int64_t reduction) {
  const int64_t nd = target.dim();
  LAMINA_CHECK(nd == 0 || nd == 1,
               "cosine_embedding_loss: 0D or 1D target tensor expected, multi-target not "
               "supported; got ",
               target);
  LAMINA_CHECK(input1.dim() == nd + 1 && input2.dim() == nd + 1, "cosine_embedding_loss: ", nd,
               "D target tensor expects ", nd + 1, "D input tensors, but found inputs with sizes ",
               input1.sizes(), " and ", input2.sizes(), ".");
  constexpr double kFloor = 1e-12;  // keeps the length of a zero vector from dividing by zero
  const int64_t dim = nd;
  const auto sum = [&](const Tensor& t) { return ops::sum(t, IntList({dim}), false); };
  const Tensor product = sum(input1 * input2);
  const Tensor lengths =
      (sum(input1 * input1) + Scalar(kFloor)) * (sum(input2 * input2) + Scalar(kFloor));
  const Tensor cosine = product / ops::sqrt(lengths);
  const Tensor zeros = ops::zeros_like(cosine);
  const Tensor near = ops::where(target == Scalar(1), Scalar(1) - cosine, zeros);
  const Tensor far = ops::where(target == Scalar(-1), above_zero(cosine - Scalar(margin)), zeros);
  return reduced(near + far, reduction);
}

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           double margin, int64_t reduction) {
  LAMINA_CHECK(input1.dim() == input2.dim() && input1.dim() == target.dim(),
               "margin_ranking_loss: all input tensors should have the same dimension but got "
               "sizes: input1: ",
               input1.sizes(), ", input2: ", input2.sizes(), ", target: ", target.sizes(), " ");
  return reduced(above_zero(-target * (input1 - input2) + Scalar(margin)), reduction);
}

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  const ScalarType type = promote_types(x1.dtype(), x2.dtype());
  LAMINA_CHECK(is_floating(type),
               "cosine_similarity: expected common dtype to be floating point, yet common dtype "
               "is ",
               type);
  const Sizes sizes = broadcast_sizes(x1.sizes(), x2.sizes(), "cosine_similarity");
  const Tensor a = ops::expand(ops::_to_dtype(x1, type), sizes),
               b = ops::expand(ops::_to_dtype(x2, type), sizes);
  const auto unit = [&](const Tensor& t) {
    const Tensor length = ops::linalg_vector_norm(t, Scalar(2), IntList({dim}), true, std::nullopt);
    return t / ops::clamp_min(length, Scalar(eps));
  };
  return ops::sum(unit(a) * unit(b), IntList({dim}), false);
}

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  const int64_t last = std::max<int64_t>(x1.dim(), x2.dim()) - 1;
  return ops::linalg_vector_norm(x1 - x2 + Scalar(eps), Scalar(p), IntList({last}), keepdim,
                                 std::nullopt);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           double margin, double p, double eps, bool swap, int64_t reduction) {
  LAMINA_CHECK(anchor.dim() == positive.dim() && positive.dim() == negative.dim(),
               "triplet_margin_loss: All inputs should have same dimension but got ", anchor.dim(),
               "D, ", positive.dim(), "D and ", negative.dim(), "D inputs.");
  LAMINA_CHECK(margin > 0, "triplet_margin_loss: margin must be greater than 0, got ", margin);
  const Tensor near = pairwise_distance(anchor, positive, p, eps, false);
  Tensor far = pairwise_distance(anchor, negative, p, eps, false);
  if (swap) far = ops::minimum(far, pairwise_distance(positive, negative, p, eps, false));
  return reduced(above_zero(Scalar(margin) + near - far), reduction);
}

namespace {
// Scores as (n, c) and one sample's as (1, c); targets alike.
void check_margin_shapes(const Tensor& self, const Tensor& target, bool several, const char* op) {
  const int64_t d = self.dim();
  LAMINA_CHECK(d <= 2 && (d == 0 || self.sizes()[d - 1] != 0), op,
               ": Expected non-empty vector or matrix with optional 0-dim batch size, but got: ",
               self.sizes());
  LAMINA_CHECK_IMPLEMENTED(is_floating(self.dtype()), op, " not implemented for '",
                           legacy_name(self.dtype()), "'");
  LAMINA_CHECK(target.dtype() == ScalarType::Int64, op, ": expected scalar type Long but found ",
               legacy_name(target.dtype()));
  if (several) {
    const bool fits = d == 0   ? target.numel() == 1
                      : d == 1 ? target.dim() <= 1 && target.numel() == self.numel()
                               : target.sizes() == self.sizes();
    LAMINA_CHECK(fits, op, ": inconsistent target size: ", target.sizes(),
                 " for input of size: ", self.sizes());
    return;
  }
  const int64_t rows = d == 2 ? self.sizes()[0] : 1;
  LAMINA_CHECK(target.dim() <= 1 && target.numel() == rows, op,
               ": inconsistent target size, got: ", target.sizes());
}
}  // namespace

Tensor multi_margin_loss(const Tensor& self, const Tensor& target, const Scalar& p,
                         const Scalar& margin, const Tensor& weight, int64_t reduction) {
  check_margin_shapes(self, target, false, "multi_margin_loss");
  LAMINA_CHECK(p.equals(1) || p.equals(2), "multi_margin_loss: only p == 1 and p == 2 supported");
  const bool one = self.dim() < 2;
  const int64_t classes = self.dim() == 0 ? 1 : self.sizes()[self.dim() - 1];
  LAMINA_CHECK(!weight.defined() || (weight.dim() <= 1 && weight.numel() == classes),
               "multi_margin_loss: inconsistent weight size: ",
               weight.defined() ? weight.sizes() : IntList());
  const Tensor x = ops::reshape(self, IntList({-1, classes}));
  const Tensor y = ops::reshape(target, IntList({-1, 1}));
  Tensor z = above_zero(x - ops::gather(x, 1, y) + margin);
  if (p.equals(2)) z = z * z;
  if (weight.defined())
    z = z * ops::view(ops::index_select(weight, 0, ops::view(y, IntList({-1}))), IntList({-1, 1}));
  z = ops::scatter(z, 1, y, Scalar(0));
  const Tensor loss = ops::sum(z, IntList({1}), false) / Scalar(static_cast<double>(classes));
  if (one && reduction == kReductionNone) return ops::view(loss, IntList());
  return reduced(loss, reduction);
}

Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  check_margin_shapes(self, target, true, "multilabel_margin_loss");
  const bool one = self.dim() < 2;
  const int64_t classes = self.dim() == 0 ? 1 : self.sizes()[self.dim() - 1];
  const Tensor x = ops::reshape(self, IntList({-1, classes}));
  const Tensor y = ops::reshape(target, IntList({-1, classes}));
  if (x.device().is_cpu() && y.numel() > 0)
    LAMINA_CHECK(
        scalar_of(ops::all(ops::logical_and(y >= Scalar(-1), y < Scalar(classes)))).to_bool(),
        "multilabel_margin_loss: target out of range; expected -1 to ", classes - 1);
  // A row counts up to its first negative entry.
  const Tensor counts =
      ops::cumprod(ops::_to_dtype(y >= Scalar(0), ScalarType::Int64), 1, std::nullopt);
  const Tensor at = y * counts;
  const Tensor is_target = ops::scatter_add(ops::zeros_like(y), 1, at, counts) > Scalar(0);
  // (n, target, class): the score of each target against every class.
  const Tensor wanted = ops::unsqueeze(ops::gather(x, 1, at), 2);
  const Tensor pairs = above_zero(Scalar(1) - (wanted - ops::unsqueeze(x, 1)));
  const Tensor valid = ops::logical_and(ops::unsqueeze(counts > Scalar(0), 2),
                                        ops::logical_not(ops::unsqueeze(is_target, 1)));
  const Tensor kept = ops::where(valid, pairs, ops::zeros_like(pairs));
  const Tensor loss = ops::sum(kept, IntList({1, 2}), false) / Scalar(static_cast<double>(classes));
  if (one && reduction == kReductionNone) return ops::view(loss, IntList());
  return reduced(loss, reduction);
}

Tensor soft_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return reduced(-ops::log_sigmoid(self * target), reduction);
}

}  // namespace lamina::composite
