// New tensors, copies and constants.
#include "lamina/core/defaults.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"
#include "lamina/queue/parallel.h"
#include "lamina/shape/promotion.h"
#include "lamina/tile/tile.h"

namespace lamina::kernels {

namespace {

void check_layout(std::optional<Layout> layout, std::optional<bool> pin_memory, const char* op) {
  LAMINA_CHECK(!layout || *layout == Layout::Strided, op, ": only the strided layout has a kernel");
  LAMINA_CHECK(!pin_memory.value_or(false), op,
               ": pinned memory needs an accelerator; Lamina was built without CUDA");
}

tile::Operand operand(const Tensor& t) { return {t.data(), t.dtype(), t.strides().data()}; }

Tensor empty_in_format(const Tensor& like, ScalarType dtype, Device device, MemoryFormat format) {
  if (format == MemoryFormat::Preserve) {
    if (device == like.device()) return empty_preserving(like, dtype);
    const Tensor shape_only = empty_preserving(like, dtype);
    return lamina::empty_strided(shape_only.sizes(), shape_only.strides(), dtype, device);
  }
  return lamina::empty_strided(like.sizes(), strides_for(like.sizes(), format), dtype, device);
}

}  // namespace

Tensor empty(IntList size, std::optional<ScalarType> dtype, std::optional<Layout> layout,
             std::optional<Device> device, std::optional<bool> pin_memory,
             std::optional<MemoryFormat> memory_format) {
  check_layout(layout, pin_memory, "empty");
  const MemoryFormat format = memory_format.value_or(MemoryFormat::Contiguous);
  LAMINA_CHECK(
      format != MemoryFormat::Preserve,
      "empty: memory format option is only supported by tensors that have a layout to preserve");
  if (format == MemoryFormat::Contiguous)
    return empty_contiguous(size, dtype.value_or(default_dtype()), device.value_or(kCpu));
  return lamina::empty_strided(size, strides_for(size, format), dtype.value_or(default_dtype()),
                               device.value_or(kCpu));
}

Tensor empty_strided_op(IntList size, IntList stride, std::optional<ScalarType> dtype,
                        std::optional<Layout> layout, std::optional<Device> device,
                        std::optional<bool> pin_memory) {
  check_layout(layout, pin_memory, "empty_strided");
  return lamina::empty_strided(size, stride, dtype.value_or(default_dtype()),
                               device.value_or(kCpu));
}

Tensor empty_like(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                  std::optional<Device> device, std::optional<bool> pin_memory,
                  std::optional<MemoryFormat> memory_format) {
  check_layout(layout, pin_memory, "empty_like");
  return empty_in_format(self, dtype.value_or(self.dtype()), device.value_or(self.device()),
                         memory_format.value_or(MemoryFormat::Preserve));
}

void range(const Tensor& result, const Scalar& start, const Scalar& step, int64_t count, ScalarType,
           Device) {
  // Computed in the widest type of the kind; each element from its index, so that errors do not add
  // up.
  const auto fill = [&](auto zero, auto from, auto by) {
    using T = decltype(zero);
    const Tensor wide =
        result.dtype() == (std::is_same_v<T, double> ? ScalarType::Float64 : ScalarType::Int64)
            ? result
            : empty_contiguous(result.sizes(),
                               std::is_same_v<T, double> ? ScalarType::Float64 : ScalarType::Int64,
                               kCpu);
    T* out = wide.data_as<T>();
    queue::parallel_for(0, count, 32768, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        if constexpr (std::is_same_v<T, double>)
          out[i] = from + static_cast<double>(i) * by;
        else
          out[i] = static_cast<T>(static_cast<uint64_t>(from) +
                                  static_cast<uint64_t>(i) * static_cast<uint64_t>(by));
      }
    });
    if (!wide.is_same(result)) copy_values(result, wide);
  };
  if (count == 0) return;
  if (is_integral(result.dtype(), true))
    fill(int64_t{}, start.to_int(), step.to_int());
  else
    fill(double{}, start.to_double(), step.to_double());
}

void fill(const Tensor& self, const Scalar& value) {
  LAMINA_CHECK(number_fits(value, self.dtype()), "fill_: value cannot be converted to type ",
               name(self.dtype()), " without overflow; got ",
               value.is_integral() ? str(value.to_int()) : str(value.to_double()));
  if (self.is_meta() || self.numel() == 0) return;
  if (self.numel() == 1) return tile::store_scalar(self.data(), self.dtype(), value);
  tile::fill(operand(self), static_cast<int>(self.dim()), self.sizes().data(), value);
}

void fill(const Tensor& self, const Tensor& value) {
  LAMINA_CHECK(value.dim() == 0,
               "fill_: fill_ only supports 0-dimension value tensor but got tensor with ",
               value.dim(), " dimensions.");
  copy_values(self, value);
}

void zero(const Tensor& self) { zero_bytes(self); }

void copy(const Tensor& self, const Tensor& src, bool) {
  LAMINA_CHECK(src.dim() <= self.dim() || src.numel() == 1,
               "copy_: The size of tensor a must broadcast; got ", self, " and ", src);
  const Tensor expanded = kernels::expand(
      src.dim() > self.dim() ? kernels::view(src, {1}) : src,
      src.dim() > self.dim() && self.dim() == 0 ? IntList({1}) : self.sizes(), false);
  if (self.is_meta()) return;
  LAMINA_CHECK(!src.is_meta(), "copy_: Cannot copy out of meta tensor; no data!");
  if (self.is_same(src) || same_window(self, src)) return;
  if (may_share_bytes(self, src)) {
    Tensor fresh = empty_contiguous(expanded.sizes(), src.dtype(), src.device());
    copy_values(fresh, expanded);
    copy_values(self, fresh);
    return;
  }
  copy_values(self, src.dim() > self.dim() && self.dim() == 0 ? kernels::view(src, {}) : expanded);
}

Tensor clone(const Tensor& self, std::optional<MemoryFormat> memory_format) {
  Tensor out = empty_in_format(self, self.dtype(), self.device(),
                               memory_format.value_or(MemoryFormat::Preserve));
  copy_values(out, self);
  return out;
}

Tensor tied(const Tensor& self, const Tensor&) { return clone(self, std::nullopt); }

Tensor to_copy(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Device> device,
               std::optional<MemoryFormat> memory_format) {
  const Device target = device.value_or(self.device());
  LAMINA_CHECK_IMPLEMENTED(!self.is_meta() || target.is_meta(),
                           "to: Cannot copy out of meta tensor; no data!");
  Tensor out = empty_in_format(self, dtype.value_or(self.dtype()), target,
                               memory_format.value_or(MemoryFormat::Preserve));
  copy_values(out, self);
  return out;
}

void resize_window(const Tensor& self, IntList size) { resize(self, size, "resize_"); }

}  // namespace lamina::kernels
