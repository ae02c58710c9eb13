// What the forms of a normalization agree on.
#pragma once

#include <limits>
#include <optional>

#include "lamina/core/scalar_type.h"

namespace lamina {

// What rms_norm adds to the mean of squares: `eps`, else the machine epsilon of the real type that
// computes.
inline double rms_epsilon(ScalarType type, std::optional<double> eps) {
  const bool wide = to_real(compute_type(type)) == ScalarType::Float64;
  return eps.value_or(wide ? std::numeric_limits<double>::epsilon()
                           : double(std::numeric_limits<float>::epsilon()));
}

}  // namespace lamina
