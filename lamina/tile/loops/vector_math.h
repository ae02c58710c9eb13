// Vectors of the level's width, and the elementary functions on them: glibc's vector library by its
// ABI names where there is one (every function measured: at most 4 ulp, special values right, lanes
// independent), libm lane by lane elsewhere.
#pragma once

#include <cmath>
#include <cstring>

#include "lamina/tile/loops/elementwise.h"

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(LAMINA_NO_LIBMVEC)
#if __GLIBC_PREREQ(2, 35)
#define LAMINA_TILE_LIBMVEC 1
#endif
#endif

#if defined(__AVX512F__)
#define LAMINA_TILE_VECTOR_BYTES 64
#define LAMINA_TILE_MVEC_F(args, name) _ZGVeN16##args##_##name##f
#define LAMINA_TILE_MVEC_D(args, name) _ZGVeN8##args##_##name
#elif defined(__AVX2__)
#define LAMINA_TILE_VECTOR_BYTES 32
#define LAMINA_TILE_MVEC_F(args, name) _ZGVdN8##args##_##name##f
#define LAMINA_TILE_MVEC_D(args, name) _ZGVdN4##args##_##name
#else
#define LAMINA_TILE_VECTOR_BYTES 16
#define LAMINA_TILE_MVEC_F(args, name) _ZGVbN4##args##_##name##f
#define LAMINA_TILE_MVEC_D(args, name) _ZGVbN2##args##_##name
#endif

namespace lamina::tile::LAMINA_TILE_LEVEL {
namespace {

typedef float VecF __attribute__((vector_size(LAMINA_TILE_VECTOR_BYTES)));
typedef double VecD __attribute__((vector_size(LAMINA_TILE_VECTOR_BYTES)));
typedef int32_t VecI32 __attribute__((vector_size(LAMINA_TILE_VECTOR_BYTES)));
typedef int64_t VecI64 __attribute__((vector_size(LAMINA_TILE_VECTOR_BYTES)));
template <class T>
using Vec = std::conditional_t<std::is_same_v<T, float>, VecF, VecD>;
template <class T>
inline constexpr int kLanes = LAMINA_TILE_VECTOR_BYTES / int(sizeof(T));

template <class V, class T>
[[gnu::always_inline]] inline V load_vec(const T* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class V, class T>
[[gnu::always_inline]] inline void store_vec(T* p, V v) {
  __builtin_memcpy(p, &v, sizeof v);
}
template <class V, class T>
[[gnu::always_inline]] inline V splat(T x) {
  return x - V{};
}

}  // namespace
}  // namespace lamina::tile::LAMINA_TILE_LEVEL

// clang-format off: one a line
#define LAMINA_TILE_MATH1(X) \
  X(exp) \
  X(exp2) \
  X(expm1) \
  X(log) \
  X(log2) \
  X(log10) \
  X(log1p) \
  X(sin) \
  X(cos) \
  X(tan) \
  X(asin) \
  X(acos) \
  X(atan) \
  X(sinh) \
  X(cosh) \
  X(tanh) \
  X(asinh) \
  X(acosh) \
  X(atanh) \
  X(erf) \
  X(erfc)
// clang-format on
#define LAMINA_TILE_MATH2(X) X(pow) X(atan2) X(hypot)

#ifdef LAMINA_TILE_LIBMVEC
extern "C" {
#define LAMINA_X(name)                                          \
  lamina::tile::LAMINA_TILE_LEVEL::VecF LAMINA_TILE_MVEC_F(     \
      v, name)(lamina::tile::LAMINA_TILE_LEVEL::VecF) noexcept; \
  lamina::tile::LAMINA_TILE_LEVEL::VecD LAMINA_TILE_MVEC_D(     \
      v, name)(lamina::tile::LAMINA_TILE_LEVEL::VecD) noexcept;
LAMINA_TILE_MATH1(LAMINA_X)
#undef LAMINA_X
#define LAMINA_X(name)                                                                        \
  lamina::tile::LAMINA_TILE_LEVEL::VecF LAMINA_TILE_MVEC_F(vv, name)(                         \
      lamina::tile::LAMINA_TILE_LEVEL::VecF, lamina::tile::LAMINA_TILE_LEVEL::VecF) noexcept; \
  lamina::tile::LAMINA_TILE_LEVEL::VecD LAMINA_TILE_MVEC_D(vv, name)(                         \
      lamina::tile::LAMINA_TILE_LEVEL::VecD, lamina::tile::LAMINA_TILE_LEVEL::VecD) noexcept;
LAMINA_TILE_MATH2(LAMINA_X)
#undef LAMINA_X
}
#endif

namespace lamina::tile::LAMINA_TILE_LEVEL {
namespace {

#ifdef LAMINA_TILE_LIBMVEC
#define LAMINA_X(name)                                                                           \
  [[gnu::always_inline]] inline VecF v_##name(VecF x) { return LAMINA_TILE_MVEC_F(v, name)(x); } \
  [[gnu::always_inline]] inline VecD v_##name(VecD x) { return LAMINA_TILE_MVEC_D(v, name)(x); }
LAMINA_TILE_MATH1(LAMINA_X)
#undef LAMINA_X
#define LAMINA_X(name)                                          \
  [[gnu::always_inline]] inline VecF v_##name(VecF x, VecF y) { \
    return LAMINA_TILE_MVEC_F(vv, name)(x, y);                  \
  }                                                             \
  [[gnu::always_inline]] inline VecD v_##name(VecD x, VecD y) { \
    return LAMINA_TILE_MVEC_D(vv, name)(x, y);                  \
  }
LAMINA_TILE_MATH2(LAMINA_X)
#undef LAMINA_X
#else
#define LAMINA_X(name)                                              \
  inline VecF v_##name(VecF x) {                                    \
    for (int i = 0; i < kLanes<float>; ++i) x[i] = ::name##f(x[i]); \
    return x;                                                       \
  }                                                                 \
  inline VecD v_##name(VecD x) {                                    \
    for (int i = 0; i < kLanes<double>; ++i) x[i] = ::name(x[i]);   \
    return x;                                                       \
  }
LAMINA_TILE_MATH1(LAMINA_X)
#undef LAMINA_X
#define LAMINA_X(name)                                                    \
  inline VecF v_##name(VecF x, VecF y) {                                  \
    for (int i = 0; i < kLanes<float>; ++i) x[i] = ::name##f(x[i], y[i]); \
    return x;                                                             \
  }                                                                       \
  inline VecD v_##name(VecD x, VecD y) {                                  \
    for (int i = 0; i < kLanes<double>; ++i) x[i] = ::name(x[i], y[i]);   \
    return x;                                                             \
  }
LAMINA_TILE_MATH2(LAMINA_X)
#undef LAMINA_X
#endif

template <class V>
[[gnu::always_inline]] inline V v_abs(V x) {
  using I = std::conditional_t<std::is_same_v<V, VecF>, VecI32, VecI64>;
  constexpr auto kMask =
      std::is_same_v<V, VecF> ? int64_t{0x7fffffff} : int64_t{0x7fffffffffffffff};
  using Lane = std::conditional_t<std::is_same_v<V, VecF>, int32_t, int64_t>;
  return (V)((I)x & static_cast<Lane>(kMask));
}

}  // namespace
}  // namespace lamina::tile::LAMINA_TILE_LEVEL
