// Derivatives of normalizations: unit = (x - mean) * rstd with statistics over some dimensions.
#include "lamina/autograd/formulas.h"
#include "lamina/autograd/forward.h"
#include "lamina/core/dim.h"
#include "lamina/core/mode.h"
#include "lamina/kernels/normalization.h"

namespace lamina::autograd::formulas {

bool composed() { return t_mode.grad || forward::t_visible; }

namespace {

Tensor mean_over(const Tensor& t, IntList dims) { return ops::mean(t, dims, true, std::nullopt); }

struct Normalized {
  Tensor unit, rstd;
};

// Computed from the input, so that further derivatives see where the statistics come from.
Normalized normalized(const Tensor& input, IntList dims, double eps, bool centered) {
  const Tensor x = centered ? input - mean_over(input, dims) : input;
  const Tensor rstd = ops::rsqrt(mean_over(ops::square(x), dims) + Scalar(eps));
  return {x * rstd, rstd};
}

// The derivative of unit, which is symmetric: of a cotangent backwards, of a tangent forwards.
Tensor unit_derivative(const Tensor& g, const Tensor& input, IntList dims, double eps,
                       bool centered) {
  const auto [unit, rstd] = normalized(input, dims, eps, centered);
  Tensor d = g - unit * mean_over(g * unit, dims);
  if (centered) d = d - mean_over(g, dims);
  return rstd * d;
}

Sizes last_dims(size_t count) {
  Sizes dims;
  for (size_t i = 0; i < count; ++i) dims.push_back(-1 - static_cast<int64_t>(i));
  return dims;
}

Tensor weighted(const Tensor& t, const Tensor& weight) { return weight.defined() ? t * weight : t; }

}  // namespace

Tensor no_part(const Tensor& grad, IntList sizes) {
  return ops::new_zeros(grad, sizes, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
}

Tensor by_channel(const Tensor& t, int64_t dim) {
  Sizes sizes(static_cast<size_t>(dim), 1);
  sizes[1] = t.numel();
  return ops::reshape(t, sizes);
}

namespace {
// Where gradients are recorded, all that one backward call gives can be differentiated by all that
// it takes, as in the peer, though a derivative is zero: that of a bias's gradient, for one.
void tie(Tensor& g, const Tensor& other) {
  if (t_mode.grad && g.defined() && other.defined() && other.requires_grad())
    g = ops::_tied(g, other);
}
void tie_parameters(std::array<Tensor, 3>& grads, const Tensor& input, const Tensor& weight) {
  tie(grads[1], weight);
  tie(grads[2], input);
  tie(grads[2], weight);
}
}  // namespace

// --- rows ---

Tensor layer_norm_unit(const Tensor& input, IntList normalized_shape, double eps) {
  return normalized(input, last_dims(normalized_shape.size()), eps, true).unit;
}

Tensor layer_norm_tangent(const Tensor& tangent, const Tensor& input, IntList normalized_shape,
                          const Tensor& weight, double eps) {
  return weighted(unit_derivative(tangent, input, last_dims(normalized_shape.size()), eps, true),
                  weight);
}

namespace {
std::array<Tensor, 3> row_grads(const Tensor& grad, const Tensor& input, IntList normalized_shape,
                                const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                                double eps, bool centered, const std::array<bool, 3>& wants) {
  std::array<Tensor, 3> out;
  if (!composed()) {
    const auto [dx, dw, db] =
        ops::_layer_norm_backward(grad, input, mean, rstd, weight,
                                  numel_of(normalized_shape).value(), wants[0], wants[1], wants[2]);
    if (wants[0]) out[0] = dx;
    if (wants[1]) out[1] = ops::view(dw, normalized_shape);
    if (wants[2]) out[2] = ops::view(db, normalized_shape);
    return out;
  }
  const Sizes dims = last_dims(normalized_shape.size());
  if (wants[0]) out[0] = unit_derivative(weighted(grad, weight), input, dims, eps, centered);
  if (wants[1])
    out[1] = ops::sum_to_size(grad * normalized(input, dims, eps, centered).unit, normalized_shape);
  if (wants[2]) out[2] = ops::sum_to_size(grad, normalized_shape);
  tie_parameters(out, input, weight);
  return out;
}
}  // namespace

std::array<Tensor, 3> layer_norm_grads(const Tensor& grad, const Tensor& input,
                                       IntList normalized_shape, const Tensor& mean,
                                       const Tensor& rstd, const Tensor& weight, double eps,
                                       const std::array<bool, 3>& wants) {
  return row_grads(grad, input, normalized_shape, mean, rstd, weight, eps, true, wants);
}

Tensor rms_norm_unit(const Tensor& input, IntList normalized_shape, std::optional<double> eps) {
  return normalized(input, last_dims(normalized_shape.size()), rms_epsilon(input.dtype(), eps),
                    false)
      .unit;
}

Tensor rms_norm_tangent(const Tensor& tangent, const Tensor& input, IntList normalized_shape,
                        const Tensor& weight, std::optional<double> eps) {
  return weighted(unit_derivative(tangent, input, last_dims(normalized_shape.size()),
                                  rms_epsilon(input.dtype(), eps), false),
                  weight);
}

std::array<Tensor, 2> rms_norm_grads(const Tensor& grad, const Tensor& input,
                                     IntList normalized_shape, const Tensor& rstd,
                                     const Tensor& weight, std::optional<double> eps,
                                     const std::array<bool, 2>& wants) {
  auto out = row_grads(grad, input, normalized_shape, Tensor(), rstd, weight,
                       rms_epsilon(input.dtype(), eps), false, {wants[0], wants[1], false});
  return {out[0], out[1]};
}

// --- channels ---

namespace {

// All dimensions but that of channels.
Sizes but_channels(int64_t dim) {
  Sizes dims{0};
  for (int64_t i = 2; i < dim; ++i) dims.push_back(i);
  return dims;
}

Tensor channel_weighted(const Tensor& t, const Tensor& weight) {
  return weight.defined() ? t * by_channel(weight, t.dim()) : t;
}

Tensor grouped(const Tensor& t, int64_t group) {
  const int64_t n = t.size(0), each = n * group == 0 ? 0 : t.numel() / (n * group);
  return ops::reshape(t, IntList({n, group, each}));
}

Tensor channel_sum(const Tensor& t) { return ops::sum(t, but_channels(t.dim()), false); }

}  // namespace

Tensor group_norm_unit(const Tensor& input, int64_t group, double eps) {
  return ops::view(normalized(grouped(input, group), IntList({2}), eps, true).unit, input.sizes());
}

Tensor group_norm_tangent(const Tensor& tangent, const Tensor& input, const Tensor& weight,
                          int64_t group, double eps) {
  const Tensor d =
      unit_derivative(grouped(tangent, group), grouped(input, group), IntList({2}), eps, true);
  return channel_weighted(ops::view(d, input.sizes()), weight);
}

std::array<Tensor, 3> group_norm_grads(const Tensor& grad, const Tensor& input, const Tensor& mean,
                                       const Tensor& rstd, const Tensor& weight, int64_t group,
                                       double eps, const std::array<bool, 3>& wants) {
  std::array<Tensor, 3> out;
  if (!composed()) {
    auto [dx, dw, db] = ops::_group_norm_backward(grad, input, mean, rstd, weight, group, wants[0],
                                                  wants[1], wants[2]);
    if (wants[0]) out[0] = dx;
    if (wants[1]) out[1] = dw;
    if (wants[2]) out[2] = db;
    return out;
  }
  if (wants[0])
    out[0] = ops::view(unit_derivative(grouped(channel_weighted(grad, weight), group),
                                       grouped(input, group), IntList({2}), eps, true),
                       input.sizes());
  if (wants[1]) out[1] = channel_sum(grad * group_norm_unit(input, group, eps));
  if (wants[2]) out[2] = channel_sum(grad);
  return out;
}

namespace {
// With the running statistics, which are constants.
Tensor running_rstd(const Tensor& running_var, int64_t dim, double eps) {
  return by_channel(ops::rsqrt(running_var + Scalar(eps)), dim);
}
}  // namespace

Tensor batch_norm_unit(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                       bool training, double eps) {
  if (training) return normalized(input, but_channels(input.dim()), eps, true).unit;
  return (input - by_channel(running_mean, input.dim())) *
         running_rstd(running_var, input.dim(), eps);
}

Tensor batch_norm_tangent(const Tensor& tangent, const Tensor& input, const Tensor& weight,
                          const Tensor& /*running_mean*/, const Tensor& running_var, bool training,
                          double eps) {
  const Tensor d = training ? unit_derivative(tangent, input, but_channels(input.dim()), eps, true)
                            : tangent * running_rstd(running_var, input.dim(), eps);
  return channel_weighted(d, weight);
}

std::array<Tensor, 3> batch_norm_grads(const Tensor& grad, const Tensor& input,
                                       const Tensor& weight, const Tensor& running_mean,
                                       const Tensor& running_var, const Tensor& save_mean,
                                       const Tensor& save_invstd, bool training, double eps,
                                       const std::array<bool, 3>& wants) {
  std::array<Tensor, 3> out;
  if (!composed()) {
    const Tensor mean = training ? save_mean : running_mean;
    const Tensor rstd = training ? save_invstd : ops::rsqrt(running_var + Scalar(eps));
    auto [dx, dw, db] = ops::_batch_norm_backward(grad, input, mean, rstd, weight, training,
                                                  wants[0], wants[1], wants[2]);
    if (wants[0]) out[0] = dx;
    if (wants[1]) out[1] = dw;
    if (wants[2]) out[2] = db;
    return out;
  }
  if (wants[0])
    out[0] = batch_norm_tangent(channel_weighted(grad, weight), input, Tensor(), running_mean,
                                running_var, training, eps);
  if (wants[1])
    out[1] = channel_sum(grad * batch_norm_unit(input, running_mean, running_var, training, eps));
  if (wants[2]) out[2] = channel_sum(grad);
  if (!training) tie(out[0], input);
  tie_parameters(out, input, weight);
  return out;
}

Tensor norm2_grad(const Tensor& grad, const Tensor& self, const Tensor& result,
                  std::optional<IntList> dims, bool keepdim) {
  const Tensor zero = result == Scalar(0);
  const Tensor slope = ops::where(zero, Scalar(0.0), grad / ops::where(zero, Scalar(1.0), result));
  return self * unreduce(slope, self.sizes(), dims, keepdim);
}

}  // namespace lamina::autograd::formulas
