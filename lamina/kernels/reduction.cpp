#include "lamina/kernels/reduction.h"

#include <cstring>

#include "lamina/core/defaults.h"
#include "lamina/core/error.h"
#include "lamina/event/event.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"
#include "lamina/shape/promotion.h"
#include "lamina/shape/reduce.h"

namespace lamina::kernels {

namespace {

constexpr int64_t kSmallReduction = 1024;

struct Plan {
  Tensor input;  // of the type to reduce in, where an explicit dtype asks for another
  ScalarType result;
  ScalarType accumulate;
  DimMask mask;
  Sizes kept_sizes;  // of the result
};

bool accepts(const Reduction& op, ScalarType t) {
  return op.categories & (is_bool(t)       ? kBool
                          : is_integral(t) ? kInteger
                          : is_complex(t)  ? kComplex
                                           : kFloating);
}

Plan plan(const Reduction& op, const Tensor& self, const ReductionArgs& args) {
  Plan p;
  p.input = self;
  ScalarType type = args.dtype.value_or(self.dtype());
  if (args.dtype.has_value() && op.accumulate == Accumulate::Float)
    LAMINA_CHECK(is_floating(type) || is_complex(type), op.name,
                 ": could not infer output dtype. Optional dtype must be either a floating point "
                 "or complex dtype. Got: ",
                 legacy_name(type));
  LAMINA_CHECK_KIND(
      op.accumulate == Accumulate::Float ? ErrorKind::Runtime : ErrorKind::NotImplemented,
      accepts(op, type), op.name,
      op.accumulate == Accumulate::Float
          ? ": could not infer output dtype. Input dtype must be either a floating point "
            "or complex dtype. Got: "
          : ": not implemented for this element type; got ",
      legacy_name(type));
  switch (op.accumulate) {
    case Accumulate::Self:
      p.result = type;
      break;
    case Accumulate::Sum:
      p.result = args.dtype ? type : is_integral(type, true) ? ScalarType::Int64 : type;
      break;
    case Accumulate::Float:
      p.result = op.kind == tile::Reduce::var || op.kind == tile::Reduce::std_dev ||
                         op.kind == tile::Reduce::norm2
                     ? to_real(type)
                     : type;
      break;
    case Accumulate::Bool:
      p.result = self.dtype() == ScalarType::UInt8 ? ScalarType::UInt8 : ScalarType::Bool;
      break;
    case Accumulate::Index:
      p.result = ScalarType::Int64;
      break;
  }
  // An explicit dtype converts before summing, unless the accumulator is at least as wide.
  p.accumulate = compute_type(op.accumulate == Accumulate::Sum ? p.result : type);
  LAMINA_CHECK((args.dims.has_value() && !args.dims->empty()) || self.numel() > 0 ||
                   (op.kind != tile::Reduce::amax && op.kind != tile::Reduce::amin),
               op.name,
               ": Expected reduction dim to be specified for input.numel() == 0. Specify the "
               "reduction dim with the "
               "'dim' argument.");
  p.mask = reduced_dims(self.dim(), args.dims, op.empty_is_all, op.name);
  p.kept_sizes = reduced_sizes(self.sizes(), p.mask, args.keepdim);
  return p;
}

void run(const Reduction& op, const Plan& p, const Tensor& out, const ReductionArgs& args);

// The variance of complex numbers is that of the real parts plus that of the imaginary parts.
void run_complex_variance(const Reduction& op, const Plan& p, const Tensor& out,
                          const ReductionArgs& args) {
  const Tensor in = contiguous_values(converted(p.input, to_complex(p.accumulate)));
  const ScalarType real = to_real(in.dtype());
  const Tensor parts = kernels::view_as_real(in);
  Reduction variance = op;
  variance.kind = tile::Reduce::var;
  Plan part = p;
  part.accumulate = real;
  Tensor sums[2];
  for (int i = 0; i < 2; ++i) {
    part.input = kernels::select(parts, -1, i);
    sums[i] = empty_contiguous(out.sizes(), real, kCpu);
    run(variance, part, sums[i], args);
  }
  tile::direct_loop(tile::Op::add, real)(sums[0].data(), sums[0].data(), sums[1].data(), nullptr,
                                         out.numel());
  if (op.kind == tile::Reduce::std_dev)
    tile::direct_loop(tile::Op::sqrt, real)(sums[0].data(), sums[0].data(), nullptr, nullptr,
                                            out.numel());
  copy_values(out, sums[0]);
}

void run(const Reduction& op, const Plan& p, const Tensor& out, const ReductionArgs& args) {
  if (out.is_meta()) return;
  if (is_complex(p.input.dtype()) &&
      (op.kind == tile::Reduce::var || op.kind == tile::Reduce::std_dev))
    return run_complex_variance(op, p, out, args);
  const Tensor& in = p.input;
  bool reduced[tile::kMaxDims];
  Sizes strides(static_cast<size_t>(in.dim()), 0);
  int64_t at = 0;
  for (int64_t i = 0; i < in.dim(); ++i) {
    reduced[i] = p.mask[i];
    if (!p.mask[i]) strides[i] = out.strides()[at];
    if (!p.mask[i] || args.keepdim) ++at;
  }
  tile::reduce({.kind = op.kind,
                .accumulate = p.accumulate,
                .ndim = static_cast<int>(in.dim()),
                .sizes = in.sizes().data(),
                .reduced = reduced,
                .input = {in.data(), in.dtype(), in.strides().data()},
                .out = {out.data(), out.dtype(), strides.data()},
                .out_index = {},
                .correction = args.correction});
}

// The result keeps the order in memory of the dimensions that stay, as a pointwise result does.
Tensor make_result(const Plan& p) {
  return empty_contiguous(p.kept_sizes, p.result, p.input.device());
}

}  // namespace

namespace {

// All of a small row-major tensor, in its own type: most losses end so. Undefined where the general
// way has something to do.
Tensor reduce_small(const Reduction& op, const Tensor& self, const ReductionArgs& args) {
  if (args.dims.has_value() || args.dtype.has_value() || args.keepdim || !self.is_contiguous() ||
      !self.device().is_cpu() || self.numel() == 0 || self.numel() > kSmallReduction)
    return {};
  const ScalarType type = self.dtype();
  const bool floats = type == ScalarType::Float32 || type == ScalarType::Float64;
  const bool fits = op.accumulate == Accumulate::Float
                        ? floats
                        : (op.accumulate == Accumulate::Sum || op.accumulate == Accumulate::Self) &&
                              (floats || type == ScalarType::Int64);
  if (!fits || !accepts(op, type)) return {};
  alignas(16) char value[16];
  if (!tile::reduce_leaf(op.kind, type, value, self.data(), self.numel())) return {};
  if (event::listening()) [[unlikely]]
    event::report({"direct fold", op.name, tile::isa_name().data(), self.numel()});
  Tensor out = empty_contiguous({}, type, kCpu);
  std::memcpy(out.data(), value, item_size(type));
  return out;
}

}  // namespace

Tensor reduction(const Reduction& op, const Tensor& self, const ReductionArgs& args) {
  if (Tensor small = reduce_small(op, self, args); small.defined()) return small;
  const Plan p = plan(op, self, args);
  Tensor out = make_result(p);
  run(op, p, out, args);
  return out;
}

void reduction_out(const Reduction& op, const Tensor& out, const Tensor& self,
                   const ReductionArgs& args) {
  ReductionArgs actual = args;
  if (!args.dtype && op.accumulate != Accumulate::Bool && op.accumulate != Accumulate::Index &&
      op.accumulate != Accumulate::Self && can_cast(self.dtype(), out.dtype()) &&
      (op.accumulate != Accumulate::Float || is_floating(out.dtype())) && !is_complex(self.dtype()))
    actual.dtype = out.dtype();
  const Plan p = plan(op, self, actual);
  if (args.dtype)
    LAMINA_CHECK(p.result == out.dtype(), op.name, ": Expected out tensor to have dtype ", p.result,
                 ", but got ", out.dtype(), " instead");
  prepare_out(out, p.kept_sizes, p.result, self.device(), op.name);
  check_no_internal_overlap(out, op.name);
  if (may_share_bytes(out, self)) {
    const Tensor fresh = make_result(p);
    run(op, p, fresh, actual);
    copy_values(out, fresh);
    return;
  }
  run(op, p, out, actual);
}

}  // namespace lamina::kernels
