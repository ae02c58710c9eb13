// What generated bindings are made of.
#pragma once

#include "lamina/border/arg_parser.h"
#include "lamina/border/generated.h"
#include "lamina/border/wrap.h"
#include "lamina/ops.h"

namespace lamina::border {

// A factory's requires_grad=.
Tensor with_requires_grad(Tensor t, bool requires_grad);
// Raises TypeError: none of the operands of a Scalar|Tensor operator is a tensor.
[[noreturn]] void raise_no_tensor(const ParsedArgs& r);
// The tensor in a slot, or the number there as a tensor without dimensions.
Tensor tensor_or_number(const ParsedArgs& r, int slot);
// Raises TypeError where out= has another number of tensors than the operator has results.
void check_out_count(size_t given, size_t expected, const char* op);

}  // namespace lamina::border
