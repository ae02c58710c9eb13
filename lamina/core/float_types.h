// Floating types that C++20 lacks, conversions between element types, and the mapping between C++
// types and ScalarType. Conversions are branch-free so that loops over them vectorize.
#pragma once

#include <bit>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "lamina/core/scalar_type.h"

namespace lamina {

namespace detail {

// Rounds a float to nearest even in a format of `kMantissa` stored mantissa bits and exponent bias
// `kBias`. Yields the magnitude's bits with the exponent still unbounded above: the caller deals
// with overflow, infinity and NaN.
template <int kMantissa, int kBias>
constexpr uint32_t round_magnitude(uint32_t magnitude) {
  constexpr int kShift = 23 - kMantissa;
  constexpr uint32_t kRebias = uint32_t(127 - kBias) << 23;
  constexpr uint32_t kMinNormal = uint32_t(127 - kBias + 1) << 23;
  // Adding this number lets the hardware's own rounding cut a subnormal at the right bit.
  constexpr uint32_t kMagic = uint32_t(127 - kBias + kShift + 1) << 23;
  const uint32_t normal =
      (magnitude - kRebias + ((1u << (kShift - 1)) - 1) + ((magnitude >> kShift) & 1)) >> kShift;
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(kMagic)) -
      kMagic;
  return magnitude < kMinNormal ? subnormal : normal;
}

// The float of a magnitude whose format has `kMantissa` stored bits and bias `kBias`; no infinity,
// no NaN.
template <int kMantissa, int kBias>
constexpr uint32_t widen_magnitude(uint32_t magnitude) {
  constexpr int kShift = 23 - kMantissa;
  constexpr uint32_t kRebias = uint32_t(127 - kBias) << 23;
  constexpr uint32_t kMagic = kRebias + (1u << 23);
  const uint32_t shifted = magnitude << kShift;
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(shifted + kMagic) -
                                                     std::bit_cast<float>(kMagic));
  return shifted < (1u << 23) ? subnormal : shifted + kRebias;
}

}  // namespace detail

constexpr uint16_t float_to_half_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t special =
      magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : 0x7c00u;
  const uint32_t finite = detail::round_magnitude<10, 15>(magnitude < 0x47800000u ? magnitude : 0);
  return static_cast<uint16_t>(((bits >> 16) & 0x8000u) |
                               (magnitude < 0x47800000u ? finite : special));
}
constexpr float half_bits_to_float(uint16_t half) {
  const uint32_t magnitude = half & 0x7fffu;
  const uint32_t special =
      0x7f800000u | ((magnitude & 0x3ffu) << 13) | (magnitude > 0x7c00u ? 0x400000u : 0u);
  const uint32_t finite = detail::widen_magnitude<10, 15>(magnitude);
  return std::bit_cast<float>((uint32_t(half & 0x8000u) << 16) |
                              (magnitude < 0x7c00u ? finite : special));
}

constexpr uint16_t float_to_bfloat16_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1);
  const uint32_t nan = (bits & 0x80000000u) | 0x7fc00000u;
  return static_cast<uint16_t>((value != value ? nan : rounded) >> 16);
}
constexpr float bfloat16_bits_to_float(uint16_t b) {
  return std::bit_cast<float>(uint32_t(b) << 16);
}

// float8_e5m2: IEEE-like, with infinities.
constexpr uint8_t float_to_e5m2_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t special = magnitude > 0x7f800000u ? 0x7fu : 0x7cu;
  const uint32_t finite = detail::round_magnitude<2, 15>(magnitude < 0x47800000u ? magnitude : 0);
  return static_cast<uint8_t>(((bits >> 24) & 0x80u) |
                              (magnitude < 0x47800000u ? finite : special));
}
constexpr float e5m2_bits_to_float(uint8_t b) {
  return half_bits_to_float(uint16_t(uint32_t(b) << 8));
}

// float8_e4m3fn: no infinities; one NaN a sign. Too large magnitudes, infinity included, become the
// largest, 448, as in the peer.
constexpr uint8_t float_to_e4m3fn_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t special = magnitude > 0x7f800000u ? 0x7fu : 0x7eu;
  const bool in_range = magnitude <= 0x43e00000u;  // 448
  const uint32_t finite = detail::round_magnitude<3, 7>(in_range ? magnitude : 0);
  return static_cast<uint8_t>(((bits >> 24) & 0x80u) | (in_range ? finite : special));
}
constexpr float e4m3fn_bits_to_float(uint8_t b) {
  const uint32_t magnitude = b & 0x7fu;
  const uint32_t finite = detail::widen_magnitude<3, 7>(magnitude);
  return std::bit_cast<float>((uint32_t(b & 0x80u) << 24) |
                              (magnitude == 0x7fu ? 0x7fc00000u : finite));
}

// Storage types: bits, and conversions from and to float.
#define LAMINA_FLOAT_TYPE(Type, Bits, from_float, to_float)                         \
  struct Type {                                                                     \
    Bits bits = 0;                                                                  \
    constexpr Type() = default;                                                     \
    constexpr explicit Type(float v) : bits(from_float(v)) {}                       \
    static constexpr Type from_bits(Bits b) {                                       \
      Type t;                                                                       \
      t.bits = b;                                                                   \
      return t;                                                                     \
    }                                                                               \
    constexpr operator float() const { return to_float(bits); } /* NOLINT: exact */ \
  };
LAMINA_FLOAT_TYPE(Half, uint16_t, float_to_half_bits, half_bits_to_float)
LAMINA_FLOAT_TYPE(BFloat16, uint16_t, float_to_bfloat16_bits, bfloat16_bits_to_float)
LAMINA_FLOAT_TYPE(Float8E5M2, uint8_t, float_to_e5m2_bits, e5m2_bits_to_float)
LAMINA_FLOAT_TYPE(Float8E4M3FN, uint8_t, float_to_e4m3fn_bits, e4m3fn_bits_to_float)
#undef LAMINA_FLOAT_TYPE

// ---- C++ types and ScalarType
// ----------------------------------------------------------------------------------- X(C++ type,
// ScalarType) for every element type.
#define LAMINA_FOR_ALL_TYPES(X)       \
  X(bool, Bool)                       \
  X(uint8_t, UInt8)                   \
  X(uint16_t, UInt16)                 \
  X(uint32_t, UInt32)                 \
  X(uint64_t, UInt64)                 \
  X(int8_t, Int8)                     \
  X(int16_t, Int16)                   \
  X(int32_t, Int32)                   \
  X(int64_t, Int64)                   \
  X(float, Float32)                   \
  X(double, Float64)                  \
  X(std::complex<float>, Complex64)   \
  X(std::complex<double>, Complex128) \
  X(::lamina::Half, Float16)          \
  X(::lamina::BFloat16, BFloat16)     \
  X(::lamina::Float8E5M2, Float8E5M2) \
  X(::lamina::Float8E4M3FN, Float8E4M3FN)

namespace detail {
template <class T>
struct ScalarTypeOf;
template <ScalarType S>
struct CppTypeOf;
#define LAMINA_X(T, S)                                 \
  template <>                                          \
  struct ScalarTypeOf<T> {                             \
    static constexpr ScalarType value = ScalarType::S; \
  };                                                   \
  template <>                                          \
  struct CppTypeOf<ScalarType::S> {                    \
    using type = T;                                    \
  };
LAMINA_FOR_ALL_TYPES(LAMINA_X)
#undef LAMINA_X
}  // namespace detail

template <class T>
inline constexpr ScalarType scalar_type_of = detail::ScalarTypeOf<std::remove_cv_t<T>>::value;
template <ScalarType S>
using cpp_type = typename detail::CppTypeOf<S>::type;

template <class T>
struct TypeTag {
  using type = T;
};

// Calls f(TypeTag<T>{}) with the C++ type of `t`.
template <class F>
constexpr decltype(auto) visit(ScalarType t, F&& f) {
  switch (t) {
#define LAMINA_X(T, S) \
  case ScalarType::S:  \
    return std::forward<F>(f)(TypeTag<T>{});
    LAMINA_FOR_ALL_TYPES(LAMINA_X)
#undef LAMINA_X
  }
  __builtin_unreachable();
}

// ---- conversion of one element
// ----------------------------------------------------------------------------------
template <class T>
inline constexpr bool is_complex_type = false;
template <class T>
inline constexpr bool is_complex_type<std::complex<T>> = true;
template <class T>
inline constexpr bool is_small_float_type =
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || std::is_same_v<T, Float8E5M2> ||
    std::is_same_v<T, Float8E4M3FN>;

// Truncation toward zero. Out of range, infinity and NaN are defined as on x86, where the peer's
// results come from: int64 and int32 give their minimum; types of 8 and 16 bits take the low bits
// of the int32 result, uint32 those of the int64 result; uint64 is right below 2^64, 0 above, 2^63
// for NaN and below -2^63.
template <class I, class F>
constexpr I float_to_int(F v) {
  static_assert(std::is_floating_point_v<F>);
  if constexpr (std::is_same_v<I, uint64_t>) {
    constexpr F kTop = static_cast<F>(9223372036854775808.0);
    const bool high = v >= kTop;
    return static_cast<uint64_t>(float_to_int<int64_t>(high ? v - kTop : v)) ^
           (uint64_t(high) << 63);
  } else if constexpr (std::is_same_v<I, uint32_t>) {
    return static_cast<uint32_t>(float_to_int<int64_t>(v));
  } else if constexpr (sizeof(I) < 4) {
    return static_cast<I>(float_to_int<int32_t>(v));
  } else {
    constexpr F kLimit = static_cast<F>(sizeof(I) == 8 ? 9223372036854775808.0 : 2147483648.0);
    bool in_range = v >= -kLimit && v < kLimit;
    if constexpr (sizeof(I) == 4 && sizeof(F) == 8) in_range = v > -kLimit - 1 && v < kLimit;
    const I inside = static_cast<I>(in_range ? v : F(0));
    return in_range ? inside : std::numeric_limits<I>::min();
  }
}

// The conversion rule between any two element types.
template <class D, class S>
constexpr D convert_to(S v) {
  if constexpr (std::is_same_v<D, S>) {
    return v;
  } else if constexpr (is_complex_type<S>) {
    if constexpr (is_complex_type<D>) {
      using R = typename D::value_type;
      return D(static_cast<R>(v.real()), static_cast<R>(v.imag()));
    } else if constexpr (std::is_same_v<D, bool>) {
      return v.real() != 0 || v.imag() != 0;
    } else {
      return convert_to<D>(v.real());
    }
  } else if constexpr (is_complex_type<D>) {
    return D(convert_to<typename D::value_type>(v), 0);
  } else if constexpr (is_small_float_type<S>) {
    return convert_to<D>(static_cast<float>(v));
  } else if constexpr (is_small_float_type<D>) {
    return D(static_cast<float>(v));  // by way of float, as the peer does
  } else if constexpr (std::is_same_v<D, bool>) {
    return v != S(0);
  } else if constexpr (std::is_floating_point_v<S> && std::is_integral_v<D>) {
    return float_to_int<D>(v);
  } else {
    return static_cast<D>(v);
  }
}

}  // namespace lamina
