// Negative log likelihood, forward and backward.
#include <cmath>

#include "lamina/core/dim.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/loss.h"
#include "lamina/kernels/working.h"

namespace lamina {

namespace {

// Operands brought to (n, c, inner) with contiguous targets and weights.
struct Problem {
  Tensor input;   // float32 or float64, contiguous
  Tensor target;  // int64, contiguous
  Tensor weight;  // like input, or undefined
  int64_t n, c, inner;
};

Problem problem(const Tensor& self, const Tensor& target, const Tensor& weight) {
  Problem p;
  const ScalarType t = compute_type(self.dtype());
  p.input = kernels::readable(self, t);
  p.target = kernels::readable(target, ScalarType::Int64);
  p.weight = kernels::readable(weight, t);
  p.n = self.dim() == 1 ? 1 : self.sizes()[0];
  p.c = self.dim() == 1 ? self.sizes()[0] : self.sizes()[1];
  p.inner = p.n == 0 ? 0 : target.numel() / p.n;
  return p;
}

int64_t checked_class(int64_t v, int64_t classes) {
  LAMINA_CHECK_INDEX(v >= 0 && v < classes, "nll_loss: Target ", v, " is out of bounds.");
  return v;
}

}  // namespace

namespace kernels {

void nll_loss(const Tensor& output, const Tensor& total_weight, const Tensor& self,
              const Tensor& target, const Tensor& weight, int64_t reduction, int64_t ignore_index) {
  const Problem p = problem(self, target, weight);
  by_float(p.input.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = p.input.data_as<T>();
    const int64_t* y = p.target.data_as<int64_t>();
    const T* w = p.weight.defined() ? p.weight.data_as<T>() : nullptr;
    const Written written(output, p.input.dtype(), reduction == kReductionNone);
    // Pairwise over rows: the error grows like the logarithm of their number.
    const auto sum = [&](auto&& self_, int64_t b, int64_t e) -> std::pair<T, T> {
      if (e - b > 128) {
        const int64_t half = b + (e - b) / 2;
        const auto l = self_(self_, b, half), r = self_(self_, half, e);
        return {l.first + r.first, l.second + r.second};
      }
      T loss = 0, weights = 0;
      for (int64_t i = b; i < e; ++i) {
        const int64_t row = i / p.inner, at = i % p.inner;
        T value = 0;
        if (y[i] != ignore_index) {
          const int64_t c = checked_class(y[i], p.c);
          const T wc = w ? w[c] : T(1);
          value = -wc * x[(row * p.c + c) * p.inner + at];
          loss += value;
          weights += wc;
        }
        if (reduction == kReductionNone) written.tensor().data_as<T>()[i] = value;
      }
      return {loss, weights};
    };
    const int64_t count = p.n * p.inner;
    const auto [loss, weights] = sum(sum, 0, count);
    if (reduction != kReductionNone) {
      const T value = reduction == kReductionMean ? loss / weights : loss;
      tile::store_scalar(output.data(), output.dtype(), static_cast<double>(value));
    }
    written.finish();
    tile::store_scalar(total_weight.data(), total_weight.dtype(), static_cast<double>(weights));
  });
}

void nll_loss_backward(const Tensor& result, const Tensor& grad_output, const Tensor& self,
                       const Tensor& target, const Tensor& weight, int64_t reduction,
                       int64_t ignore_index, const Tensor& total_weight) {
  const Problem p = problem(self, target, weight);
  by_float(p.input.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Written written(result, p.input.dtype());
    zero_bytes(written.tensor());
    T* out = written.tensor().data_as<T>();
    const int64_t* y = p.target.data_as<int64_t>();
    const T* w = p.weight.defined() ? p.weight.data_as<T>() : nullptr;
    const Tensor g = readable(grad_output, p.input.dtype());
    const T divisor =
        reduction == kReductionMean
            ? static_cast<T>(
                  tile::load_scalar(total_weight.data(), total_weight.dtype()).to_double())
            : T(1);
    for (int64_t i = 0; i < p.n * p.inner; ++i) {
      if (y[i] == ignore_index) continue;
      const int64_t c = checked_class(y[i], p.c);
      const T up = g.data_as<T>()[reduction == kReductionNone ? i : 0];
      out[(i / p.inner * p.c + c) * p.inner + i % p.inner] = -(w ? w[c] : T(1)) * up / divisor;
    }
    written.finish();
  });
}

}  // namespace kernels

namespace shape {

std::array<ResultMeta, 2> nll_loss_shape(const Tensor& self, const Tensor& target,
                                         const Tensor& weight, int64_t reduction, int64_t) {
  LAMINA_CHECK(self.dim() >= 1, "nll_loss: input tensor should be 1D or more; got ", self);
  LAMINA_CHECK_IMPLEMENTED(is_floating(self.dtype()),
                           "\"nll_loss_out_frame\" not implemented for '",
                           legacy_name(self.dtype()), "'");
  LAMINA_CHECK(target.dtype() == ScalarType::Int64 || target.dtype() == ScalarType::UInt8 ||
                   target.dtype() == ScalarType::Int32,
               "nll_loss: expected scalar type Long but found ", legacy_name(target.dtype()));
  Sizes want;
  if (self.dim() > 1) want.push_back(self.sizes()[0]);
  for (int64_t i = 2; i < self.dim(); ++i) want.push_back(self.sizes()[i]);
  LAMINA_CHECK_VALUE(self.dim() == 1 || target.dim() == 0 || target.sizes()[0] == self.sizes()[0],
                     "nll_loss: Expected input batch_size (", self.sizes()[0],
                     ") to match target batch_size (", target.dim() ? target.sizes()[0] : 1, ").");
  LAMINA_CHECK(target.sizes() == IntList(want) || (self.dim() == 1 && target.numel() == 1),
               "nll_loss: size mismatch (got input: ", self.sizes(), ", target: ", target.sizes(),
               ")");
  const int64_t classes = self.dim() == 1 ? self.sizes()[0] : self.sizes()[1];
  LAMINA_CHECK(!weight.defined() || (weight.dim() == 1 && weight.numel() == classes),
               "nll_loss: weight tensor should be defined either for all ", classes,
               " classes or no classes but got weight ",
               "tensor of shape: ", weight.defined() ? weight.sizes() : IntList());
  return {
      ResultMeta{reduction == kReductionNone
                     ? (self.dim() == 1 ? Sizes(std::span<const int64_t>(target.sizes())) : want)
                     : Sizes{},
                 self.dtype(), self.device()},
      ResultMeta{{}, self.dtype(), self.device()}};
}

ResultMeta nll_loss_backward_shape(const Tensor& grad_output, const Tensor& self,
                                   const Tensor& target, const Tensor& weight, int64_t reduction,
                                   int64_t ignore_index, const Tensor& total_weight) {
  const auto [loss, total] = nll_loss_shape(self, target, weight, reduction, ignore_index);
  LAMINA_CHECK(grad_output.numel() == numel_of(loss.sizes) && total_weight.numel() == 1,
               "nll_loss_backward: expected a gradient of size ", loss.sizes,
               " and one total weight; got ", grad_output, " and ", total_weight);
  return {Sizes(std::span<const int64_t>(self.sizes())), self.dtype(), self.device()};
}

}  // namespace shape
}  // namespace lamina
