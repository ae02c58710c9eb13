// Folds of adjacent values into one, and of rows into a row. Lanes are fixed in number, so every level computes the
// same bits.
#include "lamina/tile/loops/elementwise.h"

namespace lamina::tile::LAMINA_TILE_LEVEL {
namespace {

template <class T>
inline constexpr bool is_float = std::is_floating_point_v<T>;
template <class T>
struct Limits {
  static constexpr T lowest = is_float<T> ? T(-__builtin_inf()) : std::is_signed_v<T> ? T(Wide<T>(1) << (sizeof(T) * 8 - 1)) : T(0);
  static constexpr T highest = is_float<T> ? T(__builtin_inf()) : std::is_signed_v<T> ? T(~(Wide<T>(1) << (sizeof(T) * 8 - 1))) : T(~Wide<T>(0));
};

#define LAMINA_INLINE [[gnu::always_inline]] static inline

struct Sum {
  template <class T>
  LAMINA_INLINE T start() { return T{}; }
  template <class T>
  LAMINA_INLINE T take(T x) { return x; }
  template <class T>
  LAMINA_INLINE T f(T a, T b) {
    if constexpr (is_cx<T>) return {a.re + b.re, a.im + b.im};
    else if constexpr (is_float<T>) return a + b;
    else return T(Wide<T>(a) + Wide<T>(b));
  }
};
struct SumSquares : Sum {
  template <class T>
  LAMINA_INLINE T take(T x) { return x * x; }
};
struct Prod {
  template <class T>
  LAMINA_INLINE T start() {
    if constexpr (is_cx<T>) return {1, 0};
    else return T(1);
  }
  template <class T>
  LAMINA_INLINE T take(T x) { return x; }
  template <class T>
  LAMINA_INLINE T f(T a, T b) {
    if constexpr (is_cx<T>) return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    else if constexpr (is_float<T>) return a * b;
    else return T(Wide<T>(a) * Wide<T>(b));
  }
};
struct Max {
  template <class T>
  LAMINA_INLINE T start() { return Limits<T>::lowest; }
  template <class T>
  LAMINA_INLINE T take(T x) { return x; }
  template <class T>
  LAMINA_INLINE T f(T a, T b) {
    const T larger = a < b ? b : a;
    if constexpr (is_float<T>) return is_nan(b) ? b : larger;  // a < b is false for a NaN a
    else return larger;
  }
};
struct Min {
  template <class T>
  LAMINA_INLINE T start() { return Limits<T>::highest; }
  template <class T>
  LAMINA_INLINE T take(T x) { return x; }
  template <class T>
  LAMINA_INLINE T f(T a, T b) {
    const T smaller = b < a ? b : a;
    if constexpr (is_float<T>) return is_nan(b) ? b : smaller;
    else return smaller;
  }
};
struct Any {
  template <class T>
  LAMINA_INLINE T start() { return T(0); }
  template <class T>
  LAMINA_INLINE T take(T x) { return T(x != 0); }
  template <class T>
  LAMINA_INLINE T f(T a, T b) { return T(a | b); }
};
struct All {
  template <class T>
  LAMINA_INLINE T start() { return T(1); }
  template <class T>
  LAMINA_INLINE T take(T x) { return T(x != 0); }
  template <class T>
  LAMINA_INLINE T f(T a, T b) { return T(a & b); }
};

// 128 bytes of lanes hide the latency of an addition on every level.
template <class T>
inline constexpr int kFoldLanes = 128 / int(sizeof(T));

template <class F, class T>
void fold_leaf(void* part, const void* in, int64_t n) {
  constexpr int L = kFoldLanes<T>;
  auto* x = static_cast<const T*>(in);
  T lane[L];
  for (int j = 0; j < L; ++j) lane[j] = F::template start<T>();
  int64_t i = 0;
  for (; i + L <= n; i += L) {
#pragma GCC unroll 128
    for (int j = 0; j < L; ++j) lane[j] = F::f(lane[j], F::take(x[i + j]));
  }
  for (int j = 0; i < n; ++i, ++j) lane[j] = F::f(lane[j], F::take(x[i]));
  for (int half = L / 2; half >= 1; half /= 2)
    for (int j = 0; j < half; ++j) lane[j] = F::f(lane[j], lane[j + half]);
  *static_cast<T*>(part) = lane[0];
}

template <class F, class T>
void fold_across(void* parts, const void* in, int64_t stride, int64_t rows, int64_t n) {
  constexpr int L = kFoldLanes<T>;
  auto* x = static_cast<const T*>(in);
  auto* p = static_cast<T*>(parts);
  int64_t j = 0;
  for (; j + L <= n; j += L) {
    T lane[L];
    for (int k = 0; k < L; ++k) lane[k] = F::take(x[j + k]);
    for (int64_t r = 1; r < rows; ++r) {
      const T* row = x + r * stride + j;
#pragma GCC unroll 128
      for (int k = 0; k < L; ++k) lane[k] = F::f(lane[k], F::take(row[k]));
    }
    for (int k = 0; k < L; ++k) p[j + k] = lane[k];
  }
  for (; j < n; ++j) {
    T acc = F::take(x[j]);
    for (int64_t r = 1; r < rows; ++r) acc = F::f(acc, F::take(x[r * stride + j]));
    p[j] = acc;
  }
}

// First position of the extreme value or of the first NaN.
template <class F, class T>
void find(void* part, const void* in, int64_t n) {
  auto* x = static_cast<const T*>(in);
  T extreme;
  fold_leaf<F, T>(&extreme, in, n);
  constexpr int64_t kStep = 64;
  const bool nan = is_float<T> && is_nan(extreme);
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    int hit = 0;
    for (int64_t k = 0; k < kStep; ++k) hit |= int(x[i + k] == extreme) | int(is_nan(x[i + k]));
    if (hit) break;
  }
  for (; i < n; ++i)
    if (nan ? is_nan(x[i]) : x[i] == extreme) break;
  *static_cast<int64_t*>(part) = i < n ? i : 0;
}

template <class F, class T>
void put(Level& l, Fold fold) {
  l.fold_leaf[static_cast<int>(fold)][slot_of<T>] = fold_leaf<F, T>;
  l.fold_across[static_cast<int>(fold)][slot_of<T>] = fold_across<F, T>;
}
template <class T>
void put_order(Level& l) {
  put<Max, T>(l, Fold::amax);
  put<Min, T>(l, Fold::amin);
  l.find[0][slot_of<T>] = find<Max, T>;
  l.find[1][slot_of<T>] = find<Min, T>;
}
template <class T>
void put_sums(Level& l) {
  put<Sum, T>(l, Fold::sum);
  put<Prod, T>(l, Fold::prod);
}

}  // namespace

void fill_folds(Level& l) {
  put_order<uint8_t>(l);
  put_order<uint16_t>(l);
  put_order<uint32_t>(l);
  put_order<uint64_t>(l);
  put_order<int8_t>(l);
  put_order<int16_t>(l);
  put_order<int32_t>(l);
  put_order<int64_t>(l);
  put_order<float>(l);
  put_order<double>(l);
  put_sums<int64_t>(l);
  put_sums<float>(l);
  put_sums<double>(l);
  put_sums<Cx<float>>(l);
  put_sums<Cx<double>>(l);
  put<SumSquares, float>(l, Fold::sum_squares);
  put<SumSquares, double>(l, Fold::sum_squares);
  put<Any, uint8_t>(l, Fold::any);
  put<All, uint8_t>(l, Fold::all);
  // Bytes that are zero or one: the folds of uint8 serve bool.
  for (Fold f : {Fold::any, Fold::all, Fold::amax, Fold::amin}) {
    l.fold_leaf[static_cast<int>(f)][0] = l.fold_leaf[static_cast<int>(f)][slot_of<uint8_t>];
    l.fold_across[static_cast<int>(f)][0] = l.fold_across[static_cast<int>(f)][slot_of<uint8_t>];
  }
  l.find[0][0] = l.find[0][slot_of<uint8_t>];
  l.find[1][0] = l.find[1][slot_of<uint8_t>];
}

}  // namespace lamina::tile::LAMINA_TILE_LEVEL
