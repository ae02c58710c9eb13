// Every type that can stand in an operator's signature. Generated headers include this and nothing
// else.
#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "lamina/core/device.h"
#include "lamina/core/generator.h"
#include "lamina/core/scalar.h"
#include "lamina/core/tensor.h"

namespace lamina::dispatch {
class Operator;
}
