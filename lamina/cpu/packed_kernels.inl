// Compiled once per instruction set, with LAMINA_PACKED_LEVEL naming the namespace, LAMINA_PACKED_NAME the level and
// LAMINA_PACKED_BYTES the width of a vector. Everything is in that namespace or inlined by force: no function compiled
// here for a newer machine may be the one that the linker keeps for an older one.
#include "lamina/cpu/packed.h"
#include "lamina/cpu/packed_vectors.inl"

namespace lamina::cpu::LAMINA_PACKED_LEVEL {
namespace {

#if LAMINA_PACKED_BYTES > 16
typedef uint32_t Eight __attribute__((vector_size(32)));

// Transposes eight vectors of eight words.
LAMINA_INLINE void transpose(Eight (&v)[8]) {
#define LAMINA_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define LAMINA_HIGH(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define LAMINA_LOW2(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define LAMINA_HIGH2(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define LAMINA_LOW4(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define LAMINA_HIGH4(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
  const Eight t0 = LAMINA_LOW(v[0], v[1]), t1 = LAMINA_HIGH(v[0], v[1]);
  const Eight t2 = LAMINA_LOW(v[2], v[3]), t3 = LAMINA_HIGH(v[2], v[3]);
  const Eight t4 = LAMINA_LOW(v[4], v[5]), t5 = LAMINA_HIGH(v[4], v[5]);
  const Eight t6 = LAMINA_LOW(v[6], v[7]), t7 = LAMINA_HIGH(v[6], v[7]);
  const Eight u0 = LAMINA_LOW2(t0, t2), u1 = LAMINA_HIGH2(t0, t2);
  const Eight u2 = LAMINA_LOW2(t1, t3), u3 = LAMINA_HIGH2(t1, t3);
  const Eight u4 = LAMINA_LOW2(t4, t6), u5 = LAMINA_HIGH2(t4, t6);
  const Eight u6 = LAMINA_LOW2(t5, t7), u7 = LAMINA_HIGH2(t5, t7);
  v[0] = LAMINA_LOW4(u0, u4), v[1] = LAMINA_LOW4(u1, u5);
  v[2] = LAMINA_LOW4(u2, u6), v[3] = LAMINA_LOW4(u3, u7);
  v[4] = LAMINA_HIGH4(u0, u4), v[5] = LAMINA_HIGH4(u1, u5);
  v[6] = LAMINA_HIGH4(u2, u6), v[7] = LAMINA_HIGH4(u3, u7);
}

#if LAMINA_PACKED_BYTES == 64
// Sixteen lanes of sixteen steps of k, words that are adjacent along k; out[q * width + lane].
LAMINA_INLINE void transpose_sixteen(void* out_v, const void* in_v, int64_t lane_stride, int64_t width) {
  auto* out = static_cast<uint32_t*>(out_v);
  const auto* in = static_cast<const uint32_t*>(in_v);
  __m512i r[16], t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_si512(in + i * lane_stride);
  // Within pieces of 128 bits: words of two lanes side by side, then of four.
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  // r[4 g + j]: lanes 4 g to 4 g + 3 of the steps j, 4 + j, 8 + j, 12 + j; the pieces find together.
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m512i a = _mm512_shuffle_i32x4(r[j], r[4 + j], 0x88), b = _mm512_shuffle_i32x4(r[j], r[4 + j], 0xdd);
    const __m512i c = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0x88),
                  d = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0xdd);
    _mm512_storeu_si512(out + j * width, _mm512_shuffle_i32x4(a, c, 0x88));
    _mm512_storeu_si512(out + (4 + j) * width, _mm512_shuffle_i32x4(b, d, 0x88));
    _mm512_storeu_si512(out + (8 + j) * width, _mm512_shuffle_i32x4(a, c, 0xdd));
    _mm512_storeu_si512(out + (12 + j) * width, _mm512_shuffle_i32x4(b, d, 0xdd));
  }
}
#endif

// Eight adjacent elements, converted to words of the computing type.
template <class T, class S>
LAMINA_INLINE Eight load_eight(const S* in) {
  T values[8];
  for (int i = 0; i < 8; ++i) values[i] = load<T>(in[i]);
  Eight v;
  __builtin_memcpy(&v, values, sizeof v);
  return v;
}

// Eight lanes (fewer: kLaneCount) of eight steps of k whose elements are adjacent along k. Writes eight words a step, so
// up to eight words after the last step's lanes must belong to the panel still.
template <class T, class S, int kWidth, int kLaneCount>
LAMINA_INLINE void pack_square(T* out, const S* in, int64_t lane_stride) {
  Eight v[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) v[i] = i < kLaneCount ? load_eight<T>(in + i * lane_stride) : Eight{};
  transpose(v);
#pragma GCC unroll 8
  for (int q = 0; q < 8; ++q) __builtin_memcpy(out + q * kWidth, &v[q], sizeof v[q]);
}
#endif

// --- packing -----------------------------------------------------------------------------------------------------------
template <class T, class S, int kWidth>
void pack_panels(T* out, const S* in, int64_t lanes, int64_t k, int64_t lane_stride,
                 int64_t k_stride) {
  for (int64_t l = 0; l < lanes; l += kWidth) {
    const S* base = in + l * lane_stride;
    const int64_t width = lanes - l < kWidth ? lanes - l : kWidth;
    if (width < kWidth) {
      for (int64_t p = 0; p < k; ++p)
        for (int64_t i = 0; i < kWidth; ++i)
          out[p * kWidth + i] = i < width ? load<T>(base[i * lane_stride + p * k_stride]) : T(0);
    } else if (lane_stride == 1) {
      for (int64_t p = 0; p < k; ++p)
        for (int i = 0; i < kWidth; ++i) out[p * kWidth + i] = load<T>(base[p * k_stride + i]);
    } else {
      int64_t p = 0;
#if LAMINA_PACKED_BYTES > 16
      if constexpr (sizeof(T) == 4) {
#if LAMINA_PACKED_BYTES == 64
        if constexpr (sizeof(S) == 4 && kWidth % 16 == 0)
          if (k_stride == 1)
            for (; p + 16 <= k; p += 16)
#pragma GCC unroll 2
              for (int i = 0; i < kWidth; i += 16)
                transpose_sixteen(out + p * kWidth + i, base + i * lane_stride + p, lane_stride, kWidth);
#endif
        // Rewritten in order of k: what a square writes past its lanes is overwritten by later steps.
        if (k_stride == 1)
          for (; p + 16 <= k; p += 8) {
            constexpr int kWhole = kWidth / 8 * 8, kRest = kWidth - kWhole;
#pragma GCC unroll 4
            for (int i = 0; i < kWhole; i += 8)
              pack_square<T, S, kWidth, 8>(out + p * kWidth + i, base + i * lane_stride + p, lane_stride);
            if constexpr (kRest != 0 && kWhole == 0)
              pack_square<T, S, kWidth, kRest>(out + p * kWidth, base + p, lane_stride);
            if constexpr (kRest != 0 && kWhole != 0)
              for (int i = kWhole; i < kWidth; ++i)
                for (int q = 0; q < 8; ++q)
                  out[(p + q) * kWidth + i] = load<T>(base[i * lane_stride + p + q]);
          }
      }
#endif
      for (; p < k; ++p)
        for (int i = 0; i < kWidth; ++i)
          out[p * kWidth + i] = load<T>(base[i * lane_stride + p * k_stride]);
    }
    out += k * kWidth;
  }
}

template <class T, class S>
void pack_from(void* out, const void* in, int64_t lanes, int64_t k, int64_t lane_stride,
               int64_t k_stride, int width) {
  if (width == kMr)
    pack_panels<T, S, kMr>(static_cast<T*>(out), static_cast<const S*>(in), lanes, k, lane_stride,
                           k_stride);
  else
    pack_panels<T, S, 2 * kLanes<T>>(static_cast<T*>(out), static_cast<const S*>(in), lanes, k,
                                     lane_stride, k_stride);
}

template <class T>
void pack(void* out, const void* in, ScalarType type, int64_t lanes, int64_t k, int64_t lane_stride,
          int64_t k_stride, int width) {
#define LAMINA_CASE(S, Type)                                                        \
  case ScalarType::Type:                                                            \
    return pack_from<T, S>(out, in, lanes, k, lane_stride, k_stride, width);
  if constexpr (T(0.5) != 0) {
    if constexpr (sizeof(T) == 4) {
      switch (type) {
        LAMINA_CASE(HalfBits, Float16)
        LAMINA_CASE(BFloat16Bits, BFloat16)
        default:
          return pack_from<T, T>(out, in, lanes, k, lane_stride, k_stride, width);
      }
    } else {
      return pack_from<T, T>(out, in, lanes, k, lane_stride, k_stride, width);
    }
  } else if constexpr (sizeof(T) == 4) {
    // Only the low bits of a narrow integer reach the result: signed ones need no loops of their own.
    switch (type) {
      LAMINA_CASE(Bool8, Bool)
      case ScalarType::Int8:
        LAMINA_CASE(uint8_t, UInt8)
      case ScalarType::Int16:
        LAMINA_CASE(uint16_t, UInt16)
      default:
        return pack_from<T, T>(out, in, lanes, k, lane_stride, k_stride, width);
    }
  } else {
    return pack_from<T, T>(out, in, lanes, k, lane_stride, k_stride, width);
  }
#undef LAMINA_CASE
}

#ifdef LAMINA_PACKED_PAIRS
// Two neighbours along k in a word, the first in the upper half: the instruction adds the upper product first.
void pack_pairs(void* out_v, const void* in_v, ScalarType, int64_t lanes, int64_t k, int64_t lane_stride,
                int64_t k_stride, int width) {
  auto* out = static_cast<uint32_t*>(out_v);
  const auto* in = static_cast<const uint16_t*>(in_v);
  const int64_t whole = k / 2;
  const auto fill = [&]<int kWidth>(int64_t l) {
    const uint16_t* base = in + l * lane_stride;
    const int64_t count = lanes - l < kWidth ? lanes - l : kWidth;
    int64_t p = 0;
    if (count == kWidth && lane_stride == 1) {
      for (; p < whole; ++p) {
        const uint16_t *first = base + 2 * p * k_stride, *second = first + k_stride;
        for (int i = 0; i < kWidth; ++i) out[p * kWidth + i] = uint32_t(first[i]) << 16 | second[i];
      }
    } else if (count == kWidth && k_stride == 1) {
      // What the last square writes past its lanes is overwritten by those before it and by later steps.
      for (; p + 16 <= whole; p += 8)
        for (int i = (kWidth - 1) / 8 * 8; i >= 0; i -= 8) {
          Eight v[8];
#pragma GCC unroll 8
          for (int q = 0; q < 8; ++q) {
            v[q] = Eight{};
            if (i + q < kWidth) __builtin_memcpy(&v[q], base + (i + q) * lane_stride + 2 * p, sizeof v[q]);
            v[q] = v[q] << 16 | v[q] >> 16;
          }
          transpose(v);
#pragma GCC unroll 8
          for (int q = 0; q < 8; ++q) __builtin_memcpy(out + (p + q) * kWidth + i, &v[q], sizeof v[q]);
        }
    }
    for (; 2 * p < k; ++p)
      for (int64_t i = 0; i < kWidth; ++i) {
        const uint16_t* pair = base + i * lane_stride + 2 * p * k_stride;
        out[p * kWidth + i] =
            i >= count ? 0 : uint32_t(pair[0]) << 16 | (2 * p + 1 < k ? pair[k_stride] : uint16_t(0));
      }
    out += (k + 1) / 2 * kWidth;
  };
  if (width == kMr)
    for (int64_t l = 0; l < lanes; l += kMr) fill.template operator()<kMr>(l);
  else
    for (int64_t l = 0; l < lanes; l += 2 * kLanes<float>) fill.template operator()<2 * kLanes<float>>(l);
}
#endif

// --- the tile ------------------------------------------------------------------------------------------------------------
template <class T>
struct Scale {
  T alpha, beta;
};

// C (kRows, cols) = beta * C + alpha * A * B over one piece of k; panels of I.
template <class T, class I, int kRows>
[[gnu::noinline]] void tile(int64_t k, const I* a, const I* b, T* c, int64_t c_stride, int64_t cols,
                            Scale<T> scale) {
  constexpr int kL = kLanes<T>;
  Vec<T> acc[kRows][2] = {};
  for (int i = 0; i < kRows; ++i) __builtin_prefetch(c + i * c_stride, 1);
#pragma GCC unroll 2
  for (int64_t p = 0; p < k; ++p) {
    const Vec<I> b0 = load_vector(b), b1 = load_vector(b + kL);
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      const Vec<I> x = a[i] - Vec<I>{};
      acc[i][0] = multiply_add<T>(x, b0, acc[i][0]);
      acc[i][1] = multiply_add<T>(x, b1, acc[i][1]);
    }
    a += kMr;
    b += 2 * kL;
  }
  if (scale.alpha != T(1)) {
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      acc[i][0] *= scale.alpha;
      acc[i][1] *= scale.alpha;
    }
  }
  if (cols == 2 * kL) {
    if (scale.beta == T(0)) {
#pragma GCC unroll 12
      for (int i = 0; i < kRows; ++i) {
        store_vector(c + i * c_stride, acc[i][0]);
        store_vector(c + i * c_stride + kL, acc[i][1]);
      }
    } else {
#pragma GCC unroll 12
      for (int i = 0; i < kRows; ++i) {
        T* row = c + i * c_stride;
        store_vector(row, load_vector(row) * scale.beta + acc[i][0]);
        store_vector(row + kL, load_vector(row + kL) * scale.beta + acc[i][1]);
      }
    }
    return;
  }
  alignas(64) T out[kRows][2 * kL];
  __builtin_memcpy(out, acc, sizeof out);
  for (int i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      T& target = c[i * c_stride + j];
      target = scale.beta == T(0) ? out[i][j] : static_cast<T>(target * scale.beta + out[i][j]);
    }
}

template <class T, class I>
void tile_of(int64_t rows, int64_t k, const I* a, const I* b, T* c, int64_t c_stride, int64_t cols,
             Scale<T> scale) {
  switch (rows) {
#define LAMINA_CASE(n) \
  case n:              \
    return tile<T, I, n>(k, a, b, c, c_stride, cols, scale);
    LAMINA_CASE(1)
    LAMINA_CASE(2)
    LAMINA_CASE(3)
    LAMINA_CASE(4)
    LAMINA_CASE(5)
    LAMINA_CASE(6)
#if LAMINA_PACKED_BYTES == 64
    LAMINA_CASE(7)
    LAMINA_CASE(8)
    LAMINA_CASE(9)
    LAMINA_CASE(10)
    LAMINA_CASE(11)
    LAMINA_CASE(12)
#endif
#undef LAMINA_CASE
    default:
      return;
  }
}

template <class T>
LAMINA_INLINE T scalar_as(const Scalar& s) {
  if constexpr (T(0.5) != 0)
    return static_cast<T>(s.to_double());
  else
    return static_cast<T>(s.to_int());
}

// Unsigned arithmetic wraps; on signed integers overflow would be undefined.
template <class T, class I = T>
void block(const PackedBlock& g) {
  constexpr int64_t kNr = 2 * kLanes<T>;
  const auto* a = static_cast<const I*>(g.a);
  const auto* b = static_cast<const I*>(g.b);
  auto* c = static_cast<T*>(g.c);
  const T alpha = scalar_as<T>(g.alpha);
  for (int64_t k0 = 0; k0 < g.k; k0 += kPackedKc) {
    const int64_t k = g.k - k0 < kPackedKc ? g.k - k0 : kPackedKc;
    const Scale<T> scale{alpha, k0 == 0 ? scalar_as<T>(g.beta) : T(1)};
    for (int64_t j = 0; j < g.cols; j += kNr) {
      const int64_t cols = g.cols - j < kNr ? g.cols - j : kNr;
      for (int64_t i = 0; i < g.rows; i += kMr) {
        const int64_t rows = g.rows - i < kMr ? g.rows - i : kMr;
        tile_of<T, I>(rows, k, a + (g.row + i) * k, b + (g.col + j) * k, c + i * g.c_stride + j, g.c_stride, cols, scale);
      }
    }
    a += g.a_piece;
    b += g.b_piece;
  }
}

// --- small products ----------------------------------------------------------------------------------------------------
// As tile(), with A where it lies and B in rows of b_step elements.
template <class T, int kRows>
[[gnu::noinline]] void strided_tile(int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b,
                                    int64_t b_step, T* c, int64_t c_stride, int64_t cols,
                                    Scale<T> scale) {
  constexpr int kL = kLanes<T>;
  Vec<T> acc[kRows][2] = {};
#pragma GCC unroll 2
  for (int64_t p = 0; p < k; ++p) {
    const Vec<T> b0 = load_vector(b), b1 = load_vector(b + kL);
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      const Vec<T> x = a[i * a_row] - Vec<T>{};
      acc[i][0] = multiply_add<T>(x, b0, acc[i][0]);
      acc[i][1] = multiply_add<T>(x, b1, acc[i][1]);
    }
    a += a_col;
    b += b_step;
  }
  alignas(64) T out[kRows][2 * kL];
  if (cols < 2 * kL) {
    __builtin_memcpy(out, acc, sizeof out);
    for (int i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < cols; ++j) {
        T& target = c[i * c_stride + j];
        const T v = scale.alpha == T(1) ? out[i][j] : static_cast<T>(scale.alpha * out[i][j]);
        target = scale.beta == T(0) ? v : static_cast<T>(target * scale.beta + v);
      }
    return;
  }
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
    T* row = c + i * c_stride;
    if (scale.alpha != T(1)) {
      acc[i][0] *= scale.alpha;
      acc[i][1] *= scale.alpha;
    }
    if (scale.beta != T(0)) {
      acc[i][0] += load_vector(row) * scale.beta;
      acc[i][1] += load_vector(row + kL) * scale.beta;
    }
    store_vector(row, acc[i][0]);
    store_vector(row + kL, acc[i][1]);
  }
}

template <class T>
void small(const SmallProduct& g) {
  constexpr int64_t kNr = 2 * kLanes<T>;
  const auto* a = static_cast<const T*>(g.a);
  const auto* b = static_cast<const T*>(g.b);
  auto* c = static_cast<T*>(g.c);
  const Scale<T> scale{scalar_as<T>(g.alpha), scalar_as<T>(g.beta)};
  alignas(64) T panel[kSmallK * kNr];
  for (int64_t j = 0; j < g.n; j += kNr) {
    const int64_t cols = g.n - j < kNr ? g.n - j : kNr;
    const T* from = b + j * g.b_col_stride;
    int64_t step = g.b_row_stride;
    // The last columns are padded, so that whole vectors may be read.
    if (g.b_col_stride != 1 || cols < kNr) {
      pack_panels<T, T, kNr>(panel, from, cols, g.k, g.b_col_stride, g.b_row_stride);
      from = panel;
      step = kNr;
    }
    for (int64_t i = 0; i < g.m; i += kMr) {
      const T* rows = a + i * g.a_row_stride;
      T* to = c + i * g.c_row_stride + j;
      switch (g.m - i < kMr ? g.m - i : kMr) {
#define LAMINA_CASE(n)                                                                           \
  case n:                                                                                        \
    strided_tile<T, n>(g.k, rows, g.a_row_stride, g.a_col_stride, from, step, to, g.c_row_stride, \
                       cols, scale);                                                             \
    break;
        LAMINA_CASE(1)
        LAMINA_CASE(2)
        LAMINA_CASE(3)
        LAMINA_CASE(4)
        LAMINA_CASE(5)
        LAMINA_CASE(6)
#if LAMINA_PACKED_BYTES == 64
        LAMINA_CASE(7)
        LAMINA_CASE(8)
        LAMINA_CASE(9)
        LAMINA_CASE(10)
        LAMINA_CASE(11)
        LAMINA_CASE(12)
#endif
#undef LAMINA_CASE
        default:
          break;
      }
    }
  }
}

template <class T, class S>
void finish_as(S* c, int64_t row_stride, int64_t col_stride, const T* work, int64_t work_stride,
               int64_t rows, int64_t cols, T alpha, T beta) {
  for (int64_t i = 0; i < rows; ++i) {
    S* row = c + i * row_stride;
    const T* from = work + i * work_stride;
    if (beta == T(0) && alpha == T(1) && col_stride == 1) {
      for (int64_t j = 0; j < cols; ++j) row[j] = store<S, T>(from[j]);
    } else {
      for (int64_t j = 0; j < cols; ++j) {
        S& target = row[j * col_stride];
        T v = from[j];
        if (alpha != T(1)) v = static_cast<T>(alpha * v);
        if (beta != T(0)) v = static_cast<T>(beta * load<T>(target) + v);
        target = store<S, T>(v);
      }
    }
  }
}

template <class T>
void finish(void* c, ScalarType type, int64_t row_stride, int64_t col_stride, const void* work,
            int64_t work_stride, int64_t rows, int64_t cols, const Scalar& alpha,
            const Scalar& beta) {
#define LAMINA_FINISH(S)                                                                        \
  return finish_as<T, S>(static_cast<S*>(c), row_stride, col_stride, static_cast<const T*>(work), \
                         work_stride, rows, cols, scalar_as<T>(alpha), scalar_as<T>(beta))
  if constexpr (sizeof(T) == 4) {
    switch (type) {
      case ScalarType::Float16:
        if constexpr (T(0.5) != 0) LAMINA_FINISH(HalfBits);
        break;
      case ScalarType::BFloat16:
        if constexpr (T(0.5) != 0) LAMINA_FINISH(BFloat16Bits);
        break;
      case ScalarType::Bool:
        if constexpr (T(0.5) == 0) LAMINA_FINISH(Bool8);
        break;
      case ScalarType::Int8:
      case ScalarType::UInt8:
        if constexpr (T(0.5) == 0) LAMINA_FINISH(uint8_t);
        break;
      case ScalarType::Int16:
      case ScalarType::UInt16:
        if constexpr (T(0.5) == 0) LAMINA_FINISH(uint16_t);
        break;
      default:
        LAMINA_FINISH(T);
    }
  } else {
    LAMINA_FINISH(T);
  }
#undef LAMINA_FINISH
}

template <class T>
constexpr PackedKernels kernels_of() {
  return {kMr, 2 * kLanes<T>, sizeof(T), 1, pack<T>, block<T>, small<T>, finish<T>};
}

}  // namespace

#ifdef LAMINA_PACKED_PAIRS
extern const PackedKernels kPairs;
const PackedKernels kPairs = {kMr, 2 * kLanes<float>, 4, 2, pack_pairs, block<float, uint32_t>, nullptr, finish<float>};
#else
extern const PackedLevel kLevel;
const PackedLevel kLevel = {
    LAMINA_PACKED_NAME,
    {kernels_of<float>(), kernels_of<double>(), kernels_of<uint32_t>(), kernels_of<uint64_t>()}};
#endif

}  // namespace lamina::cpu::LAMINA_PACKED_LEVEL
