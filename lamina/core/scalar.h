// A number of Python: bool, int, float or complex, before it meets a tensor's element type.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include "lamina/core/scalar_type.h"

namespace lamina {

class Scalar {
 public:
  enum class Kind : uint8_t { Bool, Int, UInt, Float, Complex };

  constexpr Scalar() : Scalar(int64_t{0}) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  constexpr Scalar(T v) {  // NOLINT(google-explicit-constructor): numbers are scalars
    if constexpr (std::is_same_v<T, bool>) {
      kind_ = Kind::Bool;
      int_ = v;
    } else if constexpr (std::is_floating_point_v<T>) {
      kind_ = Kind::Float;
      re_ = v;
    } else if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) {
      // Only values that int64 cannot hold are of kind UInt.
      kind_ = static_cast<int64_t>(v) < 0 ? Kind::UInt : Kind::Int;
      int_ = static_cast<int64_t>(v);
    } else {
      kind_ = Kind::Int;
      int_ = static_cast<int64_t>(v);
    }
  }
  constexpr Scalar(std::complex<double> v) : kind_(Kind::Complex), re_(v.real()), im_(v.imag()) {}

  constexpr Kind kind() const { return kind_; }
  constexpr bool is_bool() const { return kind_ == Kind::Bool; }
  constexpr bool is_integral() const { return kind_ == Kind::Int || kind_ == Kind::UInt; }
  constexpr bool is_floating() const { return kind_ == Kind::Float; }
  constexpr bool is_complex() const { return kind_ == Kind::Complex; }

  constexpr double to_double() const {
    switch (kind_) {
      case Kind::Float:
      case Kind::Complex:
        return re_;
      case Kind::UInt:
        return static_cast<double>(static_cast<uint64_t>(int_));
      default:
        return static_cast<double>(int_);
    }
  }
  constexpr std::complex<double> to_complex() const {
    return {to_double(), kind_ == Kind::Complex ? im_ : 0.0};
  }
  constexpr bool to_bool() const {
    return is_floating() || is_complex() ? (re_ != 0 || (is_complex() && im_ != 0)) : int_ != 0;
  }
  // The 64 bits of an integer (two's complement for UInt); floats are truncated, saturating; NaN is
  // 0.
  constexpr int64_t to_int() const {
    if (kind_ == Kind::Float || kind_ == Kind::Complex) {
      if (!(re_ == re_)) return 0;
      if (re_ >= 9223372036854775808.0) return INT64_MAX;
      if (re_ < -9223372036854775808.0) return INT64_MIN;
      return static_cast<int64_t>(re_);
    }
    return int_;
  }
  constexpr bool equals(double v) const {
    return kind_ == Kind::Complex ? re_ == v && im_ == 0 : to_double() == v;
  }
  // The type that a number of this kind has where nothing else decides.
  constexpr ScalarType default_type(ScalarType default_float = ScalarType::Float32) const {
    switch (kind_) {
      case Kind::Bool:
        return ScalarType::Bool;
      case Kind::Int:
        return ScalarType::Int64;
      case Kind::UInt:
        return ScalarType::UInt64;
      case Kind::Float:
        return default_float;
      default:
        return lamina::to_complex(default_float);
    }
  }

 private:
  Kind kind_;
  int64_t int_ = 0;
  double re_ = 0;
  double im_ = 0;
};

}  // namespace lamina
