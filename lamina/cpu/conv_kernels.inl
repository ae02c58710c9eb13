// Loops of convolution, compiled like packed_kernels.inl.
#include "lamina/cpu/conv_kernels.h"
#include "lamina/cpu/packed_vectors.inl"

namespace lamina::cpu::LAMINA_PACKED_LEVEL {
namespace {

// --- C = A * B with rows of B where they lie -----------------------------------------------------------------------------
// Of the last vector, `last` elements are written.
template <class T, int kRows, int kVectors>
[[gnu::noinline]] void product_tile(int64_t k, const T* a, const T* b, const int64_t* offsets, T* c,
                                    int64_t c_stride, bool accumulate, int64_t last) {
  constexpr int kL = kLanes<T>;
  Vec<T> acc[kRows][kVectors] = {};
#pragma GCC unroll 2
  for (int64_t p = 0; p < k; ++p) {
    const T* line = b + offsets[p];
    Vec<T> x[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) x[v] = load_vector(line + v * kL);
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      const Vec<T> w = a[i] - Vec<T>{};
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) acc[i][v] = multiply_add<T>(w, x[v], acc[i][v]);
    }
    a += kMr;
  }
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
    T* row = c + i * c_stride;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Vec<T> sum = accumulate ? load_vector(row + v * kL) + acc[i][v] : acc[i][v];
      if (v < kVectors - 1)
        store_vector(row + v * kL, sum);
      else
        store_first(row + v * kL, sum, last);
    }
  }
}

template <class T, int kVectors>
void product_rows(int64_t rows, int64_t k, const T* a, const T* b, const int64_t* offsets, T* c,
                  int64_t c_stride, bool accumulate, int64_t last) {
  switch (rows) {
#define LAMINA_CASE(n) \
  case n:              \
    return product_tile<T, n, kVectors>(k, a, b, offsets, c, c_stride, accumulate, last);
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
void multiply(const ConvProduct& g) {
  constexpr int kL = kLanes<T>;
  const auto* a = static_cast<const T*>(g.a);
  const auto* b = static_cast<const T*>(g.b);
  auto* c = static_cast<T*>(g.c);
  int64_t j = 0;
  if (g.rows == 1)  // one row alone: more columns keep the adders busy
    for (; j + 3 * kL < g.cols; j += 4 * kL)
      product_tile<T, 1, 4>(g.k, a, b + j, g.offsets, c + j, g.c_stride, g.accumulate,
                            g.cols - j < 4 * kL ? g.cols - j - 3 * kL : kL);
  for (; j < g.cols; j += 2 * kL) {
    const int64_t left = g.cols - j;
    for (int64_t i = 0; i < g.rows; i += kMr) {
      const int64_t rows = g.rows - i < kMr ? g.rows - i : kMr;
      T* to = c + i * g.c_stride + j;
      if (left > kL)
        product_rows<T, 2>(rows, g.k, a + i * g.k, b + j, g.offsets, to, g.c_stride, g.accumulate,
                           left < 2 * kL ? left - kL : kL);
      else
        product_rows<T, 1>(rows, g.k, a + i * g.k, b + j, g.offsets, to, g.c_stride, g.accumulate, left);
    }
  }
}

// --- C += A * B^T --------------------------------------------------------------------------------------------------------
template <class T>
LAMINA_INLINE T sum_of(Vec<T> v) {
  T parts[kLanes<T>];
  __builtin_memcpy(parts, &v, sizeof v);
#pragma GCC unroll 4
  for (int width = kLanes<T> / 2; width > 0; width /= 2)
#pragma GCC unroll 8
    for (int i = 0; i < width; ++i) parts[i] = static_cast<T>(parts[i] + parts[i + width]);
  return parts[0];
}

// What a tile holds in registers: 12 sums of 16 registers, 24 of 32.
#if LAMINA_PACKED_BYTES == 64
constexpr int kDotsM = 4, kDotsN = 6, kDotsRest = 3;
#else
constexpr int kDotsM = 3, kDotsN = 4, kDotsRest = 1;
#endif

// The lanes that count: vector p of a line.
template <class T>
class Counted {
 public:
#if LAMINA_PACKED_BYTES == 64
  explicit Counted(const ConvDots& g) : masks_(g.masks) {}
  LAMINA_INLINE unsigned operator[](int64_t p) const { return masks_[p]; }
  LAMINA_INLINE static Vec<T> load(const T* from, unsigned) { return load_vector(from); }
  LAMINA_INLINE static Vec<T> add(Vec<T> a, Vec<T> b, Vec<T> c, unsigned mask) {
    return multiply_add_some<T>(a, b, c, mask);
  }

 private:
  const uint16_t* masks_;
#else
  typedef uint8_t Mask __attribute__((vector_size(LAMINA_PACKED_BYTES)));
  explicit Counted(const ConvDots& g) : whole_(g.cols / kLanes<T>) {
    const auto rest = static_cast<size_t>(g.cols % kLanes<T>);
    for (size_t i = 0; i < rest * sizeof(T); ++i) last_[i] = 0xff;
  }
  LAMINA_INLINE const Mask* operator[](int64_t p) const { return p < whole_ ? nullptr : &last_; }
  LAMINA_INLINE static Vec<T> load(const T* from, const Mask* mask) {
    const Vec<T> v = load_vector(from);
    return mask ? (Vec<T>)((Mask)v & *mask) : v;
  }
  LAMINA_INLINE static Vec<T> add(Vec<T> a, Vec<T> b, Vec<T> c, const Mask*) {
    return multiply_add<T>(a, b, c);
  }

 private:
  int64_t whole_;
  Mask last_ = {};
#endif
};

template <class T, int kM, int kN>
[[gnu::noinline]] void dots_tile(const ConvDots& g, const T* a, const T* const* b, T* c) {
  constexpr int kL = kLanes<T>;
  Vec<T> acc[kM][kN] = {};
  const Counted<T> counted(g);
  for (int64_t q = 0; q < g.images; ++q) {
    for (int64_t l = 0; l < g.lines; ++l) {
      const T* x = a + q * g.a_image + l * g.a_line;
      const int64_t shift = q * g.b_image + l * g.b_line;
      for (int64_t p = 0; p * kL < g.cols; ++p) {
        const auto mask = counted[p];
        Vec<T> u[kM];
#pragma GCC unroll 4
        for (int i = 0; i < kM; ++i) u[i] = load_vector(x + i * g.a_stride + p * kL);
#pragma GCC unroll 6
        for (int j = 0; j < kN; ++j) {
          const Vec<T> v = Counted<T>::load(b[j] + shift + p * kL, mask);
#pragma GCC unroll 4
          for (int i = 0; i < kM; ++i) acc[i][j] = Counted<T>::add(u[i], v, acc[i][j], mask);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kM; ++i)
#pragma GCC unroll 6
    for (int j = 0; j < kN; ++j) c[i * g.c_stride + j] += sum_of<T>(acc[i][j]);
}

// kM rows of C from `i` on, which stay in the first cache while all columns pass by: columns of a window lie close
// together.
template <class T, int kM>
void dots_rows(const ConvDots& g, int64_t i) {
  const auto* b = static_cast<const T*>(g.b);
  const T* from = static_cast<const T*>(g.a) + i * g.a_stride;
  T* to = static_cast<T*>(g.c) + i * g.c_stride;
  const T* columns[kDotsN];
  const auto point = [&](int64_t j, int n) {
    for (int q = 0; q < n; ++q) columns[q] = b + g.offsets[j + q];
  };
  int64_t j = 0;
  for (; j + kDotsN <= g.n; j += kDotsN) {
    point(j, kDotsN);
    dots_tile<T, kM, kDotsN>(g, from, columns, to + j);
  }
  for (; j + kDotsRest <= g.n; j += kDotsRest) {
    point(j, kDotsRest);
    dots_tile<T, kM, kDotsRest>(g, from, columns, to + j);
  }
  for (; j < g.n; ++j) {
    point(j, 1);
    dots_tile<T, kM, 1>(g, from, columns, to + j);
  }
}

template <class T>
void dots(const ConvDots& g) {
  int64_t i = 0;
  for (; i + kDotsM <= g.m; i += kDotsM) dots_rows<T, kDotsM>(g, i);
  if (kDotsM > 3 && i + 3 <= g.m)
    dots_rows<T, 3>(g, i);
  else if (i + 2 <= g.m)
    dots_rows<T, 2>(g, i);
  else if (i < g.m)
    dots_rows<T, 1>(g, i);
}

// --- elements in and out -------------------------------------------------------------------------------------------------
template <class T, class S>
void load_elements(T* out, const S* in, int64_t n, int64_t stride) {
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) out[i] = load<T>(in[i]);
  } else if (stride == 0) {  // the gradient of a sum
    const T value = n > 0 ? load<T>(*in) : T(0);
    for (int64_t i = 0; i < n; ++i) out[i] = value;
  } else if (stride == 2) {
    for (int64_t i = 0; i < n; ++i) out[i] = load<T>(in[2 * i]);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = load<T>(in[i * stride]);
  }
}

template <class T, class S>
void store_elements(S* out, int64_t stride, const T* in, int64_t n, const T* bias) {
  if (bias) {
    const T b = *bias;
    for (int64_t i = 0; i < n; ++i) out[i * stride] = store<S, T>(static_cast<T>(in[i] + b));
  } else if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) out[i] = store<S, T>(in[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i * stride] = store<S, T>(in[i]);
  }
}

template <class T, class F>
LAMINA_INLINE void by_type(ScalarType type, F&& f) {
#define LAMINA_CASE(S, Type) \
  case ScalarType::Type:     \
    return f(S{});
  if constexpr (sizeof(T) == 4 && T(0.5) != 0) {
    switch (type) {
      LAMINA_CASE(HalfBits, Float16)
      LAMINA_CASE(BFloat16Bits, BFloat16)
      default:
        return f(T{});
    }
  } else if constexpr (sizeof(T) == 4) {
    switch (type) {
      LAMINA_CASE(int8_t, Int8)
      LAMINA_CASE(uint8_t, UInt8)
      LAMINA_CASE(int16_t, Int16)
      LAMINA_CASE(uint16_t, UInt16)
      default:
        return f(T{});
    }
  } else {
    return f(T{});
  }
#undef LAMINA_CASE
}

template <class T>
void pack_steps(void* out, const void* in, ScalarType type, int64_t lanes, int64_t lane_stride,
                const int64_t* offsets, int64_t k) {
  by_type<T>(type, [&](auto zero) {
    const auto* from = static_cast<const decltype(zero)*>(in);
    auto* to = static_cast<T*>(out);
    if (lanes == kMr) {
      for (int64_t p = 0; p < k; ++p, to += kMr)
        for (int64_t i = 0; i < kMr; ++i) to[i] = load<T>(from[offsets[p] + i * lane_stride]);
    } else {
      for (int64_t p = 0; p < k; ++p, to += kMr)
        for (int64_t i = 0; i < kMr; ++i)
          to[i] = i < lanes ? load<T>(from[offsets[p] + i * lane_stride]) : T(0);
    }
  });
}

template <class T>
void load_row(void* out, const void* in, ScalarType type, int64_t n, int64_t stride) {
  by_type<T>(type, [&](auto zero) {
    load_elements<T>(static_cast<T*>(out), static_cast<const decltype(zero)*>(in), n, stride);
  });
}

template <class T>
void store_row(void* out, ScalarType type, int64_t stride, const void* in, int64_t n,
               const void* bias) {
  by_type<T>(type, [&](auto zero) {
    store_elements<T>(static_cast<decltype(zero)*>(out), stride, static_cast<const T*>(in), n,
                      static_cast<const T*>(bias));
  });
}

// Lines are short: a call for each would cost more than the copy.
template <class T>
void copy_lines(void* to_v, int64_t to_line, const void* from_v, int64_t from_line, int64_t n,
                int64_t lines) {
  constexpr int kL = kLanes<T>;
  auto* to = static_cast<T*>(to_v);
  const auto* from = static_cast<const T*>(from_v);
  for (int64_t l = 0; l < lines; ++l, to += to_line, from += from_line) {
    int64_t i = 0;
    for (; i + kL <= n; i += kL) store_vector(to + i, load_vector(from + i));
    if (i == n) continue;
    if (n >= kL)  // once more what the last whole vector held
      store_vector(to + n - kL, load_vector(from + n - kL));
    else
      copy_first(to, from, n);
  }
}

template <class T>
void add_rows(void* to, const void* from, int64_t count, int64_t stride, int64_t n) {
  auto* sum = static_cast<T*>(to);
  for (int64_t j = 0; j < count; ++j) {
    const T* row = static_cast<const T*>(from) + j * stride;
    for (int64_t i = 0; i < n; ++i) sum[i] += row[i];
  }
}

template <class T>
constexpr ConvKernels conv_kernels_of() {
  return {kMr, kLanes<T>, sizeof(T), LAMINA_PACKED_BYTES == 64, multiply<T>, dots<T>, pack_steps<T>,
          load_row<T>, store_row<T>, copy_lines<T>, add_rows<T>};
}

}  // namespace

extern const ConvLevel kConvLevel;
const ConvLevel kConvLevel = {{conv_kernels_of<float>(), conv_kernels_of<double>(),
                               conv_kernels_of<uint32_t>(), conv_kernels_of<uint64_t>()}};

}  // namespace lamina::cpu::LAMINA_PACKED_LEVEL
