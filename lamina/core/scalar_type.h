// Element types: names, sizes, categories. Promotion lives in shape/promotion.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lamina {

// The numbering is the one that files written by PyTorch use.
enum class ScalarType : int8_t {
  UInt8 = 0,
  Int8 = 1,
  Int16 = 2,
  Int32 = 3,
  Int64 = 4,
  Float16 = 5,
  Float32 = 6,
  Float64 = 7,
  Complex64 = 9,
  Complex128 = 10,
  Bool = 11,
  BFloat16 = 15,
  Float8E5M2 = 23,
  Float8E4M3FN = 24,
  UInt16 = 27,
  UInt32 = 28,
  UInt64 = 29,
};

inline constexpr int kNumScalarTypeSlots = 30;  // array bound for tables indexed by ScalarType

constexpr int index_of(ScalarType t) { return static_cast<int>(t); }

namespace detail {
struct ScalarTypeInfo {
  std::string_view name;         // the Python name: float32
  std::string_view legacy_name;  // the name in error messages of PyTorch: Float
  uint8_t size;
  uint8_t category;  // 0 bool, 1 unsigned, 2 signed, 3 floating, 4 complex, 255 unused slot
};
inline constexpr ScalarTypeInfo kScalarTypes[kNumScalarTypeSlots] = {
    {"uint8", "Byte", 1, 1},
    {"int8", "Char", 1, 2},
    {"int16", "Short", 2, 2},
    {"int32", "Int", 4, 2},
    {"int64", "Long", 8, 2},
    {"float16", "Half", 2, 3},
    {"float32", "Float", 4, 3},
    {"float64", "Double", 8, 3},
    {"", "", 0, 255},
    {"complex64", "ComplexFloat", 8, 4},
    {"complex128", "ComplexDouble", 16, 4},
    {"bool", "Bool", 1, 0},
    {"", "", 0, 255},
    {"", "", 0, 255},
    {"", "", 0, 255},
    {"bfloat16", "BFloat16", 2, 3},
    {"", "", 0, 255},
    {"", "", 0, 255},
    {"", "", 0, 255},
    {"", "", 0, 255},
    {"", "", 0, 255},
    {"", "", 0, 255},
    {"", "", 0, 255},
    {"float8_e5m2", "Float8_e5m2", 1, 3},
    {"float8_e4m3fn", "Float8_e4m3fn", 1, 3},
    {"", "", 0, 255},
    {"", "", 0, 255},
    {"uint16", "UInt16", 2, 1},
    {"uint32", "UInt32", 4, 1},
    {"uint64", "UInt64", 8, 1},
};
}  // namespace detail

inline constexpr ScalarType kAllScalarTypes[] = {
    ScalarType::Bool,        ScalarType::UInt8,     ScalarType::UInt16,     ScalarType::UInt32,
    ScalarType::UInt64,      ScalarType::Int8,      ScalarType::Int16,      ScalarType::Int32,
    ScalarType::Int64,       ScalarType::Float16,   ScalarType::BFloat16,   ScalarType::Float32,
    ScalarType::Float64,     ScalarType::Complex64, ScalarType::Complex128, ScalarType::Float8E5M2,
    ScalarType::Float8E4M3FN};

constexpr size_t item_size(ScalarType t) { return detail::kScalarTypes[index_of(t)].size; }
constexpr std::string_view name(ScalarType t) { return detail::kScalarTypes[index_of(t)].name; }
constexpr std::string_view legacy_name(ScalarType t) {
  return detail::kScalarTypes[index_of(t)].legacy_name;
}
constexpr bool is_bool(ScalarType t) { return t == ScalarType::Bool; }
constexpr bool is_integral(ScalarType t, bool include_bool = false) {
  const uint8_t c = detail::kScalarTypes[index_of(t)].category;
  return c == 1 || c == 2 || (include_bool && c == 0);
}
constexpr bool is_unsigned(ScalarType t) { return detail::kScalarTypes[index_of(t)].category == 1; }
constexpr bool is_floating(ScalarType t) { return detail::kScalarTypes[index_of(t)].category == 3; }
constexpr bool is_complex(ScalarType t) { return detail::kScalarTypes[index_of(t)].category == 4; }
constexpr bool is_float8(ScalarType t) {
  return t == ScalarType::Float8E5M2 || t == ScalarType::Float8E4M3FN;
}
// float16, bfloat16: computed in float32.
constexpr bool is_reduced_floating(ScalarType t) {
  return t == ScalarType::Float16 || t == ScalarType::BFloat16;
}
constexpr bool is_differentiable(ScalarType t) { return is_floating(t) || is_complex(t); }
// The real type whose pairs make up a complex type; any other type itself.
constexpr ScalarType to_real(ScalarType t) {
  return t == ScalarType::Complex64    ? ScalarType::Float32
         : t == ScalarType::Complex128 ? ScalarType::Float64
                                       : t;
}
constexpr ScalarType to_complex(ScalarType t) {
  return t == ScalarType::Float64 || t == ScalarType::Complex128 ? ScalarType::Complex128
                                                                 : ScalarType::Complex64;
}
// The type in which arithmetic on t is done.
constexpr ScalarType compute_type(ScalarType t) {
  return is_reduced_floating(t) || is_float8(t) ? ScalarType::Float32 : t;
}

}  // namespace lamina
