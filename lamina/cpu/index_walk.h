// Walks over N strided operands of equal sizes in row-major order, in runs along the last
// dimension.
#pragma once

#include <algorithm>
#include <array>
#include <complex>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "lamina/core/error.h"
#include "lamina/core/float_types.h"
#include "lamina/core/scalar.h"

namespace lamina::cpu {

inline constexpr int kMaxDims = 64;
inline constexpr int64_t kWalkGrain = 32768;  // elements in a chunk of a parallel loop

// A reference to f(offsets of the first element, n); erased, so that the walk is compiled once and
// not for each kernel.
template <int N>
class RunRef {
 public:
  template <class F>
  RunRef(F&& f)  // NOLINT: made on the fly from lambdas
      : context_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* context, const std::array<int64_t, N>& offsets, int64_t n) {
          (*static_cast<std::remove_reference_t<F>*>(context))(offsets, n);
        }) {}
  void operator()(const std::array<int64_t, N>& offsets, int64_t n) const {
    call_(context_, offsets, n);
  }

 private:
  void* context_;
  void (*call_)(void*, const std::array<int64_t, N>&, int64_t);
};

template <int N>
struct Walk {
  using Offsets = std::array<int64_t, N>;

  int ndim = 0;
  int64_t numel = 1;
  std::array<int64_t, kMaxDims> sizes;
  std::array<Offsets, kMaxDims> strides;

  // Dimensions come outermost first; those that all operands cross in one stride become one.
  void add(int64_t size, const Offsets& s) {
    numel *= size;
    if (size == 1) return;
    if (ndim > 0) {
      bool joins = true;
      for (int n = 0; n < N; ++n) joins = joins && strides[ndim - 1][n] == size * s[n];
      if (joins) {
        sizes[ndim - 1] *= size;
        strides[ndim - 1] = s;
        return;
      }
    }
    LAMINA_INTERNAL_CHECK(ndim < kMaxDims);
    sizes[ndim] = size;
    strides[ndim++] = s;
  }
  // Offsets of the run's elements advance by these.
  Offsets step() const { return ndim > 0 ? strides[ndim - 1] : Offsets{}; }
  // f(offsets of the first element, n) for runs that make up elements [begin, end).
  [[gnu::noinline]] void run(int64_t begin, int64_t end, RunRef<N> f) const {
    if (begin >= end) return;
    Offsets offsets{};
    if (ndim == 0) {
      f(offsets, int64_t{1});
      return;
    }
    std::array<int64_t, kMaxDims> at;
    int64_t rest = begin;
    for (int d = ndim - 1; d >= 0; --d) {
      at[d] = rest % sizes[d];
      rest /= sizes[d];
      for (int n = 0; n < N; ++n) offsets[n] += at[d] * strides[d][n];
    }
    const int last = ndim - 1;
    for (int64_t left = end - begin;;) {
      const int64_t n = std::min(left, sizes[last] - at[last]);
      f(offsets, n);
      left -= n;
      if (left == 0) return;
      for (int i = 0; i < N; ++i) offsets[i] -= at[last] * strides[last][i];
      at[last] = 0;
      for (int d = last - 1; d >= 0; --d) {
        for (int i = 0; i < N; ++i) offsets[i] += strides[d][i];
        if (++at[d] < sizes[d]) break;
        for (int i = 0; i < N; ++i) offsets[i] -= sizes[d] * strides[d][i];
        at[d] = 0;
      }
    }
  }
};

struct Bytes16 {
  uint64_t low, high;
};

// Calls f with a word of `item` bytes.
template <class F>
void visit_item(size_t item, F&& f) {
  switch (item) {
    case 1:
      return f(uint8_t());
    case 2:
      return f(uint16_t());
    case 4:
      return f(uint32_t());
    case 8:
      return f(uint64_t());
    case 16:
      return f(Bytes16());
    default:
      LAMINA_INTERNAL_CHECK(false, "element size ", item);
  }
}

template <class T>
T scalar_to(const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Bool:
    case Scalar::Kind::Int:
      return convert_to<T>(s.to_int());
    case Scalar::Kind::UInt:
      return convert_to<T>(static_cast<uint64_t>(s.to_int()));
    case Scalar::Kind::Float:
      return convert_to<T>(s.to_double());
    default:
      return convert_to<T>(s.to_complex());
  }
}

// The bytes of a scalar as an element of `dtype`.
struct ScalarBytes {
  alignas(16) unsigned char bytes[16] = {};
  ScalarBytes(const Scalar& s, ScalarType dtype) {
    visit(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T v = scalar_to<T>(s);
      std::memcpy(bytes, &v, sizeof v);
    });
  }
  template <class T>
  T as() const {
    T v;
    std::memcpy(&v, bytes, sizeof v);
    return v;
  }
};

// n elements from one place to another.
template <class T>
void copy_run(T* out, int64_t out_step, const T* in, int64_t in_step, int64_t n) {
  if (out_step == 1 && in_step == 1) {
    std::memcpy(static_cast<void*>(out), in, static_cast<size_t>(n) * sizeof(T));
  } else {
    for (int64_t i = 0; i < n; ++i) out[i * out_step] = in[i * in_step];
  }
}

}  // namespace lamina::cpu
