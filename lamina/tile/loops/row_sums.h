// Sums over one row of adjacent values, with an order of additions that depends on nothing but its
// length.
#pragma once

#include <cstring>

#include "lamina/tile/loops/vector_math.h"

namespace lamina::tile::LAMINA_TILE_LEVEL {
namespace {

template <class T>
inline constexpr int kUnroll = 128 / LAMINA_TILE_VECTOR_BYTES;

// Sum of the lanes in a fixed tree: halves are folded onto each other.
template <class T>
[[gnu::always_inline]] inline T add_lanes(const Vec<T> (&acc)[kUnroll<T>]) {
  constexpr int L = 128 / int(sizeof(T));
  alignas(64) T lane[L];
  __builtin_memcpy(lane, acc, 128);
  for (int half = L / 2; half >= 1; half /= 2)
    for (int j = 0; j < half; ++j) lane[j] += lane[j + half];
  return lane[0];
}

// Sum over f(i, vector of lanes) in leaves of kLeaf elements; the leaves are added in double. `f`
// gets the position and the number of valid lanes, and returns zeros in the others.
template <class T, class F>
[[gnu::always_inline]] inline T sum_leaves(int64_t n, F&& f) {
  using V = Vec<T>;
  constexpr int W = kLanes<T>;
  constexpr int U = kUnroll<T>;
  double total = 0;
  for (int64_t base = 0; base < n; base += kLeaf) {
    const int64_t end = base + kLeaf < n ? base + kLeaf : n;
    V acc[U] = {};
    int64_t i = base;
    for (; i + U * W <= end; i += U * W) {
#pragma GCC unroll 8
      for (int u = 0; u < U; ++u) acc[u] += f(i + u * W, W);
    }
    for (int u = 0; i < end; i += W, ++u) acc[u] += f(i, end - i < W ? int(end - i) : W);
    total += double(add_lanes<T>(acc));
  }
  return static_cast<T>(total);
}

template <class T>
[[gnu::always_inline]] inline Vec<T> load_part(const T* p, int count, T padding) {
  using V = Vec<T>;
  if (count == kLanes<T>) return load_vec<V>(p);
  V v = splat<V>(padding);
  std::memcpy(&v, p, static_cast<size_t>(count) * sizeof(T));
  return v;
}
template <class T>
[[gnu::always_inline]] inline void store_part(T* p, Vec<T> v, int count) {
  if (count == kLanes<T>)
    store_vec(p, v);
  else
    std::memcpy(p, &v, static_cast<size_t>(count) * sizeof(T));
}

}  // namespace
}  // namespace lamina::tile::LAMINA_TILE_LEVEL
