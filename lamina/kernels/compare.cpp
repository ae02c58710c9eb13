// Comparisons of uint64 with signed integers: no type holds both, so elements are compared as they
// are.
#include <utility>

#include "lamina/core/float_types.h"
#include "lamina/kernels/pointwise.h"
#include "lamina/kernels/result.h"
#include "lamina/shape/broadcast.h"

namespace lamina::kernels {

namespace {

bool is_comparison(tile::Op op) {
  switch (op) {
    case tile::Op::eq:
    case tile::Op::ne:
    case tile::Op::lt:
    case tile::Op::le:
    case tile::Op::gt:
    case tile::Op::ge:
      return true;
    default:
      return false;
  }
}

// `order` of two elements: below, at or above zero.
bool holds(tile::Op op, int order) {
  switch (op) {
    case tile::Op::eq:
      return order == 0;
    case tile::Op::ne:
      return order != 0;
    case tile::Op::lt:
      return order < 0;
    case tile::Op::le:
      return order <= 0;
    case tile::Op::gt:
      return order > 0;
    default:
      return order >= 0;
  }
}

Tensor spread(const Tensor& t, IntList sizes, ScalarType dtype) {
  Tensor out = empty_contiguous(sizes, dtype, kCpu);
  copy_values(out, t);
  return out;
}

}  // namespace

bool compares_mixed_signs(const Pointwise& op, const Tensor* const* inputs) {
  if (op.promotion != Promotion::Compare || op.num_inputs != 2 || op.program->num_instr != 1 ||
      !is_comparison(op.program->code[0].op))
    return false;
  const ScalarType a = inputs[0]->dtype(), b = inputs[1]->dtype();
  const auto is_signed = [](ScalarType t) { return is_integral(t) && !is_unsigned(t); };
  return (a == ScalarType::UInt64 && is_signed(b)) || (b == ScalarType::UInt64 && is_signed(a));
}

Tensor compare_mixed_signs(const Pointwise& op, const Tensor* const* inputs) {
  const Sizes sizes = broadcast_sizes(inputs[0]->sizes(), inputs[1]->sizes(), op.name);
  const Device device = common_device({inputs[0], inputs[1]}, op.name);
  Tensor out = empty_contiguous(sizes, ScalarType::Bool, device);
  if (out.is_meta() || out.numel() == 0) return out;
  const bool swapped = inputs[0]->dtype() != ScalarType::UInt64;
  const Tensor natural = spread(*inputs[swapped], sizes, ScalarType::UInt64),
               whole = spread(*inputs[!swapped], sizes, ScalarType::Int64);
  const auto* u = natural.data_as<uint64_t>();
  const auto* s = whole.data_as<int64_t>();
  auto* to = static_cast<uint8_t*>(out.data());
  const tile::Op compare = op.program->code[0].op;
  for (int64_t i = 0; i < out.numel(); ++i) {
    const int order = std::cmp_greater(u[i], s[i]) ? 1 : std::cmp_equal(u[i], s[i]) ? 0 : -1;
    to[i] = holds(compare, swapped ? -order : order);
  }
  return out;
}

}  // namespace lamina::kernels
