// Normalizations as people call them.
#include "lamina/kernels/normalization.h"
#include "lamina/autograd/formulas.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/ops.h"

namespace lamina::composite {

namespace {

// Statistics as people see them. Gradients are computed from those of the computing type.
Tensor shown(const Tensor& statistic, const Tensor& input, std::initializer_list<Tensor> others) {
  ScalarType type = input.dtype();
  for (const Tensor& t : others)
    if (t.defined() && t.dtype() != type) type = statistic.dtype();
  return ops::_to_dtype(statistic, type);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_layer_norm(const Tensor& input, IntList normalized_shape,
                                                     const Tensor& weight, const Tensor& bias,
                                                     double eps) {
  const auto [out, mean, rstd] = ops::_layer_norm(input, normalized_shape, weight, bias, eps);
  return {out, shown(ops::detach(mean), input, {weight, bias}),
          shown(ops::detach(rstd), input, {weight, bias})};
}

std::tuple<Tensor, Tensor, Tensor> native_group_norm(const Tensor& input, const Tensor& weight,
                                                     const Tensor& bias, int64_t n, int64_t c,
                                                     int64_t inner, int64_t group, double eps) {
  auto [out, mean, rstd] = ops::_group_norm(input, weight, bias, n, c, inner, group, eps);
  if (autograd::formulas::composed()) {  // these have derivatives, too
    const int64_t each = n * group == 0 ? 0 : input.numel() / (n * group);
    Tensor x = ops::reshape(ops::_to_dtype(input, mean.dtype()), IntList({n, group, each}));
    mean = ops::mean(x, IntList({2}), false, std::nullopt);
    x = x - ops::unsqueeze(mean, 2);
    rstd = ops::rsqrt(ops::mean(x * x, IntList({2}), false, std::nullopt) + Scalar(eps));
  }
  return {out, shown(mean, input, {weight, bias}), shown(rstd, input, {weight, bias})};
}

std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input, const Tensor& weight,
                                                     const Tensor& bias, const Tensor& running_mean,
                                                     const Tensor& running_var, bool training,
                                                     double momentum, double eps) {
  const auto [out, mean, invstd] =
      ops::_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
  const auto show = [&](const Tensor& t) {
    return shown(ops::detach(t), input, {weight, bias, running_mean, running_var});
  };
  return {out, show(mean), show(invstd)};
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_no_stats(const Tensor& input, const Tensor& weight,
                                                       const Tensor& bias, bool training,
                                                       double momentum, double eps) {
  return native_batch_norm(input, weight, bias, Tensor(), Tensor(), training, momentum, eps);
}

namespace {
std::tuple<Tensor, Tensor, Tensor, Tensor> with_reserve(
    const std::tuple<Tensor, Tensor, Tensor>& results, const Tensor& input) {
  const auto& [out, mean, invstd] = results;
  return {out, mean, invstd,
          ops::new_empty(input, IntList({0}), ScalarType::UInt8, std::nullopt, std::nullopt,
                         std::nullopt)};
}
}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_with_update(
    const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
    const Tensor& running_var, double momentum, double eps) {
  return with_reserve(
      native_batch_norm(input, weight, bias, running_mean, running_var, true, momentum, eps),
      input);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_no_update(
    const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
    const Tensor& running_var, double momentum, double eps) {
  const bool training = !running_mean.defined() || !running_var.defined();
  return with_reserve(
      native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps),
      input);
}

Tensor layer_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps, bool) {
  return std::get<0>(ops::_layer_norm(input, normalized_shape, weight, bias, eps));
}

Tensor rms_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  if (!input.is_complex())
    return std::get<0>(ops::_fused_rms_norm(input, normalized_shape, weight, eps));
  Sizes dims;
  for (size_t i = 0; i < normalized_shape.size(); ++i) dims.push_back(-1 - static_cast<int64_t>(i));
  const Tensor squares = ops::mean(ops::pow(input, Scalar(2)), IntList(dims), true, std::nullopt);
  const Tensor unit = input * ops::rsqrt(squares + Scalar(rms_epsilon(input.dtype(), eps)));
  return weight.defined() ? unit * weight : unit;
}

Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias,
                  double eps, bool) {
  LAMINA_CHECK(input.dim() >= 2,
               "group_norm: Expected at least 2 dimensions for input tensor but received ",
               input.dim());
  const int64_t n = input.size(0), c = input.size(1);
  int64_t inner = 1;
  for (int64_t i = 2; i < input.dim(); ++i) inner *= input.size(i);
  return std::get<0>(ops::_group_norm(input, weight, bias, n, c, inner, num_groups, eps));
}

Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const Tensor& running_mean, const Tensor& running_var, bool training,
                  double momentum, double eps, bool) {
  if (input.numel() == 0 && input.dim() < 2) return ops::clone(input, std::nullopt);
  // The running statistics are written without counting a version: what a pass in training saves
  // does not depend on them, and the next pass must not invalidate it.
  return std::get<0>(
      ops::_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps));
}

Tensor instance_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                     const Tensor& running_mean, const Tensor& running_var, bool use_input_stats,
                     double momentum, double eps, bool) {
  LAMINA_CHECK(use_input_stats || (running_mean.defined() && running_var.defined()),
               "instance_norm: Expected running_mean and running_var to be defined when "
               "use_input_stats is false");
  LAMINA_CHECK(input.dim() >= 2, "instance_norm: expected at least 2 dimensions; got ", input);
  const int64_t n = input.size(0), c = input.size(1);
  Sizes folded(std::span<const int64_t>(input.sizes()));
  folded[1] = n * c;
  folded[0] = 1;
  const auto repeated = [&](const Tensor& t) {
    return t.defined() ? ops::repeat(t, IntList({n})) : Tensor();
  };
  const Tensor mean = repeated(running_mean), var = repeated(running_var);
  const Tensor out =
      std::get<0>(ops::_batch_norm(ops::reshape(input, folded), repeated(weight), repeated(bias),
                                   mean, var, use_input_stats, momentum, eps));
  if (use_input_stats) {
    const auto move = [&](const Tensor& running, const Tensor& moved) {
      if (running.defined())
        ops::copy_(running,
                   ops::mean(ops::view(moved, IntList({n, c})), IntList({0}), false, std::nullopt));
    };
    move(running_mean, mean);
    move(running_var, var);
  }
  return ops::view(out, input.sizes());
}

}  // namespace lamina::composite
