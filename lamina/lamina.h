// The header for programs that use Lamina from C++: tensors, every operator, gradients.
//
//   #include "lamina/lamina.h"
//   lamina::Tensor w = lamina::requires_grad(lamina::randn({3, 1}));
//   lamina::Tensor loss = lamina::mean(lamina::matmul(x, w) - y);
//   lamina::backward(loss);
//   lamina::grad(w);  // as w.grad in Python
//
//   const lamina::DualLevel level;  // forward mode
//   lamina::Tensor d = level.make_dual(w, direction);
//   level.unpack_dual(lamina::matmul(x, d)).tangent;
#pragma once

#include <cstring>

#include "lamina/autograd/engine.h"
#include "lamina/autograd/forward.h"
#include "lamina/autograd/function.h"
#include "lamina/core/error.h"
#include "lamina/core/float_types.h"
#include "lamina/cpu/random.h"
#include "lamina/ops.h"
#include "lamina/tensor_operators.h"

namespace lamina {

using namespace ops;  // every operator of the op list, as a free function
using autograd::backward;
using autograd::grad;
using autograd::NoGrad;  // while one lives, its thread records nothing
using autograd::set_grad;
using autograd::forward::Dual;
using autograd::forward::DualLevel;  // while one lives, tensors can have tangents

// Differentiates a tensor of one element.
inline void backward(const Tensor& loss) { autograd::backward({&loss, 1}, {}, false, false); }

// Makes `t` a leaf whose gradient is wanted, and returns it.
inline Tensor requires_grad(Tensor t) {
  autograd::set_requires_grad(t, true);
  return t;
}

// The same seed gives the same numbers as torch.manual_seed.
inline void manual_seed(uint64_t seed) {
  cpu::Mt19937Generator& generator = cpu::default_generator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_seed(seed);
}

// A tensor with a copy of `values` in row-major order; raises Value where their number does not fit
// the sizes.
template <class T>
Tensor from_values(std::span<const T> values, IntList sizes) {
  const Tensor t = ops::empty(sizes, scalar_type_of<T>, std::nullopt, kCpu);
  LAMINA_CHECK_VALUE(static_cast<size_t>(t.numel()) == values.size(),
                     "from_values: wrong number of values; got ", values.size(), "; expected ",
                     t.numel(), " for sizes ", sizes);
  if (!values.empty()) std::memcpy(t.data(), values.data(), t.nbytes());
  return t;
}
template <class T>
Tensor from_values(const std::vector<T>& values, IntList sizes) {
  return from_values(std::span<const T>(values), sizes);
}

// The one element of `t`, converted to T; raises Runtime where it has another number of them.
template <class T>
T item(const Tensor& t) {
  LAMINA_CHECK(t.defined() && t.numel() == 1 && !t.is_meta(),
               "item: expected a tensor of one element that has values; got ", t);
  const NoGrad off;
  return *ops::to(t, scalar_type_of<T>).template data_as<T>();
}

}  // namespace lamina
