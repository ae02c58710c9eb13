// Process-wide defaults that a user sets.
#pragma once

#include <atomic>

#include "lamina/core/scalar_type.h"

namespace lamina {

namespace detail {
// One variable for every shared library of the process.
[[gnu::visibility("default")]] inline std::atomic<ScalarType> default_dtype_value{
    ScalarType::Float32};
}  // namespace detail

// The type that a float without a type becomes: float16, bfloat16, float32 or float64.
inline ScalarType default_dtype() {
  return detail::default_dtype_value.load(std::memory_order_relaxed);
}
inline void set_default_dtype(ScalarType t) {
  detail::default_dtype_value.store(t, std::memory_order_relaxed);
}

}  // namespace lamina
