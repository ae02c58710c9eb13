// Special functions and other pointwise operators that are calls of others.
#include <cmath>
#include <numbers>

#include "lamina/core/defaults.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/generated_support.h"
#include "lamina/ops.h"
#include "lamina/shape/broadcast.h"
#include "lamina/transforms/batched.h"

namespace lamina::composite {

Tensor polygamma(int64_t n, const Tensor& self) {
  LAMINA_CHECK(n >= 0, "polygamma: polygamma(n, x) does not support negative n; got ", n);
  return n == 0 ? ops::digamma(self) : ops::_polygamma(self, n);
}
Tensor polygamma_inplace(const Tensor& self, int64_t n) {
  return write_inplace(self, polygamma(n, value_before_write(self)), "polygamma_");
}

Tensor mvlgamma(const Tensor& self, int64_t p) {
  LAMINA_CHECK(p >= 1, "mvlgamma: p has to be greater than or equal to 1; got ", p);
  const Tensor x = is_integral(self.dtype(), true) ? ops::_to_dtype(self, default_dtype()) : self;
  LAMINA_CHECK_IMPLEMENTED(is_floating(x.dtype()), "\"mvlgamma\" not implemented for '",
                           legacy_name(x.dtype()), "'");
  const auto count = static_cast<double>(p);
  const Tensor shifts = ops::arange(Scalar(0.0), Scalar(-count / 2), Scalar(-0.5), x.dtype());
  const Tensor each = ops::lgamma(ops::add(ops::unsqueeze(x, -1), shifts));
  return ops::add(ops::sum(each, IntList({-1}), false),
                  Scalar(count * (count - 1) / 4 * std::log(std::numbers::pi)));
}

Tensor logit(const Tensor& self, std::optional<double> eps) {
  if (!eps) return ops::_logit(self);
  const Tensor x = is_integral(self.dtype(), true) ? ops::_to_dtype(self, default_dtype()) : self;
  return ops::_logit(ops::clamp(x, std::optional<Scalar>(*eps), std::optional<Scalar>(1 - *eps)));
}

Tensor isreal(const Tensor& self) {
  if (!self.is_complex())
    return ops::ones(self.sizes(), ScalarType::Bool, std::nullopt, self.device());
  return ops::eq(ops::imag(self), Scalar(int64_t{0}));
}

Tensor ldexp(const Tensor& self, const Tensor& other) {
  return ops::mul(self, ops::pow(Scalar(2.0), other));
}

Tensor nanmean(const Tensor& self, std::optional<IntList> dim, bool keepdim,
               std::optional<ScalarType> dtype) {
  LAMINA_CHECK(is_floating(self.dtype()) || is_complex(self.dtype()),
               "nanmean: expected input to have floating point or complex dtype but got ",
               legacy_name(self.dtype()));
  const Tensor there = ops::logical_not(ops::isnan(self));
  const Tensor count = ops::sum(there, dim, keepdim);
  return ops::div(ops::nansum(self, dim, keepdim, dtype), count);
}

Tensor logcumsumexp(const Tensor& self, int64_t dim) {
  if (!self.is_complex()) return ops::_logcumsumexp(self, dim);
  const int64_t d = wrap_dim(dim, self.dim(), "logcumsumexp");
  if (self.dim() == 0 || self.numel() == 0) return ops::clone(self);
  // The largest real part is taken out; it carries no gradient.
  const Tensor top = ops::detach(ops::amax(ops::real(self), {d}, true));
  const Tensor shift = ops::where(ops::isinf(top), Scalar(0), top);
  return ops::add(ops::log(ops::cumsum(ops::exp(ops::sub(self, shift)), d)), shift);
}

// ---- random numbers

namespace {
Tensor drawn(IntList sizes, const Tensor& like, double std, const Generator& generator) {
  const Tensor out = ops::new_empty(like, sizes);
  return ops::normal_(out, 0, std, generator);
}
void check_deviations(const Tensor& std) {
  LAMINA_CHECK(!std.is_complex(), "normal: normal expects standard deviation to be non-complex");
  if (std.is_meta() || std.numel() == 0) return;
  LAMINA_CHECK(scalar_of(ops::min(ops::detach(transforms::innermost(std)))).to_double() >= 0,
               "normal: normal expects all elements of std >= 0.0");
}
}  // namespace

Tensor normal_mean(const Tensor& mean, double std, const Generator& generator) {
  LAMINA_CHECK(std >= 0, "normal: normal expects std >= 0.0, but found std ", std);
  return ops::add(drawn(mean.sizes(), mean, std, generator), mean);
}
Tensor normal_std(double mean, const Tensor& std, const Generator& generator) {
  check_deviations(std);
  return ops::add(ops::mul(drawn(std.sizes(), std, 1, generator), std), Scalar(mean));
}
Tensor normal_both(const Tensor& mean, const Tensor& std, const Generator& generator) {
  check_deviations(std);
  const Sizes sizes = broadcast_sizes(mean.sizes(), std.sizes(), "normal");
  // Inside vmap numbers that differ need a place for each sample.
  const Tensor& like = transforms::is_batched(std) ? std : mean;
  const Tensor unit = drawn(sizes, like, 1, generator);
  return ops::add(ops::mul(ops::_to_dtype(unit, mean.dtype()), std), mean);
}
Tensor normal_numbers(double mean, double std, IntList size, const Generator& generator,
                      std::optional<ScalarType> dtype, std::optional<Layout> layout,
                      std::optional<Device> device, std::optional<bool> pin_memory) {
  return ops::normal_(ops::empty(size, dtype, layout, device, pin_memory), mean, std, generator);
}
Tensor bernoulli_of(const Tensor& self, const Generator& generator) {
  return ops::bernoulli_(ops::empty_like(ops::detach(self)), ops::detach(self), generator);
}
Tensor bernoulli_like(const Tensor& self, double p, const Generator& generator) {
  return ops::bernoulli_(ops::empty_like(ops::detach(self)), p, generator);
}

}  // namespace lamina::composite
