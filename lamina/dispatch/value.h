// A boxed argument or result, for callers that do not know an operator's signature.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lamina/core/device.h"
#include "lamina/core/generator.h"
#include "lamina/core/scalar.h"
#include "lamina/core/tensor.h"

namespace lamina::dispatch {

using Value =
    std::variant<std::monostate, Tensor, Scalar, int64_t, double, bool, std::string,
                 std::vector<int64_t>, std::vector<double>, std::vector<bool>, std::vector<Tensor>,
                 std::vector<Scalar>, ScalarType, Device, Layout, MemoryFormat, Generator>;

// Arguments in order of the schema; a boxed kernel replaces them by its results.
using Stack = std::vector<Value>;

// Union of the keys of every tensor on the stack.
KeySet keys_of(const Stack& stack);

}  // namespace lamina::dispatch
