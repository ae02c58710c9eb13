// Derivatives of reductions, scans, softmax, losses.
#include "lamina/autograd/formulas.h"
#include "lamina/shape/reduce.h"
#include "lamina/transforms/batched.h"

namespace lamina::autograd::formulas {

std::optional<Scalar> unbiased_correction(bool unbiased) { return Scalar(unbiased ? 1 : 0); }

Tensor flip(const Tensor& t, int64_t dim) {
  return ops::slice(t, dim, std::nullopt, std::nullopt, -1);
}

Tensor zeros_of(const Tensor& like, IntList sizes) {
  // Samples can be written into zeros that have samples.
  if (transforms::is_batched(like)) [[unlikely]]
    return ops::new_zeros(like, sizes);
  return ops::zeros(sizes, like.dtype(), std::nullopt, like.device());
}

Tensor var_grad(const Tensor& grad, const Tensor& self, Dims dims,
                const std::optional<Scalar>& correction, bool keepdim) {
  const Sizes shape(sizes(self));
  const double count = static_cast<double>(reduced_count(shape, dims)) -
                       (correction ? correction->to_double() : 1.0);
  const Tensor mean = shape.empty() ? self : ops::mean(self, dims, true);
  const Tensor centred = self - mean;
  return mul_zero(unreduce(grad, shape, dims, keepdim), centred * Scalar(2.0 / count));
}

Tensor std_grad(const Tensor& grad, const Tensor& self, const Tensor& result, Dims dims,
                const std::optional<Scalar>& correction, bool keepdim) {
  // A deviation of zero is a corner; its gradient is taken as zero.
  const Tensor scaled_grad =
      ops::masked_fill(grad / (result * Scalar(2)), result == Scalar(0), Scalar(0));
  return var_grad(scaled_grad, self, dims, correction, keepdim);
}

namespace {
// Product of all the other elements along dim: from the left times from the right, without
// dividing.
Tensor product_of_others(const Tensor& x, int64_t dim) {
  const int64_t n = x.size(dim);
  if (n <= 1) return ops::ones_like(x);
  Sizes one{std::span<const int64_t>(x.sizes())};
  one[wrap_dim(dim, x.dim(), "prod")] = 1;
  const Tensor first = ops::ones(one, x.dtype(), std::nullopt, x.device());
  const auto exclusive = [&](const Tensor& t) {
    return ops::cat(std::vector<Tensor>{first, ops::slice(ops::cumprod(t, dim), dim, 0, n - 1, 1)},
                    dim);
  };
  return exclusive(x) * flip(exclusive(flip(x, dim)), dim);
}
Tensor in_type(const Tensor& t, ScalarType dtype) { return ops::_to_dtype(t, dtype); }
}  // namespace

Tensor prod_grad_all(const Tensor& grad, const Tensor& self, const Tensor&) {
  if (self.dim() == 0) return grad;
  if (self.numel() == 0) return self * grad;
  const Tensor flat = ops::reshape(in_type(self, grad.dtype()), {-1});
  return ops::reshape(grad * conj_of(product_of_others(flat, 0)), self.sizes());
}
Tensor prod_grad_dim(const Tensor& grad, const Tensor& self, const Tensor&, int64_t dim,
                     bool keepdim) {
  if (self.dim() == 0) return grad;
  const Tensor g = keepdim ? grad : ops::unsqueeze(grad, dim);
  return g * conj_of(product_of_others(in_type(self, grad.dtype()), dim));
}

Tensor tie_grad(const Tensor& grad, const Tensor& self, const Tensor& result, IntList dims,
                bool keepdim) {
  const Sizes shape(sizes(self));
  if (shape.empty()) return grad;
  const Tensor value = unreduce(result, shape, dims, keepdim);
  // Where the extremum is NaN, the NaN elements share.
  const Tensor mask =
      ops::logical_or(self == value, ops::logical_and(ops::isnan(self), ops::isnan(value)));
  const Tensor count = ops::sum(mask, dims, true);
  return (unreduce(grad, shape, dims, keepdim) / count) * mask;
}

Tensor index_grad(const Tensor& grad, IntList sizes, int64_t dim, const Tensor& indices,
                  bool keepdim) {
  if (sizes.empty()) return grad;
  const Tensor g = keepdim ? grad : ops::unsqueeze(grad, dim);
  const Tensor at = keepdim ? indices : ops::unsqueeze(indices, dim);
  return ops::scatter(zeros_of(grad, sizes), dim, at, g);
}

Tensor logsumexp_grad(const Tensor& grad, const Tensor& self, const Tensor& result, IntList dims,
                      bool keepdim) {
  const Sizes shape(sizes(self));
  const Tensor value = unreduce(result, shape, dims, keepdim);
  const Tensor weight = ops::exp(self - value);
  // All operands -inf: no direction raises the result.
  return mul_zero(unreduce(grad, shape, dims, keepdim),
                  ops::masked_fill(weight, ops::isneginf(value), Scalar(0)));
}

Tensor flip_cumsum(const Tensor& grad, int64_t dim) {
  if (grad.dim() == 0) return grad;
  return flip(ops::cumsum(flip(grad, dim), dim), dim);
}

Tensor cumprod_grad(const Tensor& grad, const Tensor& self, const Tensor&, int64_t dim) {
  if (self.dim() == 0) return grad;
  const Tensor x = in_type(self, grad.dtype());
  const int64_t n = x.size(dim);
  if (n == 0) return grad;
  // Element i goes into every later product: what precedes it, times the running product of what
  // follows.
  std::vector<Tensor> parts;
  Tensor before;
  for (int64_t i = 0; i < n; ++i) {
    Tensor products;
    Sizes one{std::span<const int64_t>(x.sizes())};
    one[wrap_dim(dim, x.dim(), "cumprod")] = 1;
    const Tensor first =
        before.defined() ? before : ops::ones(one, x.dtype(), std::nullopt, x.device());
    const std::vector<Tensor> tail{first, ops::slice(x, dim, i + 1, n, 1)};
    products = ops::cumprod(ops::cat(tail, dim), dim);
    parts.push_back(
        ops::sum(ops::slice(grad, dim, i, n, 1) * conj_of(products), IntList({dim}), true));
    const Tensor xi = ops::slice(x, dim, i, i + 1, 1);
    before = before.defined() ? before * xi : xi;
  }
  return ops::cat(parts, dim);
}

Tensor softmax_second(const Tensor& grad, const Tensor& grad_output, const Tensor& output,
                      int64_t dim) {
  if (output.dim() == 0) return ops::zeros_like(grad);
  const IntList dims(&dim, 1);
  return grad * (grad_output - ops::sum(grad_output * output, dims, true)) -
         grad_output * ops::sum(grad * output, dims, true);
}
Tensor log_softmax_second_grad(const Tensor& grad, const Tensor& output, int64_t dim) {
  if (output.dim() == 0) return ops::zeros_like(grad);
  return grad - ops::sum(grad * ops::exp(output), IntList(&dim, 1), true);
}
Tensor log_softmax_second(const Tensor& grad, const Tensor& grad_output, const Tensor& output,
                          int64_t dim) {
  if (output.dim() == 0) return ops::zeros_like(grad);
  return ops::neg((grad * ops::exp(output)) * ops::sum(grad_output, IntList(&dim, 1), true));
}

Tensor nll_loss_second(const Tensor& grad, const Tensor& target, const Tensor& weight,
                       int64_t reduction, int64_t ignore_index) {
  return ops::nll_loss(grad, target, weight, reduction, ignore_index);
}

Tensor mm_grad_self(const Tensor& grad, IntList, const Tensor& mat2) {
  return ops::mm(grad, ops::mH(mat2));
}
Tensor mm_grad_mat2(const Tensor& grad, const Tensor& self, IntList) {
  return ops::mm(ops::mH(self), grad);
}

}  // namespace lamina::autograd::formulas
