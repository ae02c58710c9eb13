// What the kernels of images have in common: planes of a dense tensor, computed in one type.
#pragma once

#include "lamina/core/tensor.h"
#include "lamina/kernels/result.h"

namespace lamina {

// A row-major tensor to compute a result in: the result itself where it is one and has the type;
// finish() copies and converts otherwise.
class DenseResult {
 public:
  explicit DenseResult(const Tensor& result) : DenseResult(result, result.dtype()) {}
  DenseResult(const Tensor& result, ScalarType type)
      : result_(result),
        work_(result.is_contiguous() && result.dtype() == type
                  ? result
                  : empty_contiguous(result.sizes(), type, kCpu)) {}
  const Tensor& tensor() const { return work_; }
  void finish() const {
    if (!work_.is_same(result_)) copy_values(result_, work_);
  }

 private:
  const Tensor& result_;
  Tensor work_;
};

// Row-major, in the type that computes (float32 for float16 and bfloat16).
inline Tensor dense_values(const Tensor& t) {
  return contiguous_values(converted(t, compute_type(t.dtype())));
}

// Calls f with a value of the C++ type of `t`: float32 and float64, or complex as well.
template <class F>
void by_real(ScalarType t, F&& f) {
  if (t == ScalarType::Float64)
    f(double{});
  else
    f(float{});
}

// Sizes of the last `n` dimensions, right-aligned in three; `planes` counts what is before them.
struct Planes {
  int64_t planes = 1;
  std::array<int64_t, 3> size{1, 1, 1};
  int64_t count() const { return size[0] * size[1] * size[2]; }
  Planes(IntList sizes, int64_t n) {
    const auto dims = static_cast<int64_t>(sizes.size());
    for (int64_t i = 0; i < dims; ++i) {
      const int64_t s = sizes[static_cast<size_t>(i)];
      if (i < dims - n)
        planes *= s;
      else
        size[static_cast<size_t>(3 - dims + i)] = s;
    }
  }
};

}  // namespace lamina
