// Sums over one row of adjacent values, with an order of additions that depends on nothing but its
// length.
#pragma once

#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "lamina/tile/loops/vector_math.h"

namespace lamina::tile::LAMINA_TILE_LEVEL {
namespace {

template <class T>
inline constexpr int kUnroll = 128 / LAMINA_TILE_VECTOR_BYTES;

template <class T, int kCount>
struct Pack {
  typedef T type __attribute__((vector_size(kCount * sizeof(T))));
};
// f over the lanes: halves are folded onto each other.
template <class T, int kCount, class F>
[[gnu::always_inline]] inline T fold_halves(typename Pack<T, kCount>::type v, F&& f) {
  if constexpr (kCount == 2) {
    return f(v[0], v[1]);
  } else {
    typename Pack<T, kCount / 2>::type half[2];
    __builtin_memcpy(half, &v, sizeof v);
    return fold_halves<T, kCount / 2>(f(half[0], half[1]), f);
  }
}
template <class T>
[[gnu::always_inline]] inline T add_lanes(Vec<T> (&acc)[kUnroll<T>]) {
#pragma GCC unroll 8
  for (int half = kUnroll<T> / 2; half >= 1; half /= 2)
#pragma GCC unroll 4
    for (int j = 0; j < half; ++j) acc[j] += acc[j + half];
  return fold_halves<T, kLanes<T>>(
      acc[0], [](auto a, auto b) __attribute__((always_inline)) { return a + b; });
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

// Parts of a vector go through the machine's masks: a copy of so many bytes by way of memory costs
// more than all the arithmetic of a short row.
#if defined(__AVX512F__)
template <class T>
[[gnu::always_inline]] inline Vec<T> load_some(const T* p, int count, Vec<T> padding) {
  const unsigned mask = (1u << count) - 1;
  if constexpr (sizeof(T) == 4)
    return (Vec<T>)_mm512_mask_loadu_ps((__m512)padding, static_cast<__mmask16>(mask), p);
  else
    return (Vec<T>)_mm512_mask_loadu_pd((__m512d)padding, static_cast<__mmask8>(mask), p);
}
template <class T>
[[gnu::always_inline]] inline void store_some(T* p, Vec<T> v, int count) {
  const unsigned mask = (1u << count) - 1;
  if constexpr (sizeof(T) == 4)
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>(mask), (__m512)v);
  else
    _mm512_mask_storeu_pd(p, static_cast<__mmask8>(mask), (__m512d)v);
}
#elif defined(__AVX2__)
template <class T>
[[gnu::always_inline]] inline __m256i first_lanes(int count) {
  if constexpr (sizeof(T) == 4)
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  else
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
}
template <class T>
[[gnu::always_inline]] inline Vec<T> load_some(const T* p, int count, Vec<T> padding) {
  const __m256i mask = first_lanes<T>(count);
  if constexpr (sizeof(T) == 4)
    return (Vec<T>)_mm256_blendv_ps((__m256)padding, _mm256_maskload_ps(p, mask), (__m256)mask);
  else
    return (Vec<T>)_mm256_blendv_pd((__m256d)padding, _mm256_maskload_pd(p, mask), (__m256d)mask);
}
template <class T>
[[gnu::always_inline]] inline void store_some(T* p, Vec<T> v, int count) {
  if constexpr (sizeof(T) == 4)
    _mm256_maskstore_ps(p, first_lanes<T>(count), (__m256)v);
  else
    _mm256_maskstore_pd(p, first_lanes<T>(count), (__m256d)v);
}
#else
template <class T>
[[gnu::always_inline]] inline Vec<T> load_some(const T* p, int count, Vec<T> padding) {
  std::memcpy(&padding, p, static_cast<size_t>(count) * sizeof(T));
  return padding;
}
template <class T>
[[gnu::always_inline]] inline void store_some(T* p, Vec<T> v, int count) {
  std::memcpy(p, &v, static_cast<size_t>(count) * sizeof(T));
}
#endif

template <class T>
[[gnu::always_inline]] inline Vec<T> load_part(const T* p, int count, T padding) {
  if (count == kLanes<T>) return load_vec<Vec<T>>(p);
  return load_some<T>(p, count, splat<Vec<T>>(padding));
}
template <class T>
[[gnu::always_inline]] inline void store_part(T* p, Vec<T> v, int count) {
  if (count == kLanes<T>)
    store_vec(p, v);
  else
    store_some<T>(p, v, count);
}

}  // namespace
}  // namespace lamina::tile::LAMINA_TILE_LEVEL
