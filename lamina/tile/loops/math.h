// The transcendental operations of one real type; math_float.cpp and math_double.cpp instantiate
// it.
#pragma once

#include "lamina/tile/loops/vector_math.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace lamina::tile::LAMINA_TILE_LEVEL {
namespace {

// Tails go through the same vector function, padded with ones, so that a result depends on its
// operand alone and not on its place in the array.
template <class F, class T>
void vector_loop1(void* out, const void* a, const void*, const void*, int64_t n) {
  using V = Vec<T>;
  constexpr int64_t W = kLanes<T>;
  auto* o = static_cast<T*>(out);
  auto* x = static_cast<const T*>(a);
  int64_t i = 0;
  for (; i + W <= n; i += W) store_vec(o + i, F::f(load_vec<V>(x + i)));
  if (i < n) {
    const size_t bytes = static_cast<size_t>(n - i) * sizeof(T);
    V v = splat<V>(T(1));
    std::memcpy(&v, x + i, bytes);
    v = F::f(v);
    std::memcpy(o + i, &v, bytes);
  }
}
template <class F, class T>
void vector_loop2(void* out, const void* a, const void* b, const void*, int64_t n) {
  using V = Vec<T>;
  constexpr int64_t W = kLanes<T>;
  auto* o = static_cast<T*>(out);
  auto* x = static_cast<const T*>(a);
  auto* y = static_cast<const T*>(b);
  int64_t i = 0;
  for (; i + W <= n; i += W) store_vec(o + i, F::f(load_vec<V>(x + i), load_vec<V>(y + i)));
  if (i < n) {
    const size_t bytes = static_cast<size_t>(n - i) * sizeof(T);
    V v = splat<V>(T(1));
    V w = splat<V>(T(1));
    std::memcpy(&v, x + i, bytes);
    std::memcpy(&w, y + i, bytes);
    v = F::f(v, w);
    std::memcpy(o + i, &v, bytes);
  }
}

#define LAMINA_X(name)                              \
  struct F_##name {                                 \
    template <class V>                              \
    [[gnu::always_inline]] static inline V f(V x) { \
      return v_##name(x);                           \
    }                                               \
  };
LAMINA_TILE_MATH1(LAMINA_X)
#undef LAMINA_X
#define LAMINA_X(name)                                   \
  struct F_##name {                                      \
    template <class V>                                   \
    [[gnu::always_inline]] static inline V f(V x, V y) { \
      return v_##name(x, y);                             \
    }                                                    \
  };
LAMINA_TILE_MATH2(LAMINA_X)
#undef LAMINA_X

template <class V>
using LaneOf = std::remove_cvref_t<decltype(V{}[0])>;

#define VECTOR1(Name, expression)                   \
  struct Name {                                     \
    template <class V>                              \
    [[gnu::always_inline]] static inline V f(V x) { \
      using T = LaneOf<V>;                          \
      expression                                    \
    }                                               \
  };
#define VECTOR2(Name, expression)                        \
  struct Name {                                          \
    template <class V>                                   \
    [[gnu::always_inline]] static inline V f(V x, V y) { \
      using T = LaneOf<V>;                               \
      expression                                         \
    }                                                    \
  };

VECTOR1(Sigmoid, return T(1) / (T(1) + v_exp(-x));)
VECTOR1(Silu, return x / (T(1) + v_exp(-x));)
VECTOR1(LogSigmoid, return (x < T(0) ? x : V{}) - v_log1p(v_exp(-v_abs(x)));)
VECTOR1(Log1pExp, return (x > T(0) ? x : V{}) + v_log1p(v_exp(-v_abs(x)));)
#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
[[gnu::always_inline]] inline VecF fused(VecF a, VecF b, float c) {
#if defined(__AVX512F__)
  return (VecF)_mm512_fmadd_ps((__m512)a, (__m512)b, _mm512_set1_ps(c));
#else
  return (VecF)_mm256_fmadd_ps((__m256)a, (__m256)b, _mm256_set1_ps(c));
#endif
}
// erf of floats for gelu, as x * P(x^2) / Q(x^2), fitted to 2e-9 on |x| < 3.93, beyond which it
// rounds to one. Within 5 ulp, which the sum with one hides.
[[gnu::always_inline]] inline VecF gelu_erf(VecF x) {
  const VecF end = splat<VecF>(3.93f);
  const VecF bounded = x < -end ? -end : x > end ? end : x;
  const VecF t = bounded * bounded;
  VecF p = splat<VecF>(-1.2967455553791751e-08f);
  p = fused(p, t, 4.640512997866608e-06f);
  p = fused(p, t, 0.0003779395774472505f);
  p = fused(p, t, 0.0038433712907135487f);
  p = fused(p, t, 0.05427480861544609f);
  p = fused(p, t, 0.18516886234283447f);
  p = fused(p, t, 1.128379225730896f);
  VecF q = splat<VecF>(6.269323785090819e-05f);
  q = fused(q, t, 0.0013040662743151188f);
  q = fused(q, t, 0.015443729236721992f);
  q = fused(q, t, 0.1139109805226326f);
  q = fused(q, t, 0.4974350333213806f);
  q = fused(q, t, 1.0f);
  const VecF one = splat<VecF>(1.0f);
  const VecF r = bounded * p / q;
  const VecF low = x <= -end ? -one : r;
  return x >= end ? one : low;
}
#else
[[gnu::always_inline]] inline VecF gelu_erf(VecF x) { return v_erf(x); }
#endif
[[gnu::always_inline]] inline VecD gelu_erf(VecD x) { return v_erf(x); }

VECTOR1(Gelu, return x * T(0.5) * (T(1) + gelu_erf(x * T(0.70710678118654752440)));)
VECTOR1(GeluTanh, const V inner = T(0.79788456080286535588) * (x + T(0.044715) * (x * x * x));
        return T(0.5) * x * (T(1) + v_tanh(inner));)
VECTOR2(LogAddExp, const V m = x > y ? x : y; const V d = v_abs(x - y);
        const V sum = m + v_log1p(v_exp(-d));
        return x == y && v_abs(x) == T(__builtin_inf()) ? x : sum;)
VECTOR2(LogAddExp2, const V m = x > y ? x : y; const V d = v_abs(x - y);
        const V sum = m + v_log1p(v_exp2(-d)) * T(1.4426950408889634074);
        return x == y && v_abs(x) == T(__builtin_inf()) ? x : sum;)
VECTOR2(XLogY, const V product = x * v_log(y); return y != y ? y : x == T(0) ? V{} : product;)
VECTOR2(XLog1pY, const V product = x * v_log1p(y); return y != y ? y : x == T(0) ? V{} : product;)

template <class T>
void fill_math(Level& l) {
  constexpr int s = slot_of<T>;
#define LAMINA_X(name) l.put(Op::name, s, vector_loop1<F_##name, T>);
  LAMINA_TILE_MATH1(LAMINA_X)
#undef LAMINA_X
#define LAMINA_X(name) l.put(Op::name, s, vector_loop2<F_##name, T>);
  LAMINA_TILE_MATH2(LAMINA_X)
#undef LAMINA_X
  l.put(Op::sigmoid, s, vector_loop1<Sigmoid, T>);
  l.put(Op::silu, s, vector_loop1<Silu, T>);
  l.put(Op::log_sigmoid, s, vector_loop1<LogSigmoid, T>);
  l.put(Op::log1p_exp, s, vector_loop1<Log1pExp, T>);
  l.put(Op::gelu, s, vector_loop1<Gelu, T>);
  l.put(Op::gelu_tanh, s, vector_loop1<GeluTanh, T>);
  l.put(Op::logaddexp, s, vector_loop2<LogAddExp, T>);
  l.put(Op::logaddexp2, s, vector_loop2<LogAddExp2, T>);
  l.put(Op::xlogy, s, vector_loop2<XLogY, T>);
  l.put(Op::xlog1py, s, vector_loop2<XLog1pY, T>);
}

}  // namespace
}  // namespace lamina::tile::LAMINA_TILE_LEVEL
