// Shape rules of normalizations.
#include "lamina/core/dim.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/shape/promotion.h"

namespace lamina::shape {

namespace {

Sizes copy(IntList v) { return Sizes(std::span<const int64_t>(v)); }

void check_type(const Tensor& t, const char* op) {
  LAMINA_CHECK_IMPLEMENTED(is_floating(t.dtype()) && !is_float8(t.dtype()), op,
                           " not implemented for '", legacy_name(t.dtype()), "'");
}

// Parameters are of the input's type; beside 16-bit inputs float32 ones are as welcome.
void check_parameter_types(const Tensor& input, std::initializer_list<const Tensor*> parameters,
                           const char* op) {
  for (const Tensor* t : parameters)
    LAMINA_CHECK(!t->defined() || t->dtype() == input.dtype() ||
                     (item_size(input.dtype()) == 2 && t->dtype() == ScalarType::Float32),
                 op, ": mixed dtype: all inputs must share the same datatype, or parameters be ",
                 "float32 beside 16-bit inputs; got ", input, " and ",
                 t->defined() ? t->dtype() : input.dtype());
}

// Sizes of the dimensions that are normalized over, checked against the input and its parameters.
void check_normalized(const Tensor& input, IntList normalized, const Tensor& weight,
                      const Tensor& bias, const char* op) {
  const size_t n = normalized.size();
  LAMINA_CHECK(n >= 1, op, ": Expected normalized_shape to be at least 1-dimensional, i.e., ",
               "containing at least one element, but got normalized_shape = ", normalized);
  LAMINA_CHECK(
      !weight.defined() || weight.sizes() == normalized, op,
      ": Expected weight to be of same shape as normalized_shape, but got weight of shape ",
      weight.defined() ? weight.sizes() : IntList(), " and normalized_shape = ", normalized);
  LAMINA_CHECK(!bias.defined() || bias.sizes() == normalized, op,
               ": Expected bias to be of same shape as normalized_shape, but got bias of shape ",
               bias.defined() ? bias.sizes() : IntList(), " and normalized_shape = ", normalized);
  const IntList sizes = input.sizes();
  const bool fits =
      sizes.size() >= n && IntList(sizes.data() + (sizes.size() - n), n) == normalized;
  LAMINA_CHECK(fits, op, ": Given normalized_shape=", normalized,
               ", expected input with shape [*, ", normalized, "], but got input of size ", sizes);
}

// One number for each row: the sizes before the normalized ones, and ones for these.
Sizes row_sizes(const Tensor& input, IntList normalized) {
  Sizes out = copy(input.sizes());
  for (size_t i = 0; i < normalized.size(); ++i) out[out.size() - 1 - i] = 1;
  return out;
}

ResultMeta part(bool wanted, Sizes sizes, const Tensor& like) {
  return {wanted ? std::move(sizes) : Sizes{0}, like.dtype(), like.device()};
}

void check_channels(const Tensor& t, int64_t channels, const char* what, const char* op) {
  LAMINA_CHECK(!t.defined() || (t.dim() == 1 && t.numel() == channels), op, ": Expected ", what,
               " to be a vector of size equal to the number of channels in input, but got ", what,
               " of shape ", t.defined() ? t.sizes() : IntList(), " and ", channels, " channels");
}

void check_has_channels(const Tensor& input, const char* op) {
  LAMINA_CHECK(input.dim() >= 2, op, ": expected at least 2 dimensions, (n, c, ...); got ", input);
}

// What a backward kernel reads: the gradient of the result, and as many numbers as there are
// means, or weights.
void check_gradient(const Tensor& grad, const Tensor& input, const char* op) {
  LAMINA_CHECK(grad.sizes() == input.sizes(), op, ": gradient and input differ in size; got ", grad,
               " and ", input);
}
void check_statistics(const Tensor& t, int64_t count, const char* what, const char* op) {
  LAMINA_CHECK(!t.defined() || t.numel() == count, op, ": ", what, " should contain ", count,
               " elements; got ", t.defined() ? t.numel() : 0);
}

}  // namespace

std::array<ResultMeta, 3> layer_norm_shape(const Tensor& input, IntList normalized_shape,
                                           const Tensor& weight, const Tensor& bias, double) {
  check_normalized(input, normalized_shape, weight, bias, "layer_norm");
  check_type(input, "\"LayerNormKernelImpl\"");
  check_parameter_types(input, {&weight, &bias}, "layer_norm");
  const ResultMeta row{row_sizes(input, normalized_shape), compute_type(input.dtype()),
                       input.device()};
  return {ResultMeta{copy(input.sizes()), input.dtype(), input.device()}, row, row};
}

std::array<ResultMeta, 3> layer_norm_backward_shape(const Tensor& grad_output, const Tensor& input,
                                                    const Tensor& mean, const Tensor& rstd,
                                                    const Tensor& weight, int64_t length,
                                                    bool want_input, bool want_weight,
                                                    bool want_bias) {
  constexpr const char* kName = "_layer_norm_backward";
  check_type(input, "\"LayerNormBackwardKernelImpl\"");
  check_gradient(grad_output, input, kName);
  LAMINA_CHECK(length >= 0 && (Dim(rstd.numel()) * Dim(length)).value() == input.numel(), kName,
               ": rows and their length must fit the input; got ", input, ", ", rstd.numel(),
               " rows of ", length);
  check_statistics(mean, rstd.numel(), "mean", kName);
  check_statistics(weight, length, "weight", kName);
  const Tensor& like = weight.defined() ? weight : input;
  return {part(want_input, copy(input.sizes()), input), part(want_weight, Sizes{length}, like),
          part(want_bias, Sizes{length}, like)};
}

std::array<ResultMeta, 2> rms_norm_shape(const Tensor& input, IntList normalized_shape,
                                         const Tensor& weight, std::optional<double>) {
  check_normalized(input, normalized_shape, weight, Tensor(), "rms_norm");
  check_type(input, "\"RMSNormKernelImpl\"");
  return {
      ResultMeta{copy(input.sizes()), input.dtype(), input.device()},
      ResultMeta{row_sizes(input, normalized_shape), compute_type(input.dtype()), input.device()}};
}

std::array<ResultMeta, 3> group_norm_shape(const Tensor& input, const Tensor& weight,
                                           const Tensor& bias, int64_t n, int64_t c, int64_t inner,
                                           int64_t group, double) {
  LAMINA_CHECK(group > 0, "group_norm: Expected num groups to be greater than 0, got ", group);
  LAMINA_CHECK(c >= 0 && c % group == 0,
               "group_norm: Expected number of channels in input to be divisible by num_groups, "
               "but got input of shape ",
               input.sizes(), " and num_groups=", group);
  LAMINA_CHECK(input.dim() >= 2 && input.sizes()[0] == n && input.sizes()[1] == c &&
                   (Dim(n) * Dim(c) * Dim(inner)).value() == input.numel(),
               "group_norm: N, C and HxW must fit the input; got ", input, ", N=", n, ", C=", c,
               ", HxW=", inner);
  check_channels(weight, c, "weight", "group_norm");
  check_channels(bias, c, "bias", "group_norm");
  check_type(input, "\"GroupNormKernelImpl\"");
  check_parameter_types(input, {&weight, &bias}, "group_norm");
  const ResultMeta stat{Sizes{n, group}, compute_type(input.dtype()), input.device()};
  return {ResultMeta{copy(input.sizes()), input.dtype(), input.device()}, stat, stat};
}

std::array<ResultMeta, 3> group_norm_backward_shape(const Tensor& grad_output, const Tensor& input,
                                                    const Tensor& mean, const Tensor& rstd,
                                                    const Tensor& weight, int64_t group,
                                                    bool want_input, bool want_weight,
                                                    bool want_bias) {
  constexpr const char* kName = "_group_norm_backward";
  check_type(input, "\"GroupNormBackwardKernelImpl\"");
  check_gradient(grad_output, input, kName);
  check_has_channels(input, kName);
  const int64_t channels = input.size(1);
  LAMINA_CHECK(group > 0 && channels % group == 0, kName, ": ", group, " groups do not divide ",
               channels, " channels");
  const int64_t count = (Dim(input.size(0)) * Dim(group)).value();
  check_statistics(mean, count, "mean", kName);
  check_statistics(rstd, count, "rstd", kName);
  check_statistics(weight, channels, "weight", kName);
  const Tensor& like = weight.defined() ? weight : input;
  return {part(want_input, copy(input.sizes()), input),
          part(want_weight, Sizes{input.size(1)}, like),
          part(want_bias, Sizes{input.size(1)}, like)};
}

std::array<ResultMeta, 3> batch_norm_shape(const Tensor& input, const Tensor& weight,
                                           const Tensor& bias, const Tensor& running_mean,
                                           const Tensor& running_var, bool training, double,
                                           double) {
  check_has_channels(input, "batch_norm");
  const int64_t c = input.sizes()[1];
  const auto check = [&](const Tensor& t, const char* what) {
    LAMINA_CHECK(!t.defined() || t.numel() == c, "batch_norm: ", what, " should contain ", c,
                 " elements not ", t.defined() ? t.numel() : 0);
  };
  check(running_mean, "running_mean");
  check(running_var, "running_var");
  check(weight, "weight");
  check(bias, "bias");
  LAMINA_CHECK(training || (running_mean.defined() && running_var.defined()),
               "batch_norm: running_mean and running_var must be defined in evaluation mode");
  check_type(input, "\"batch_norm\"");
  check_parameter_types(input, {&weight, &bias, &running_mean, &running_var}, "batch_norm");
  const ResultMeta stat{Sizes{training ? c : 0}, compute_type(input.dtype()), input.device()};
  return {ResultMeta{copy(input.sizes()), input.dtype(), input.device()}, stat, stat};
}

std::array<ResultMeta, 3> batch_norm_backward_shape(const Tensor& grad_output, const Tensor& input,
                                                    const Tensor& mean, const Tensor& invstd,
                                                    const Tensor& weight, bool, bool want_input,
                                                    bool want_weight, bool want_bias) {
  constexpr const char* kName = "_batch_norm_backward";
  check_type(input, "\"batch_norm_backward\"");
  check_gradient(grad_output, input, kName);
  check_has_channels(input, kName);
  check_statistics(mean, input.size(1), "mean", kName);
  check_statistics(invstd, input.size(1), "invstd", kName);
  check_statistics(weight, input.size(1), "weight", kName);
  const Tensor& like = weight.defined() ? weight : input;
  return {part(want_input, copy(input.sizes()), input),
          part(want_weight, Sizes{input.size(1)}, like),
          part(want_bias, Sizes{input.size(1)}, like)};
}

}  // namespace lamina::shape
