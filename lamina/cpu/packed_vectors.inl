// Vectors and elements of kernels that are compiled once per instruction set (see packed_kernels.inl): everything is in
// the namespace of its level or inlined by force.
#pragma once

#include <cstdint>
#include <cstring>
#if LAMINA_PACKED_BYTES > 16
#include <immintrin.h>
#endif

#include "lamina/core/float_types.h"

namespace lamina::cpu::LAMINA_PACKED_LEVEL {
namespace {

#define LAMINA_INLINE [[gnu::always_inline]] inline

constexpr int kMr = LAMINA_PACKED_BYTES == 64 ? 12 : 6;  // 12 or 24 accumulators of 16 or 32 registers

template <class T>
struct Vector {
  typedef T type __attribute__((vector_size(LAMINA_PACKED_BYTES)));
};
template <class T>
using Vec = typename Vector<T>::type;
template <class T>
constexpr int kLanes = LAMINA_PACKED_BYTES / sizeof(T);

template <class T>
LAMINA_INLINE Vec<T> load_vector(const T* p) {
  Vec<T> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
LAMINA_INLINE void store_vector(T* p, Vec<T> v) {
  __builtin_memcpy(p, &v, sizeof v);
}

#if LAMINA_PACKED_BYTES == 64
// The first n lanes, 0 < n <= kLanes<T>.
template <class T>
LAMINA_INLINE auto first_lanes(int64_t n) {
  if constexpr (sizeof(T) == 4)
    return static_cast<__mmask16>(0xffffu >> (kLanes<T> - n));
  else
    return static_cast<__mmask8>(0xffu >> (kLanes<T> - n));
}
#endif

// The first n elements, 0 < n <= kLanes<T>, and not a byte more. Without masks there is no cheap way: all.
template <class T>
LAMINA_INLINE void store_first(T* p, Vec<T> v, [[maybe_unused]] int64_t n) {
#if LAMINA_PACKED_BYTES == 64
  if constexpr (sizeof(T) == 4)
    _mm512_mask_storeu_epi32(p, first_lanes<T>(n), (__m512i)v);
  else
    _mm512_mask_storeu_epi64(p, first_lanes<T>(n), (__m512i)v);
#else
  store_vector(p, v);
#endif
}
template <class T>
LAMINA_INLINE void copy_first(T* to, const T* from, int64_t n) {
#if LAMINA_PACKED_BYTES == 64
  if constexpr (sizeof(T) == 4)
    store_first(to, (Vec<T>)_mm512_maskz_loadu_epi32(first_lanes<T>(n), from), n);
  else
    store_first(to, (Vec<T>)_mm512_maskz_loadu_epi64(first_lanes<T>(n), from), n);
#else
  for (int64_t i = 0; i < n; ++i) to[i] = from[i];
#endif
}

template <class T>
LAMINA_INLINE Vec<T> multiply_add(Vec<T> a, Vec<T> b, Vec<T> c) {
#if LAMINA_PACKED_BYTES == 64
  if constexpr (sizeof(T) == 4 && T(0.5) != 0)
    return (Vec<T>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
  else if constexpr (T(0.5) != 0)
    return (Vec<T>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
  else
    return a * b + c;
#elif LAMINA_PACKED_BYTES == 32
  if constexpr (sizeof(T) == 4 && T(0.5) != 0)
    return (Vec<T>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
  else if constexpr (T(0.5) != 0)
    return (Vec<T>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
  else
    return a * b + c;
#else
  return a * b + c;
#endif
}

#if LAMINA_PACKED_BYTES == 64
// The same in the lanes that `mask` names, and c in the others.
template <class T>
LAMINA_INLINE Vec<T> multiply_add_some(Vec<T> a, Vec<T> b, Vec<T> c, unsigned mask) {
  if constexpr (sizeof(T) == 4 && T(0.5) != 0)
    return (Vec<T>)_mm512_mask3_fmadd_ps((__m512)a, (__m512)b, (__m512)c, static_cast<__mmask16>(mask));
  else if constexpr (T(0.5) != 0)
    return (Vec<T>)_mm512_mask3_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c, static_cast<__mmask8>(mask));
  else if constexpr (sizeof(T) == 4)
    return (Vec<T>)_mm512_mask_mov_epi32((__m512i)c, static_cast<__mmask16>(mask), (__m512i)(a * b + c));
  else
    return (Vec<T>)_mm512_mask_mov_epi64((__m512i)c, static_cast<__mmask8>(mask), (__m512i)(a * b + c));
}
#endif

#ifdef LAMINA_PACKED_PAIRS
// c + first products + second products of pairs of bfloat16, rounded after each.
template <class T>
LAMINA_INLINE Vec<float> multiply_add(Vec<uint32_t> a, Vec<uint32_t> b, Vec<float> c) {
  return (Vec<float>)_mm512_dpbf16_ps((__m512)c, (__m512bh)a, (__m512bh)b);
}
#endif

// --- elements in memory ----------------------------------------------------------------------------------------------
struct HalfBits {
  uint16_t bits;
};
struct BFloat16Bits {
  uint16_t bits;
};
struct Bool8 {
  uint8_t value;
};

template <class T, class S>
LAMINA_INLINE T load(S v) {
  return static_cast<T>(v);
}
template <class T>
LAMINA_INLINE T load(BFloat16Bits v) {
  const uint32_t bits = static_cast<uint32_t>(v.bits) << 16;
  float f;
  __builtin_memcpy(&f, &bits, 4);
  return static_cast<T>(f);
}
template <class T>
LAMINA_INLINE T load(HalfBits v) {
#if LAMINA_PACKED_BYTES > 16
  return static_cast<T>(_cvtsh_ss(v.bits));
#else
  return static_cast<T>(half_bits_to_float(v.bits));
#endif
}
template <class T>
LAMINA_INLINE T load(Bool8 v) {
  return v.value != 0;
}

template <class S, class T>
LAMINA_INLINE S store(T v) {
  if constexpr (sizeof(S) == sizeof(BFloat16Bits) && __is_same(S, BFloat16Bits)) {
    uint32_t bits;
    const float f = static_cast<float>(v);
    __builtin_memcpy(&bits, &f, 4);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    const uint32_t nan = ((bits >> 16) & 0x8000u) | 0x7fc0u;
    return {static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
  } else if constexpr (__is_same(S, HalfBits)) {
#if LAMINA_PACKED_BYTES > 16
    return {static_cast<uint16_t>(_cvtss_sh(static_cast<float>(v), _MM_FROUND_TO_NEAREST_INT))};
#else
    return {float_to_half_bits(static_cast<float>(v))};
#endif
  } else if constexpr (__is_same(S, Bool8)) {
    return {static_cast<uint8_t>(v != 0)};
  } else {
    return static_cast<S>(v);
  }
}

}  // namespace
}  // namespace lamina::cpu::LAMINA_PACKED_LEVEL
