// Normalizations: tensors to arrays for tile/norm.h.
#include "lamina/tile/norm.h"

#include <cmath>
#include <vector>

#include "lamina/core/dim.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/normalization.h"
#include "lamina/kernels/working.h"
#include "lamina/tile/tile.h"

namespace lamina::kernels {

namespace {

const void* data_of(const Tensor& t) { return t.defined() ? t.data() : nullptr; }

void rows_forward(const Tensor& out, const Tensor* mean, const Tensor& rstd, const Tensor& input,
                  int64_t n, const Tensor& weight, const Tensor& bias, double eps) {
  const ScalarType type = compute_type(input.dtype());
  const Tensor x = readable(input, type), w = readable(weight, type), b = readable(bias, type);
  const Written o(out, type);
  tile::normalize_rows({.type = type,
                        .rows = rstd.numel(),
                        .n = n,
                        .centered = mean != nullptr,
                        .weight = data_of(w)},
                       o.data(), mean ? mean->data() : nullptr, rstd.data(), x.data(), data_of(b),
                       eps);
  o.finish();
}

}  // namespace

void layer_norm(const Tensor& out, const Tensor& mean, const Tensor& rstd, const Tensor& input,
                IntList normalized_shape, const Tensor& weight, const Tensor& bias, double eps) {
  rows_forward(out, &mean, rstd, input, numel_of(normalized_shape).value(), weight, bias, eps);
}

void rms_norm(const Tensor& out, const Tensor& rstd, const Tensor& input, IntList normalized_shape,
              const Tensor& weight, std::optional<double> eps) {
  rows_forward(out, nullptr, rstd, input, numel_of(normalized_shape).value(), weight, Tensor(),
               rms_epsilon(input.dtype(), eps));
}

void layer_norm_backward(const Tensor& input_grad, const Tensor& weight_grad,
                         const Tensor& bias_grad, const Tensor& grad_output, const Tensor& input,
                         const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                         int64_t length, bool want_input, bool want_weight, bool want_bias) {
  const ScalarType type = compute_type(input.dtype());
  const Tensor g = readable(grad_output, type), x = readable(input, type),
               w = readable(weight, type), m = readable(mean, type), r = readable(rstd, type);
  const Written dx(input_grad, type, want_input), dw(weight_grad, type, want_weight),
      db(bias_grad, type, want_bias);
  tile::normalize_rows_backward({.type = type,
                                 .rows = r.numel(),
                                 .n = length,
                                 .centered = mean.defined(),
                                 .weight = data_of(w)},
                                dx.data(), dw.data(), db.data(), g.data(), x.data(), data_of(m),
                                r.data());
  dx.finish();
  dw.finish();
  db.finish();
}

namespace {

tile::ChannelNorm channels_of(const Tensor& input, ScalarType type, int64_t channels_a_group,
                              const Tensor& weight) {
  const int64_t n = input.size(0), c = input.size(1);
  return {.type = type,
          .samples = n,
          .channels = c,
          .inner = n * c == 0 ? 0 : input.numel() / (n * c),
          .group = channels_a_group,
          .weight = data_of(weight)};
}

// Mean and 1 / sqrt(variance + eps) as numbers of type `type`.
void write_statistics(const Tensor& mean, const Tensor& rstd, const std::vector<double>& means,
                      const std::vector<double>& squares, double count, double eps) {
  by_float(mean.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < means.size(); ++i) {
      mean.data_as<T>()[i] = T(means[i]);
      rstd.data_as<T>()[i] = T(1 / std::sqrt(squares[i] / count + eps));
    }
  });
}

}  // namespace

void group_norm(const Tensor& out, const Tensor& mean, const Tensor& rstd, const Tensor& input,
                const Tensor& weight, const Tensor& bias, int64_t, int64_t c, int64_t,
                int64_t group, double eps) {
  const ScalarType type = compute_type(input.dtype());
  const Tensor x = readable(input, type), w = readable(weight, type), b = readable(bias, type);
  const Written o(out, type);
  const tile::ChannelNorm call = channels_of(x, type, c / group, w);
  std::vector<double> means(static_cast<size_t>(mean.numel())), squares(means.size());
  if (x.numel() > 0) tile::channel_moments(call, means.data(), squares.data(), x.data());
  write_statistics(mean, rstd, means, squares, double(call.group * call.inner), eps);
  if (x.numel() == 0) return;
  tile::normalize_channels(call, o.data(), mean.data(), rstd.data(), x.data(), data_of(b));
  o.finish();
}

void group_norm_backward(const Tensor& input_grad, const Tensor& weight_grad,
                         const Tensor& bias_grad, const Tensor& grad_output, const Tensor& input,
                         const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                         int64_t group, bool want_input, bool want_weight, bool want_bias) {
  const ScalarType type = compute_type(input.dtype());
  const Tensor g = readable(grad_output, type), x = readable(input, type),
               w = readable(weight, type), m = readable(mean, type), r = readable(rstd, type);
  const Written dx(input_grad, type, want_input), dw(weight_grad, type, want_weight),
      db(bias_grad, type, want_bias);
  if (x.numel() == 0) {
    if (want_weight) zero_bytes(weight_grad);
    if (want_bias) zero_bytes(bias_grad);
    return;
  }
  tile::normalize_channels_backward(channels_of(x, type, x.size(1) / group, w), dx.data(),
                                    dw.data(), db.data(), g.data(), x.data(), m.data(), r.data(),
                                    false);
  dx.finish();
  dw.finish();
  db.finish();
}

namespace {

// Channels with few places each are laid out one after the other, so that the kernels get runs
// worth their while: (n, c, small) as (1, c, n * small).
constexpr int64_t kShortRun = 32;
bool gathers(const Tensor& input) {
  const int64_t n = input.size(0), c = input.size(1);
  return n > 1 && c > 0 && input.numel() / (n * c) < kShortRun;
}
Tensor gathered(const Tensor& input, ScalarType type) {
  return kernels::unsqueeze(contiguous_values(kernels::transpose(converted(input, type), 0, 1)), 0);
}
// (1, c, n, ...) as (n, c, ...)
Tensor scattered(const Tensor& work) {
  return kernels::transpose(kernels::select(work, 0, 0), 0, 1);
}

// Moves the running statistics by `momentum` towards those of the batch.
void move_running(const Tensor& running, const std::vector<double>& values, double momentum) {
  if (!running.defined()) return;
  const Tensor wide = empty_contiguous(running.sizes(), ScalarType::Float64, kCpu);
  copy_values(wide, running);
  double* r = wide.data_as<double>();
  for (size_t i = 0; i < values.size(); ++i) r[i] = (1 - momentum) * r[i] + momentum * values[i];
  copy_values(running, wide);
}

}  // namespace

void batch_norm(const Tensor& out, const Tensor& save_mean, const Tensor& save_invstd,
                const Tensor& input, const Tensor& weight, const Tensor& bias,
                const Tensor& running_mean, const Tensor& running_var, bool training,
                double momentum, double eps) {
  const ScalarType type = compute_type(input.dtype());
  const bool gather = gathers(input);
  const Tensor x = gather ? gathered(input, type) : readable(input, type),
               w = readable(weight, type), b = readable(bias, type);
  const Tensor o = gather || out.dtype() != type || !out.is_contiguous()
                       ? empty_contiguous(x.sizes(), type, kCpu)
                       : out;
  tile::ChannelNorm call = channels_of(x, type, 1, w);
  call.across_samples = true;
  Tensor mean = save_mean, rstd = save_invstd;
  if (training) {
    std::vector<double> means(static_cast<size_t>(call.channels)), squares(means.size());
    tile::channel_moments(call, means.data(), squares.data(), x.data());
    const double count = double(call.samples * call.inner);
    write_statistics(mean, rstd, means, squares, count, eps);
    move_running(running_mean, means, momentum);
    for (double& s : squares) s /= count - 1;
    move_running(running_var, squares, momentum);
  } else {
    mean = readable(running_mean, type);
    const Tensor variance = readable(running_var, ScalarType::Float64);
    rstd = empty_contiguous(mean.sizes(), type, kCpu);
    for (int64_t i = 0; i < call.channels; ++i)
      tile::store_scalar(static_cast<char*>(rstd.data()) + i * int64_t(item_size(type)), type,
                         1 / std::sqrt(variance.data_as<double>()[i] + eps));
  }
  if (x.numel() > 0)
    tile::normalize_channels(call, o.data(), mean.data(), rstd.data(), x.data(), data_of(b));
  if (gather)
    copy_values(out, scattered(o));
  else if (!o.is_same(out))
    copy_values(out, o);
}

void batch_norm_backward(const Tensor& input_grad, const Tensor& weight_grad,
                         const Tensor& bias_grad, const Tensor& grad_output, const Tensor& input,
                         const Tensor& mean, const Tensor& invstd, const Tensor& weight,
                         bool training, bool want_input, bool want_weight, bool want_bias) {
  const ScalarType type = compute_type(input.dtype());
  const bool gather = gathers(input);
  const Tensor g = gather ? gathered(grad_output, type) : readable(grad_output, type),
               x = gather ? gathered(input, type) : readable(input, type),
               w = readable(weight, type), m = readable(mean, type), r = readable(invstd, type);
  Tensor dx;
  if (want_input)
    dx =
        gather || input_grad.dtype() != type ? empty_contiguous(x.sizes(), type, kCpu) : input_grad;
  const Written dw(weight_grad, type, want_weight), db(bias_grad, type, want_bias);
  tile::ChannelNorm call = channels_of(x, type, 1, w);
  call.across_samples = true;
  tile::normalize_channels_backward(call, dx.defined() ? dx.data() : nullptr, dw.data(), db.data(),
                                    g.data(), x.data(), m.data(), r.data(), !training);
  if (want_input && gather)
    copy_values(input_grad, scattered(dx));
  else if (want_input && !dx.is_same(input_grad))
    copy_values(input_grad, dx);
  dw.finish();
  db.finish();
}

}  // namespace lamina::kernels
