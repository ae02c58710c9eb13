// The sum of two elements of any type: integers wrap, bool is "or", small floats round once.
#pragma once

#include <cstdint>
#include <type_traits>

#include "lamina/core/float_types.h"

namespace lamina::cpu {

template <class T>
T element_sum(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (is_small_float_type<T>)
    return T(static_cast<float>(a) + static_cast<float>(b));
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}

}  // namespace lamina::cpu
