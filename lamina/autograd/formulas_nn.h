// Helpers for the gradients of activations, losses, normalizations and attention.
#pragma once

#include <array>
#include <optional>

#include "lamina/core/scalar.h"
#include "lamina/core/tensor.h"

namespace lamina::autograd::formulas {

// Second derivatives of activations: d(backward)/d(self), to be multiplied with a cotangent.
Tensor elu_second(const Tensor& grad_output, const Tensor& self, const Scalar& factor,
                  const Scalar& input_scale);
Tensor hardswish_second(const Tensor& grad_output, const Tensor& self);
Tensor mish_second(const Tensor& grad_output, const Tensor& self);
Tensor prelu_below(const Tensor& grad_output, const Tensor& self);  // grad_output where self <= 0

// Slopes of losses with respect to their input.
Tensor smooth_l1_slope(const Tensor& self, const Tensor& target, double beta);
Tensor huber_slope(const Tensor& self, const Tensor& target, double delta);
Tensor bce_slope(const Tensor& self, const Tensor& target);
Tensor bce_target_slope(const Tensor& self);

// --- normalizations. `wants` says which gradients are asked for. Where they are recorded or carry
// tangents they are computed with public operators, otherwise by one kernel.
bool composed();
Tensor no_part(const Tensor& grad, IntList sizes);  // zeros
Tensor by_channel(const Tensor& t, int64_t dim);    // (c) as (c, 1, ...), to broadcast along dim 1
std::array<Tensor, 3> layer_norm_grads(const Tensor& grad, const Tensor& input,
                                       IntList normalized_shape, const Tensor& mean,
                                       const Tensor& rstd, const Tensor& weight, double eps,
                                       const std::array<bool, 3>& wants);
Tensor layer_norm_unit(const Tensor& input, IntList normalized_shape, double eps);
Tensor layer_norm_tangent(const Tensor& tangent, const Tensor& input, IntList normalized_shape,
                          const Tensor& weight, double eps);
std::array<Tensor, 2> rms_norm_grads(const Tensor& grad, const Tensor& input,
                                     IntList normalized_shape, const Tensor& rstd,
                                     const Tensor& weight, std::optional<double> eps,
                                     const std::array<bool, 2>& wants);
Tensor rms_norm_unit(const Tensor& input, IntList normalized_shape, std::optional<double> eps);
Tensor rms_norm_tangent(const Tensor& tangent, const Tensor& input, IntList normalized_shape,
                        const Tensor& weight, std::optional<double> eps);
std::array<Tensor, 3> group_norm_grads(const Tensor& grad, const Tensor& input, const Tensor& mean,
                                       const Tensor& rstd, const Tensor& weight, int64_t group,
                                       double eps, const std::array<bool, 3>& wants);
Tensor group_norm_unit(const Tensor& input, int64_t group, double eps);
Tensor group_norm_tangent(const Tensor& tangent, const Tensor& input, const Tensor& weight,
                          int64_t group, double eps);
std::array<Tensor, 3> batch_norm_grads(const Tensor& grad, const Tensor& input,
                                       const Tensor& weight, const Tensor& running_mean,
                                       const Tensor& running_var, const Tensor& save_mean,
                                       const Tensor& save_invstd, bool training, double eps,
                                       const std::array<bool, 3>& wants);
Tensor batch_norm_unit(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                       bool training, double eps);
Tensor batch_norm_tangent(const Tensor& tangent, const Tensor& input, const Tensor& weight,
                          const Tensor& running_mean, const Tensor& running_var, bool training,
                          double eps);

// --- attention and embedding ---
std::array<Tensor, 3> attention_grads(const Tensor& grad, const Tensor& query, const Tensor& key,
                                      const Tensor& value, const Tensor& mask, bool is_causal,
                                      double scale, const std::array<bool, 3>& wants);
Tensor embedding_grad(const Tensor& grad, const Tensor& indices, IntList weight_sizes,
                      int64_t padding_idx, bool scale_grad_by_freq);
Tensor embedding_second(const Tensor& grad, const Tensor& indices, int64_t padding_idx,
                        bool scale_grad_by_freq);

// The gradient of the 2-norm: zero where the norm is.
Tensor norm2_grad(const Tensor& grad, const Tensor& self, const Tensor& result,
                  std::optional<IntList> dims, bool keepdim);

}  // namespace lamina::autograd::formulas
