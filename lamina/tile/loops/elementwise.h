// Loops over adjacent elements, made from functors of one element. For files in loops/ only:
// everything here has internal linkage, so that code compiled for one instruction set cannot be
// picked for another.
#pragma once

#include <cstdint>
#include <type_traits>

#include "lamina/tile/level.h"

#ifndef LAMINA_TILE_LEVEL
#error "LAMINA_TILE_LEVEL names the instruction-set level this file is compiled for"
#endif

namespace lamina::tile::LAMINA_TILE_LEVEL {
namespace {

template <class R>
struct Cx {
  R re, im;
};
template <class T>
inline constexpr bool is_cx = false;
template <class R>
inline constexpr bool is_cx<Cx<R>> = true;

// bool lives in memory as a byte that is zero or not.
template <class T>
using Cell = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
template <class T>
[[gnu::always_inline]] inline T load(Cell<T> x) {
  if constexpr (std::is_same_v<T, bool>)
    return x != 0;
  else
    return x;
}

template <class T>
inline constexpr int slot_of = -1;
template <>
inline constexpr int slot_of<bool> = 0;
template <>
inline constexpr int slot_of<uint8_t> = 1;
template <>
inline constexpr int slot_of<uint16_t> = 2;
template <>
inline constexpr int slot_of<uint32_t> = 3;
template <>
inline constexpr int slot_of<uint64_t> = 4;
template <>
inline constexpr int slot_of<int8_t> = 5;
template <>
inline constexpr int slot_of<int16_t> = 6;
template <>
inline constexpr int slot_of<int32_t> = 7;
template <>
inline constexpr int slot_of<int64_t> = 8;
template <>
inline constexpr int slot_of<float> = 9;
template <>
inline constexpr int slot_of<double> = 10;
template <>
inline constexpr int slot_of<Cx<float>> = 11;
template <>
inline constexpr int slot_of<Cx<double>> = 12;

template <class F, class A>
void loop1(void* out, const void* a, const void*, const void*, int64_t n) {
  using O = decltype(F::f(A{}));
  auto* o = static_cast<Cell<O>*>(out);
  auto* x = static_cast<const Cell<A>*>(a);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = F::f(load<A>(x[i]));
}

template <class F, class A, class B>
void loop2(void* out, const void* a, const void* b, const void*, int64_t n) {
  using O = decltype(F::f(A{}, B{}));
  auto* o = static_cast<Cell<O>*>(out);
  auto* x = static_cast<const Cell<A>*>(a);
  auto* y = static_cast<const Cell<B>*>(b);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = F::f(load<A>(x[i]), load<B>(y[i]));
}

template <class F, class A, class B, class C>
void loop3(void* out, const void* a, const void* b, const void* c, int64_t n) {
  using O = decltype(F::f(A{}, B{}, C{}));
  auto* o = static_cast<Cell<O>*>(out);
  auto* x = static_cast<const Cell<A>*>(a);
  auto* y = static_cast<const Cell<B>*>(b);
  auto* z = static_cast<const Cell<C>*>(c);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = F::f(load<A>(x[i]), load<B>(y[i]), load<C>(z[i]));
}

// Division of integers: a zero divisor is seen and reported, never executed.
template <class F, class T>
void loop_divide(void* out, const void* a, const void* b, const void*, int64_t n) {
  auto* o = static_cast<T*>(out);
  auto* x = static_cast<const T*>(a);
  auto* y = static_cast<const T*>(b);
  bool zero = false;
  for (int64_t i = 0; i < n; ++i) {
    const T d = y[i];
    zero |= d == 0;
    o[i] = F::f(x[i], d == 0 ? T(1) : d);
  }
  if (zero) raise_zero_division();
}

template <class T>
[[gnu::always_inline]] inline bool is_nan(T x) {
  return x != x;
}

// Integer arithmetic wraps: it is done in an unsigned type that no operand is promoted out of.
template <class T>
using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

}  // namespace
}  // namespace lamina::tile::LAMINA_TILE_LEVEL
