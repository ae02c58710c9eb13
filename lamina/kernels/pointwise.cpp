#include "lamina/kernels/pointwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "lamina/core/defaults.h"
#include "lamina/core/error.h"
#include "lamina/event/event.h"
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

inline bool accepts(const Pointwise& op, ScalarType t) {
  // By category: bool, unsigned, signed, floating, complex.
  constexpr uint8_t kBits[] = {kBool, kInteger, kInteger, kFloating, kComplex};
  return op.categories & kBits[lamina::detail::kScalarTypes[index_of(t)].category];
}

Types types_for(const Pointwise& op, ScalarType common) {
  // A real-classed input means that the program makes complex numbers of reals.
  if (op.promotion == Promotion::Float && is_integral(common, true)) common = default_dtype();
  if (op.program->classes[0] == tile::RegClass::R) common = to_complex(common);
  LAMINA_CHECK_IMPLEMENTED(accepts(op, common), "\"", op.name, "\" not implemented for '",
                           legacy_name(common), "'");
  const ScalarType compute = compute_type(common);
  ScalarType result = common;
  if (op.output_class == tile::RegClass::B || op.promotion == Promotion::Compare)
    result = ScalarType::Bool;
  if (op.output_class == tile::RegClass::R) result = to_real(common);
  return {compute, result};
}

constexpr int kMaxNumbers = 4;

// What a call computes with: the common type of its operands and its numbers, changed where the
// common type cannot hold a number that must count exactly.
struct Operands {
  ScalarType common;
  const Scalar* scalars;
  Scalar changed[kMaxNumbers];

  Operands(const Pointwise& op, const Tensor* const* inputs, const Scalar* given) : scalars(given) {
    if (op.promotion == Promotion::Compare && op.num_inputs == 2 &&
        is_integral(inputs[0]->dtype()) && is_integral(inputs[1]->dtype())) {
      // Integers are compared exactly: a tensor without dimensions counts as much as any other.
      common = promote_types(inputs[0]->dtype(), inputs[1]->dtype());
      return;
    }
    common = common_type(op, inputs, given);
    if (op.promoting_scalars == 0) return;
    ResultType tensors;
    for (int i = 0; i < op.num_inputs; ++i) tensors.add(*inputs[i]);
    const ScalarType own = tensors.get();
    if (!is_integral(own)) return;
    if (op.promotion == Promotion::Compare)
      compare_exactly(op, own);
    else if (op.saturates && is_integral(common))
      saturate(op);
  }

 private:
  // An integer tensor beside a number: whole numbers in reach are compared as the widest integers,
  // others as float64, where no integer comes near them by rounding; numbers beyond all integers
  // are infinite.
  void compare_exactly(const Pointwise& op, ScalarType own) {
    const bool natural = own == ScalarType::UInt64;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double low = natural ? 0.0 : -0x1p63, high = natural ? 0x1p64 : 0x1p63;
    const ScalarType widest = natural ? ScalarType::UInt64 : ScalarType::Int64;
    for (int i = 0; i < op.num_scalars; ++i) {
      const Scalar& v = scalars[i];
      changed[i] = v;
      if (v.is_integral()) {
        const bool beyond = v.kind() == Scalar::Kind::UInt && !natural;
        const bool below = natural && v.kind() == Scalar::Kind::Int && v.to_int() < 0;
        common = beyond || below ? ScalarType::Float64 : widest;
        if (beyond || below) changed[i] = beyond ? kInfinity : -kInfinity;
      } else if (v.is_floating()) {
        const double d = v.to_double();
        const bool whole = d == std::trunc(d) && d >= low && d < high;
        common = whole ? widest : ScalarType::Float64;
        if (whole)
          changed[i] = natural ? Scalar(static_cast<uint64_t>(d)) : Scalar(v.to_int());
        else if (d >= high)
          changed[i] = kInfinity;
        else if (d < low)
          changed[i] = -kInfinity;
      }
    }
    scalars = changed;
  }
  // Bounds outside of the type bound nothing: they become the type's own.
  void saturate(const Pointwise& op) {
    if (item_size(common) == 8) return;
    const int bits = static_cast<int>(item_size(common)) * 8 - (is_unsigned(common) ? 0 : 1);
    const int64_t high = (int64_t{1} << bits) - 1, low = is_unsigned(common) ? 0 : -high - 1;
    for (int i = 0; i < op.num_scalars; ++i)
      changed[i] = std::clamp(scalars[i].to_int(), low, high);
    scalars = changed;
  }
};

void check_unit_scalar(const Pointwise& op, ScalarType common, const Scalar* scalars) {
  if (!op.unit_is_alpha) return;
  const Scalar& alpha = scalars[op.unit_scalar];
  LAMINA_CHECK(is_bool(common) || !alpha.is_bool(), op.name,
               ": Boolean alpha only supported for Boolean results.");
  LAMINA_CHECK(!is_integral(common, true) || alpha.is_integral() || alpha.is_bool(), op.name,
               ": For integral input tensors, argument alpha must not be a floating point number.");
  LAMINA_CHECK(is_complex(common) || !alpha.is_complex(), op.name,
               ": For non-complex input tensors, argument alpha must not be a complex number.");
}

const tile::Program* choose_program(const Pointwise& op, const Scalar* scalars) {
  return op.unit_program && scalars[op.unit_scalar].equals(1) ? op.unit_program : op.program;
}

Sizes common_sizes(const Pointwise& op, const Tensor* const* inputs) {
  Sizes sizes{std::span<const int64_t>(inputs[0]->sizes())};
  for (int i = 1; i < op.num_inputs; ++i)
    if (inputs[i]->sizes() != IntList(sizes))
      sizes = broadcast_sizes(sizes, inputs[i]->sizes(), op.name);
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

Tensor make_result(const Pointwise& op, const Tensor* const* inputs, const Sizes& sizes,
                   ScalarType dtype) {
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

// Operands for which the general way has nothing to do: one shape, row-major, on the CPU, and one
// type that the operator computes in and no number changes.
struct Plain {
  const TensorImpl* first;
  ScalarType type;
  ScalarType result;
  int64_t numel;
  const void* sources[kMaxInputs + 1];  // with room for one number behind the tensors
};

inline bool same_shape(const TensorImpl* a, const TensorImpl* b) {
  const int64_t n = a->ndim();
  if (n != b->ndim()) return false;
  const int64_t *x = a->sizes_data(), *y = b->sizes_data();
  for (int64_t i = 0; i < n; ++i)
    if (x[i] != y[i]) return false;
  return true;
}

// Whether a number leaves the type of the tensors as it is: its category is not higher.
inline bool keeps_type(ScalarType type, const Scalar& number) {
  return number.is_floating()  ? is_floating(type) || is_complex(type)
         : number.is_complex() ? is_complex(type)
                               : number.is_bool() || !is_bool(type);
}

inline bool plain_operands(const Pointwise& op, const Tensor* const* inputs, const Scalar* scalars,
                           Plain& p) {
  const TensorImpl* first = inputs[0]->impl();
  p.numel = first->numel();
  if (!first->is_contiguous() || !first->device().is_cpu() || p.numel > kDirectLimit ||
      p.numel == 0)
    return false;
  p.first = first;
  const tile::RegClass* classes = op.program->classes;
  if (classes[0] == tile::RegClass::C) {
    p.type = first->dtype();
  } else {  // a condition goes before the operands
    if (classes[0] != tile::RegClass::B || op.num_inputs == 1 || !is_bool(first->dtype()))
      return false;
    p.type = inputs[1]->dtype();
  }
  if (!accepts(op, p.type)) return false;
  p.sources[0] = first->data();
  for (int i = 1; i < op.num_inputs; ++i) {
    const TensorImpl* t = inputs[i]->impl();
    if (t->dtype() != p.type || !t->is_contiguous() || t->device() != first->device() ||
        classes[i] != tile::RegClass::C || !same_shape(first, t))
      return false;
    p.sources[i] = t->data();
  }
  if (op.promotion == Promotion::Float && !is_differentiable(p.type)) return false;
  if (op.num_scalars > 0) {
    if (op.promoting_scalars != 0 && (op.promotion == Promotion::Compare || op.saturates) &&
        is_integral(p.type))
      return false;  // see Operands
    for (int i = 0; i < op.num_scalars; ++i)
      if ((op.promoting_scalars >> i & 1) && !keeps_type(p.type, scalars[i])) return false;
  }
  p.result = op.output_class == tile::RegClass::B   ? ScalarType::Bool
             : op.output_class == tile::RegClass::R ? to_real(p.type)
                                                    : p.type;
  return true;
}

inline bool is_one(const Scalar& v) {
  return v.kind() == Scalar::Kind::Int ? v.to_int() == 1 : v.equals(1);
}

// What the direct path runs: one loop over the operands, numbers behind the tensors as one element
// each.
struct Direct {
  tile::DirectLoop loop;
  tile::Op op;
  bool has_number = false;
  alignas(16) char number[16];

  void run(const Plain& p, void* out) const {
    const void* second = has_number ? number : p.sources[1];
    if (has_number && p.numel > 1)
      tile::direct_with_single(op, p.type, 2, out, p.sources[0], number, p.numel);
    else
      loop(out, p.sources[0], second, p.sources[2], p.numel);
  }
};

// Whether the operation on plain operands is one loop.
inline bool prepare_direct(const Pointwise& op, const Scalar* scalars, const Plain& p, Direct& d) {
  const bool unit = op.unit_scalar >= 0;
  if (unit ? !op.has_unit_direct || !is_one(scalars[op.unit_scalar]) : !op.has_direct) return false;
  d.op = unit ? op.unit_direct : op.direct;
  d.loop = tile::direct_loop(d.op, p.type);
  if (!d.loop) return false;
  if (const int numbers = op.num_scalars - (unit ? 1 : 0); numbers > 0) {
    if (numbers > 1 || op.num_inputs != 1) return false;
    tile::store_scalar(d.number, p.type, scalars[unit && op.unit_scalar == 0 ? 1 : 0]);
    d.has_number = true;
  }
  return true;
}

// A program over a few elements: registers on the stack, one direct loop an instruction. The
// machine's set-up (strides, blocks, chunks) would cost more than the work.
constexpr int64_t kSmallLimit = 16;
constexpr int kSmallRegisters = 12;

bool small_program_serves(const Pointwise& op, const tile::Program& program, const Plain& p) {
  if (p.numel > kSmallLimit || program.num_registers > kSmallRegisters ||
      program.num_outputs != 1 || program.num_instr == 0 || compute_type(p.type) != p.type ||
      op.output_class == tile::RegClass::R ||
      program.outputs[0] != program.code[program.num_instr - 1].dst)
    return false;
  for (int i = 0; i < program.num_registers; ++i)
    if (program.classes[i] == tile::RegClass::R) return false;
  for (int i = 0; i < program.num_instr; ++i)
    if (!tile::direct_loop(program.code[i].op, p.type)) return false;
  return true;
}

void run_small_program(const tile::Program& program, const Plain& p, void* out,
                       const Scalar* scalars) {
  alignas(64) char bytes[kSmallRegisters][kSmallLimit * 16];
  void* registers[kSmallRegisters];
  const size_t item = item_size(p.type);
  const int first_number = program.num_inputs,
            first_temporary = first_number + program.num_scalars + program.num_constants;
  for (int r = 0; r < program.num_registers; ++r) {
    registers[r] = r < first_number ? const_cast<void*>(p.sources[r]) : bytes[r];
    if (r < first_number || r >= first_temporary) continue;
    const int at = r - first_number;
    tile::store_scalar(
        bytes[r], p.type,
        at < program.num_scalars ? scalars[at] : program.constants[at - program.num_scalars]);
    for (int64_t i = 1; i < p.numel; ++i) std::memcpy(bytes[r] + i * item, bytes[r], item);
  }
  for (int i = 0; i < program.num_instr; ++i) {
    const tile::Instr& instr = program.code[i];
    void* target = i == program.num_instr - 1 ? out : registers[instr.dst];
    tile::direct_loop(instr.op, p.type)(target, registers[instr.a], registers[instr.b],
                                        registers[instr.c], p.numel);
  }
}

// Plain operands: the whole call, once `out` is there. `make_out` gives the target's address, null
// where the target is not plain.
template <class MakeOut>
inline bool run_plain(const Pointwise& op, const Tensor* const* inputs, const Scalar* scalars,
                      MakeOut&& make_out) {
  Plain p;
  if (!plain_operands(op, inputs, scalars, p)) return false;
  if (op.unit_is_alpha) check_unit_scalar(op, p.type, scalars);
  if (Direct d; prepare_direct(op, scalars, p, d)) {
    void* out = make_out(p);
    if (!out) return false;
    if (event::listening()) [[unlikely]]
      event::report(
          {"direct loop", tile::op_info(d.op).name.data(), tile::isa_name().data(), p.numel});
    d.run(p, out);
    return true;
  }
  if (p.numel > kSmallLimit) return false;
  const tile::Program& program = *choose_program(op, scalars);
  if (!small_program_serves(op, program, p)) return false;
  void* out = make_out(p);
  if (!out) return false;
  if (event::listening()) [[unlikely]]
    event::report({"direct loops", op.name, tile::isa_name().data(), p.numel});
  run_small_program(program, p, out, scalars);
  return true;
}

void run_program(const Pointwise& op, ScalarType compute, const Tensor& out,
                 const Tensor* const* inputs, const Scalar* scalars) {
  if (out.is_meta() || out.numel() == 0) return;
  const tile::Program& program = *choose_program(op, scalars);
  Sizes strides[kMaxInputs];
  tile::Operand ins[kMaxInputs];
  for (int i = 0; i < op.num_inputs; ++i) {
    const Tensor& t = *inputs[i];
    LAMINA_CHECK(!t.is_meta(), op.name,
                 ": an operand has no data; got a tensor on the meta device beside one on ",
                 out.device());
    if (t.sizes() == out.sizes()) {
      ins[i] = {t.data(), t.dtype(), t.strides().data()};
    } else {
      strides[i] = broadcast_strides(t.sizes(), t.strides(), out.sizes());
      ins[i] = {t.data(), t.dtype(), strides[i].data()};
    }
  }
  const tile::Operand target{out.data(), out.dtype(), out.strides().data()};
  tile::run({.program = &program,
             .compute = compute,
             .ndim = static_cast<int>(out.dim()),
             .sizes = out.sizes().data(),
             .outs = &target,
             .ins = ins,
             .scalars = scalars});
}

// The address of a target that plain operands may be computed into, else null: any bytes it shares
// with an operand are the operand's own.
void* plain_target(const Plain& p, const Tensor& out, const Tensor* const* inputs, int num_inputs) {
  const TensorImpl* t = out.impl();
  if (t->dtype() != p.result || !t->is_contiguous() || !t->device().is_cpu() ||
      !same_shape(t, p.first))
    return nullptr;
  void* data = t->data();
  for (int i = 0; i < num_inputs; ++i)
    if (inputs[i]->storage() == t->storage() && p.sources[i] != data) return nullptr;
  return data;
}

}  // namespace

Tensor pointwise(const Pointwise& op, const Tensor* const* inputs, const Scalar* scalars) {
  Tensor out;
  if (run_plain(op, inputs, scalars, [&](const Plain& p) {
        out = empty_contiguous(p.first->sizes(), p.result, kCpu);
        return out.data();
      }))
    return out;
  if (compares_mixed_signs(op, inputs)) return compare_mixed_signs(op, inputs);
  const Operands operands(op, inputs, scalars);
  check_unit_scalar(op, operands.common, scalars);
  const Types types = types_for(op, operands.common);
  const ScalarType dtype = op.promotion == Promotion::Keep ? inputs[0]->dtype() : types.result;
  const Sizes sizes = common_sizes(op, inputs);
  out = make_result(op, inputs, sizes, dtype);
  run_program(op, types.compute, out, inputs, operands.scalars);
  return out;
}

void pointwise_out(const Pointwise& op, const Tensor& out, const Tensor* const* inputs,
                   const Scalar* scalars) {
  if (run_plain(op, inputs, scalars,
                [&](const Plain& p) { return plain_target(p, out, inputs, op.num_inputs); }))
    return;
  if (compares_mixed_signs(op, inputs)) {
    const Tensor result = compare_mixed_signs(op, inputs);
    prepare_out(out, result.sizes(), result.dtype(), result.device(), op.name);
    check_no_internal_overlap(out, op.name);
    return copy_values(out, result);
  }
  const Operands operands(op, inputs, scalars);
  check_unit_scalar(op, operands.common, scalars);
  const Types types = types_for(op, operands.common);
  const Sizes sizes = common_sizes(op, inputs);
  prepare_out(out, sizes, types.result, device_of(op, inputs), op.name);
  check_no_internal_overlap(out, op.name);
  for (int i = 0; i < op.num_inputs; ++i) check_no_partial_overlap(out, *inputs[i], op.name);
  run_program(op, types.compute, out, inputs, operands.scalars);
}

void pointwise_inplace(const Pointwise& op, const Tensor* const* inputs, const Scalar* scalars) {
  const Tensor& self = *inputs[0];
  if (run_plain(op, inputs, scalars,
                [&](const Plain& p) { return plain_target(p, self, inputs, op.num_inputs); }))
    return;
  if (compares_mixed_signs(op, inputs)) {
    const Tensor result = compare_mixed_signs(op, inputs);
    prepare_inplace(self, result.sizes(), result.dtype(), op.name);
    check_no_internal_overlap(self, op.name);
    return copy_values(self, result);
  }
  const Operands operands(op, inputs, scalars);
  check_unit_scalar(op, operands.common, scalars);
  const Types types = types_for(op, operands.common);
  // The sizes first: an operand that does not broadcast at all is the more basic fault.
  const Sizes sizes = common_sizes(op, inputs);
  prepare_inplace(self, sizes, types.result, op.name);
  check_no_internal_overlap(self, op.name);
  for (int i = 1; i < op.num_inputs; ++i) check_no_partial_overlap(self, *inputs[i], op.name);
  run_program(op, types.compute, self, inputs, operands.scalars);
}

}  // namespace lamina::kernels
