// Arrays that kernels for float and double work on, whatever the types and layouts of the tensors.
#pragma once

#include "lamina/kernels/result.h"

namespace lamina::kernels {

// Calls f(double{}) or f(float{}) for the type that computes.
template <class F>
void by_float(ScalarType type, F&& f) {
  if (type == ScalarType::Float64)
    f(double{});
  else
    f(float{});
}

// An operand row-major and of `type`; undefined where it is.
inline Tensor readable(const Tensor& t, ScalarType type) {
  return t.defined() ? contiguous_values(converted(t, type)) : Tensor();
}

// Where a kernel writes: the result itself, or an array of the computing type that finish() copies.
class Written {
 public:
  Written(const Tensor& result, ScalarType type, bool wanted = true) : result_(result) {
    if (!wanted) return;
    work_ = result.dtype() == type && result.is_contiguous()
                ? result
                : empty_contiguous(result.sizes(), type, kCpu);
  }
  void* data() const { return work_.defined() ? work_.data() : nullptr; }
  const Tensor& tensor() const { return work_; }
  void finish() const {
    if (work_.defined() && !work_.is_same(result_)) copy_values(result_, work_);
  }

 private:
  const Tensor& result_;
  Tensor work_;
};

}  // namespace lamina::kernels
