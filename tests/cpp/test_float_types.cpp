// Small floating types against the definition of their formats, and float to integer conversion.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "lamina/core/float_types.h"

namespace lamina {
namespace {

// The value of a bit pattern, from the definition of a binary format.
double decode(uint32_t bits, int exponent_bits, int mantissa_bits, bool has_infinity) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const bool negative = bits >> (exponent_bits + mantissa_bits) & 1;
  double v = 0;
  if (has_infinity && exponent == (1 << exponent_bits) - 1)
    v = mantissa ? std::nan("") : INFINITY;
  else if (!has_infinity && (bits & 0x7f) == 0x7f)
    v = std::nan("");
  else if (exponent == 0)
    v = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  else
    v = std::ldexp(mantissa + (1u << mantissa_bits), exponent - bias - mantissa_bits);
  return negative ? -v : v;
}

template <class Type, class Bits>
void check_format(int exponent_bits, int mantissa_bits, bool has_infinity) {
  const uint32_t count = 1u << (8 * sizeof(Bits));
  const uint32_t half_count = count / 2;
  std::vector<double> finite;  // ascending positive values, bits = index
  for (uint32_t b = 0; b < count; ++b) {
    const float v = Type::from_bits(static_cast<Bits>(b));
    const double expected = decode(b, exponent_bits, mantissa_bits, has_infinity);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(v)) << b;
      ASSERT_TRUE(std::isnan(static_cast<float>(Type(v)))) << b;
      continue;
    }
    ASSERT_EQ(v, expected) << b;
    ASSERT_EQ(std::signbit(v), b >= half_count) << b;
    ASSERT_EQ(Type(v).bits, b);  // round trip
    if (b < half_count && std::isfinite(expected)) finite.push_back(expected);
  }
  // Between neighbours: just below the middle, the middle (ties to even), just above.
  for (size_t i = 0; i + 1 < finite.size(); ++i) {
    const double middle = (finite[i] + finite[i + 1]) / 2;
    const float m = static_cast<float>(middle);
    if (static_cast<double>(m) != middle) continue;  // below float's own resolution
    const auto low = static_cast<Bits>(i);
    const auto high = static_cast<Bits>(i + 1);
    ASSERT_EQ(Type(std::nextafter(m, 0.0f)).bits, low) << m;
    ASSERT_EQ(Type(m).bits, i % 2 == 0 ? low : high) << m;
    ASSERT_EQ(Type(std::nextafter(m, INFINITY)).bits, high) << m;
    ASSERT_EQ(static_cast<float>(Type(-m)), -static_cast<float>(Type(m)));
  }
}

TEST(FloatTypes, HalfHasTheBitsOfItsDefinition) { check_format<Half, uint16_t>(5, 10, true); }
TEST(FloatTypes, BFloat16HasTheBitsOfItsDefinition) {
  check_format<BFloat16, uint16_t>(8, 7, true);
}
TEST(FloatTypes, E5M2HasTheBitsOfItsDefinition) { check_format<Float8E5M2, uint8_t>(5, 2, true); }
TEST(FloatTypes, E4M3HasTheBitsOfItsDefinition) {
  check_format<Float8E4M3FN, uint8_t>(4, 3, false);
}

TEST(FloatTypes, OverflowAndSpecialValues) {
  EXPECT_EQ(Half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Half(65519.99f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(-INFINITY).bits, 0xfc00);
  EXPECT_EQ(Half(-0.0f).bits, 0x8000);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(Float8E5M2(61440.0f).bits, 0x7c);
  EXPECT_EQ(Float8E5M2(61439.0f).bits, 0x7b);
  for (float big : {449.0f, 464.0f, 480.0f, 1e6f, INFINITY})
    EXPECT_EQ(Float8E4M3FN(big).bits, 0x7e) << big;
  EXPECT_EQ(Float8E4M3FN(NAN).bits & 0x7f, 0x7f);
  EXPECT_EQ(Float8E4M3FN(-500.0f).bits, 0xfe);
  // By way of float: the double just above the middle of two halves rounds to the middle first.
  EXPECT_EQ(convert_to<Half>(1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40)).bits, 0x3c00);
}

TEST(FloatTypes, FloatToIntegerIsDefinedEverywhere) {
  EXPECT_EQ(float_to_int<int64_t>(1e19), INT64_MIN);
  EXPECT_EQ(float_to_int<int64_t>(-1e19), INT64_MIN);
  EXPECT_EQ(float_to_int<int64_t>(double(NAN)), INT64_MIN);
  EXPECT_EQ(float_to_int<int64_t>(-9223372036854775808.0), INT64_MIN);
  EXPECT_EQ(float_to_int<int32_t>(3e9), INT32_MIN);
  EXPECT_EQ(float_to_int<int32_t>(2147483647.9), INT32_MAX);
  EXPECT_EQ(float_to_int<int32_t>(-2147483648.9), INT32_MIN);
  EXPECT_EQ(float_to_int<int32_t>(-1.9f), -1);
  EXPECT_EQ(float_to_int<uint8_t>(300.0f), 44);
  EXPECT_EQ(float_to_int<uint8_t>(-1.0f), 255);
  EXPECT_EQ(float_to_int<int8_t>(1e5f), -96);
  EXPECT_EQ(float_to_int<int16_t>(1e5f), -31072);
  EXPECT_EQ(float_to_int<uint16_t>(float(INFINITY)), 0);
  EXPECT_EQ(float_to_int<uint32_t>(3e9), 3000000000u);
  EXPECT_EQ(float_to_int<uint64_t>(1e19), 10000000000000000000u);
  EXPECT_EQ(float_to_int<uint64_t>(-1.0), UINT64_MAX);
  EXPECT_EQ(float_to_int<uint64_t>(2e19), 0u);
  EXPECT_EQ(float_to_int<uint64_t>(double(NAN)), uint64_t{1} << 63);
}

TEST(FloatTypes, MappingBetweenTypesIsOneToOne) {
  for (ScalarType t : kAllScalarTypes)
    visit(t, [&]<class T>(TypeTag<T>) {
      EXPECT_EQ(scalar_type_of<T>, t);
      EXPECT_EQ(sizeof(T), item_size(t));
    });
  static_assert(std::is_same_v<cpp_type<ScalarType::BFloat16>, BFloat16>);
}

TEST(FloatTypes, ConversionRules) {
  EXPECT_TRUE(convert_to<bool>(0.5f));
  EXPECT_TRUE(convert_to<bool>(std::complex<float>(0, 1)));
  EXPECT_FALSE(convert_to<bool>(Half(0.0f)));
  EXPECT_EQ(convert_to<float>(std::complex<double>(2, 3)), 2.0f);
  EXPECT_EQ(convert_to<std::complex<float>>(int64_t{7}), std::complex<float>(7, 0));
  EXPECT_EQ(convert_to<int32_t>(BFloat16(3.75f)), 3);
}

}  // namespace
}  // namespace lamina
