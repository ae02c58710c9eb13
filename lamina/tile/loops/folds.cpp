// Folds of adjacent values into one, and of rows into a row. Lanes are fixed in number, so every
// level computes the same bits.
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "lamina/tile/loops/elementwise.h"

namespace lamina::tile::LAMINA_TILE_LEVEL {
namespace {

template <class T>
inline constexpr bool is_float = std::is_floating_point_v<T>;
template <class T>
struct Limits {
  static constexpr T lowest = is_float<T>           ? T(-__builtin_inf())
                              : std::is_signed_v<T> ? T(Wide<T>(1) << (sizeof(T) * 8 - 1))
                                                    : T(0);
  static constexpr T highest = is_float<T>           ? T(__builtin_inf())
                               : std::is_signed_v<T> ? T(~(Wide<T>(1) << (sizeof(T) * 8 - 1)))
                                                     : T(~Wide<T>(0));
};

#define LAMINA_INLINE [[gnu::always_inline]] static inline

// Folds of vectors: f on vectors of lanes, start and take by lane.
struct Sum {
  template <class T>
  LAMINA_INLINE T start() {
    return T(0);
  }
  template <class V>
  LAMINA_INLINE V take(V x) {
    return x;
  }
  template <class V>
  LAMINA_INLINE V f(V a, V b) {
    return a + b;
  }
};
struct SumSquares : Sum {
  template <class V>
  LAMINA_INLINE V take(V x) {
    return x * x;
  }
};
struct Prod : Sum {
  template <class T>
  LAMINA_INLINE T start() {
    return T(1);
  }
  template <class V>
  LAMINA_INLINE V f(V a, V b) {
    return a * b;
  }
};
// a < b is false for a NaN a, which so stays.
struct Max : Sum {
  template <class T>
  LAMINA_INLINE T start() {
    return Limits<T>::lowest;
  }
  template <class V>
  LAMINA_INLINE V f(V a, V b) {
    const V larger = a < b ? b : a;
    return b != b ? b : larger;
  }
};
struct Min : Sum {
  template <class T>
  LAMINA_INLINE T start() {
    return Limits<T>::highest;
  }
  template <class V>
  LAMINA_INLINE V f(V a, V b) {
    const V smaller = b < a ? b : a;
    return b != b ? b : smaller;
  }
};
// Of bytes that are zero or one.
struct Any : Sum {
  template <class V>
  LAMINA_INLINE V f(V a, V b) {
    return a | b;
  }
};
struct All : Sum {
  template <class T>
  LAMINA_INLINE T start() {
    return T(1);
  }
  template <class V>
  LAMINA_INLINE V f(V a, V b) {
    return a & b;
  }
};

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};

// 128 bytes of lanes hide the latency of an addition on every level.
template <class T>
inline constexpr int kFoldLanes = 128 / int(sizeof(T));
constexpr int kRegisters = 128 / kVectorBytes;

// `left` elements at x, or as many as a vector holds, padded with the neutral element.
template <class F, class T>
[[gnu::always_inline]] inline typename VectorOf<T>::type load_padded(const T* x, int64_t left) {
  using V = typename VectorOf<T>::type;
  constexpr int W = kVectorBytes / int(sizeof(T));
  const V neutral = F::template start<T>() - V{};
#if defined(__AVX512F__)
  const uint64_t lanes = left >= W ? ~uint64_t{0} : left > 0 ? (uint64_t{1} << left) - 1 : 0;
  if constexpr (sizeof(T) == 1)
    return (V)_mm512_mask_loadu_epi8((__m512i)neutral, __mmask64(lanes), x);
  else if constexpr (sizeof(T) == 2)
    return (V)_mm512_mask_loadu_epi16((__m512i)neutral, __mmask32(lanes), x);
  else if constexpr (sizeof(T) == 4)
    return (V)_mm512_mask_loadu_epi32((__m512i)neutral, __mmask16(lanes), x);
  else
    return (V)_mm512_mask_loadu_epi64((__m512i)neutral, __mmask8(lanes), x);
#else
  V v = neutral;
  if (left >= W)
    __builtin_memcpy(&v, x, sizeof v);
  else
    for (int j = 0; j < left; ++j) v[j] = x[j];
  return v;
#endif
}

// kParts adjacent numbers make up an element: two for the sum of complex values.
template <class F, class T, int kParts = 1>
[[gnu::always_inline]] inline void fold_one_leaf(void* part, const T* x, int64_t n) {
  using V = typename VectorOf<T>::type;
  constexpr int L = kFoldLanes<T>;
  constexpr int W = kVectorBytes / int(sizeof(T));
  n *= kParts;
  V acc[kRegisters];
  for (V& v : acc) v = F::template start<T>() - V{};
  int64_t i = 0;
  for (; i + L <= n; i += L) {
#pragma GCC unroll 8
    for (int u = 0; u < kRegisters; ++u) {
      V v;
      __builtin_memcpy(&v, x + i + u * W, sizeof v);
      acc[u] = F::f(acc[u], F::take(v));
    }
  }
  if (i < n) {
    // The rest, padded with the neutral element.
#pragma GCC unroll 8
    for (int u = 0; u < kRegisters; ++u) {
      const V v = load_padded<F, T>(x + i + u * W, n - i - u * W);
      acc[u] = F::f(acc[u], F::take(v));
    }
  }
  // Halves are folded onto each other, registers first, then lanes.
#pragma GCC unroll 4
  for (int half = kRegisters / 2; half >= 1; half /= 2)
#pragma GCC unroll 4
    for (int u = 0; u < half; ++u) acc[u] = F::f(acc[u], acc[u + half]);
  alignas(64) T lane[W];
  __builtin_memcpy(lane, acc, sizeof lane);
#pragma GCC unroll 8
  for (int half = W / 2; half >= kParts; half /= 2)
    for (int j = 0; j < half; ++j) lane[j] = T(F::f(lane[j], lane[j + half]));
  for (int j = 0; j < kParts; ++j) static_cast<T*>(part)[j] = lane[j];
}

template <class F, class T, int kParts = 1>
void fold_leaf(void* parts, const void* in, int64_t n) {
  auto* x = static_cast<const T*>(in);
  auto* p = static_cast<T*>(parts);
  for (; n > kLeaf; n -= kLeaf, x += kLeaf * kParts, p += kParts)
    fold_one_leaf<F, T, kParts>(p, x, kLeaf);
  fold_one_leaf<F, T, kParts>(p, x, n);
}

// Columns from j on, kVectors vectors of them at a time over all rows: the wider, the fewer places
// of memory are read in turn. Returns the first column that is left.
template <class F, class T, int kVectors>
[[gnu::always_inline]] inline int64_t fold_columns(T* p, const T* x, int64_t stride, int64_t rows,
                                                   int64_t j, int64_t n) {
  using V = typename VectorOf<T>::type;
  constexpr int W = kVectorBytes / int(sizeof(T));
  constexpr int L = kVectors * W;
  for (; j + L <= n; j += L) {
    V acc[kVectors];
#pragma GCC unroll 8
    for (int u = 0; u < kVectors; ++u) {
      __builtin_memcpy(&acc[u], x + j + u * W, sizeof(V));
      acc[u] = F::take(acc[u]);
    }
    for (int64_t r = 1; r < rows; ++r) {
      const T* row = x + r * stride + j;
#pragma GCC unroll 8
      for (int u = 0; u < kVectors; ++u) {
        V v;
        __builtin_memcpy(&v, row + u * W, sizeof v);
        acc[u] = F::f(acc[u], F::take(v));
      }
    }
    __builtin_memcpy(p + j, acc, sizeof acc);
  }
  return j;
}

template <class F, class T, int kParts = 1>
void fold_across(void* parts, const void* in, int64_t stride, int64_t rows, int64_t n) {
  auto* x = static_cast<const T*>(in);
  auto* p = static_cast<T*>(parts);
  n *= kParts;
  stride *= kParts;
  int64_t j = fold_columns<F, T, 8>(p, x, stride, rows, 0, n);
  j = fold_columns<F, T, 1>(p, x, stride, rows, j, n);
  for (; j < n; ++j) {
    T acc = T(F::take(x[j]));
    for (int64_t r = 1; r < rows; ++r) acc = T(F::f(acc, T(F::take(x[r * stride + j]))));
    p[j] = acc;
  }
}

template <class R>
[[gnu::always_inline]] inline Cx<R> times(Cx<R> a, Cx<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class R>
[[gnu::always_inline]] inline void product_one_leaf(void* part, const Cx<R>* x, int64_t n) {
  constexpr int L = 8;
  Cx<R> lane[L];
  for (auto& l : lane) l = {1, 0};
  int64_t i = 0;
  for (; i + L <= n; i += L)
    for (int j = 0; j < L; ++j) lane[j] = times(lane[j], x[i + j]);
  for (int j = 0; i < n; ++i, ++j) lane[j] = times(lane[j], x[i]);
  for (int half = L / 2; half >= 1; half /= 2)
    for (int j = 0; j < half; ++j) lane[j] = times(lane[j], lane[j + half]);
  *static_cast<Cx<R>*>(part) = lane[0];
}
template <class R>
void product_leaf(void* parts, const void* in, int64_t n) {
  auto* x = static_cast<const Cx<R>*>(in);
  auto* p = static_cast<Cx<R>*>(parts);
  for (; n > kLeaf; n -= kLeaf, x += kLeaf, ++p) product_one_leaf(p, x, kLeaf);
  product_one_leaf(p, x, n);
}
template <class R>
void product_across(void* parts, const void* in, int64_t stride, int64_t rows, int64_t n) {
  auto* x = static_cast<const Cx<R>*>(in);
  auto* p = static_cast<Cx<R>*>(parts);
  for (int64_t j = 0; j < n; ++j) {
    Cx<R> acc = x[j];
    for (int64_t r = 1; r < rows; ++r) acc = times(acc, x[r * stride + j]);
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

template <class F, class T, int kParts = 1>
void put(Level& l, Fold fold, int slot = slot_of<T>) {
  l.fold_leaf[static_cast<int>(fold)][slot] = fold_leaf<F, T, kParts>;
  l.fold_across[static_cast<int>(fold)][slot] = fold_across<F, T, kParts>;
}
template <class T>
void put_order(Level& l) {
  put<Max, T>(l, Fold::amax);
  put<Min, T>(l, Fold::amin);
  l.find[0][slot_of<T>] = find<Max, T>;
  l.find[1][slot_of<T>] = find<Min, T>;
}
template <class R>
void put_complex(Level& l) {
  constexpr int s = slot_of<Cx<R>>;
  put<Sum, R, 2>(l, Fold::sum, s);
  l.fold_leaf[static_cast<int>(Fold::prod)][s] = product_leaf<R>;
  l.fold_across[static_cast<int>(Fold::prod)][s] = product_across<R>;
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
  put<Sum, uint64_t>(l, Fold::sum, slot_of<int64_t>);  // wraps
  put<Prod, uint64_t>(l, Fold::prod, slot_of<int64_t>);
  put<Sum, float>(l, Fold::sum);
  put<Prod, float>(l, Fold::prod);
  put<Sum, double>(l, Fold::sum);
  put<Prod, double>(l, Fold::prod);
  put_complex<float>(l);
  put_complex<double>(l);
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
