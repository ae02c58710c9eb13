// Derivatives of attention and embedding.
#include <cmath>

#include "lamina/autograd/formulas.h"
#include "lamina/core/error.h"

namespace lamina::autograd::formulas {

std::array<Tensor, 3> attention_grads(const Tensor& grad, const Tensor& query, const Tensor& key,
                                      const Tensor& value, const Tensor& mask, bool is_causal,
                                      double scale, const std::array<bool, 3>& wants) {
  if (!composed()) {
    auto [dq, dk, dv] =
        ops::_fused_attention_backward(grad, query, key, value, mask, is_causal, scale);
    return {dq, dk, dv};
  }
  const auto flipped = [](const Tensor& t) { return ops::transpose(t, -2, -1); };
  Tensor scores = ops::matmul(query, flipped(key)) * Scalar(scale);
  if (mask.defined()) scores = scores + mask;
  if (is_causal) {
    const Tensor ones = ops::ones(IntList({query.size(-2), key.size(-2)}), ScalarType::Bool,
                                  std::nullopt, query.device());
    scores = ops::masked_fill(scores, ops::logical_not(ops::tril(ones, 0)), Scalar(-INFINITY));
  }
  const Tensor p = ops::_safe_softmax(scores, -1, std::nullopt);
  std::array<Tensor, 3> out;
  if (wants[2]) out[2] = ops::matmul(flipped(p), grad);
  if (!wants[0] && !wants[1]) return out;
  const Tensor dp = ops::matmul(grad, flipped(value));
  const Tensor ds = p * (dp - ops::sum(dp * p, IntList({-1}), true)) * Scalar(scale);
  if (wants[0]) out[0] = ops::matmul(ds, key);
  if (wants[1]) out[1] = ops::matmul(flipped(ds), query);
  return out;
}

Tensor embedding_grad(const Tensor& grad, const Tensor& indices, IntList weight_sizes,
                      int64_t padding_idx, bool scale_grad_by_freq) {
  return ops::embedding_dense_backward(grad, indices, weight_sizes[0], padding_idx,
                                       scale_grad_by_freq);
}

Tensor embedding_second(const Tensor& grad, const Tensor& indices, int64_t padding_idx,
                        bool scale_grad_by_freq) {
  LAMINA_CHECK_IMPLEMENTED(!scale_grad_by_freq,
                           "embedding_dense_backward: double backward with scale_grad_by_freq is "
                           "not supported");
  const Tensor rows = ops::embedding(grad, indices, int64_t{-1}, false, false);
  return ops::masked_fill(rows, ops::unsqueeze(indices == Scalar(padding_idx), -1), Scalar(0));
}

}  // namespace lamina::autograd::formulas
