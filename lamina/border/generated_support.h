// What generated bindings are made of.
#pragma once

#include "lamina/border/arg_parser.h"
#include "lamina/border/generated.h"
#include "lamina/border/override.h"
#include "lamina/border/wrap.h"
#include "lamina/ops.h"

namespace lamina::border {

// A factory's requires_grad=.
Tensor with_requires_grad(Tensor t, bool requires_grad);
// Raises TypeError: none of the operands of a Scalar|Tensor operator is a tensor.
[[noreturn]] void raise_no_tensor(const ParsedArgs& r);
// The tensor in a slot, or the number there as a tensor without dimensions.
Tensor tensor_or_number(const ParsedArgs& r, int slot);
// Whether an argument is a plain Python number that fits in a Scalar. Others are for the parser.
inline bool is_plain_number(PyObject* o, Scalar& value) {
  if (PyFloat_CheckExact(o)) {
    value = PyFloat_AS_DOUBLE(o);
    return true;
  }
  if (!PyLong_CheckExact(o)) return false;
  int overflow = 0;
  value = static_cast<int64_t>(PyLong_AsLongLongAndOverflow(o, &overflow));
  return overflow == 0;
}
// Raises TypeError where out= has another number of tensors than the operator has results.
void check_out_count(size_t given, size_t expected, const char* op);

}  // namespace lamina::border
