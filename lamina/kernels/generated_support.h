// What the generated kernels are made of.
#pragma once

#include "lamina/core/error.h"
#include "lamina/dispatch/signature_types.h"
#include "lamina/kernels/pointwise.h"
#include "lamina/kernels/reduction.h"
#include "lamina/kernels/result.h"
#include "lamina/shape/result_meta.h"

namespace lamina {

inline Tensor make_result(const ResultMeta& meta) {
  if (meta.format != MemoryFormat::Contiguous) [[unlikely]]
    return empty_strided(meta.sizes, strides_for(meta.sizes, meta.format), meta.dtype, meta.device);
  return empty_contiguous(meta.sizes, meta.dtype, meta.device);
}

// The tensor that a kernel writes for an out= or in-place target: the target itself where it is
// contiguous, has the result's type and shares no bytes with an input; else a fresh one that
// finish() copies over.
class Target {
 public:
  Target(const Tensor& out, const ResultMeta& meta, std::initializer_list<const Tensor*> inputs,
         bool inplace, const char* op);
  const Tensor& tensor() const { return work_; }
  void finish() const;

 private:
  const Tensor& out_;
  Tensor work_;
};

// Before a kernel that reads bytes: raises Runtime for operands on the meta device, which have
// none.
void check_readable(std::initializer_list<const Tensor*> tensors, const char* op);
void check_readable(TensorList tensors, const char* op);

// Resizes `out` to the result's sizes and copies it over, converting.
void write_result(const Tensor& out, const Tensor& result, const char* op);
// Writes a composite's result into `self` by copy_, recorded; sizes and type must fit.
Tensor write_inplace(const Tensor& self, const Tensor& result, const char* op);
// What a composite that is written back into self is computed from: a copy where it is recorded,
// since what it saves would be overwritten.
Tensor value_before_write(const Tensor& self);
// A copy that keeps the layout.
Tensor copy_of(const Tensor& t);
// Gives `self` the window of `view` (in-place view operators).
void take_window(const Tensor& self, const Tensor& view);

// Sizes in check: and shape: expressions.
inline int64_t dim(const Tensor& t) { return t.dim(); }
inline int64_t size(const Tensor& t, int64_t d) { return t.size(d); }
inline int64_t numel(const Tensor& t) { return t.numel(); }
inline ScalarType dtype(const Tensor& t) { return t.dtype(); }
inline IntList sizes(const Tensor& t) { return t.sizes(); }
inline bool is_floating_point(const Tensor& t) { return is_floating(t.dtype()); }
inline bool is_complex(const Tensor& t) { return is_complex(t.dtype()); }
inline bool is_differentiable(const Tensor& t) {
  return is_floating(t.dtype()) || is_complex(t.dtype());
}
inline bool is_integral(const Tensor& t) { return is_integral(t.dtype(), true); }
inline bool is_index(const Tensor& t) {
  return t.dtype() == ScalarType::Int64 || t.dtype() == ScalarType::Int32;
}
inline bool is_not_bool(const Tensor& t) { return t.dtype() != ScalarType::Bool; }
inline bool is_bool(const Tensor& t) { return t.dtype() == ScalarType::Bool; }

// --- conditions of check: ---
inline bool integer_power_ok(const Tensor& base, const Scalar& exponent) {
  return !lamina::is_integral(base.dtype(), true) || !exponent.is_integral() ||
         exponent.to_int() >= 0;
}
template <class A, class B>
bool integer_power_ok(const A&, const B&) {
  return true;
}
inline bool both_integral(const Tensor& a, const Tensor& b) {
  return lamina::is_integral(a.dtype(), true) && lamina::is_integral(b.dtype(), true);
}
inline ScalarType float16() { return ScalarType::Float16; }
inline ScalarType float32() { return ScalarType::Float32; }
inline ScalarType float64() { return ScalarType::Float64; }
// Whether a tensor broadcasts to the given sizes.
bool expandable1(const Tensor& t, int64_t a);
bool expandable2(const Tensor& t, int64_t a, int64_t b);
bool expandable3(const Tensor& t, int64_t a, int64_t b, int64_t c);
bool scatter_value_fits(const Tensor& self, int64_t dim, const Tensor& index);
bool scatter_fits(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);

}  // namespace lamina
