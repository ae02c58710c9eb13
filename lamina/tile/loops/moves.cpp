// Copies between strided places by item size: gathers, scatters, broadcasts and transposes.
#include <cstring>

#include "lamina/tile/loops/elementwise.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace lamina::tile::LAMINA_TILE_LEVEL {
namespace {

struct Item16 {
  uint64_t low, high;
};

typedef float Float4 __attribute__((vector_size(16), aligned(4)));
typedef float Float8 __attribute__((vector_size(32), aligned(4)));
typedef double Double2 __attribute__((vector_size(16), aligned(8)));
typedef double Double4 __attribute__((vector_size(32), aligned(8)));

template <class V>
[[gnu::always_inline]] inline V get(const char* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class V>
[[gnu::always_inline]] inline void set(char* p, V v) {
  __builtin_memcpy(p, &v, sizeof v);
}

// out[r][c] = in[c][r] for a square of kSide; strides in bytes between rows of `out` and of `in`.
template <class T>
struct Square {
  static constexpr int kSide = 1;
  [[gnu::always_inline]] static void move(char* out, int64_t, const char* in, int64_t) {
    set(out, get<T>(in));
  }
};
#if defined(__AVX2__)
template <>
struct Square<uint32_t> {
  static constexpr int kSide = 8;
  [[gnu::always_inline]] static void move(char* out, int64_t out_row, const char* in,
                                          int64_t in_row) {
    Float8 x[8], y[8];
    for (int i = 0; i < 8; ++i) x[i] = get<Float8>(in + i * in_row);
    for (int i = 0; i < 8; i += 2) {
      y[i] = __builtin_shufflevector(x[i], x[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
      y[i + 1] = __builtin_shufflevector(x[i], x[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += 4)
      for (int j = 0; j < 2; ++j) {
        x[i + 2 * j] = __builtin_shufflevector(y[i + j], y[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        x[i + 2 * j + 1] =
            __builtin_shufflevector(y[i + j], y[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
      }
    for (int i = 0; i < 4; ++i) {
      set(out + i * out_row, __builtin_shufflevector(x[i], x[i + 4], 0, 1, 2, 3, 8, 9, 10, 11));
      set(out + (i + 4) * out_row,
          __builtin_shufflevector(x[i], x[i + 4], 4, 5, 6, 7, 12, 13, 14, 15));
    }
  }
};
template <>
struct Square<uint64_t> {
  static constexpr int kSide = 4;
  [[gnu::always_inline]] static void move(char* out, int64_t out_row, const char* in,
                                          int64_t in_row) {
    Double4 x[4], y[4];
    for (int i = 0; i < 4; ++i) x[i] = get<Double4>(in + i * in_row);
    for (int i = 0; i < 4; i += 2) {
      y[i] = __builtin_shufflevector(x[i], x[i + 1], 0, 4, 2, 6);
      y[i + 1] = __builtin_shufflevector(x[i], x[i + 1], 1, 5, 3, 7);
    }
    for (int i = 0; i < 2; ++i) {
      set(out + i * out_row, __builtin_shufflevector(y[i], y[i + 2], 0, 1, 4, 5));
      set(out + (i + 2) * out_row, __builtin_shufflevector(y[i], y[i + 2], 2, 3, 6, 7));
    }
  }
};
#else
template <>
struct Square<uint32_t> {
  static constexpr int kSide = 4;
  [[gnu::always_inline]] static void move(char* out, int64_t out_row, const char* in,
                                          int64_t in_row) {
    Float4 x[4], y[4];
    for (int i = 0; i < 4; ++i) x[i] = get<Float4>(in + i * in_row);
    for (int i = 0; i < 2; ++i) {
      y[2 * i] = __builtin_shufflevector(x[i], x[i + 2], 0, 4, 1, 5);
      y[2 * i + 1] = __builtin_shufflevector(x[i], x[i + 2], 2, 6, 3, 7);
    }
    for (int i = 0; i < 2; ++i) {
      set(out + 2 * i * out_row, __builtin_shufflevector(y[i], y[i + 2], 0, 4, 1, 5));
      set(out + (2 * i + 1) * out_row, __builtin_shufflevector(y[i], y[i + 2], 2, 6, 3, 7));
    }
  }
};
template <>
struct Square<uint64_t> {
  static constexpr int kSide = 2;
  [[gnu::always_inline]] static void move(char* out, int64_t out_row, const char* in,
                                          int64_t in_row) {
    const Double2 x = get<Double2>(in);
    const Double2 y = get<Double2>(in + in_row);
    set(out, __builtin_shufflevector(x, y, 0, 2));
    set(out + out_row, __builtin_shufflevector(x, y, 1, 3));
  }
};
#endif

// out[r][c] = in[c][r], columns of `out` and rows of `in` adjacent.
template <class T>
void transpose(char* out, int64_t out_row, const char* in, int64_t in_col, int64_t rows,
               int64_t cols) {
  constexpr int64_t S = sizeof(T);
  constexpr int64_t kSide = Square<T>::kSide;
  const int64_t full_rows = rows - rows % kSide;
  const int64_t full_cols = cols - cols % kSide;
  for (int64_t r = 0; r < full_rows; r += kSide)
    for (int64_t c = 0; c < full_cols; c += kSide)
      Square<T>::move(out + r * out_row + c * S, out_row, in + c * in_col + r * S, in_col);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = r < full_rows ? full_cols : 0; c < cols; ++c)
      set(out + r * out_row + c * S, get<T>(in + c * in_col + r * S));
}

template <class T>
void move(void* out_v, int64_t out_row, int64_t out_col, const void* in_v, int64_t in_row,
          int64_t in_col, int64_t rows, int64_t cols) {
  constexpr int64_t S = sizeof(T);
  auto* out = static_cast<char*>(out_v);
  auto* in = static_cast<const char*>(in_v);
  if (out_col == S && in_col == S) {
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(out + r * out_row, in + r * in_row, static_cast<size_t>(cols * S));
  } else if (out_col == S && in_col == 0) {
    for (int64_t r = 0; r < rows; ++r) {
      const T v = get<T>(in + r * in_row);
      char* o = out + r * out_row;
      for (int64_t c = 0; c < cols; ++c) set(o + c * S, v);
    }
  } else if (out_col == S && in_row == S && rows > 1) {
    transpose<T>(out, out_row, in, in_col, rows, cols);
  } else if (in_col == S && out_row == S && rows > 1) {
    transpose<T>(out, out_col, in, in_row, cols, rows);
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      char* o = out + r * out_row;
      const char* x = in + r * in_row;
#pragma GCC unroll 4
      for (int64_t c = 0; c < cols; ++c) set(o + c * out_col, get<T>(x + c * in_col));
    }
  }
}

#if defined(__AVX512F__)
constexpr int64_t kStreamBytes = 64;
[[gnu::always_inline]] inline void stream_one(char* out, const char* in) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(out), _mm512_loadu_si512(in));
}
#elif defined(__AVX2__)
constexpr int64_t kStreamBytes = 32;
[[gnu::always_inline]] inline void stream_one(char* out, const char* in) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(out),
                      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in)));
}
#elif defined(__SSE2__)
constexpr int64_t kStreamBytes = 16;
[[gnu::always_inline]] inline void stream_one(char* out, const char* in) {
  _mm_stream_si128(reinterpret_cast<__m128i*>(out),
                   _mm_loadu_si128(reinterpret_cast<const __m128i*>(in)));
}
#endif

void stream(void* out_v, const void* in_v, int64_t bytes) {
#if defined(__SSE2__)
  if (bytes == 0) return _mm_sfence();
  auto* out = static_cast<char*>(out_v);
  auto* in = static_cast<const char*>(in_v);
  // Whole lines only: a line written in two halves by different calls would be slower than through
  // the cache.
  const auto misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(out) & 63);
  int64_t head = misaligned ? 64 - misaligned : 0;
  if (head > bytes) head = bytes;
  std::memcpy(out, in, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + 64 <= bytes; i += 64)
#pragma GCC unroll 4
    for (int64_t k = 0; k < 64; k += kStreamBytes) stream_one(out + i + k, in + i + k);
  std::memcpy(out + i, in + i, static_cast<size_t>(bytes - i));
#else
  std::memcpy(out_v, in_v, static_cast<size_t>(bytes));
#endif
}

}  // namespace

void fill_moves(Level& l) {
  l.move[0] = move<uint8_t>;
  l.move[1] = move<uint16_t>;
  l.move[2] = move<uint32_t>;
  l.move[3] = move<uint64_t>;
  l.move[4] = move<Item16>;
  l.stream = stream;
  // Where there is AVX-512, the way through a block of the first cache costs more than it saves;
  // conversions and transposes, which go that way anyhow, gain sooner
  // (docs/decisions/0003-tile-machine.md).
#if defined(__AVX512F__)
  l.streams_from = int64_t{20} << 20;
#else
  l.streams_results = true;
#endif
}

}  // namespace lamina::tile::LAMINA_TILE_LEVEL
