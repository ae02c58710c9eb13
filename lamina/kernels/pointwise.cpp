#include "lamina/kernels/pointwise.h"

#include <cstring>

#include "lamina/core/defaults.h"
#include "lamina/core/error.h"
#include "lamina/kernels/result.h"
#include "lamina/shape/broadcast.h"
#include "lamina/shape/promotion.h"

namespace lamina::kernels {

namespace {

constexpr int kMaxInputs = 4;

struct Types {
  ScalarType compute;  // in which the program runs
  ScalarType result;
};

ScalarType common_type(const Pointwise& op, const Tensor* const* inputs, const Scalar* scalars) {
  ResultType result;
  for (int i = 0; i < op.num_inputs; ++i)
    // A condition (class B) decides nothing, unless there is nothing else.
    if (op.program->classes[i] != tile::RegClass::B || op.num_inputs == 1) result.add(*inputs[i]);
  for (int i = 0; i < op.num_scalars; ++i)
    if (op.promoting_scalars >> i & 1) result.add(scalars[i]);
  return result.get();
}

char category(ScalarType t) {
  return is_bool(t) ? 'b' : is_integral(t) ? 'i' : is_complex(t) ? 'c' : 'f';
}

Types types_for(const Pointwise& op, ScalarType common) {
  // A real-classed input means that the program makes complex numbers of reals.
  if (op.promotion == Promotion::Float && is_integral(common, true)) common = default_dtype();
  if (op.program->classes[0] == tile::RegClass::R) common = to_complex(common);
  LAMINA_CHECK_IMPLEMENTED(std::strchr(op.categories, category(common)) != nullptr, "\"", op.name,
                           "\" not implemented for '", legacy_name(common), "'");
  const ScalarType compute = compute_type(common);
  ScalarType result = common;
  if (op.output_class == tile::RegClass::B || op.promotion == Promotion::Compare) result = ScalarType::Bool;
  if (op.output_class == tile::RegClass::R) result = to_real(common);
  return {compute, result};
}

// Exact comparisons: a number that the operands' integer type cannot hold is compared in int64.
ScalarType widen_for_scalar(const Pointwise& op, ScalarType common, const Scalar* scalars) {
  if (op.promotion != Promotion::Compare || !is_integral(common) || op.promoting_scalars == 0) return common;
  for (int i = 0; i < op.num_scalars; ++i) {
    if (!(op.promoting_scalars >> i & 1) || scalars[i].kind() != Scalar::Kind::Int) continue;
    const int64_t v = scalars[i].to_int();
    const int bits = static_cast<int>(item_size(common)) * 8;
    const bool fits = is_unsigned(common) ? v >= 0 && (bits == 64 || v < (int64_t{1} << bits))
                                          : bits == 64 || (v >= -(int64_t{1} << (bits - 1)) && v < (int64_t{1} << (bits - 1)));
    if (!fits && common != ScalarType::UInt64) return ScalarType::Int64;
  }
  return common;
}

void check_unit_scalar(const Pointwise& op, ScalarType common, const Scalar* scalars) {
  if (!op.unit_is_alpha) return;
  const Scalar& alpha = scalars[op.unit_scalar];
  LAMINA_CHECK(is_bool(common) || !alpha.is_bool(), op.name, ": Boolean alpha only supported for Boolean results.");
  LAMINA_CHECK(!is_integral(common, true) || alpha.is_integral() || alpha.is_bool(), op.name,
               ": For integral input tensors, argument alpha must not be a floating point number.");
  LAMINA_CHECK(is_complex(common) || !alpha.is_complex(), op.name,
               ": For non-complex input tensors, argument alpha must not be a complex number.");
}

const tile::Program* choose_program(const Pointwise& op, const Scalar* scalars) {
  return op.unit_program && scalars[op.unit_scalar].equals(1) ? op.unit_program : op.program;
}

void run_program(const Pointwise& op, ScalarType compute, const Tensor& out, const Tensor* const* inputs,
                 const Scalar* scalars) {
  if (out.is_meta() || out.numel() == 0) return;
  Sizes strides[kMaxInputs];
  tile::Operand ins[kMaxInputs];
  for (int i = 0; i < op.num_inputs; ++i) {
    const Tensor& t = *inputs[i];
    LAMINA_CHECK(!t.is_meta(), op.name, ": an operand has no data; got a tensor on the meta device beside one on ",
                 out.device());
    if (t.sizes() == out.sizes()) {
      ins[i] = {t.data(), t.dtype(), t.strides().data()};
    } else {
      strides[i] = broadcast_strides(t.sizes(), t.strides(), out.sizes());
      ins[i] = {t.data(), t.dtype(), strides[i].data()};
    }
  }
  const tile::Operand target{out.data(), out.dtype(), out.strides().data()};
  tile::run({.program = choose_program(op, scalars),
             .compute = compute,
             .ndim = static_cast<int>(out.dim()),
             .sizes = out.sizes().data(),
             .outs = &target,
             .ins = ins,
             .scalars = scalars});
}

Sizes common_sizes(const Pointwise& op, const Tensor* const* inputs) {
  Sizes sizes{std::span<const int64_t>(inputs[0]->sizes())};
  for (int i = 1; i < op.num_inputs; ++i)
    if (inputs[i]->sizes() != IntList(sizes)) sizes = broadcast_sizes(sizes, inputs[i]->sizes(), op.name);
  return sizes;
}

Device device_of(const Pointwise& op, const Tensor* const* inputs) {
  switch (op.num_inputs) {
    case 1:
      return inputs[0]->device();
    case 2:
      return common_device({inputs[0], inputs[1]}, op.name);
    case 3:
      return common_device({inputs[0], inputs[1], inputs[2]}, op.name);
    default:
      return common_device({inputs[0], inputs[1], inputs[2], inputs[3]}, op.name);
  }
}

Tensor make_result(const Pointwise& op, const Tensor* const* inputs, const Sizes& sizes, ScalarType dtype) {
  const Device device = device_of(op, inputs);
  bool contiguous = true, same_layout = true;
  for (int i = 0; i < op.num_inputs; ++i) {
    const Tensor& t = *inputs[i];
    contiguous &= t.is_contiguous() && t.sizes() == IntList(sizes);
    same_layout &= t.sizes() == IntList(sizes) && t.strides() == inputs[0]->strides();
  }
  if (contiguous) return empty_contiguous(sizes, dtype, device);
  if (same_layout && inputs[0]->is_non_overlapping_and_dense()) {
    bool plain = true;
    for (const int64_t s : inputs[0]->strides()) plain &= s >= 0;
    if (plain) return empty_strided(sizes, inputs[0]->strides(), dtype, device);
  }
  Sizes strides[kMaxInputs];
  for (int i = 0; i < op.num_inputs; ++i)
    strides[i] = broadcast_strides(inputs[i]->sizes(), inputs[i]->strides(), sizes);
  return empty_strided(sizes, result_strides(sizes, {strides, op.num_inputs}), dtype, device);
}

// Small contiguous operands of one type: no program, no strides.
constexpr int64_t kDirectLimit = tile::kParallelGrain;

Tensor direct(const Pointwise& op, const Tensor* const* inputs, const Scalar* scalars) {
  const Tensor& a = *inputs[0];
  const TensorImpl* ia = a.impl();
  const ScalarType type = ia->dtype();
  if (!ia->is_contiguous() || !ia->device().is_cpu() || ia->numel() > kDirectLimit || ia->numel() == 0) return {};
  const bool unit = op.unit_scalar >= 0;
  if (unit && !scalars[op.unit_scalar].equals(1)) return {};
  if (unit ? !op.has_unit_direct : !op.has_direct) return {};
  const tile::Op code = unit ? op.unit_direct : op.direct;
  for (int i = 0; i < op.num_inputs; ++i) {
    if (op.program->classes[i] != tile::RegClass::C) return {};
    if (i == 0) continue;
    const TensorImpl* other = inputs[i]->impl();
    if (other->dtype() != type || !other->is_contiguous() || other->device() != ia->device() ||
        other->sizes() != ia->sizes())
      return {};
  }
  if (op.promotion == Promotion::Float && !is_floating(type) && !is_complex(type)) return {};
  if (std::strchr(op.categories, category(type)) == nullptr) return {};
  const tile::DirectLoop loop = tile::direct_loop(code, type);
  if (!loop) return {};
  if (unit) check_unit_scalar(op, type, scalars);
  // Numbers beside the tensors, one element each.
  const int extra = op.num_scalars - (unit ? 1 : 0);
  const int64_t n = ia->numel();
  alignas(16) char number[2][16];
  const void* sources[3] = {nullptr, nullptr, nullptr};
  for (int i = 0; i < op.num_inputs; ++i) sources[i] = inputs[i]->data();
  if (extra > 0) {
    if (op.num_inputs + extra > 2) return {};
    ResultType result;
    result.add(a);
    for (int i = 0, k = 0; i < op.num_scalars; ++i) {
      if (unit && i == op.unit_scalar) continue;
      if (op.promoting_scalars >> i & 1) result.add(scalars[i]);
      tile::store_scalar(number[k], type, scalars[i]);
      sources[op.num_inputs + k] = number[k];
      ++k;
    }
    if (result.get() != type) return {};
    if (op.promotion == Promotion::Compare && is_integral(type)) return {};  // exactness is decided elsewhere
  }
  const ScalarType out_type = op.output_class == tile::RegClass::B   ? ScalarType::Bool
                              : op.output_class == tile::RegClass::R ? to_real(type)
                                                                     : type;
  Tensor out = empty_contiguous(ia->sizes(), out_type, kCpu);
  if (extra > 0 && n > 1)
    tile::direct_with_single(code, type, 2, out.data(), sources[0], sources[1], n);
  else
    loop(out.data(), sources[0], sources[1], sources[2], n);
  return out;
}

}  // namespace

Tensor pointwise(const Pointwise& op, const Tensor* const* inputs, const Scalar* scalars) {
  if (op.has_direct || op.has_unit_direct)
    if (Tensor out = direct(op, inputs, scalars); out.defined()) return out;
  const ScalarType common = common_type(op, inputs, scalars);
  check_unit_scalar(op, common, scalars);
  const Types types = types_for(op, widen_for_scalar(op, common, scalars));
  const ScalarType dtype = op.promotion == Promotion::Keep ? inputs[0]->dtype() : types.result;
  const Sizes sizes = common_sizes(op, inputs);
  Tensor out = make_result(op, inputs, sizes, dtype);
  run_program(op, types.compute, out, inputs, scalars);
  return out;
}

void pointwise_out(const Pointwise& op, const Tensor& out, const Tensor* const* inputs, const Scalar* scalars) {
  const ScalarType common = common_type(op, inputs, scalars);
  check_unit_scalar(op, common, scalars);
  const Types types = types_for(op, widen_for_scalar(op, common, scalars));
  const Sizes sizes = common_sizes(op, inputs);
  prepare_out(out, sizes, types.result, device_of(op, inputs), op.name);
  check_no_internal_overlap(out, op.name);
  for (int i = 0; i < op.num_inputs; ++i) check_no_partial_overlap(out, *inputs[i], op.name);
  run_program(op, types.compute, out, inputs, scalars);
}

void pointwise_inplace(const Pointwise& op, const Tensor* const* inputs, const Scalar* scalars) {
  const Tensor& self = *inputs[0];
  const ScalarType common = common_type(op, inputs, scalars);
  check_unit_scalar(op, common, scalars);
  const Types types = types_for(op, widen_for_scalar(op, common, scalars));
  // The sizes first: an operand that does not broadcast at all is the more basic fault.
  const Sizes sizes = common_sizes(op, inputs);
  prepare_inplace(self, sizes, types.result, op.name);
  check_no_internal_overlap(self, op.name);
  for (int i = 1; i < op.num_inputs; ++i) check_no_partial_overlap(self, *inputs[i], op.name);
  run_program(op, types.compute, self, inputs, scalars);
}

}  // namespace lamina::kernels
