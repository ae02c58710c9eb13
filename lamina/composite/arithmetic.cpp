// Composite arithmetic and comparisons.
#include <cmath>
#include <limits>
#include <numbers>

#include "lamina/autograd/formulas.h"
#include "lamina/autograd/variable.h"
#include "lamina/core/defaults.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"
#include "lamina/ops.h"
#include "lamina/shape/promotion.h"

namespace lamina::composite {

namespace {
template <class Other>
Tensor divide(const Tensor& self, const Other& other, std::optional<std::string_view> mode) {
  if (!mode) return ops::div(self, other);
  if (*mode == "trunc") return ops::_div_trunc(self, other);
  LAMINA_CHECK(*mode == "floor",
               "div: expected rounding_mode to be one of None, 'trunc', or 'floor' but found '",
               *mode, "'");
  return ops::floor_divide(self, other);
}
}  // namespace

Tensor div_mode(const Tensor& self, const Tensor& other,
                std::optional<std::string_view> rounding_mode) {
  return divide(self, other, rounding_mode);
}
Tensor div_mode(const Tensor& self, const Scalar& other,
                std::optional<std::string_view> rounding_mode) {
  return divide(self, other, rounding_mode);
}

namespace {
Tensor wide(const Tensor& t, bool complex) {
  return ops::_to_dtype(t,
                        complex || t.is_complex() ? ScalarType::Complex128 : ScalarType::Float64);
}
}  // namespace
Tensor float_power(const Tensor& self, const Tensor& exponent) {
  const bool complex = self.is_complex() || exponent.is_complex();
  return ops::pow(wide(self, complex), wide(exponent, complex));
}
Tensor float_power(const Tensor& self, const Scalar& exponent) {
  return ops::pow(wide(self, exponent.is_complex()), exponent);
}
Tensor float_power(const Scalar& self, const Tensor& exponent) {
  return ops::pow(self, wide(exponent, self.is_complex()));
}

namespace {
template <typename E>
Tensor power_into(const Tensor& self, const E& exponent) {
  const Tensor power = float_power(autograd::recording(self) ? ops::clone(self) : self, exponent);
  LAMINA_CHECK(power.dtype() == self.dtype(), "float_power_: the base has dtype ",
               legacy_name(self.dtype()), " but the operation's result requires dtype ",
               legacy_name(power.dtype()));
  LAMINA_CHECK(power.sizes() == self.sizes(), "float_power_: output with shape ", self.sizes(),
               " doesn't match the broadcast shape ", power.sizes());
  return ops::copy_(self, power);
}
}  // namespace
Tensor float_power_in_place(const Tensor& self, const Tensor& exponent) {
  return power_into(self, exponent);
}
Tensor float_power_in_place(const Tensor& self, const Scalar& exponent) {
  return power_into(self, exponent);
}

Tensor nextafter(const Tensor& self, const Tensor& other) {
  const ScalarType type = self.dtype();
  const bool half = type == ScalarType::Float16 || type == ScalarType::BFloat16;
  if (!half || other.dtype() != type) return ops::_nextafter(self, other);
  // A step of a float32 is lost when it is rounded to 16 bits: the bits of numbers of one sign are
  // in the order of their magnitudes, so the next number is the next pattern.
  const Tensor x = ops::detach(self), y = ops::detach(other);
  const Tensor bits = ops::view(ops::contiguous(x), ScalarType::Int16);
  const Tensor away = ops::eq(ops::gt(y, x), ops::gt(x, Scalar(0.0)));
  const Tensor step =
      ops::sub(ops::mul(ops::_to_dtype(away, ScalarType::Int16), Scalar(2)), Scalar(1));
  const Tensor stepped = ops::view(ops::add(bits, step), type);
  const Tensor smallest = ops::view(
      ops::full({}, Scalar(1), ScalarType::Int16, std::nullopt, self.device(), std::nullopt), type);
  const Tensor from_zero = ops::copysign(smallest, y);
  const Tensor moved = ops::where(ops::eq(x, Scalar(0.0)), from_zero, stepped);
  const Tensor apart = ops::where(ops::eq(x, y), y, moved);
  const Tensor next =
      ops::where(ops::logical_or(ops::isnan(x), ops::isnan(y)), ops::add(x, y), apart);
  // The step is exact, and self plus the step has its derivative; infinities and zeros have no
  // step.
  const Tensor alone =
      ops::logical_or(ops::logical_or(ops::eq(x, y), ops::isinf(x)), ops::eq(next, Scalar(0.0)));
  const Tensor result = ops::where(alone, next, ops::add(self, ops::sub(next, x)));
  return other.requires_grad() ? ops::_tied(result, other) : result;
}

Tensor conj_physical(const Tensor& self) {
  return self.is_complex() ? ops::_conj_physical(self) : self;
}

std::vector<Tensor> where_indices(const Tensor& condition) {
  const Tensor at = ops::nonzero(condition.dim() == 0 ? ops::unsqueeze(condition, 0) : condition);
  return ops::unbind(at, 1);
}

Tensor clamp_scalar(const Tensor& self, const std::optional<Scalar>& min,
                    const std::optional<Scalar>& max) {
  LAMINA_CHECK(min || max, "clamp: torch.clamp: At least one of 'min' or 'max' must not be None");
  LAMINA_CHECK_IMPLEMENTED(!self.is_complex(),
                           "clamp is not supported for complex types, which have no order; got ",
                           self);
  if (min && max) return ops::_clamp(self, *min, *max);
  return min ? ops::clamp_min(self, *min) : ops::clamp_max(self, *max);
}

Tensor clamp_tensor(const Tensor& self, const Tensor& min, const Tensor& max) {
  LAMINA_CHECK(min.defined() || max.defined(),
               "clamp: torch.clamp: At least one of 'min' or 'max' must not be None");
  LAMINA_CHECK_IMPLEMENTED(!self.is_complex(),
                           "clamp is not supported for complex types, which have no order; got ",
                           self);
  if (min.defined() && max.defined()) return ops::_clamp(self, min, max);
  return min.defined() ? ops::clamp_min(self, min) : ops::clamp_max(self, max);
}

Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  LAMINA_CHECK(self.dtype() == other.dtype(), "isclose: ", legacy_name(self.dtype()),
               " did not match ", legacy_name(other.dtype()));
  LAMINA_CHECK(rtol >= 0, "isclose: rtol must be greater than or equal to zero, but got ", rtol);
  LAMINA_CHECK(atol >= 0, "isclose: atol must be greater than or equal to zero, but got ", atol);
  Tensor close = ops::eq(self, other);
  if (equal_nan && is_differentiable(self.dtype()))
    close = ops::logical_or(close, ops::logical_and(ops::isnan(self), ops::isnan(other)));
  if (rtol == 0 && atol == 0) return close;
  Tensor a = self, b = other;
  if (is_integral(self.dtype(), true)) {
    a = ops::_to_dtype(self, ScalarType::Float64);
    b = ops::_to_dtype(other, ScalarType::Float64);
  }
  const Tensor allowed = ops::add(ops::mul(ops::abs(b), Scalar(rtol)), Scalar(atol));
  const Tensor actual = ops::abs(ops::sub(a, b));
  return ops::logical_or(close, ops::logical_and(ops::isfinite(actual), ops::le(actual, allowed)));
}

bool allclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  const autograd::NoGrad guard;
  const Tensor all = ops::all(ops::isclose(self, other, rtol, atol, equal_nan));
  return scalar_of(all).to_bool();
}

bool equal(const Tensor& self, const Tensor& other) {
  if (self.sizes() != other.sizes()) return false;
  if (self.numel() == 0) return true;
  const autograd::NoGrad guard;
  return scalar_of(ops::all(ops::eq(self, other))).to_bool();
}

Tensor logaddexp(const Tensor& self, const Tensor& other) {
  if (!self.is_complex() && !other.is_complex()) return ops::_logaddexp(self, other);
  // From the operand of larger real part, so that the exponential cannot overflow.
  const Tensor first = ops::ge(ops::real(self), ops::real(other));
  const Tensor big = ops::where(first, self, other), small = ops::where(first, other, self);
  return ops::add(big, ops::log1p(ops::exp(ops::sub(small, big))));
}

Tensor square(const Tensor& self) {
  return is_bool(self.dtype()) ? ops::pow(self, Scalar(2)) : ops::_square(self);
}

Tensor positive(const Tensor& self) {
  LAMINA_CHECK(!is_bool(self.dtype()),
               "positive: the `+` operator is not supported on bool tensors");
  return self;
}

Tensor round_decimals(const Tensor& self, int64_t decimals) {
  LAMINA_CHECK(!is_complex(self.dtype()) && !is_bool(self.dtype()),
               "round: not defined for this type; got ", self);
  if (is_integral(self.dtype())) {
    LAMINA_CHECK_IMPLEMENTED(decimals == 0, "\"round_vml_cpu\" not implemented for '",
                             legacy_name(self.dtype()), "' with decimals");
    return ops::clone(self);
  }
  if (decimals == 0) return ops::round(self);
  const double scale = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  if (decimals > 0) return ops::div(ops::round(ops::mul(self, Scalar(scale))), Scalar(scale));
  return ops::mul(ops::round(ops::div(self, Scalar(scale))), Scalar(scale));
}

Tensor angle(const Tensor& self) {
  if (self.is_complex()) return ops::_angle(self);
  const Tensor x = is_integral(self.dtype(), true) ? ops::_to_dtype(self, default_dtype()) : self;
  // pi where negative, 0 elsewhere, NaN stays.
  const Tensor flat =
      ops::where(ops::lt(x, Scalar(0)), Scalar(std::numbers::pi), ops::mul(x, Scalar(0)));
  return ops::where(ops::isinf(x),
                    ops::where(ops::lt(x, Scalar(0)), Scalar(std::numbers::pi), ops::zeros_like(x)),
                    flat);
}

Tensor nan_to_num(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  if (is_integral(self.dtype(), true)) return ops::clone(self);
  if (self.is_complex()) {
    const Tensor parts = ops::view_as_real(ops::resolve_conj(self));
    return ops::view_as_complex(ops::contiguous(nan_to_num(parts, nan, posinf, neginf)));
  }
  double largest = std::numeric_limits<double>::max();
  if (self.dtype() == ScalarType::Float32) largest = std::numeric_limits<float>::max();
  if (self.dtype() == ScalarType::Float16) largest = 65504;
  if (self.dtype() == ScalarType::BFloat16) largest = 3.3895313892515355e38;
  Tensor out = ops::where(ops::isnan(self), Scalar(nan.value_or(0)), self);
  out = ops::where(ops::isposinf(self), Scalar(posinf.value_or(largest)), out);
  return ops::where(ops::isneginf(self), Scalar(neginf.value_or(-largest)), out);
}

Tensor gelu(const Tensor& self, std::string_view approximate) {
  LAMINA_CHECK_IMPLEMENTED(is_floating(self.dtype()), "\"GeluKernelImpl\" not implemented for '",
                           legacy_name(self.dtype()), "'");
  if (approximate == "none") return ops::_gelu_erf(self);
  LAMINA_CHECK(approximate == "tanh",
               "gelu: approximate argument must be either none or tanh; got '", approximate, "'");
  return ops::_gelu_tanh(self);
}

}  // namespace lamina::composite
