#include "lamina/shape/promotion.h"

#include <cmath>
#include <limits>

#include "lamina/core/defaults.h"
#include "lamina/core/error.h"

namespace lamina {

namespace {

int category(ScalarType t) {
  return is_complex(t) ? 3 : is_floating(t) ? 2 : is_integral(t) ? 1 : 0;
}

ScalarType signed_of_size(size_t bytes) {
  return bytes == 1   ? ScalarType::Int8
         : bytes == 2 ? ScalarType::Int16
         : bytes == 4 ? ScalarType::Int32
                      : ScalarType::Int64;
}

}  // namespace

ScalarType promote_types(ScalarType a, ScalarType b) {
  if (a == b) return a;
  if (category(a) < category(b)) std::swap(a, b);
  LAMINA_CHECK(!is_float8(a) || category(b) < 2, "promote_types: no common type; got ", a, " and ",
               b, "; convert one operand with .to()");
  LAMINA_CHECK(!is_float8(b), "promote_types: no common type; got ", a, " and ", b,
               "; convert one operand with .to()");
  switch (category(a)) {
    case 3:
      return a == ScalarType::Complex128 || b == ScalarType::Complex128 || b == ScalarType::Float64
                 ? ScalarType::Complex128
                 : ScalarType::Complex64;
    case 2:
      if (category(b) < 2) return a;
      if (item_size(a) != item_size(b)) return item_size(a) > item_size(b) ? a : b;
      return ScalarType::Float32;  // float16 with bfloat16
    case 1: {
      if (category(b) == 0) return a;
      if (is_unsigned(a) == is_unsigned(b)) return item_size(a) > item_size(b) ? a : b;
      if (is_unsigned(b)) std::swap(a, b);
      // a is unsigned, b signed: a signed type that holds both.
      LAMINA_CHECK(a != ScalarType::UInt64, "promote_types: no integer type holds both; got ", a,
                   " and ", b, "; convert one operand with .to()");
      return signed_of_size(std::max(2 * item_size(a), item_size(b)));
    }
    default:
      return ScalarType::Bool;
  }
}

bool can_cast(ScalarType from, ScalarType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && is_integral(to, true)) return false;
  return from == ScalarType::Bool || to != ScalarType::Bool;
}

bool number_fits(const Scalar& v, ScalarType t) {
  if (v.is_complex() && (is_complex(t) || v.to_complex().imag() != 0)) return is_complex(t);
  if (t == ScalarType::Float32) {
    const double d = v.to_double();
    return !std::isfinite(d) ||
           std::abs(d) <= static_cast<double>(std::numeric_limits<float>::max());
  }
  if (!is_integral(t)) return true;
  const bool natural = is_unsigned(t);
  const int bits = static_cast<int>(item_size(t)) * 8 - (natural ? 0 : 1);
  if (v.is_floating() || v.is_complex()) {
    const double d = v.to_double();
    return natural ? d >= 0 && d < std::ldexp(1.0, bits)
                   : d >= -std::ldexp(1.0, bits) && d < std::ldexp(1.0, bits);
  }
  if (v.kind() == Scalar::Kind::UInt) return t == ScalarType::UInt64;
  if (bits >= 63) return true;
  const int64_t high = (int64_t{1} << bits) - 1, n = v.to_int();
  return n <= high && n >= (natural ? -high : -high - 1);
}

void ResultType::add(const Scalar& s) {
  const ScalarType t = s.default_type(default_dtype());
  number_ = has_number_ ? promote_types(number_, t) : t;
  has_number_ = true;
}

ScalarType ResultType::get() const {
  const auto combine = [](bool has_high, ScalarType high, bool has_low, ScalarType low) {
    if (!has_low) return high;
    if (!has_high) return low;
    if (category(low) > category(high)) {
      // A complex number beside a floating tensor keeps the tensor's precision.
      return category(low) == 3 && category(high) == 2 ? to_complex(high) : low;
    }
    return high;
  };
  const bool has_low = has_zero_ || has_number_;
  const ScalarType low = combine(has_zero_, zero_, has_number_, number_);
  return combine(has_dimensioned_, dimensioned_, has_low, low);
}

}  // namespace lamina
