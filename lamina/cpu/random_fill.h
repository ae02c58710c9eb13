// How fills of random numbers walk over an output: in order of memory.
#pragma once

#include <array>
#include <cmath>

#include "lamina/core/error.h"
#include "lamina/cpu/random.h"

namespace lamina::cpu {

inline float uniform_float(Mt19937Generator& g) {  // [0, 1), 24 bits
  return static_cast<float>(g.random() & 0xffffffu) * 0x1p-24f;
}
inline double uniform_double(Mt19937Generator& g) {  // [0, 1), 53 bits
  return static_cast<double>(g.random64() & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
}

// Dimensions sorted by stride, smallest first, without those of size 1; ties keep the last
// dimension first.
struct MemoryOrder {
  int ndim = 0;
  int64_t numel = 1;
  std::array<int64_t, 64> sizes, strides, other;

  explicit MemoryOrder(const RandomOutput& out, std::span<const int64_t> other_strides = {}) {
    LAMINA_INTERNAL_CHECK(out.sizes.size() == out.strides.size() && out.sizes.size() <= 64);
    for (size_t d = out.sizes.size(); d-- > 0;) {
      const int64_t size = out.sizes[d], stride = out.strides[d];
      numel *= size;
      if (size == 1) continue;
      int at = ndim++;
      for (; at > 0 && strides[at - 1] > stride; --at) {
        sizes[at] = sizes[at - 1];
        strides[at] = strides[at - 1];
        other[at] = other[at - 1];
      }
      sizes[at] = size;
      strides[at] = stride;
      other[at] = other_strides.empty() ? 0 : other_strides[d];
    }
    if (ndim == 0) {
      ndim = 1;
      sizes[0] = numel;
      strides[0] = 1;
      other[0] = 0;
    }
  }
};

// f(T*, const P*) for every element of the output and what `with` has in its place.
template <class T, class P, class F>
void walk(const RandomOutput& out, const P* with, std::span<const int64_t> with_strides, F&& f) {
  const MemoryOrder order(out, with_strides);
  if (order.numel == 0) return;
  std::array<int64_t, 64> counter{};
  auto* data = static_cast<T*>(out.data);
  for (;;) {
    for (int64_t i = 0; i < order.sizes[0]; ++i)
      f(data + i * order.strides[0], with + i * order.other[0]);
    int d = 1;
    for (; d < order.ndim; ++d) {
      data += order.strides[d];
      with += order.other[d];
      if (++counter[d] < order.sizes[d]) break;
      data -= order.sizes[d] * order.strides[d];
      with -= order.sizes[d] * order.other[d];
      counter[d] = 0;
    }
    if (d == order.ndim) return;
  }
}

namespace detail {
template <class F, class T>
void call_each(const RandomOutput& out, F&& f, void (std::decay_t<F>::*)(T*) const) {
  walk<T>(out, static_cast<const char*>(nullptr), {}, [&](T* v, const char*) { f(v); });
}
}  // namespace detail

// f(T*) for every element in order of memory; T comes from f.
template <class F>
void for_each(const RandomOutput& out, F&& f) {
  detail::call_each(out, f, &std::decay_t<F>::operator());
}

// A complex output as one of its real type with a dimension of 2 at the end.
template <class F>
void as_real(const RandomOutput& out, F&& f) {
  const size_t n = out.sizes.size();
  std::array<int64_t, 64> sizes, strides;
  LAMINA_CHECK(n < 64, "a complex output of 64 dimensions has no real view");
  for (size_t d = 0; d < n; ++d) {
    sizes[d] = out.sizes[d];
    strides[d] = 2 * out.strides[d];
  }
  sizes[n] = 2;
  strides[n] = 1;
  f(RandomOutput{out.data, to_real(out.dtype), {sizes.data(), n + 1}, {strides.data(), n + 1}});
}

inline bool is_contiguous(const RandomOutput& out) {
  int64_t expected = 1;
  for (size_t d = out.sizes.size(); d-- > 0;) {
    if (out.sizes[d] == 0) return true;
    if (out.sizes[d] == 1) continue;
    if (out.strides[d] != expected) return false;
    expected *= out.sizes[d];
  }
  return true;
}

}  // namespace lamina::cpu
